"""The gallery of an audit: a page of images, each with why its label looks wrong or why it should be labeled."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from dmt import pictures
from dmt.auditing.label_next import Candidate
from dmt.auditing.mask_pictures import MaskPictures
from dmt.auditing.suspects import Suspect
from dmt.data.pixels import palettes
from dmt.pages import document, html
from dmt.pages.html import Child, Safe, tag

LONGEST = 128
"""Longer side of a thumbnail in pixels: 300 images with four pictures each stay below 5 MB."""

LEVELS = 16

ImageAt = Callable[[int], np.ndarray]
"""Returns the image at a position."""


@dataclass(frozen=True)
class PictureList:
    """Pictures for a list of the gallery.

    Attributes:
        image_at: returns the image at a position.
        pictures: position -> pictures of its mask; empty for classification.
        nets: names of the nets that judged.
    """

    image_at: ImageAt
    pictures: Mapping[int, MaskPictures]
    nets: tuple[str, ...]


@dataclass(frozen=True)
class Names:
    """Names of the classes and, for segmentation, their colors."""

    classes: tuple[str, ...]
    palette: tuple[tuple[int, int, int], ...]

    def __getitem__(self, label: int) -> str:
        return self.classes[label] if label >= 0 else "–"


def page(title: str, subtitle: str, *sections: Child) -> bytes:
    """Return the gallery as an HTML file."""
    return document.document(title, *sections, subtitle=subtitle).encode(errors="replace")


def suspects(title: str, note: str, found: Sequence[Suspect], listed: PictureList, names: Names) -> Safe:
    """Return the section on labels that are probably wrong."""
    cards = [_suspect(each, listed, names) for each in found]
    return _section(title, note, cards, names)


def candidates(title: str, note: str, found: Sequence[Candidate], listed: PictureList, names: Names) -> Safe:
    """Return the section on images that are worth labeling."""
    cards = [_candidate(number, each, listed, names) for number, each in enumerate(found, start=1)]
    return _section(title, note, cards, names)


def missing(title: str, why: str) -> Safe:
    """Return a section that says why its list is missing."""
    return document.section(title, note=why)


def _section(title: str, note: str, cards: Sequence[Safe], names: Names) -> Safe:
    body = tag("div", *cards, class_="stack") if names.palette else html.cards(*cards)
    colors = zip(names.classes, names.palette, strict=False)
    return document.section(title, html.swatches(colors) if names.palette and cards else None, body, note=note)


def _suspect(each: Suspect, listed: PictureList, names: Names) -> Safe:
    said = [f"{name}: {own:.0%} → {other:.0%}" for name, (own, other) in zip(listed.nets, each.nets, strict=True)]
    share = f", {each.share:.1%} of its labeled pixels" if each.position in listed.pictures else ""
    change = tag("p", tag("b", names[each.given], " → ", names[each.suggested]), share)
    source = [f"learned by {each.source}"] if each.source else []
    alt = f"{each.file}: {names[each.given]} or {names[each.suggested]}"
    return _card(each.position, alt, listed, names, [tag("p", each.file), change, _lines(said + source)])


def _candidate(number: int, each: Candidate, listed: PictureList, names: Names) -> Safe:
    pixels = each.position in listed.pictures
    said = [
        f"{name}: confidence {sure:.0%}" if pixels else f"{name}: {names[label]} {sure:.0%}"
        for name, (label, sure) in zip(listed.nets, each.nets, strict=True)
    ]
    doubt = f"uncertainty {each.doubt:.2f}, of which {each.disagreement:.2f} from disagreement"
    lines = [tag("p", tag("b", f"{number}. "), each.file), _lines([*said, doubt])]
    return _card(each.position, f"{each.file}: {names[each.label]}?", listed, names, lines)


def _lines(texts: Sequence[str]) -> Safe:
    return tag("p", *[part for text in texts for part in (text, tag("br"))][:-1])


def _card(position: int, alt: str, listed: PictureList, names: Names, lines: Sequence[Safe]) -> Safe:
    drawn = listed.pictures.get(position)
    if drawn is None:
        image = listed.image_at(position)
        return html.card(_picture(photo(image), alt, image), *lines)
    panes = [("image", photo(drawn.image), drawn.image)]
    if drawn.given is not None:
        panes.append(("given", mask(drawn.given, names.palette), drawn.given))
    panes.append(("the nets say", mask(drawn.suggested, names.palette), drawn.suggested))
    panes.append(("where they differ" if drawn.given is not None else "doubt", heat(drawn.heat), drawn.heat))
    figures = [tag("figure", _picture(data, f"{alt} ({title})", plane), title) for title, data, plane in panes]
    return html.card(*lines, tag("div", *figures, class_="panes"))


def _picture(data: bytes, alt: str, plane: np.ndarray) -> Safe:
    return html.picture(data, alt, loading="lazy", class_="crisp" if max(plane.shape[:2]) <= LONGEST // 2 else None)


def photo(image: np.ndarray) -> bytes:
    """Return a thumbnail of an image (H, W, 3) or (H, W)."""
    whole = Image.fromarray(image)
    if max(whole.size) <= LONGEST // 2:
        return pictures.encode(whole, optimize=True)
    whole.thumbnail((LONGEST, LONGEST))
    return pictures.encode(whole.convert("RGB"), "WEBP", quality=75)


def mask(labels: np.ndarray, palette: tuple[tuple[int, int, int], ...]) -> bytes:
    """Return a mask (H, W) in the colors of its classes, shrunk by nearest neighbor so that no classes are mixed."""
    drawn = palettes.indexed(np.ascontiguousarray(labels), palette)
    return pictures.encode(pictures.shrink(drawn, LONGEST, Image.Resampling.NEAREST), optimize=True)


def heat(values: np.ndarray) -> bytes:
    """Return a map of values (H, W) in [0, 1], in colors from dark to bright."""
    gray = Image.fromarray((values * 255).round().clip(0, 255).astype(np.uint8))
    gray = pictures.shrink(gray, LONGEST, Image.Resampling.BOX)
    steps = np.asarray(gray).astype(np.float32) / 255 * (LEVELS - 1)
    image = Image.fromarray(steps.round().astype(np.uint8))
    image.putpalette([number for level in range(LEVELS) for number in _flame(level / (LEVELS - 1))])
    return pictures.encode(image, optimize=True)


def _flame(value: float) -> tuple[int, int, int]:
    """Return the color of a value in [0, 1]: from nearly black through red and orange to pale yellow."""
    return (
        round(24 + 231 * min(1.0, 1.6 * value)),
        round(24 + 216 * value**1.5),
        round(32 + 150 * max(0.0, value - 0.6)),
    )
