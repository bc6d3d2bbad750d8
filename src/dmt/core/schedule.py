"""How long and how fast a stage trains."""

from dataclasses import dataclass

from dmt.core import ramps


@dataclass(frozen=True)
class Schedule:
    """Passes, batch shape and optimizer of a stage.

    Attributes:
        epochs: passes over the pseudo-labeled set, or over the labels if only they teach.
        rate: learning rate at the start.
        rate_ramp: a name of `core.ramps.RATES`.
        labeled: labeled images in each step.
        pseudo: pseudo-labeled images in each step.
        momentum, weight_decay: of SGD; the decay is on every parameter.
        ema: decay of the slow copy; None for no copy.
    """

    epochs: int
    rate: float
    rate_ramp: str
    labeled: int
    pseudo: int = 0
    momentum: float = 0.9
    weight_decay: float = 5e-4
    ema: float | None = 0.999

    @property
    def batch(self) -> int:
        return self.labeled + self.pseudo

    def rate_at(self, progress: float) -> float:
        """The learning rate at t/T."""
        return self.rate * ramps.RATES[self.rate_ramp](progress)
