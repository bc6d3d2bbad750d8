"""Evaluation of a finished stage: scores against ground truth, and an audit of the labels that it learned from.

The results are for the journal only. Nothing goes back into training.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from dmt.core import weighting
from dmt.data.audits import Audit, Weighed
from dmt.data.sets import PseudoLabels
from dmt.objectives.stored import Stored
from dmt.tasks.base import Task
from dmt.training import evidence_files, inference
from dmt.training.trainer import Trainer

Scores = dict[str, dict[str, dict[str, dict[str, Any]]]]


def scores(trainer: Trainer, task: Task, splits: Iterable[str], place: Path) -> Scores:
    """Score all nets of a stage, and write their evidence to ``place``.

    Returns:
        Scores by split, line and copy ("raw" or "ema"), each with the digest of its evidence file. Splits without
        images are left out.
    """
    images = {"validation": task.validation, "test": task.test}

    def score(split: str, line: str, copy: str) -> dict[str, Any]:
        net = trainer.nets[line] if copy == "raw" else trainer.slow[line].net
        found, evidence = inference.score_with_evidence(net, task, images[split], trainer.device)
        return found.as_json() | {evidence_files.DIGEST: evidence_files.write(place, split, line, copy, evidence)}

    copies = ["raw", "ema"] if trainer.slow else ["raw"]
    return {
        split: {line: {copy: score(split, line, copy) for copy in copies} for line in trainer.nets}
        for split in splits
        if len(images[split])
    }


def pseudo_labels(
    trainer: Trainer, task: Task, audit: Audit[Any], pseudo: PseudoLabels[Any], observed: Mapping[str, Any]
) -> dict[str, Any]:
    """Audit pseudo labels, both unweighted and as the finished student weights them.

    Args:
        observed: what the audit's observer counted while the labels were made.
    """
    objective = trainer.objective
    weighs = isinstance(objective, Stored) and objective.weighs
    weigh = partial(weighed, trainer, task, pseudo) if weighs else None
    return audit.pseudo_labels(pseudo, weigh, trainer.device, observed)


def weighed(trainer: Trainer, task: Task, pseudo: PseudoLabels[Any], chosen: Tensor | None = None) -> Iterator[Weighed]:
    """Yield the labels that the student learns and their weights, for the chosen unlabeled images, or for all."""
    images = task.unlabeled if chosen is None else task.unlabeled.take(chosen)
    objective = trainer.objective
    for view, output in inference.logits(_student(trainer), task, images, trainer.device):
        positions = view.positions if chosen is None else chosen[view.positions]
        target = task.target(pseudo, positions, view)
        if isinstance(objective, Stored):
            yield Weighed(positions, *objective.weigh(output, target))
        else:
            yield Weighed(positions, *weighting.uniform(None, target))


def _student(trainer: Trainer) -> nn.Module:
    """Return the only net of a stage that learns from stored labels."""
    net: nn.Module
    (net,) = trainer.nets.values()
    return net
