"""Output files of an audit: the gallery, a CSV for each list, and files for Label Studio."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PIL import Image

from dmt import files, pictures
from dmt.auditing import audit_tables, gallery, label_studio, mask_pictures
from dmt.auditing.ensembles import Ensemble
from dmt.auditing.gallery import Names, PictureList
from dmt.auditing.label_next import Candidate
from dmt.auditing.label_studio import LabelingTask
from dmt.auditing.mask_pictures import MaskPictures
from dmt.auditing.suspects import Judged
from dmt.data import set_pictures
from dmt.data.folders import photo_files
from dmt.data.set_pictures import Images
from dmt.pages.html import Safe
from dmt.pseudo.pixel_store import name_of
from dmt.tasks.base import Task
from dmt.types import ProgressCallback

GALLERY, LABELS, PSEUDO, NEXT = "index.html", "labels.csv", "pseudo_labels.csv", "label_next.csv"
TASKS, INTERFACE, IMAGES = "label_studio.json", "label_studio.xml", "images"


@dataclass(frozen=True)
class Findings:
    """The three lists of an audit; in place of a list that could not be made, a sentence that says why.

    Attributes:
        labels: given labels that are probably wrong.
        pseudo: pseudo labels that are probably wrong.
        following: images to label next.
    """

    labels: Judged | str
    pseudo: Judged | str
    following: list[Candidate] | str

    def candidates(self) -> list[Candidate]:
        return [] if isinstance(self.following, str) else self.following


@dataclass(frozen=True)
class AuditOutput:
    """Where and how the results of an audit are written.

    Attributes:
        out: folder for the files.
        ensemble: nets of the run.
        title: name of the audited job, for people.
        count: most entries of each list in the gallery.
        files: folder of the images, or None if the data set has no image files.
        on_progress: is called as pictures are made, with the number made and the total, list by list.
    """

    out: Path
    ensemble: Ensemble
    title: str
    count: int
    files: Path | None
    on_progress: ProgressCallback | None = None

    @property
    def task(self) -> Task:
        return self.ensemble.pictured

    @property
    def names(self) -> Names:
        return Names(self.task.classes, self.task.colors if self.task.pixels else ())


def write(output: AuditOutput, findings: Findings) -> None:
    """Write every file of the audit. A list that could not be made is written empty, so that no old one remains."""
    classes = output.task.classes
    judged = {LABELS: findings.labels, PSEUDO: findings.pseudo}
    for name, each in judged.items():
        rows = [] if isinstance(each, str) else each.found
        files.write(output.out / name, audit_tables.suspects(rows, classes))
    files.write(output.out / NEXT, audit_tables.candidates(findings.candidates(), classes))
    shown = _pictures_of(output, findings.candidates())
    _label_studio(output, findings.candidates(), shown)
    sections = (
        _suspects(output, "Given labels", _ON_LABELS, findings.labels, output.task.labeled),
        _suspects(output, "Pseudo labels", _ON_PSEUDO, findings.pseudo, output.task.unlabeled),
        _following(output, findings.following, shown),
    )
    files.write(output.out / GALLERY, gallery.page("Audit", output.title, *sections))


_ON_LABELS = (
    "Nets that did not learn from a label are confident that it should be another. Given → suggested, and the "
    "probability that each net gives to both."
)
_ON_PSEUDO = (
    "Labels that the run's nets contradict, though they learned from them. Stored → suggested, and the probability "
    "that each net gives to both."
)
_ON_NEXT = (
    "Images that the nets are unsure of or disagree about, and that differ from each other. Begin with the first."
)


def _suspects(output: AuditOutput, what: str, note: str, judged: Judged | str, images: Images) -> Safe:
    if isinstance(judged, str):
        return gallery.missing(f"{what} that are probably wrong", judged)
    title = f"{what} that {'look' if judged.poor else 'are probably'} wrong"
    trust = f" {judged.trust[0].upper()}{judged.trust[1:]}." if judged.trust else ""
    worst = judged.suspicious
    shown = worst[: output.count]
    made: dict[int, MaskPictures] = {}
    for check in judged.checks if output.task.pixels else ():
        places = [each.position for each in shown if each.source == check.source]
        made |= mask_pictures.of_labels(check, places, judged.bars, output.on_progress)
    counted = judged.counted + (f"; the worst {len(shown)} images" if len(shown) < len(worst) else "")
    nets = judged.checks[0].ensemble.names
    listed = PictureList(partial(set_pictures.picture, images), made, nets)
    if not worst:
        return gallery.missing(f"{title}: {counted}", f"Nothing looks wrong.{trust}")
    return gallery.suspects(f"{title}: {counted}", f"{note}{trust}", shown, listed, output.names)


def _pictures_of(output: AuditOutput, found: Sequence[Candidate]) -> dict[int, MaskPictures]:
    places = [each.position for each in found]
    if not output.task.pixels or not places:
        return {}
    return mask_pictures.of_doubt(output.ensemble, output.task.unlabeled, places, output.on_progress)


def _following(output: AuditOutput, found: list[Candidate] | str, made: dict[int, MaskPictures]) -> Safe:
    title = "What to label next"
    if isinstance(found, str):
        return gallery.missing(title, found)
    listed = PictureList(partial(set_pictures.picture, output.task.unlabeled), made, output.ensemble.names)
    return gallery.candidates(f"{title}: {len(found):,} images", _ON_NEXT, found, listed, output.names)


def _label_studio(output: AuditOutput, found: Sequence[Candidate], made: dict[int, MaskPictures]) -> None:
    for old in (output.out / IMAGES).glob("[0-9]" * 6 + "-*.png"):  # of an earlier audit
        old.unlink()
    labelings = [_labeling(output, each, made.get(each.position)) for each in found]
    classes, colors = output.task.classes, output.task.colors
    files.write(
        output.out / TASKS, label_studio.tasks(labelings, classes, f"dmt: {output.title}").encode(errors="replace")
    )
    interface = label_studio.interface(classes, colors, pixels=output.task.pixels)
    files.write(output.out / INTERFACE, interface.encode())


def _labeling(output: AuditOutput, each: Candidate, drawn: MaskPictures | None) -> LabelingTask:
    path, size = each.file, None
    if output.files is None:
        path = f"{IMAGES}/{name_of(each.position, each.file)}.png"
        image = set_pictures.picture(output.task.unlabeled, each.position)
        files.write(output.out / path, pictures.encode(Image.fromarray(image)))
    elif drawn is not None:
        size = photo_files.photo_size(output.files / each.file)  # the mask is of the photo as shrunk for training
    why = (("doubt", round(each.doubt, 4)), ("disagreement", round(each.disagreement, 4)))
    mask = None if drawn is None else drawn.suggested
    return LabelingTask(path, each.label if drawn is None else None, mask, each.sure, size, why)
