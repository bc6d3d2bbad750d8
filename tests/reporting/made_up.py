"""Finished jobs that were never trained, on data that need not be here."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dmt.results.job_results import JobResult
from dmt.results.net_results import NetResult
from dmt.results.stage_results import StageResult


def made_up(data: str, classes: int, scores: Sequence[float]) -> JobResult:
    """A finished chain."""
    stages = []
    for number, accuracy in enumerate(scores):
        confusion = np.eye(classes, dtype=int) * 3
        confusion[0, 1] = 7
        score = {"accuracy": accuracy, "fine_grained": accuracy, "per_class": [accuracy] * classes,
                 "confusion": confusion.tolist()}  # fmt: skip
        outcome = {"scores": {"validation": {"raw": score}, "test": {"raw": score}}, "audit": None,
                   "cost": {"steps": 1, "images": 1, "seconds": 1.0}}  # fmt: skip
        stages.append(
            StageResult(f"A{number}", "A", number, f"A{number}", None, outcome, Path("runs/x/stages") / f"A{number}")
        )
    names = tuple(f"kind {number}" for number in range(classes))
    return JobResult(data, "dmt", 1, tuple(stages), (stages[-1].name,), classes=names)


class Pair(JobResult):
    """A pair whose two nets answer as one with this score, or whose score is not known."""

    mean: float = 0.0

    @property
    def both(self) -> NetResult | None:
        nets = self.pair()
        score = nets[0][0].outcome["scores"]["test"]["raw"] | {"accuracy": self.mean}  # type: ignore[index]
        return NetResult(nets, {"validation": score, "test": score}, 50.0)


def made_up_pair(data: str, scores: Sequence[float], mean: float, method: str = "dmt", seed: int = 1) -> JobResult:
    """A finished pair of ten classes whose nets are alike, and what both come to together."""
    chain = made_up(data, 10, scores)
    other = tuple(replace(stage, name=f"B{stage.round}", line="B", place=f"B{stage.round}") for stage in chain.stages)
    stages = (*chain.stages, *other)
    job = Pair(data, method, seed, stages, (chain.stages[-1].name, other[-1].name), classes=chain.classes)
    object.__setattr__(job, "mean", mean)
    return job
