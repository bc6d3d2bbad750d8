"""The section of pictures, for segmentation: predictions for a few images, and their pseudo labels round by round."""

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
from dmt.results.job_results import JobResult
from dmt.results.stage_results import StageResult
from dmt.tasks import opening

LONGEST = 256
"""Longer side of a picture in the report, in pixels."""

ROWS, STRIPS = 8, 3
"""Number of images whose predictions are compared, and of those whose labels are shown round by round."""

NO_LABEL = 255

Pane = tuple[str, Path | None]
"""Caption of a picture, and its file."""


def photo(path: Path) -> bytes:
    """Return a photo as WebP, shrunk for the page."""
    with Image.open(path) as image:
        small = image.convert("RGB")
    small.thumbnail((LONGEST, LONGEST))
    return pictures.encode(small, "WEBP", quality=82)


def plane(path: Path) -> bytes:
    """Return a mask or a gray map, shrunk for the page; masks by nearest neighbor, so that no classes are mixed."""
    with Image.open(path) as file:
        image = file.copy()
    by = Image.Resampling.NEAREST if image.mode == "P" else Image.Resampling.BOX
    image = pictures.shrink(image, LONGEST, by)
    if image.mode == "P":
        return pictures.encode(image, optimize=True)
    return pictures.encode(image.convert("L"), "WEBP", quality=60)


def weights(path: Path, labels: Path) -> bytes:
    """Return a weight map in colors from dark (0) to yellow (1), pale where its label map has no label."""
    with Image.open(path) as file, Image.open(labels) as mask:
        values, kept = np.array(file.convert("L")), np.array(mask) != NO_LABEL
    image = Image.fromarray(np.where(kept, np.minimum(values, NO_LABEL - 1), NO_LABEL).astype(np.uint8))
    image.putpalette(_ramp())
    image.thumbnail((LONGEST, LONGEST), Image.Resampling.NEAREST)
    return pictures.encode(image, optimize=True)


def _ramp() -> list[int]:
    """Return a palette of 256 colors as 768 numbers: 255 from dark to yellow, then the pale one for "no label"."""
    stops = np.array([(48, 18, 84), (30, 110, 138), (86, 190, 110), (250, 230, 50)])
    places = np.linspace(0, 1, NO_LABEL)
    colors = [np.interp(places, np.linspace(0, 1, len(stops)), stops[:, channel]) for channel in range(3)]
    return [*np.stack(colors, 1).round().astype(int).flatten().tolist(), *palettes.PALE]


def sections(study: Study, method: str) -> Safe | None:
    """Return predictions and pseudo labels of the first seed that has pictures (finished jobs first), or None."""
    for job in sorted(study.of(method, finished=False), key=lambda each: (not each.finished, each.seed)):
        folder = run_files.samples(job.run, job.seed)
        names = sorted(path.name.removesuffix("-image.png") for path in folder.glob("*-image.png"))
        if names:
            parts = [_legend(study), _rows(study, job, folder, names), _strips(job, folder, names)]
            return html.join(parts)
    return None


def _legend(study: Study) -> Safe | None:
    """Return the colors of the classes."""
    if study.config is None:
        return None
    return html.swatches(zip(study.classes, opening.palette(study.config.data), strict=False))


def _rows(study: Study, job: JobResult, folder: Path, names: Sequence[str]) -> Safe:
    """Return Fig. 8: image, ground truth (unknown for a user's unlabeled images), Baseline and method."""
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
    """Return the stage whose predictions are shown, a single net even for a pair.

    It is the one that validation prefers or, for a job in training, the last finished one.
    """
    if job is None:
        return None
    if job.finished:
        return job.preferred()[0]
    return next((stage for stage in reversed(job.stages) if stage.outcome is not None), None)


def _said(stage: StageResult | None, name: str) -> Path | None:
    """Return the file with the prediction of a stage's net for a sample image."""
    return None if stage is None else stage.path / run_files.SAMPLES / f"{name}-said.png"


def _strips(job: JobResult, folder: Path, names: Sequence[str]) -> Safe | None:
    """Return Fig. 6: pseudo labels and dynamic weights of the same images, round by round."""
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
    except Exception:  # each of Pillow's decoders raises its own errors
        return tag("figure", tag("p", "damaged"), tag("span", title))
    shown = html.picture(content, f"{title} of {name}", title=name, class_=None if title == "image" else "crisp")
    return tag("figure", shown, tag("span", title))


def _content(title: str, path: Path) -> bytes:
    """Return the encoded picture of a pane."""
    labels = path.with_name(path.name.replace("-weight.png", "-label.png"))
    if path.name.endswith("-weight.png") and labels.is_file():
        return weights(path, labels)
    return photo(path) if title == "image" else plane(path)
