"""What an objective is: frozen options and a pure `loss`. The trainer owns all state."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from dmt.core import streams
from dmt.types import Batch

TRAIN = "train"
"""The view of unlabeled images that is augmented like the labeled ones."""


class Net(Protocol):
    """A net in training, as an objective sees it. Both calls give float32 logits (N, C, *S)."""

    def __call__(self, images: Tensor) -> Tensor:
        """Logits with gradient: the training forward."""

    def peek(self, images: Tensor, *, update_statistics: bool = False) -> Tensor:
        """Logits of the net as it is now, in train mode, without gradient and, unless asked, without a trace."""


@dataclass(frozen=True)
class Progress:
    """Where a stage stands, and its randomness. Objectives are functions of the step, not of a history."""

    step: int
    steps: int
    seed: int

    @property
    def fraction(self) -> float:
        """t/T, 0 at the first step."""
        return self.step / self.steps

    def stream(self, role: str) -> np.random.Generator:
        """Random numbers of this step for one purpose."""
        return streams.stream(self.seed, role, self.step)


@dataclass(frozen=True)
class Loss:
    """The number to descend, and 0-d detached tensors for the journal by name."""

    total: Tensor
    parts: Mapping[str, Tensor] = field(default_factory=dict)


class Objective(ABC):
    """Final subclasses are frozen dataclasses: their fields are the options, and enter a stage's identity.

    What changes from step to step is drawn first, as a tree of tensors, and handed to `loss`. So `loss` is the same
    tensor code in every step, and a step can be compiled or recorded as a CUDA graph.
    """

    unlabeled: ClassVar[bool]
    """Whether a step takes unlabeled images."""

    @property
    @abstractmethod
    def passes(self) -> float:
        """Cost of a step in training passes (forward and backward) over the whole batch, for forecasts."""

    @abstractmethod
    def draw(self, progress: Progress, count: int, device: torch.device) -> Any:
        """Everything random or scheduled of one step, for a batch of ``count`` images in all: a tree of tensors."""

    @abstractmethod
    def loss(self, nets: Sequence[Net], batch: Batch, draw: Any) -> Loss:
        """The loss of one step: tensor code only, with no host synchronization."""
