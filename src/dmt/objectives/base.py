"""What an objective is: frozen options, declared needs, and a pure `loss`. The trainer owns all state."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from dmt.core import streams
from dmt.core.schedule import Descent
from dmt.types import TRAIN, Batch, BatchShape, FeatureMap, Sizes

LOOK = 1.0 / 3.0
"""A forward without gradient costs about a third of forward and backward."""


class Net(Protocol):
    """A net in training, as an objective sees it. Both calls give float32 logits (N, C, *S)."""

    def __call__(self, images: Tensor, *, update_statistics: bool = True) -> Tensor:
        """Logits with gradient, in train mode; BatchNorm's running statistics may be left alone."""

    def input_gradient(self, images: Tensor, labels: Tensor) -> Tensor:
        """Where each image would have to go for the net to err more: ∂CE/∂image, in eval mode, without a trace."""

    def peek(self, images: Tensor, *, update_statistics: bool = False) -> Tensor:
        """Logits of the net as it is now, in train mode, without gradient and, unless asked, without a trace."""

    def embed(self, images: Tensor, *, update_statistics: bool = True) -> Tensor:
        """What the last layer of a net for images reads, (N, F) float32, with gradient, in train mode."""


@runtime_checkable
class DividedNet(Net, Protocol):
    """The same for objectives that declare features. Both calls are with gradient, in train mode."""

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        """Maps (N, F, h, w) that the decoder takes, from the finest to the coarsest, in the net's own precision."""

    def decode(self, features: tuple[Tensor, ...], size: tuple[int, int]) -> Tensor:
        """Float32 logits of features, of images of that size (H, W)."""


@runtime_checkable
class ClassTeller(Protocol):
    """A net, or a slow copy, of an objective with a class threshold."""

    def presence(self, images: Tensor) -> Tensor:
        """Float32 logits (N, C) of whether a class is in an image, each on its own."""


class Teacher(Protocol):
    """A slow copy, as an objective sees it: eval mode, no gradient, float32 logits (N, C, *S)."""

    def __call__(self, images: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Cast:
    """Everybody on stage in a step.

    Attributes:
        nets: those that are trained, one for each line.
        slow: their slow copies, if the objective asks for them.
        parts: modules that are trained beside the nets, by name.
        memory: small tensors that the step before left behind, by name.
    """

    nets: tuple[Net, ...]
    slow: tuple[Teacher, ...] = ()
    parts: Mapping[str, nn.Module] = field(default_factory=dict)
    memory: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def net(self) -> Net:
        """The only one."""
        (net,) = self.nets
        return net

    @property
    def divided(self) -> DividedNet:
        """The only one, for an objective that declares features."""
        (net,) = self.nets
        assert isinstance(net, DividedNet)
        return net

    @property
    def teacher(self) -> Teacher:
        """The only slow copy."""
        (teacher,) = self.slow
        return teacher

    @property
    def tellers(self) -> tuple[ClassTeller, ClassTeller]:
        """The only net and its slow copy, for an objective with a class threshold."""
        net, slow = self.net, self.teacher
        assert isinstance(net, ClassTeller)
        assert isinstance(slow, ClassTeller)
        return net, slow


@dataclass(frozen=True)
class Part:
    """A module trained beside the nets, by a rule of its own or, without one, by theirs.

    It is saved with the stage and never shipped.
    """

    module: nn.Module
    descent: Descent | None = None


@dataclass(frozen=True)
class Progress:
    """Where a stage stands, and its randomness. What is drawn depends on the step, not on a history."""

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
    """What came of a step.

    Attributes:
        total: the number to descend.
        logged: 0-d detached tensors for the journal, by name.
        memory: what the next step finds in the cast's memory; what is not named stays as it was.
    """

    total: Tensor
    logged: Mapping[str, Tensor] = field(default_factory=dict)
    memory: Mapping[str, Tensor] = field(default_factory=dict)


class Cost(NamedTuple):
    """Images that a step sends through nets, every view and every net counted; features decoded twice count once."""

    learned: int  # forward and backward
    looked: int = 0  # forward alone

    @property
    def passes(self) -> float:
        """The same in forward-backward passes."""
        return self.learned + LOOK * self.looked


class Objective(ABC):
    """Final subclasses are frozen dataclasses: their fields are the options, and enter a stage's identity.

    What changes from step to step is drawn first, as a tree of tensors, and handed to `loss`. So `loss` is the same
    tensor code in every step, and a step can be compiled or recorded as a CUDA graph.
    """

    lines: ClassVar[int] = 1
    """How many nets are trained together."""

    views: ClassVar[tuple[str, ...]] = ()
    """Names of the views of unlabeled images that a step takes; without any, only labels teach."""

    labeled_view: ClassVar[str] = TRAIN
    """The kind of view that labeled images are seen in."""

    slow: ClassVar[bool] = False
    """Whether `loss` asks the slow copies."""

    stored: ClassVar[bool] = False
    """Whether a batch must bring stored pseudo labels."""

    teaches_encoder: ClassVar[bool] = False
    """Whether unlabeled images teach the encoder alone: then a frozen one has nothing to learn from them."""

    features: ClassVar[bool] = False
    """Whether `loss` asks nets for features and decodes them itself."""

    input_gradient: ClassVar[bool] = False
    """Whether `loss` takes a gradient with respect to images: then steps are neither compiled nor recorded."""

    @property
    def embeds(self) -> bool:
        """Whether `loss` asks nets for what their last layer reads."""
        return False

    @property
    def class_threshold(self) -> float | None:
        """With a number, nets get a classifier of their own that `loss` can ask which classes an image shows.

        It is a part that ships: outside of training, nets then give no class of less probability.
        """
        return None

    def memory(self, sizes: Sizes, classes: int) -> Mapping[str, Tensor]:
        """What the first step finds: tensors of fixed shape, small, on the host."""
        return {}

    def parts(self, channels: int, classes: int) -> Mapping[str, Part]:
        """Modules to train beside the nets, fresh.

        Args:
            channels: of what nets' last layers read, if the objective asks for that; else of images.
        """
        return {}

    def parts_on(self, features: tuple[FeatureMap, ...], classes: int) -> Mapping[str, Part]:
        """Likewise those that work on features of nets, if the objective declares these."""
        return {}

    @abstractmethod
    def cost(self, shape: BatchShape) -> Cost:
        """What a step takes."""

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> Any:
        """Everything random or scheduled of one step: a tree of tensors."""
        return None

    @abstractmethod
    def loss(self, cast: Cast, batch: Batch, draw: Any) -> Loss:
        """The loss of one step: tensor code only, with no host synchronization."""


def detached(**numbers: Tensor) -> dict[str, Tensor]:
    """Numbers for the journal."""
    return {name: number.detach() for name, number in numbers.items()}
