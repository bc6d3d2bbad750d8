"""Training length, batch shape and optimizer of a stage."""

from dataclasses import dataclass
from typing import Literal

from dmt.core import ramps
from dmt.options import neutral

Optimizer = Literal["sgd", "nesterov", "adam", "adamw"]
Decay = Literal["all", "kernels"]
BatchNorm = Literal["running", "reestimate"]


@dataclass(frozen=True)
class Descent:
    """Options of an optimizer.

    Attributes:
        rate: learning rate at the start.
        optimizer: SGD with momentum ("sgd"), with Nesterov momentum ("nesterov"), Adam or AdamW.
        momentum: momentum of SGD, or β1 of Adam.
        weight_decay: weight decay.
        decay: which parameters decay: all, or kernels only (no biases and no BatchNorm parameters).
        encoder: learning rate of the encoder as a share of ``rate``.
        head_first: share of the stage, at its start, in which only the layers on top of the encoder are trained.
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
    """Epochs, batch shape and optimizer of a stage.

    Attributes:
        epochs: passes over the pseudo-labeled or unlabeled images, or over the labels if only they are trained on.
        descent: optimizer of the nets.
        rate_ramp: how the learning rate changes, a key of `core.ramps.RATES`; it also applies to parts that are
            trained beside the nets.
        labeled: labeled images in each step.
        unlabeled: unlabeled images in each step.
        ema: decay of the EMA copies; None for no copies.
        batchnorm: BatchNorm statistics of finished nets: the running ones of training, or re-estimated on unaugmented
            unlabeled images.
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
        """Return the learning rate at t/T."""
        return self.descent.rate * ramps.RATES[self.rate_ramp](progress)

    def encoder_moves(self, progress: float) -> bool:
        """Return whether the encoder is trained at t/T."""
        return progress >= self.descent.head_first
