"""What came out of one line of a stage, read from its files alone."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from dmt import run_files
from dmt.core.evidence import Evidence
from dmt.runs.folder import Folder
from dmt.training import evidence_files
from dmt.training.journal import Journal
from dmt.types import NetName


@dataclass(frozen=True)
class StageResult:
    """One line of a stage, and what its journal says; ``outcome`` is None until it is finished.

    Attributes:
        name, round: as in the plan. Lines that are trained together share both.
        line: A or B.
        place: its folder's name.
        labels: the journal's line about pseudo labels, if the stage has any.
        outcome: scores, audit and cost.
        path: its folder.
        outline: the stage as the manifest describes it: start, labels, objective, schedule.
    """

    name: str
    line: str
    round: int
    place: str
    labels: dict[str, Any] | None
    outcome: dict[str, Any] | None
    path: Path = Path()
    outline: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def title(self) -> str:
        """For people: the line and its round, "A3"."""
        return f"{self.line}{self.round}"

    @property
    def online(self) -> bool:
        """Whether it labels within its steps: an online method, alone or between a Baseline and the rounds."""
        return self.round > 0 and not self.outline.get("labels")

    def net(self, copy: str) -> NetName:
        """The whole name of one of its nets."""
        return NetName(self.name, self.line, copy)

    def score(self, split: str, copy: str) -> float | None:
        """Accuracy of images, mean IoU of pixels; None for what was not measured."""
        scores = {} if self.outcome is None else self.outcome["scores"].get(split, {})
        return headline(scores[copy]) if copy in scores else None

    def evidence(self, split: str, copy: str) -> Evidence | None:
        """What a net said of every image; None where it was not kept."""
        scores = {} if self.outcome is None else self.outcome["scores"].get(split, {}).get(copy, {})
        return evidence_files.read(self.path, split, self.line, copy, scores.get(evidence_files.DIGEST))

    def journal(self, kind: str) -> list[dict[str, Any]]:
        """Lines of one kind, in order, as they were when first asked for."""
        return [line for line in self._lines if line["kind"] == kind]

    @cached_property
    def _lines(self) -> list[dict[str, Any]]:
        return list(Journal(self.path / run_files.JOURNAL).read())

    @property
    def shown(self) -> str:
        """The images whose score counts: test or, where there are none, validation."""
        scores = {} if self.outcome is None else self.outcome["scores"]
        return "validation" if "test" not in scores and "validation" in scores else "test"

    @property
    def copies(self) -> list[str]:
        """Which nets the stage kept: raw and maybe ema. Without any score, raw is all that is known."""
        if self.outcome is None:
            return []
        return list(self.outcome["scores"].get(self.shown, ["raw"]))

    def audited(self, key: str) -> float | None:
        audit = None if self.outcome is None else self.outcome["audit"]
        value = None if audit is None else audit.get(key)
        return None if value is None else float(value)

    @property
    def judged(self) -> str:
        """The images whose kept labels the audit judged, in words; empty if nobody wrote them down."""
        images, every = self.audited("images"), self.audited("images_all")
        if images is None or every is None:
            return ""
        return f"{'all' if images == every else f'{images:,.0f} of'} {every:,.0f} unlabeled images"


def of_stage(folder: Folder, outline: dict[str, Any]) -> list[StageResult]:
    """A stage, line by line."""
    path = folder.stage(outline["place"])
    written = list(Journal(path / run_files.JOURNAL).read())
    labels = next((line for line in written if line["kind"] == "labels"), None)
    outcome = next((line for line in written if line["kind"] == "round"), None)
    name, number, place = outline["name"], outline["round"], outline["place"]
    return [
        StageResult(name, line, number, place, labels, _of_line(outcome, line), path, outline)
        for line in lines_of(outline)
    ]


def lines_of(outline: dict[str, Any]) -> list[str]:
    """Which lines a stage trains. Release 0.1 trained one, and called its stages by it."""
    found: list[str] = outline.get("lines") or [outline["name"][:1]]
    return found


def _of_line(outcome: dict[str, Any] | None, line: str) -> dict[str, Any] | None:
    """What a stage's outcome says of one line; scores of release 0.1 do not name lines."""
    if outcome is None:
        return None
    outcome = outcome | {"audit": _audit(outcome["audit"])}
    scores = {split: each.get(line, {}) if "raw" not in each else each for split, each in outcome["scores"].items()}
    return outcome | {"scores": scores}


def _audit(found: dict[str, Any] | None) -> dict[str, Any] | None:
    """By today's names: until 0.2 the error of all kept labels was ``error_kept``, of weighed images another one."""
    if found is None or "images" in found or "error_kept" not in found:
        return found
    rest = {key: value for key, value in found.items() if key != "error_kept_sample"}
    whole = found["error_kept"]
    return rest | {"error_kept": found.get("error_kept_sample", whole), "error_kept_all": whole}


def liked(stage: StageResult) -> float:
    """The validation score of a stage: of its raw and slow net, the better one's."""
    scores = [stage.score("validation", copy) for copy in stage.copies]
    return max((score for score in scores if score is not None), default=-math.inf)


def preference(stage: StageResult, copy: str) -> float:
    """How much the validation images like a net.

    Pixels by mean IoU; images by fine-grained accuracy, since 200 of them leave many ties otherwise.
    """
    assert stage.outcome is not None
    scores = stage.outcome["scores"].get("validation", {}).get(copy, {})
    value = scores.get("mean_iou", scores.get("fine_grained"))
    return float("-inf") if value is None else float(value)  # without a single label there is nothing to like


def headline(score: dict[str, Any]) -> float | None:
    """The number a score is known by: mean IoU of pixels, accuracy of images; None if no site had truth."""
    value = score.get("mean_iou", score["accuracy"])
    return None if value is None else float(value)
