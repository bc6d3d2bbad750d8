"""The net teaches itself, within the step: online self-training."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from dmt.core import losses
from dmt.objectives.base import TRAIN, Loss, Net, Objective, Progress
from dmt.types import IGNORE, Batch


@dataclass(frozen=True)
class Online(Objective):
    """Cross-entropy with the truth and with the net's own present labels, where it is sure (docs/decisions, 19).

    Attributes:
        threshold: sites of this confidence or less teach nothing.
    """

    unlabeled: ClassVar[bool] = True

    threshold: float = 0.9

    @property
    def passes(self) -> float:
        return 1.0

    def draw(self, progress: Progress, count: int, device: torch.device) -> None:
        return None

    def loss(self, nets: Sequence[Net], batch: Batch, draw: None) -> Loss:
        (net,) = nets
        unlabeled = len(batch.views[TRAIN])
        logits = net(torch.cat([batch.views[TRAIN], batch.images]))  # (U + L, C, *S), unlabeled first
        confidence, guesses = logits[:unlabeled].detach().float().softmax(1).max(1)
        guesses = torch.where(confidence > self.threshold, guesses, IGNORE)
        labels = torch.cat([guesses, batch.truth])
        sites = losses.per_site(logits, labels)
        count = losses.labeled_sites(labels).clamp_min(1.0)
        parts = {
            "kept": losses.labeled_sites(guesses) / guesses.numel(),
            "pseudo": sites[:unlabeled].sum() / count,
            "labeled": sites[unlabeled:].sum() / count,
        }
        return Loss(sites.sum() / count, {name: part.detach() for name, part in parts.items()})
