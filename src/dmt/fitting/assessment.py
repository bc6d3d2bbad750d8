"""What a finished stage is worth: scores against truth, and an audit of the labels it learned from.

All of it is for the journal. Nothing goes back into training.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dmt.core import codes, streams
from dmt.data.images.audit import Audit
from dmt.data.pixels import size_groups
from dmt.data.pixels.pixel_audit import PixelAudit
from dmt.data.pixels.size_groups import Group
from dmt.data.ragged import Ragged
from dmt.objectives.stored import Stored
from dmt.pseudo.image_store import Store
from dmt.tasks.base import Task, View
from dmt.training import evidence_files, inference
from dmt.training.trainer import Trainer
from dmt.types import Target

WEIGHED = 500
"""Images whose pixels the finished student weighs: hundreds of thousands of pixels tell as much as all of them."""


Scores = dict[str, dict[str, dict[str, dict[str, Any]]]]


def scores(trainer: Trainer, task: Task, splits: Iterable[str], place: Path) -> Scores:
    """By split, line and copy of the net, raw and ema. A split without images is left out.

    What the nets said of every image goes to ``place``.
    """
    images = {"validation": task.validation, "test": task.test}

    def score(split: str, line: str, copy: str) -> dict[str, Any]:
        net = trainer.nets[line] if copy == "raw" else trainer.slow[line].net
        found, evidence = inference.score_with_evidence(net, task, images[split], trainer.device)
        evidence_files.write(place, split, line, copy, evidence)
        return found.as_json()

    copies = ["raw", "ema"] if trainer.slow else ["raw"]
    return {
        split: {line: {copy: score(split, line, copy) for copy in copies} for line in trainer.nets}
        for split in splits
        if len(images[split])
    }


def pseudo_labels(trainer: Trainer, task: Task, audit: Audit, labels: Store) -> dict[str, object]:
    """Their error, plain and as the finished student weighs them."""
    objective, target = _dynamic(trainer), labels.target
    weights = None
    if objective is not None:
        weights = torch.empty(len(target.labels))
        for view, output in inference.logits(_student(trainer), task, task.unlabeled, trainer.device):
            seen = Target(target.labels[view.positions], target.confidence[view.positions])
            weights[view.positions] = objective.weigh(output.cpu(), seen)[1]
    return audit.pseudo_labels(target.labels, target.confidence, labels.selected, weights)


def pixel_labels(
    trainer: Trainer, task: Task, audit: PixelAudit, planes: tuple[Ragged, Ragged]
) -> dict[str, float | None]:
    """The same of pixels: the error of all that were kept, and how the finished student weighs some of them."""
    labels, _ = planes
    every, some = audit.tally(), audit.tally()
    if every is None or some is None:
        return {}
    for group in size_groups.groups(labels.sizes):
        every.add(torch.tensor(group.positions), size_groups.gather_plane(labels, group, trainer.device))
    result: dict[str, float | None] = {"error_kept": every.error()}
    if _dynamic(trainer) is not None:
        chosen = streams.stream("weighed").permutation(len(task.unlabeled))[:WEIGHED]
        for positions, kept, weights in weighed(trainer, task, planes, torch.from_numpy(chosen)):
            some.add(positions, kept, weights)
        result |= some.weighted()
    return result


def weighed(
    trainer: Trainer, task: Task, planes: tuple[Ragged, Ragged], chosen: torch.Tensor
) -> Iterable[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """(positions, kept labels (n, H, W) uint8, weights (n, H, W)) of the chosen unlabeled images, batch by batch."""
    for view, output in inference.logits(_student(trainer), task, task.unlabeled.take(chosen), trainer.device):
        positions = chosen[view.positions]
        kept, target = _stored(planes, positions, view)
        objective = _dynamic(trainer)
        weights = (target.labels >= 0).float() if objective is None else objective.weigh(output, target)[1]
        yield positions, kept, weights


def _stored(planes: tuple[Ragged, Ragged], positions: torch.Tensor, view: View) -> tuple[torch.Tensor, Target]:
    """The stored labels of some images, padded as in their view."""
    labels, confidence = planes
    group = Group(positions.tolist(), view.images.shape[-2], view.images.shape[-1])
    kept = size_groups.gather_plane(labels, group, view.images.device)
    found = size_groups.gather_plane(confidence, group, view.images.device, fill=-codes.OFFSET)
    return kept, Target(size_groups.truth(kept), codes.decode(found))


def _student(trainer: Trainer) -> nn.Module:
    """The net of a stage that learns from stored labels: it has one."""
    net: nn.Module
    (net,) = trainer.nets.values()
    return net


def _dynamic(trainer: Trainer) -> Stored | None:
    """The stage's objective, if it weighs labels."""
    objective = trainer.objective
    return objective if isinstance(objective, Stored) and objective.weighting != "uniform" else None
