"""The frame of a chart: scales, ticks and titles, in the units of its SVG drawing."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dmt.pages.html import Child, Safe, tag

Ticks = Sequence[tuple[float, str]]
LETTER = 7.6
"""Approximate width of a letter, to reserve space for names."""


def ticks(low: float, high: float, count: int = 6) -> list[float]:
    """Return about ``count`` round numbers within a range."""
    if not high > low:
        return [low]
    rough = (high - low) / max(count, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 10) for number in range(first, math.floor(high / step + 1e-9) + 1)]


def span(values: Iterable[float], least: float = 1.0, within: tuple[float, float] | None = None) -> tuple[float, float]:
    """Return a range that contains all finite values with a margin.

    Args:
        values: the values.
        least: minimum width, so that noise does not fill the chart.
        within: limits of the range; None for no limits.
    """
    found = [value for value in values if math.isfinite(value)]
    if not found:
        return within or (0.0, 1.0)
    low, high = min(found), max(found)
    air = max(0.08 * (high - low), (least - (high - low)) / 2)
    low, high = low - air, high + air
    return (low, high) if within is None else (max(low, within[0]), min(high, within[1]))


def short(value: float) -> str:
    """Format a number for an axis: 12,000 as 12k."""
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:g}{letter}"
    return f"{value:g}"


def clipped(name: str, letters: int) -> str:
    """Shorten a name to at most ``letters`` letters."""
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


@dataclass(frozen=True)
class Axes:
    """The frame of a chart.

    Attributes:
        x, y: ranges of the axes.
        x_title, y_title: titles of the axes, with the unit.
        x_ticks, y_ticks: (value, text) of the ticks; round numbers if None.
        width, height: size of the drawing.
        right: margin for names at the ends of lines.
        left: margin for the ticks of the vertical axis.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    x_title: str = ""
    y_title: str = ""
    x_ticks: Ticks | None = None
    y_ticks: Ticks | None = None
    width: int = 480
    height: int = 290
    right: float = 14.0
    left: float = 46.0

    @property
    def top(self) -> float:
        return 28.0 if self.y_title else 10.0

    @property
    def bottom(self) -> float:
        return self.height - (44.0 if self.x_title else 24.0)

    @property
    def far(self) -> float:
        """Right edge of the plot."""
        return self.width - self.right

    def across(self, x: float) -> float:
        low, high = self.x
        return self.left + (x - low) / ((high - low) or 1.0) * (self.far - self.left)

    def up(self, y: float) -> float:
        low, high = self.y
        return self.bottom - (y - low) / ((high - low) or 1.0) * (self.bottom - self.top)

    def draw(self, label: str, *marks: Child) -> Safe:
        """Return the chart: grid, marks, ticks and titles. ``label`` is a description for screen readers."""
        return drawing(self.width, self.height, label, self._grid(), *marks, self._titles())

    def _grid(self) -> Iterable[Safe]:
        marks = self.y_ticks if self.y_ticks is not None else [(value, short(value)) for value in ticks(*self.y)]
        for value, name in marks:
            height = f"{self.up(value):.1f}"
            yield tag("line", x1=self.left, x2=f"{self.far:.1f}", y1=height, y2=height, class_="grid")
            yield tag("text", name, x=self.left - 6, y=height, dy="0.35em", text_anchor="end", class_="tick")
        floor = f"{self.bottom:.1f}"
        yield tag("line", x1=self.left, x2=f"{self.far:.1f}", y1=floor, y2=floor, class_="axis")
        below = self.x_ticks if self.x_ticks is not None else [(value, short(value)) for value in ticks(*self.x)]
        for value, name in below:
            place = f"{self.across(value):.1f}"
            yield tag("text", name, x=place, y=f"{self.bottom + 17:.1f}", text_anchor="middle", class_="tick")

    def _titles(self) -> Iterable[Safe]:
        if self.y_title:
            yield tag("text", self.y_title, x=2, y=13, class_="tick")
        if self.x_title:
            middle = f"{(self.left + self.far) / 2:.1f}"
            yield tag("text", self.x_title, x=middle, y=self.height - 6, text_anchor="middle", class_="tick")


def drawing(width: float, height: float, label: str, *marks: Child) -> Safe:
    """Return an inline SVG with a description for screen readers."""
    box = f"0 0 {width:g} {height:g}"
    return tag("svg", *marks, viewBox=box, width=f"{width:g}", height=f"{height:g}", role="img", aria_label=label)
