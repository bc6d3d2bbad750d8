"""Results of one net of a job, or of the ensemble of a pair's two nets."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dmt import files, run_files, schemas
from dmt.core.evidence import Evidence
from dmt.errors import RunError
from dmt.results.stage_results import StageResult, headline
from dmt.training import evidence_files
from dmt.types import NetName

Net = tuple[StageResult, str]
"""A stage, and the copy of its net: raw or ema."""

EvidenceKey = tuple[Path, str, str, str, str | None]
"""Location of evidence: folder, split, line, copy and, if known, digest, as `evidence_files.read` takes them."""

BOTH, MEAN = "both", "mean"
"""Line and copy in the name of an ensemble."""


@dataclass(frozen=True)
class NetResult:
    """Scores of one net, or of an ensemble that averages the probabilities of a pair's two nets.

    Attributes:
        nets: the one net, or one net of each line.
        scores: scores by split, as in the journal or in the pair's own file.
        error: for an ensemble, the standard error of the better net's validation score; None without validation.
    """

    nets: tuple[Net, ...]
    scores: dict[str, dict[str, Any]]
    error: float | None = None

    @classmethod
    def of_one(cls, stage: StageResult, copy: str) -> "NetResult":
        """Return the result of one net of a stage; without scores if the stage is not finished."""
        measured = {} if stage.outcome is None else stage.outcome["scores"]
        return cls(((stage, copy),), {split: copies[copy] for split, copies in measured.items() if copy in copies})

    @property
    def together(self) -> bool:
        """Whether this is an ensemble of two nets."""
        return len(self.nets) > 1

    @property
    def title(self) -> str:
        """Name for users: "A3 raw", or "the mean of A3 raw and B3 ema"."""
        names = " and ".join(f"{stage.title} {copy}" for stage, copy in self.nets)
        return f"the mean of {names}" if self.together else names

    @property
    def name(self) -> NetName:
        stage, copy = self.nets[0]
        return NetName("+".join(each.name for each, _ in self.nets), BOTH, MEAN) if self.together else stage.net(copy)

    @property
    def shown(self) -> str:
        """Split whose score is reported: test, or validation if there are no test images."""
        return self.nets[0][0].shown

    def score(self, split: str) -> float | None:
        """Return accuracy or, for pixels, mean IoU, in percent; None if it was not measured."""
        return headline(self.scores[split]) if split in self.scores else None

    def per_class(self, split: str) -> list[float]:
        """Return (C,) recall or, for pixels, IoU of each class in percent; NaN for a class that does not occur.

        Empty if nothing was measured there, as without any labeled image to measure on.
        """
        if split not in self.scores:
            return []
        found = self.scores[split]
        values = found.get("iou", found["per_class"])
        return [math.nan if value is None else float(value) for value in values]

    def evidence_key(self, split: str) -> EvidenceKey:
        stage, copy = self.nets[0]
        digest = self.scores.get(split, {}).get(evidence_files.DIGEST)
        if self.together:
            return pair_folder(self.nets), split, BOTH, MEAN, digest
        return stage.path, split, stage.line, copy, digest

    def evidence(self, split: str) -> Evidence | None:
        """Return the predictions for every image of a split; None if they were not kept."""
        return evidence_files.read(*self.evidence_key(split))


def pair_folder(nets: Sequence[Net]) -> Path:
    """Return the run's folder for the results of an ensemble; its name identifies both nets."""
    name = "+".join(f"{stage.place}-{stage.line}-{copy}" for stage, copy in nets)
    return nets[0][0].path.parent.parent / run_files.PAIRS / name


def read_pair(nets: tuple[Net, ...]) -> NetResult | None:
    """Read the result of an ensemble; None if it was not measured yet or, with a warning, if its file is damaged."""
    path = pair_folder(nets) / run_files.PAIR_SCORES
    if not path.exists():
        return None
    try:
        found = files.read_json(path, schemas.PAIR)
        return NetResult(nets, found["scores"], found["error"])
    except RunError:
        files.warn_once(
            "%s is damaged, so one net of the pair stands for both; repeat the fit command to measure them again", path
        )
        return None
