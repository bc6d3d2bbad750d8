"""What training asks of a task."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Protocol

import torch
from torch import Tensor

from dmt.core.execution import Execution
from dmt.core.metrics import Confusion
from dmt.core.schedule import Schedule
from dmt.data.sets import LabeledSet, UnlabeledSet
from dmt.models.build import NetSpec
from dmt.types import Batch, Target


class Batches(Protocol):
    """The batches of a stage. Any step can be drawn, in any order: so a run resumes, and may read ahead.

    Drawing is small work for the host; making is static tensor code that can be compiled and recorded.
    """

    size: int  # images in a batch, labeled and not

    def draw(self, step: int) -> Any:
        """What the step takes: a tree of tensors on the device."""

    def make(self, drawn: Any) -> Batch:
        """The batch of what was drawn."""


class Task(ABC):
    """Data ready for training: classes, four splits, and how they become batches. It knows no method."""

    classes: tuple[str, ...]
    labeled: LabeledSet
    unlabeled: UnlabeledSet
    validation: LabeledSet
    test: LabeledSet

    @abstractmethod
    def net_spec(self, name: str) -> NetSpec:
        """What a net called ``name`` must fit."""

    @abstractmethod
    def batches(
        self,
        labeled: LabeledSet,
        pseudo: tuple[Tensor, Target] | None,
        schedule: Schedule,
        seed: int,
        execution: Execution,
    ) -> Batches:
        """Training batches of labeled images and, if given, of the unlabeled ones at these positions."""

    @abstractmethod
    def views(
        self, images: UnlabeledSet | LabeledSet, device: torch.device, size: int
    ) -> Iterator[tuple[slice, Tensor]]:
        """All images for inference, in order: where they stand, and (n, C, H, W) in [0, 1] on the device."""

    @abstractmethod
    def meter(self, device: torch.device) -> Confusion:
        """A fresh score keeper."""
