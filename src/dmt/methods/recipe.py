"""The options of all methods: what a preset pins and a user may override."""

from dataclasses import dataclass
from typing import Literal

from dmt.core import labeling_views, ramps
from dmt.errors import unknown
from dmt.methods.groups import Groups
from dmt.methods.plan import Labeler
from dmt.options import option, require


@dataclass(frozen=True)
class Recipe:
    """How the stages of every method are trained. The defaults are the paper's for CIFAR-10 with 4,000 labels.

    What only one method reads is in ``groups``.
    """

    batch: int = option(512, "images per step when only labels teach (Baseline, Oracle)")
    batch_pseudo: int = option(448, "pseudo-labeled images per step of a round")
    batch_labeled: int = option(64, "labeled images per step of a round")
    epochs: int = option(1060, "Baseline: passes over the labels")
    epochs_oracle: int = option(300, "Oracle: passes over all training images")
    epochs_round: int = option(750, "each round: passes over its pseudo-labeled set")
    rate: float = option(0.2, "learning rate of Baseline and Oracle")
    rate_round: float = option(0.1, "learning rate of a round")
    rate_ramp: str = option("cosine", "how the learning rate falls: cosine, poly or constant")
    momentum: float = option(0.9, "SGD momentum")
    weight_decay: float = option(5e-4, "weight decay, on every parameter")
    mixup: float | None = option(0.75, "mixup's Beta parameter, or none")
    gamma: float = option(4.0, "γ1 of the dynamic weight, where both nets agree")
    gamma2: float | None = option(None, "γ2, where they disagree and the teacher is surer; none: as gamma")
    gamma_ramp: bool = option(True, "let γ grow over a round by exp(-5(1-t/T)²)")
    fractions: tuple[float, ...] = option((0.2, 0.4, 0.6, 0.8, 1.0), "share of pseudo labels kept, round by round")
    per_class: bool = option(False, "rank pseudo labels within each class instead of over all")
    shape: Literal["chain", "pair"] = option("chain", "DMT's plan: a chain of fresh nets, or a pair fine-tuned in turn")
    share: float | None = option(None, "pair: share of the labels each first net sees (0.5 to 1), or none")
    ema: float | None = option(0.999, "decay of the slow copy kept beside every net, or none for no copy")
    labeler: Labeler = option("raw", "which copy of a net labels for the next: raw, ema, or the mean of both (ours)")
    labeling_views: tuple[str, ...] = option(
        (), "more views of an image that its label averages (ours): flip; for pixels also scales, 0.75", neutral=True
    )
    double_statistics: bool = option(False, "let the weight pass update BatchNorm too, as the paper's code did")
    pseudo_noise: float = option(0.0, "stress test: share of kept pseudo labels replaced by a wrong class")
    groups: Groups = Groups()

    def __post_init__(self) -> None:
        """Refuse values that no training could mean."""
        if self.rate_ramp not in ramps.RATES:
            raise unknown("rate_ramp", self.rate_ramp, ramps.RATES)
        for key in ("batch", "batch_pseudo", "batch_labeled", "epochs", "epochs_oracle", "epochs_round"):
            require(key, getattr(self, key), getattr(self, key) >= 1, "at least 1")
        for key in ("rate", "rate_round"):
            require(key, getattr(self, key), getattr(self, key) > 0, "greater than 0")
        for key in ("gamma", "gamma2", "weight_decay"):
            require(key, getattr(self, key), (getattr(self, key) or 0) >= 0, "at least 0")
        for key in ("momentum", "ema", "pseudo_noise"):
            require(key, getattr(self, key), 0 <= (getattr(self, key) or 0) < 1, "at least 0 and below 1")
        require("labeler", self.labeler, self.labeler == "raw" or self.ema is not None, "raw when ema is none")
        labeling_views.every(self.labeling_views)  # refuses what is no view
        require("mixup", self.mixup, self.mixup is None or self.mixup > 0, "greater than 0, or none")
        require("share", self.share, self.share is None or 0.5 < self.share < 1, "between 0.5 and 1, or none")
        require("share", self.share, self.share is None or self.shape == "pair", "none unless shape is pair")
        good = bool(self.fractions) and all(0 < fraction <= 1 for fraction in self.fractions)
        require("fractions", list(self.fractions), good, "one or more numbers above 0 and up to 1")
