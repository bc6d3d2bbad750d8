"""Pixels as pictures: what the nets say of a few images, and the pseudo labels they learned from, round by round."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from dmt import pictures, run_files
from dmt.data.pixels import palettes
from dmt.pages import html
from dmt.pages.html import Child, Safe, tag
from dmt.reporting import studies
from dmt.reporting.studies import Study
from dmt.results.reading import JobResult
from dmt.results.stage_results import StageResult
from dmt.tasks import opening

LONGEST = 256
"""Pixels of the longer side of a picture in the report."""

ROWS, STRIPS = 8, 3
"""Images that are compared, and images whose labels are shown round by round."""

NO_LABEL = 255

Pane = tuple[str, Path | None]
"""What a picture is called, and its file."""


def photo(path: Path) -> bytes:
    """A photo, small enough for a page."""
    with Image.open(path) as image:
        small = image.convert("RGB")
    small.thumbnail((LONGEST, LONGEST))
    return pictures.encode(small, "WEBP", quality=82)


def plane(path: Path) -> bytes:
    """A mask in the colors of its file, or a gray map; a mask's pixels are picked, never mixed."""
    with Image.open(path) as file:
        image = file.copy()
    by = Image.Resampling.NEAREST if image.mode == "P" else Image.Resampling.BOX
    image = pictures.shrink(image, LONGEST, by)
    if image.mode == "P":
        return pictures.encode(image, optimize=True)
    return pictures.encode(image.convert("L"), "WEBP", quality=60)


def weights(path: Path, labels: Path) -> bytes:
    """A map of weights in colors from dark (0) to yellow (1); pale, as in its labels, where there is no label."""
    with Image.open(path) as file, Image.open(labels) as mask:
        values, kept = np.array(file.convert("L")), np.array(mask) != NO_LABEL
    image = Image.fromarray(np.where(kept, np.minimum(values, NO_LABEL - 1), NO_LABEL).astype(np.uint8))
    image.putpalette(_ramp())
    image.thumbnail((LONGEST, LONGEST), Image.Resampling.NEAREST)
    return pictures.encode(image, optimize=True)


def _ramp() -> list[int]:
    """768 numbers: dark to yellow in 255 steps, and pale."""
    stops = np.array([(48, 18, 84), (30, 110, 138), (86, 190, 110), (250, 230, 50)])
    places = np.linspace(0, 1, NO_LABEL)
    colors = [np.interp(places, np.linspace(0, 1, len(stops)), stops[:, channel]) for channel in range(3)]
    return [*np.stack(colors, 1).round().astype(int).flatten().tolist(), *palettes.PALE]


def sections(study: Study, method: str) -> Safe | None:
    """Both kinds of pictures of one seed, the first that has any."""
    for job in sorted(study.of(method, finished=False), key=lambda each: (not each.finished, each.seed)):
        folder = run_files.samples(studies.folder_of(job), job.seed)
        names = sorted(path.name.removesuffix("-image.png") for path in folder.glob("*-image.png"))
        if names:
            parts = [_legend(study), _rows(study, job, folder, names), _strips(job, folder, names)]
            return html.join(parts)
    return None


def _legend(study: Study) -> Safe | None:
    """Colors of the classes. The page's policy allows no style of one's own, so each is a tiny drawing."""
    if study.config is None:
        return None
    palette = opening.palette(study.config.data)
    entries = []
    for name, (red, green, blue) in zip(study.classes, palette, strict=False):
        square = tag("rect", width=12, height=12, fill=f"#{red:02x}{green:02x}{blue:02x}")
        drawn = tag("svg", square, viewBox="0 0 12 12", width=12, height=12, class_="swatch", aria_hidden="true")
        entries.append(tag("span", drawn, name))
    return tag("p", *entries, class_="legend")


def _rows(study: Study, job: JobResult, folder: Path, names: Sequence[str]) -> Safe:
    """Fig. 8: image, truth where there is any (a user's unlabeled images have none), Baseline, method."""
    base = study.base(job)
    said = [("Baseline", _stage(base)), (studies.title(job.method), _stage(job))]
    rows = []
    for name in names[:ROWS]:
        truth = folder / f"{name}-truth.png"
        panes: list[Pane] = [("image", folder / f"{name}-image.png"), *([("truth", truth)] if truth.is_file() else [])]
        panes += [(title, _said(each, name)) for title, each in said]
        rows.append(_panes(panes, name))
    nets = " and ".join(f"{title} {stage.title}" for title, stage in said if stage is not None)
    note = f"Unlabeled images of seed {job.seed}, which no net saw with a label. The nets are {nets}, raw."
    known = any((folder / f"{name}-truth.png").is_file() for name in names[:ROWS])
    heading = "Image, truth, and what the nets say" if known else "Image, and what the nets say"
    return html.figure(heading, tag("div", *rows, class_="rows"), note=note, wide=True)


def _stage(job: JobResult | None) -> StageResult | None:
    """The stage whose net validation prefers or, while a job trains, its last one so far: pictures are of one net."""
    if job is None:
        return None
    if job.finished:
        return job.preferred()[0]
    return next((stage for stage in reversed(job.stages) if stage.outcome is not None), None)


def _said(stage: StageResult | None, name: str) -> Path | None:
    """What its net says of a sample."""
    return None if stage is None else stage.path / run_files.SAMPLES / f"{name}-said.png"


def _strips(job: JobResult, folder: Path, names: Sequence[str]) -> Safe | None:
    """Fig. 6: labels and dynamic weights of the same images, round by round."""
    line = job.preferred()[0].line if job.finished else "A"
    stages = [stage for stage in job.stages if stage.round and stage.line == line]
    groups: list[Child] = []
    for name in names[:STRIPS]:
        for kind, caption in (("label", "labels of round"), ("weight", "their weights, round")):
            panes = [
                (f"{caption} {stage.round}", stage.path / run_files.SAMPLES / f"{name}-{kind}.png") for stage in stages
            ]
            first: Pane = ("image", folder / f"{name}-image.png") if kind == "label" else ("", None)
            if any(path.is_file() for _, path in panes):
                groups.append(_panes([first, *panes], name, blank=True))
    if not groups:
        return None
    note = (
        "Pale pixels have no label in that round. Weights, as the finished student sees it: yellow counts fully, "
        "dark violet not at all."
    )
    return html.figure("Pseudo labels and their weights, round by round", *groups, note=note, wide=True)


def _panes(panes: Iterable[Pane], name: str, blank: bool = False) -> Safe:
    return tag("div", *[_pane(title, path, name, blank) for title, path in panes], class_="panes")


def _pane(title: str, path: Path | None, name: str, blank: bool) -> Safe:
    if path is None or not path.is_file():
        missing = "" if blank else "not kept by this run"
        return tag("figure", tag("p", missing), tag("span", title))
    try:
        content = _content(title, path)
    except Exception:  # every decoder of Pillow has errors of its own
        return tag("figure", tag("p", "damaged"), tag("span", title))
    shown = html.picture(content, f"{title} of {name}", title=name, class_=None if title == "image" else "crisp")
    return tag("figure", shown, tag("span", title))


def _content(title: str, path: Path) -> bytes:
    """The picture for the page."""
    labels = path.with_name(path.name.replace("-weight.png", "-label.png"))
    if path.name.endswith("-weight.png") and labels.is_file():
        return weights(path, labels)
    return photo(path) if title == "image" else plane(path)
