"""What a finished stage is worth: scores against truth, and an audit of the labels it learned from.

All of it is for the journal. Nothing goes back into training.
"""

from collections.abc import Iterable
from typing import Any

import torch

from dmt.data.audit import Audit
from dmt.objectives.stored import Stored
from dmt.tasks.base import Task
from dmt.training import inference
from dmt.training.store import Store
from dmt.training.trainer import Trainer


def scores(trainer: Trainer, task: Task, splits: Iterable[str]) -> dict[str, dict[str, Any]]:
    """By split and by copy of the net, raw and ema. A split without images is left out."""
    copies = {"raw": trainer.nets[0], "ema": trainer.slow[0].net}
    images = {"validation": task.validation, "test": task.test}

    def score(split: str) -> dict[str, Any]:
        return {
            name: inference.score(net, task, images[split], trainer.device).as_json() for name, net in copies.items()
        }

    return {split: score(split) for split in splits if len(images[split])}


def pseudo_labels(trainer: Trainer, task: Task, audit: Audit, labels: Store) -> dict[str, object]:
    """Their error, plain and as the finished student weighs them."""
    objective, target = trainer.objective, labels.target
    weights = None
    if isinstance(objective, Stored) and objective.weighting != "uniform":
        outputs = [output for _, output in inference.logits(trainer.nets[0], task, task.unlabeled, trainer.device)]
        _, weights = objective.weigh(torch.cat(outputs).cpu(), target)
    return audit.pseudo_labels(target.labels, target.confidence, labels.selected, weights)
