"""HTML from function calls: everything that is not `Safe` is escaped, so that a name can never become markup."""

import base64
import html
import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

VOID = frozenset({"br", "col", "hr", "img", "input", "meta"})
KINDS = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"RIFF": "image/webp"}
ATTRIBUTE = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
UNSHOWN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
"""Characters that HTML forbids, and those that change the direction of the text after them."""


class Safe(str):
    """Text that is already HTML and must not be escaped."""

    __slots__ = ()


Child: TypeAlias = "str | float | Iterable[Child] | None"
Cell: TypeAlias = "Child | tuple[Child, str | float | None]"
"""Content of a table cell, or (content, sort key) if it should not be sorted by its content.

Therefore content that is a tuple of two children must be joined first.
"""


def text(value: Child) -> Safe:
    """Return a child as HTML; None is empty, and an iterable is joined."""
    if isinstance(value, Safe):
        return value
    if value is None:
        return Safe()
    if isinstance(value, str | int | float):
        return Safe(html.escape(UNSHOWN.sub("�", str(value))))
    return join(value)


def join(parts: Iterable[Child]) -> Safe:
    """Return the concatenation of the parts as HTML."""
    return Safe("".join(text(part) for part in parts))


def tag(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Safe:
    """Return an element. ``class_`` becomes class, ``data_x`` data-x; attributes are left out if None or False."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Safe(f"<{name}{written}>")
    return Safe(f"<{name}{written}>{join(children)}</{name}>")


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if not ATTRIBUTE.fullmatch(name) or name.lower().startswith("on") or name == "style":
        raise ValueError(f"no attribute '{name}': the page's policy forbids scripts and styles within elements")
    return f" {name}" if value is True else f' {name}="{html.escape(UNSHOWN.sub("�", str(value)))}"'


def picture(image: bytes, alt: str, **attributes: str | float | bool | None) -> Safe:
    """Return an image element with a PNG, JPEG or WebP file embedded."""
    kind = next((kind for head, kind in KINDS.items() if image.startswith(head)), None)
    if kind is None:
        raise ValueError("a picture must be PNG, JPEG or WebP")
    data = base64.b64encode(image).decode()
    return tag("img", src=f"data:{kind};base64,{data}", alt=alt, **attributes)


def table(
    columns: Sequence[Child], rows: Iterable[Sequence[Cell]], sortable: bool = True, caption: Child = None
) -> Safe:
    """Return a table that scrolls horizontally if it is wide. Numbers and text that begins with one are right-aligned.

    A sortable table is sorted by a click on a column's name. The caption is above the scrolling part, so that it wraps
    to the width of the page; the first columns are those that a narrow screen shows without scrolling.
    """
    cells = [[_cell(cell) for cell in row] for row in rows]
    numbers = [bool(cells) and all(row[at].startswith(_RIGHT) for row in cells) for at in range(len(columns))]
    heads = [
        tag("th", tag("button", name, type="button") if sortable else name, scope="col", class_="n" if number else None)
        for name, number in zip(columns, numbers, strict=True)
    ]
    body = tag("tbody", *[tag("tr", *row) for row in cells])
    inside = tag("table", tag("thead", tag("tr", *heads)), body, class_="sortable" if sortable else None)
    scroller = tag("div", inside, class_="wide", tabindex=0, role="region", aria_label=_plain(caption) or "table")
    above = None if caption is None else paragraph(caption, class_="caption")
    return tag("div", above, scroller, class_="table")


def _cell(cell: Cell) -> Safe:
    shown, key = cell if isinstance(cell, tuple) and len(cell) == 2 else (cell, None)
    right = isinstance(shown, int | float) or (not isinstance(shown, Safe) and bool(_NUMBER.match(str(shown))))
    if isinstance(shown, float):
        key, shown = shown if key is None else key, f"{shown:.2f}"
    elif isinstance(shown, int):
        key, shown = shown if key is None else key, f"{shown:,}"
    # cells with an empty key come last in both sort orders
    sort = None if key is None else "" if key != key else str(key)
    return tag("td", shown, class_="n" if right else None, data_sort=sort)


_NUMBER = re.compile(r"[+−-]?\d|[–]$")
_RIGHT = '<td class="n"'


def _plain(value: Child) -> str:
    """Return the text of a child without markup, for an attribute."""
    return html.unescape(re.sub(r"<[^>]*>", "", text(value)))


def figure(title: Child, *children: Child, note: Child = None, wide: bool = False) -> Safe:
    """Return a chart or pictures with a heading, and a note on how to read them."""
    heading = tag("figcaption", tag("b", title), None if note is None else tag("span", note))
    return tag("figure", heading, *children, class_="chart across" if wide else "chart")


def figures(*children: Child) -> Safe:
    """Return figures side by side, as many as fit."""
    return tag("div", *children, class_="figures")


def beside(*children: Child) -> Safe:
    """Return a figure and a table, side by side if the whole table fits, or else one below the other."""
    return tag("div", *children, class_="beside")


def legend(entries: Iterable[tuple[str, int] | tuple[str, int, bool]]) -> Safe:
    """Return a legend of (name, color) entries; an optional third value says whether the color is faint."""
    shown = [(name, f"fill{color}{' faint' if any(faint) else ''}") for name, color, *faint in entries]
    return tag("p", *[tag("span", tag("i", class_=color), name) for name, color in shown], class_="legend")


def swatches(entries: Iterable[tuple[str, tuple[int, int, int]]]) -> Safe:
    """Return a legend of (name, RGB color) entries, for any colors.

    Each color is a tiny SVG, since the page's policy forbids style attributes.
    """
    shown = []
    for name, color in entries:
        square = tag("rect", width=12, height=12, fill=f"#{bytes(color).hex()}")
        drawn = tag("svg", square, viewBox="0 0 12 12", width=12, height=12, class_="swatch", aria_hidden="true")
        shown.append(tag("span", drawn, name))
    return tag("p", *shown, class_="legend")


def cards(*children: Child) -> Safe:
    """Return a gallery of pictures with captions, made by `card`."""
    return tag("div", *children, class_="cards")


def card(*children: Child, **attributes: str | float | bool | None) -> Safe:
    return tag("article", *children, class_="card", **attributes)


def paragraph(*children: Child, class_: str | None = None) -> Safe:
    return tag("p", *children, class_=class_)


def details(summary: Child, *children: Child, open_: bool = False) -> Safe:
    """Return content that is collapsed under a summary."""
    return tag("details", tag("summary", summary), *children, open=open_)
