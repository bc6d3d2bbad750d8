"""The class of each number or color in masks: given by ``classes.txt``, or inferred from the masks."""

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from dmt.data.folders import mask_files, photo_files
from dmt.data.pixels import class_lists, voc
from dmt.data.pixels.masks import VOID
from dmt.data.pixels.palettes import Color
from dmt.errors import DataError

LIMIT = 64
"""More classes than this must be named: masks with so many colors look like photos, or have smooth edges."""

_SCANNED = 2000  # greatest number of masks that are read if classes.txt names the classes; otherwise all are
_BLACK, _WHITE = (0, 0, 0), (255, 255, 255)


@dataclass(frozen=True)
class Scheme:
    """How to read masks: ``classes``, ``colors`` and ``palette`` as in `FolderContents`."""

    classes: tuple[str, ...]
    colors: dict[Color, int] | None
    palette: tuple[Color, ...]
    notes: tuple[str, ...] = ()


@dataclass
class Seen:
    """Statistics of the values in masks.

    Attributes:
        numbers: pixel counts of each stored number, over masks that are not drawn in colors.
        colors: pixel counts of each color as shown by an image viewer, over all masks.
        indexed: numbers in indexed masks, each with its color in the palette.
        drawn: the first mask drawn in colors, if any.
        crowded: the first mask with more than ``LIMIT`` different values, if any.
    """

    numbers: Counter[int] = field(default_factory=Counter)
    colors: Counter[Color] = field(default_factory=Counter)
    indexed: set[tuple[int, Color]] = field(default_factory=set)
    drawn: Path | None = None
    crowded: Path | None = None


