"""Both nets of a pair as one net, the mean of their probabilities, scored once when their job is finished."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from dmt import files, run_files
from dmt.config import Config
from dmt.core import evidence
from dmt.core.evidence import Evidence
from dmt.models.build import NetSpec
from dmt.models.mean_of_nets import MeanOfNets
from dmt.results import guard, net_results
from dmt.results.job_results import JobResult
from dmt.results.net_results import BOTH, MEAN, Net, NetResult
from dmt.results.stage_results import preference
from dmt.tasks.base import Task
from dmt.training import evidence_files, inference, journal
from dmt.training.checkpoint import Checkpoint, finished_net
from dmt.training.inference import Score
from dmt.types import ProgressCallback

SpecOf = Callable[[str], NetSpec]
"""A function from a line to the specification of its net."""

FEWEST = 20
"""Number of validation images from which one net may be preferred to both."""


@dataclass(frozen=True)
class Nets:
    """One net of a run or both of a pair, and their task."""

    nets: tuple[Net, ...]
    task: Task
    config: Config
    device: torch.device

    def load(self) -> nn.Module:
        """Load them as one net, in eval mode on the device."""
        return load(self.nets, lambda line: self.task.net_spec(self.config.net_of(line)), self.device)


def load(nets: Sequence[Net], spec_of: SpecOf, device: torch.device) -> nn.Module:
    """Load one net, or several as the mean of their probabilities, in eval mode on the device."""
    found = {stage.line: finished_net(stage.path, spec_of(stage.line), stage.line, copy) for stage, copy in nets}
    net = MeanOfNets(found) if len(found) > 1 else next(iter(found.values()))
    return net.eval().to(device)


@dataclass(frozen=True)
class Measured:
    """Scores of two nets together.

    Attributes:
        scores: scores by split.
        said: evidence by split.
        error: standard error of the validation score of the better single net; None with fewer than `FEWEST`
            validation images.
    """

    nets: tuple[Net, ...]
    scores: dict[str, Score]
    said: dict[str, Evidence]
    error: float | None

    def write(self) -> None:
        """Write scores and evidence into the run, which the caller must have locked."""
        place = net_results.pair_folder(self.nets)
        digests = {split: evidence_files.write(place, split, BOTH, MEAN, each) for split, each in self.said.items()}
        content: dict[str, Any] = {
            "nets": [f"{stage.title} {copy}" for stage, copy in self.nets],
            "scores": {
                split: score.as_json() | {evidence_files.DIGEST: digests[split]} for split, score in self.scores.items()
            },
            "error": self.error,
        }
        files.write_json(place / run_files.PAIR_SCORES, journal.without_nan(content))


def unmeasured(job: JobResult) -> Iterator[tuple[Net, ...]]:
    """Yield the pairs of nets that reports need and that are not scored yet: of a finished job and of its round 0."""
    base = guard.base(job, [job]) if job.finished else None
    for each in (base, job):
        pair = each.pair() if each is not None and each.finished and each.both is None else ()
        if pair and all(Checkpoint(stage.path).has_net(stage.line, copy) for stage, copy in pair):
            yield pair


def told(job: JobResult) -> str:
    """Describe the scores of a pair's nets, alone and together, and which net is shipped if not both."""
    nets = [NetResult.of_one(*each) for each in job.pair()] + ([] if job.both is None else [job.both])
    scores = [(net.title, net.score(net.shown)) for net in nets]
    numbers = ", ".join(f"{title} {score:.2f}" for title, score in scores if score is not None)
    text = f"{nets[0].shown} score of {numbers}" if numbers else "both nets together are ready for use"
    return text if job.objection is None else f"{text}; {job.objection}"


def measure(pair: Nets, on_progress: ProgressCallback) -> Measured:
    """Score two nets together on the splits that each of them was scored on."""
    mean = pair.load()
    known = pair.nets[0][0].outcome
    assert known is not None
    splits = [split for split in ("validation", "test") if split in known["scores"]]
    scores, said = {}, {}
    before, of = 0, sum(len(getattr(pair.task, split)) for split in splits)
    for split in splits:

        def tell(done: int, _: int, before: int = before) -> None:
            on_progress(before + done, of)

        images = getattr(pair.task, split)
        scores[split], said[split] = inference.score_with_evidence(mean, pair.task, images, pair.device, tell)
        before += len(getattr(pair.task, split))
    return Measured(pair.nets, scores, said, _standard_error(pair) if "validation" in splits else None)


def _standard_error(pair: Nets) -> float | None:
    """Return the bootstrap standard error of the validation score of the net that validation prefers.

    Return None for fewer than `FEWEST` images: draws of one image are all alike, so that any difference would count.
    """
    if len(pair.task.validation) < FEWEST:
        return None
    stage, copy = max(pair.nets, key=lambda each: preference(*each))
    found = stage.evidence("validation", copy)
    if found is None:  # from a release that kept no evidence
        images = pair.task.validation
        found = inference.score_with_evidence(
            replace(pair, nets=((stage, copy),)).load(), pair.task, images, pair.device
        )[1]
    drawn = evidence.spread([found], [])
    known = drawn[~np.isnan(drawn)]
    return float(known.std()) if len(known) else None
