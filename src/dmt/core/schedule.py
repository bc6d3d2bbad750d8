"""How long and how fast a stage trains."""

from dataclasses import dataclass
from typing import Literal

from dmt.core import ramps
from dmt.options import neutral

Optimizer = Literal["sgd", "nesterov", "adam", "adamw"]
Decay = Literal["all", "kernels"]
BatchNorm = Literal["running", "reestimate"]


@dataclass(frozen=True)
class Descent:
    """How parameters are moved along their gradient.

    Attributes:
        rate: learning rate at the start.
        optimizer: SGD with momentum, the same after Nesterov, Adam or AdamW.
        momentum: of SGD, or Adam's β1.
        weight_decay: strength of the decay.
        decay: which parameters decay: all, or kernels only (not biases, not BatchNorm's).
        encoder: the encoder's rate as a share of the rate.
        head_first: share of the stage in which the encoder stays, and only what is on top of it learns.
    """

    rate: float
    optimizer: Optimizer = "sgd"
    momentum: float = 0.9
    weight_decay: float = 5e-4
    decay: Decay = "all"
    encoder: float = 1.0
    head_first: float = neutral(0.0)


@dataclass(frozen=True)
class Schedule:
    """Passes, batch shape and optimizer of a stage.

    Attributes:
        epochs: passes over the pseudo-labeled set, or over the labels if only they teach.
        descent: rate and optimizer of the nets.
        rate_ramp: a name of `core.ramps.RATES`; parts trained beside the nets follow it too.
        labeled: labeled images in each step.
        unlabeled: unlabeled images in each step.
        ema: decay of the slow copies; None for no copies.
        batchnorm: statistics that finished nets have: those that ran along in training, or of clean unlabeled images.
    """

    epochs: int
    descent: Descent
    rate_ramp: str
    labeled: int
    unlabeled: int = 0
    ema: float | None = 0.999
    batchnorm: BatchNorm = neutral("running")

    @property
    def batch(self) -> int:
        return self.labeled + self.unlabeled

    def rate_at(self, progress: float) -> float:
        """The learning rate at t/T."""
        return self.descent.rate * ramps.RATES[self.rate_ramp](progress)

    def encoder_moves(self, progress: float) -> bool:
        """Whether the encoder learns at t/T."""
        return progress >= self.descent.head_first