def scheme(masks: Sequence[Path], listing: Path | None, standard: tuple[str, ...] = ()) -> Scheme:
    """Decide how to read masks.

    Args:
        masks: the files.
        listing: the file classes.txt, if there is one.
        standard: names of the numbers 0, 1, …, used without such a file if they cover all numbers in the masks.
    """
    if listing is None:
        seen = look(masks)
        if standard and seen.drawn is None and max(seen.numbers.keys() - {VOID}, default=0) < len(standard):
            return Scheme(standard, None, voc.PALETTE[: len(standard)])
        return _inferred(seen)
    names, listed = class_lists.read_classes(listing)
    seen = look(masks[:: 1 + len(masks) // _SCANNED])
    return _named(names, seen) if listed is None else _listed(names, listed, seen)


def look(masks: Iterable[Path]) -> Seen:
    """Count the values in masks. Unreadable files are left to the survey to report, unless no mask is readable."""

    def one(path: Path) -> Seen | DataError:
        try:
            return _look(path)
        except DataError as error:
            return error

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(one, masks))
    whole = Seen()
    for part in (each for each in results if isinstance(each, Seen)):
        whole.numbers.update(part.numbers)
        whole.colors.update(part.colors)
        whole.indexed |= part.indexed
        whole.drawn = whole.drawn or part.drawn
        whole.crowded = whole.crowded or part.crowded
    failed = [each for each in results if isinstance(each, DataError)]
    if failed and len(failed) == len(results):
        raise failed[0]
    return whole


def _look(path: Path) -> Seen:
    with mask_files.opened_mask(path) as image:
        stored = mask_files.numbers(image)
        if stored.mode == "RGB":
            found = stored.getcolors(LIMIT)
            if found is None:
                return Seen(drawn=path, crowded=path)
            return Seen(colors=Counter({_color(color): count for count, color in found}), drawn=path)
        values, counts = np.unique(np.asarray(stored), return_counts=True)
        numbers = Counter(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        shades = _shades(image)
        seen = Seen(numbers, crowded=path if len(numbers) > LIMIT else None)
        for number in numbers.keys() & shades.keys():
            seen.colors[shades[number]] += numbers[number]
        seen.indexed = {(number, shades[number]) for number in numbers if stored.mode == "P"}
        return seen


def _shades(image: Image.Image) -> dict[int, Color]:
    """Return the color in which a viewer shows each number of a gray or indexed image."""
    if image.mode == "1":
        return {0: _BLACK, 1: _WHITE}
    gray = {value: (value, value, value) for value in range(256)}
    if image.mode != "P":
        return gray
    palette = image.getpalette("RGB") or []
    return gray | {number: _color(tuple(rgb)) for number, rgb in enumerate(zip(*[iter(palette)] * 3, strict=True))}


def _color(color: object) -> Color:
    assert isinstance(color, tuple)
    red, green, blue = (int(each) for each in color)
    return red, green, blue


def _binary(seen: Seen) -> bool:
    """Return whether masks are black and white, with the values 0 and 255 in their files."""
    values = seen.numbers.keys()
    return seen.drawn is None and VOID in values and values <= {0, 1, VOID} and seen.colors.keys() == {_BLACK, _WHITE}


def _inferred(seen: Seen) -> Scheme:
    """Infer the classes from the masks, without classes.txt."""
    if seen.crowded is not None:
        raise DataError(
            f"{photo_files.shown(seen.crowded)} has more than {LIMIT} values, like a photo or smooth edges; save masks "
            "with one value a class, resized by nearest neighbor, or name all classes in classes.txt"
        )
    if _binary(seen):
        note = "masks hold only 0 and 255: read as 0 = background, 255 = object; classes.txt can name them"
        return Scheme(("background", "object"), {_BLACK: 0, _WHITE: 1}, (_BLACK, _WHITE), (note,))
    greatest = max(seen.numbers.keys() - {VOID}, default=0)
    # if palettes differ between files, as after color quantization, only the colors identify the classes
    agree = len(seen.indexed) == len({number for number, _ in seen.indexed})
    if seen.drawn is None and greatest < LIMIT and agree:
        count = greatest + 1
        note = f"no classes.txt: the numbers 0..{greatest} in the masks are the classes 'class 0' … 'class {greatest}'"
        return Scheme(tuple(f"class {each}" for each in range(count)), None, _palette(count, seen), (note,))
    order = tuple(sorted(seen.colors, key=lambda color: (-seen.colors[color], color)))
    if len(order) > LIMIT:
        raise DataError(
            f"the masks have {len(order)} colors, more than {LIMIT}; write classes.txt: name r g b, a line each"
        )
    names = tuple(f"color {_hex(color)}" for color in order)
    note = f"no classes.txt: the colors of the masks make {len(order)} classes, the most frequent first"
    return Scheme(names, {color: number for number, color in enumerate(order)}, order, (note,))


def _named(names: tuple[str, ...], seen: Seen) -> Scheme:
    """Use names from classes.txt without colors: the position of a name is its number in the masks."""
    if seen.drawn is not None:
        common = ", ".join(_hex(color) for color, _ in seen.colors.most_common(4))
        raise DataError(
            f"{photo_files.shown(seen.drawn)} is drawn in colors ({common} …), but classes.txt gives no colors; "
            "write a line 'name r g b' for each class"
        )
    if len(names) == 2 and _binary(seen):
        note = f"masks hold only 0 and 255: read as 0 = {names[0]}, 255 = {names[1]}"
        return Scheme(names, {_BLACK: 0, _WHITE: 1}, (_BLACK, _WHITE), (note,))
    return Scheme(names, None, _palette(len(names), seen))


def _palette(count: int, seen: Seen) -> tuple[Color, ...]:
    """Return the colors of indexed masks if they agree, so that predictions look like the masks; else VOC's colors."""
    known = dict(seen.indexed)
    if len(known) < len(seen.indexed) or len(set(known.values())) < len(known):
        return voc.PALETTE[:count]
    spare = (color for color in voc.PALETTE if color not in known.values())
    return tuple(known[number] if number in known else next(spare) for number in range(count))


def _listed(names: tuple[str, ...], listed: dict[Color, int], seen: Seen) -> Scheme:
    """Use names and colors from classes.txt; for masks that hold class numbers, the colors are only a palette."""
    first = {number: color for color, number in reversed(listed.items())}
    palette = tuple(first[number] for number in range(len(names)))
    numbered = seen.numbers.keys() <= {*range(len(names)), VOID}
    if seen.drawn is None and numbered and not seen.colors.keys() <= listed.keys():
        return Scheme(names, None, palette, ("masks hold class numbers; the colors of classes.txt only show them",))
    return Scheme(names, listed, palette)


def _hex(color: Color) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)
