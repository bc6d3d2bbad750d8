"""Results of one line of a stage, read from its files alone."""

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
    """Results of one line of a stage, from its journal.

    Attributes:
        name, round: as in the plan. Lines that are trained together share both.
        line: "A" or "B".
        place: name of the stage's folder.
        labels: the journal's entry about pseudo labels; None if the stage has none (yet).
        outcome: scores, audit and cost; None until the stage is finished.
        path: the stage's folder.
        outline: the manifest's description of the stage: start, labels, objective, schedule.
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
        """Name for users: line and round, e.g. "A3"."""
        return f"{self.line}{self.round}"

    @property
    def online(self) -> bool:
        """Whether an online method trained the stage, on its own or between a Baseline and the rounds."""
        return self.round > 0 and not self.outline.get("labels")

    def net(self, copy: str) -> NetName:
        """Return the full name of one of the stage's nets."""
        return NetName(self.name, self.line, copy)

    def score(self, split: str, copy: str) -> float | None:
        """Return accuracy or, for pixels, mean IoU, in percent; None if it was not measured."""
        scores = {} if self.outcome is None else self.outcome["scores"].get(split, {})
        return headline(scores[copy]) if copy in scores else None

    def evidence(self, split: str, copy: str) -> Evidence | None:
        """Return a net's predictions for every image of a split; None if they were not kept."""
        scores = {} if self.outcome is None else self.outcome["scores"].get(split, {}).get(copy, {})
        return evidence_files.read(self.path, split, self.line, copy, scores.get(evidence_files.DIGEST))

    def journal(self, kind: str) -> list[dict[str, Any]]:
        """Return the journal's entries of one kind in order, as they were at the first call."""
        return [line for line in self._lines if line["kind"] == kind]

    @cached_property
    def _lines(self) -> list[dict[str, Any]]:
        return list(Journal(self.path / run_files.JOURNAL).read())

    @property
    def shown(self) -> str:
        """Split whose score is reported: test, or validation if there are no test images."""
        scores = {} if self.outcome is None else self.outcome["scores"]
        return "validation" if "test" not in scores and "validation" in scores else "test"

    @property
    def copies(self) -> list[str]:
        """Copies of the net that have scores: raw and maybe ema; raw alone if a finished stage has no scores."""
        if self.outcome is None:
            return []
        return list(self.outcome["scores"].get(self.shown, ["raw"]))

    def audited(self, key: str) -> float | None:
        audit = None if self.outcome is None else self.outcome["audit"]
        value = None if audit is None else audit.get(key)
        return None if value is None else float(value)

    @property
    def judged(self) -> str:
        """Images on which the audit judged the kept labels, in words; empty if not recorded."""
        images, every = self.audited("images"), self.audited("images_all")
        if images is None or every is None:
            return ""
        return f"{'all' if images == every else f'{images:,.0f} of'} {every:,.0f} unlabeled images"


def of_stage(folder: Folder, outline: dict[str, Any]) -> list[StageResult]:
    """Read the results of a stage, one for each line."""
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
    """Return the lines that a stage trains. In release 0.1 it was one, the first letter of the stage's name."""
    found: list[str] = outline.get("lines") or [outline["name"][:1]]
    return found


def _of_line(outcome: dict[str, Any] | None, line: str) -> dict[str, Any] | None:
    """Return the part of a stage's outcome that is about one line; scores of release 0.1 do not name lines."""
    if outcome is None:
        return None
    outcome = outcome | {"audit": _audit(outcome["audit"])}
    scores = {split: each.get(line, {}) if "raw" not in each else each for split, each in outcome["scores"].items()}
    return outcome | {"scores": scores}


def _audit(found: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return an audit by its current keys.

    Until 0.2, ``error_kept`` was the error of all kept labels, and that of the images with weights had another key.
    """
    if found is None or "images" in found or "error_kept" not in found:
        return found
    rest = {key: value for key, value in found.items() if key != "error_kept_sample"}
    whole = found["error_kept"]
    return rest | {"error_kept": found.get("error_kept_sample", whole), "error_kept_all": whole}


def liked(stage: StageResult) -> float:
    """Return the validation score of a stage: that of its raw or EMA net, whichever is better."""
    scores = [stage.score("validation", copy) for copy in stage.copies]
    return max((score for score in scores if score is not None), default=-math.inf)


def preference(stage: StageResult, copy: str) -> float:
    """Return the validation score by which nets are chosen; -inf if there is none.

    It is mean IoU for pixels, and fine-grained accuracy for images, since plain accuracy on 200 of them is often tied.
    """
    assert stage.outcome is not None
    scores = stage.outcome["scores"].get("validation", {}).get(copy, {})
    value = scores.get("mean_iou", scores.get("fine_grained"))
    return float("-inf") if value is None else float(value)  # None: no validation site has a label


def headline(score: dict[str, Any]) -> float | None:
    """Return the main number of a score: mean IoU of pixels, accuracy of images; None if no site had ground truth."""
    value = score.get("mean_iou", score["accuracy"])
    return None if value is None else float(value)
