"""Charts as inline SVG: lines with bands, stacked areas, bars, heat maps. Colors come from the page's style sheet."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dmt.pages import axes
from dmt.pages.axes import Axes, clipped
from dmt.pages.html import Child, Safe, join, tag

Point = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """A data series of a chart.

    Attributes:
        name: shown at the end of the line; "" for none.
        points: (x, y) in order; points whose y is NaN are left out.
        spread: ± around each y; empty for no band.
        color: 0 to 7; 0 is gray.
        dashed: whether the line is dashed.
        marks: whether points are marked.
        sizes: radius of each mark; empty for the default.
        faint: whether to draw a layer faintly, for one that fills most of the chart but is not its subject.
        rings: whether to draw rings without a line, for another quantity than that of the lines.
    """

    name: str
    points: Sequence[Point]
    spread: Sequence[float] = ()
    color: int = 1
    dashed: bool = False
    marks: bool = True
    sizes: Sequence[float] = ()
    faint: bool = False
    rings: bool = False


NAME = 28
"""Maximum letters of a name at the end of a line; longer ones are cut and shown in full in a tooltip."""


@dataclass(frozen=True)
class Level:
    """A dashed horizontal line across the chart: a value to compare with."""

    name: str
    value: float
    color: int = 0


def lines(label: str, frame: Axes, series: Sequence[Series], levels: Sequence[Level] = (), unit: str = "") -> Safe:
    """Return a line chart with a band of ± spread around each line, and names at the ends of lines."""
    shown = [each for each in series if any(math.isfinite(y) for _, y in each.points)]
    ends = [(each.name, _last(each)[1], each.color) for each in shown if each.name]
    ends += [(level.name, level.value, level.color) for level in levels if level.name]
    longest = max((len(clipped(name, NAME)) for name, _, _ in ends), default=0)
    frame = replace(frame, right=max(frame.right, longest * axes.LETTER + 16 if ends else frame.right))
    marks: list[Child] = [_level(frame, level) for level in levels]
    marks += [_band(frame, each) for each in shown if each.spread]
    marks += [_line(frame, each, unit) for each in shown]
    return frame.draw(label, *marks, *_names(frame, ends))


def _last(series: Series) -> Point:
    return [point for point in series.points if math.isfinite(point[1])][-1]


def _level(frame: Axes, level: Level) -> Safe:
    height = f"{frame.up(level.value):.1f}"
    tip = tag("title", f"{level.name} {level.value:.2f}")
    return tag("line", tip, x1=frame.left, x2=f"{frame.far:.1f}", y1=height, y2=height,
               class_=f"line dashed line{level.color}")  # fmt: skip


def _band(frame: Axes, series: Series) -> Safe:
    there = [
        (x, y, 0.0 if math.isnan(around) else around)
        for (x, y), around in zip(series.points, series.spread, strict=True)
        if math.isfinite(y)
    ]
    edge = [(x, y + around) for x, y, around in there] + [(x, y - around) for x, y, around in reversed(there)]
    return tag("polygon", points=_path(frame, edge), class_=f"band fill{series.color}")


def _path(frame: Axes, points: Iterable[Point]) -> str:
    low, high = frame.y
    return " ".join(f"{frame.across(x):.1f},{frame.up(min(max(y, low), high)):.1f}" for x, y in points)


def _line(frame: Axes, series: Series, unit: str) -> Safe:
    there = [(number, x, y) for number, (x, y) in enumerate(series.points) if math.isfinite(y)]
    style = f"line line{series.color}{' dashed' if series.dashed else ''}"
    drawn = tag("polyline", points=_path(frame, ((x, y) for _, x, y in there)), class_=style)
    if not series.marks:
        return drawn
    dots = []
    for number, x, y in there:
        around = series.spread[number] if series.spread else math.nan
        tooltip = f"{series.name} {y:.2f}{'' if math.isnan(around) else f' ± {around:.2f}'}{unit}".strip()
        size = series.sizes[number] if series.sizes else 3.6
        dots.append(tag("circle", tag("title", tooltip), cx=f"{frame.across(x):.1f}", cy=f"{frame.up(y):.1f}",
                        r=f"{size:.1f}", class_=_mark(series)))  # fmt: skip
    return join(dots if series.rings else [drawn, *dots])


def _mark(series: Series) -> str:
    return f"ring line{series.color}" if series.rings else f"fill{series.color} edge"


def _names(frame: Axes, ends: Sequence[tuple[str, float, int]]) -> Iterator[Safe]:
    """Yield names at the ends of lines, moved apart where they would overlap."""
    order = sorted(ends, key=lambda each: -each[1])
    heights = _apart([frame.up(value) for _, value, _ in order], 16.0, frame.top + 2, frame.bottom - 2)
    for (name, _, color), height in zip(order, heights, strict=True):
        tip = tag("title", name) if clipped(name, NAME) != name else None
        yield tag("text", clipped(name, NAME), tip, x=f"{frame.far + 10:.1f}", y=f"{height:.1f}", dy="0.35em",
                  class_=f"ink{color}")  # fmt: skip


def _apart(heights: Sequence[float], gap: float, top: float, bottom: float) -> list[float]:
    """Return ascending heights moved at least ``gap`` apart: down first, then back up to stay above ``bottom``."""
    result: list[float] = []
    for height in heights:
        result.append(max(height, top, result[-1] + gap if result else top))
    for number in range(len(result) - 1, -1, -1):
        below = bottom if number == len(result) - 1 else result[number + 1] - gap
        result[number] = min(result[number], below)
    # if all were moved down, move them back up by half of the smallest shift, to center names on what they name
    slack = min((place - height for place, height in zip(result, heights, strict=True)), default=0.0)
    return [place - slack / 2 for place in result] if slack > 0 and result[0] - slack / 2 >= top else result


def areas(label: str, frame: Axes, layers: Sequence[Series]) -> Safe:
    """Return a chart of stacked areas; all layers must have the same x."""
    marks, below = [], [0.0] * len(layers[0].points)
    for layer in layers:
        above = [base + y for base, (_, y) in zip(below, layer.points, strict=True)]
        places = [x for x, _ in layer.points]
        edge = [*zip(places, above, strict=True), *reversed(list(zip(places, below, strict=True)))]
        tip = tag("title", layer.name)
        marks.append(
            tag("polygon", tip, points=_path(frame, edge), class_=f"fill{layer.color}{' faint' if layer.faint else ''}")
        )
        below = above
    return frame.draw(label, *marks)


def bars(label: str, frame: Axes, groups: Sequence[str], series: Sequence[Series], unit: str = "") -> Safe:
    """Return a chart of bars side by side in named groups; the n-th point of each series is its bar in group n."""
    count = max(len(series), 1)
    frame = replace(frame, x=(-0.5, len(groups) - 0.5), x_ticks=[(n, name) for n, name in enumerate(groups)])
    width = 0.8 / count
    marks: list[Child] = []
    for row, each in enumerate(series):
        for place, (_, y) in enumerate(each.points):
            if math.isfinite(y):
                start = place - 0.4 + row * width
                tooltip = f"{each.name}, {groups[place]}: {y:.2f}{unit}"
                marks.append(_bar(frame, (start, start + width), y, tooltip, each.color))
    return frame.draw(label, *marks)


def _bar(frame: Axes, sides: Point, value: float, tooltip: str, color: int) -> Safe:
    left, right = frame.across(sides[0]), frame.across(sides[1])
    top, floor = frame.up(value), frame.up(max(frame.y[0], 0.0))
    height = abs(floor - top)
    style = f"fill{color} edge" if height > 2 else f"fill{color}"  # an edge would hide a very low bar
    return tag("rect", tag("title", tooltip), x=f"{left:.1f}", width=f"{right - left:.1f}",
               y=f"{min(top, floor - 0.8):.1f}", height=f"{max(height, 0.8):.1f}", class_=style)  # fmt: skip


def reliability(label: str, series: Sequence[Series]) -> Safe:
    """Return a reliability diagram, accuracy against confidence in percent; the dashed line is perfect calibration."""
    frame = Axes((0, 100), (0, 100), "confidence, %", "right, %", width=420, height=330)
    even = Series("", [(0, 0), (100, 100)], color=0, dashed=True, marks=False)
    return lines(label, frame, [even, *series])


def grid(label: str, rows: Sequence[str], columns: Sequence[str], shares: Sequence[Sequence[float]]) -> Safe:
    """Return a heat map of shares from 0 to 1 with named rows and columns; NaN is an empty cell."""
    margin = max((len(clipped(name, 18)) for name in rows), default=1) * axes.LETTER + 14
    width, height = min(64.0, (480 - margin) / max(len(columns), 1)), 24.0 if len(rows) <= 15 else 17.0
    marks: list[Child] = []
    for number, name in enumerate(columns):
        marks.append(tag("text", name, x=f"{margin + (number + 0.5) * width:.1f}", y=14, text_anchor="middle",
                         class_="tick"))  # fmt: skip
    for row, name in enumerate(rows):
        top = 22 + row * height
        marks.append(tag("text", clipped(name, 18), tag("title", name), x=margin - 8, y=f"{top + height / 2:.1f}",
                         dy="0.35em", text_anchor="end"))  # fmt: skip
        for column, share in enumerate(shares[row]):
            tooltip = f"{name}, {columns[column]}: {'none' if math.isnan(share) else f'{share:.1%}'}"
            marks.append(_share(share, tooltip, (margin + column * width, top), (width, height)))
    return axes.drawing(margin + len(columns) * width + 4, 26 + len(rows) * height, label, *marks)


def _share(share: float, tooltip: str, corner: Point, size: Point) -> Safe:
    (x, y), (width, height) = corner, size
    # from faint to medium, so that the number on it is always readable
    strength = 0.0 if math.isnan(share) else 0.04 + 0.5 * share
    square = tag("rect", tag("title", tooltip), x=f"{x:.1f}", y=f"{y:.1f}", width=f"{width:.1f}",
                 height=f"{height:.1f}", class_="edge fill1", fill_opacity=f"{strength:.3f}")  # fmt: skip
    text = "–" if math.isnan(share) else f"{100 * share:.0f}"
    return join([square, tag("text", text, x=f"{x + width / 2:.1f}", y=f"{y + height / 2:.1f}", dy="0.35em",
                             text_anchor="middle", pointer_events="none")])  # fmt: skip


@dataclass(frozen=True)
class Heat:
    """A confusion matrix of counts: rows are true classes, columns predicted ones."""

    names: Sequence[str]
    counts: Sequence[Sequence[int]]

    def share(self, row: int, column: int) -> float:
        total = sum(self.counts[row])
        return self.counts[row][column] / total if total else 0.0


def heat(label: str, data: Heat) -> Safe:
    """Return a confusion matrix with rows in percent; correct and wrong predictions have different colors."""
    count = len(data.names)
    cell = max(15.0, min(40.0, 430.0 / max(count, 1)))
    letters = max((len(clipped(name, 14)) for name in data.names), default=1)
    margin = letters * axes.LETTER + 14
    marks: list[Child] = []
    upright = letters <= 2
    for number, name in enumerate(data.names):
        place = margin + (number + 0.5) * cell
        full = tag("title", name)
        marks.append(tag("text", clipped(name, 14), full, x=margin - 6, y=f"{place:.1f}", dy="0.35em",
                         text_anchor="end"))  # fmt: skip
        turn = None if upright else f"rotate(-90 {place:.1f} {margin - 6:.1f})"
        marks.append(tag("text", clipped(name, 14), full, x=f"{place:.1f}", y=f"{margin - 6:.1f}", transform=turn,
                         dy=None if upright else "0.35em", text_anchor="middle" if upright else None))  # fmt: skip
    for row in range(count):
        marks += [_heat_cell(data, row, column, margin, cell) for column in range(count)]
    size = margin + count * cell + 4
    corner = tag("text", "rows: true, columns: predicted", x=2, y=13, class_="tick")
    return axes.drawing(size, size + 20, label, corner, tag("g", *marks, transform="translate(0 20)"))


def _heat_cell(data: Heat, row: int, column: int, margin: float, cell: float) -> Safe:
    share, count = data.share(row, column), data.counts[row][column]
    x, y = margin + column * cell, margin + row * cell
    tooltip = f"{data.names[row]} called {data.names[column]}: {count:,} ({share:.1%})"
    # the square root makes small shares of wrong predictions visible
    strength = 0.55 * share if row == column else min(0.95, math.sqrt(share) * 1.2)
    square = tag("rect", tag("title", tooltip), x=f"{x:.1f}", y=f"{y:.1f}", width=f"{cell:.1f}", height=f"{cell:.1f}",
                 class_="edge fill1" if row == column else "edge fill7", fill_opacity=f"{strength:.3f}")  # fmt: skip
    number = f"{100 * share:.0f}"
    if cell < 28 or number == "0":
        return square
    return join([square, tag("text", number, x=f"{x + cell / 2:.1f}", y=f"{y + cell / 2:.1f}", dy="0.35em",
                             text_anchor="middle", pointer_events="none")])  # fmt: skip
