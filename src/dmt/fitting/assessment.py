"""What a finished stage is worth: scores against truth, and an audit of the labels it learned from.

All of it is for the journal. Nothing goes back into training.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from dmt.core import weighting
from dmt.data.audits import Audit, Weighed
from dmt.data.sets import PseudoLabels
from dmt.objectives.stored import Stored
from dmt.tasks.base import Task
from dmt.training import evidence_files, inference
from dmt.training.trainer import Trainer


def scores(trainer: Trainer, task: Task, splits: Iterable[str], place: Path) -> dict[str, dict[str, Any]]:
    """By split and by copy of the net, raw and ema. A split without images is left out.

    What the nets said of every image goes to ``place``.
    """
    copies = {"raw": trainer.nets[0]}
    if trainer.slow:
        copies["ema"] = trainer.slow[0].net
    images = {"validation": task.validation, "test": task.test}

    def score(split: str, copy: str) -> dict[str, Any]:
        found, evidence = inference.score_with_evidence(copies[copy], task, images[split], trainer.device)
        evidence_files.write(place, split, copy, evidence)
        return found.as_json()

    return {split: {copy: score(split, copy) for copy in copies} for split in splits if len(images[split])}


def pseudo_labels(trainer: Trainer, task: Task, audit: Audit[Any], pseudo: PseudoLabels[Any]) -> dict[str, Any]:
    """How wrong they were, plain and as the finished student weighs them."""
    objective = trainer.objective
    weighs = isinstance(objective, Stored) and objective.weighting != "uniform"
    return audit.pseudo_labels(pseudo, partial(weighed, trainer, task, pseudo) if weighs else None, trainer.device)


def weighed(trainer: Trainer, task: Task, pseudo: PseudoLabels[Any], chosen: Tensor | None = None) -> Iterator[Weighed]:
    """What the student learns from the chosen unlabeled images, by default from all, and how much it counts."""
    images = task.unlabeled if chosen is None else task.unlabeled.take(chosen)
    objective = trainer.objective
    weigh = objective.weigh if isinstance(objective, Stored) else weighting.uniform
    for view, output in inference.logits(trainer.nets[0], task, images, trainer.device):
        positions = view.positions if chosen is None else chosen[view.positions]
        learned, weights = weigh(output, task.target(pseudo, positions, view))
        yield Weighed(positions, learned, weights)
