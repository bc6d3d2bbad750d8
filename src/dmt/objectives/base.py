"""Base class of objectives: frozen options, declared requirements, and a pure `loss`. The trainer owns all state."""

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
"""Approximate cost of a forward pass without gradient, relative to forward and backward."""


class Net(Protocol):
    """A net in training, as an objective sees it. Logits are float32, (N, C, *S)."""

    def __call__(self, images: Tensor, *, update_statistics: bool = True) -> Tensor:
        """Return logits with gradient, in train mode, with or without updating BatchNorm's running statistics."""

    def input_gradient(self, images: Tensor, labels: Tensor) -> Tensor:
        """Return ∂CE/∂image for each image, in eval mode, without changing gradients or statistics of the net."""

    def peek(self, images: Tensor, *, update_statistics: bool = False) -> Tensor:
        """Return logits in train mode without gradient and, by default, without updating running statistics."""

    def embed(self, images: Tensor, *, update_statistics: bool = True) -> Tensor:
        """Return the input of the last layer of a net for images, (N, F) float32, with gradient, in train mode."""


@runtime_checkable
class DividedNet(Net, Protocol):
    """A net split into encoder and decoder, for objectives with ``features``: with gradient, in train mode."""

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        """Return the feature maps (N, F, h, w) that the decoder takes, finest first, in the net's own precision."""

    def decode(self, features: tuple[Tensor, ...], size: tuple[int, int]) -> Tensor:
        """Return the float32 logits of features that come from images of that size (H, W)."""


@runtime_checkable
class ClassTeller(Protocol):
    """A net, or its EMA copy, with an image classifier, for objectives with a ``class_threshold``."""

    def presence(self, images: Tensor) -> Tensor:
        """Return float32 multi-label logits (N, C): whether each class occurs in the image."""


class Teacher(Protocol):
    """An EMA copy, as an objective sees it: eval mode, no gradient, float32 logits (N, C, *S)."""

    def __call__(self, images: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Cast:
    """The nets, modules and memory that take part in a step.

    Attributes:
        nets: the nets in training, one for each line.
        slow: their EMA copies, if the objective asks for them.
        parts: modules that are trained beside the nets, by name.
        memory: small tensors that are carried over from the previous step, by name.
    """

    nets: tuple[Net, ...]
    slow: tuple[Teacher, ...] = ()
    parts: Mapping[str, nn.Module] = field(default_factory=dict)
    memory: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def net(self) -> Net:
        """The net, for an objective that trains only one."""
        (net,) = self.nets
        return net

    @property
    def divided(self) -> DividedNet:
        """The only net, split into encoder and decoder, for an objective with ``features``."""
        (net,) = self.nets
        assert isinstance(net, DividedNet)
        return net

    @property
    def teacher(self) -> Teacher:
        """The only EMA copy."""
        (teacher,) = self.slow
        return teacher

    @property
    def tellers(self) -> tuple[ClassTeller, ClassTeller]:
        """The only net and its EMA copy, for an objective with a ``class_threshold``."""
        net, slow = self.net, self.teacher
        assert isinstance(net, ClassTeller)
        assert isinstance(slow, ClassTeller)
        return net, slow


@dataclass(frozen=True)
class Part:
    """A module that is trained beside the nets, with its own optimizer or, if ``descent`` is None, with theirs.

    It is saved with the stage, but is not part of the finished nets.
    """

    module: nn.Module
    descent: Descent | None = None


@dataclass(frozen=True)
class Progress:
    """Position within a stage, and the source of its randomness, which depends on the step alone."""

    step: int
    steps: int
    seed: int

    @property
    def fraction(self) -> float:
        """t/T, 0 at the first step."""
        return self.step / self.steps

    def stream(self, role: str) -> np.random.Generator:
        """Return the random numbers of this step for one purpose."""
        return streams.stream(self.seed, role, self.step)


@dataclass(frozen=True)
class Loss:
    """Result of one training step.

    Attributes:
        total: the loss to minimize, 0-d.
        logged: 0-d detached tensors for the journal, by name.
        memory: new values of the memory for the next step, by name; others stay as they are.
    """

    total: Tensor
    logged: Mapping[str, Tensor] = field(default_factory=dict)
    memory: Mapping[str, Tensor] = field(default_factory=dict)


class Cost(NamedTuple):
    """Number of images that pass through nets in a step, over all views and nets; decoding twice counts once."""

    learned: int  # forward and backward
    looked: int = 0  # forward alone

    @property
    def passes(self) -> float:
        """The same, expressed in forward-backward passes."""
        return self.learned + LOOK * self.looked


class Objective(ABC):
    """Loss of a training step. Concrete subclasses are frozen dataclasses: their fields enter a stage's identity.

    Whatever changes from step to step is returned by `draw` as a tree of tensors and passed to `loss`. So `loss` is the
    same tensor code in every step, and a step can be compiled or captured as a CUDA graph.
    """

    lines: ClassVar[int] = 1
    """Number of nets that are trained together."""

    views: ClassVar[tuple[str, ...]] = ()
    """Names of the views of unlabeled images in a batch; empty for training on labels only."""

    labeled_view: ClassVar[str] = TRAIN
    """Kind of view of the labeled images."""

    slow: ClassVar[bool] = False
    """Whether `loss` uses the EMA copies."""

    stored: ClassVar[bool] = False
    """Whether batches must contain stored pseudo labels."""

    teaches_encoder: ClassVar[bool] = False
    """Whether unlabeled images train the encoder only, so that a net with a frozen encoder cannot learn from them."""

    features: ClassVar[bool] = False
    """Whether `loss` takes features from the nets and decodes them itself (`DividedNet`)."""

    revision: ClassVar[int] = 0
    """Increased when the same options start to train differently: older runs of this objective are then refused."""

    input_gradient: ClassVar[bool] = False
    """Whether `loss` takes gradients with respect to images: such steps are neither compiled nor captured."""

    @property
    def embeds(self) -> bool:
        """Whether `loss` takes the input of the nets' last layer (`Net.embed`)."""
        return False

    @property
    def class_threshold(self) -> float | None:
        """Probability below which an image classifier inside each net switches a class off; None for no classifier.

        `loss` can use the classifier through `Cast.tellers`. Unlike other parts it belongs to the finished nets:
        outside of training, they predict no class to which it gives a lower probability.
        """
        return None

    def memory(self, sizes: Sizes, classes: int) -> Mapping[str, Tensor]:
        """Return the memory that the first step finds: small tensors of fixed shape on the host, by name."""
        return {}

    def parts(self, channels: int, classes: int) -> Mapping[str, Part]:
        """Return new modules to train beside the nets, by name.

        Args:
            channels: width of the input of the nets' last layer if the objective ``embeds``, else of images.
            classes: number of classes.
        """
        return {}

    def parts_on(self, features: tuple[FeatureMap, ...], classes: int) -> Mapping[str, Part]:
        """Return new modules that work on the nets' feature maps, by name, for an objective with ``features``."""
        return {}

    @abstractmethod
    def cost(self, shape: BatchShape) -> Cost:
        """Return the cost of a step."""

    def draw(self, progress: Progress, shape: BatchShape, device: torch.device) -> Any:
        """Return everything random or scheduled in one step, as a tree of tensors."""
        return None

    @abstractmethod
    def loss(self, cast: Cast, batch: Batch, draw: Any) -> Loss:
        """Return the loss of one step, computed by tensor code without host synchronization."""


def detached(**numbers: Tensor) -> dict[str, Tensor]:
    """Detach numbers for the journal."""
    return {name: number.detach() for name, number in numbers.items()}
