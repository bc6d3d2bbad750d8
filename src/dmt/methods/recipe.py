"""The options that all methods share: presets set them, and users may override them."""

from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from dmt.core import labeling_views, ramps
from dmt.core.schedule import BatchNorm, Decay, Optimizer
from dmt.errors import ConfigError, unknown
from dmt.methods.groups import Groups
from dmt.methods.plan import Labeler
from dmt.options import option, require

RoundStart = Literal["fresh", "teacher"]
OnlineStage = Literal[
    "none", "fixmatch", "flexmatch", "freematch", "softmatch", "fixmatch-seg", "cutmix-seg", "classmix"
]
Value = TypeVar("Value", int, float, float | None, RoundStart)

BY_ROUND = ("epochs_round", "rate_round", "mixup_round", "gamma", "gamma2", "start_round", "teachers")
"""Options that may be a list with one value for each round."""


@dataclass(frozen=True)
class Round:
    """The values of a recipe for one round.

    Attributes:
        number: number of the round's stages: from 1, or from 2 if an online stage comes first.
        fraction: share of pseudo labels to keep.
        epochs: passes over the pseudo-labeled images.
        rate: learning rate at the start.
        mixup: Beta parameter of mixup; None for no mixup.
        gamma: γ1.
        gamma2: γ2; None for γ1.
        start: whether its net is fresh or continues its teacher's.
        teachers: how many finished nets label, the latest ones.
    """

    number: int
    fraction: float
    epochs: int
    rate: float
    mixup: float | None
    gamma: float
    gamma2: float | None
    start: RoundStart
    teachers: int


@dataclass(frozen=True)
class Recipe:
    """How the stages of every method are trained. The defaults are the paper's for CIFAR-10 with 4,000 labels.

    Options of a single method are in ``groups``.
    """

    batch: int = option(512, "images per step when training on labels only (Baseline, Oracle)")
    batch_pseudo: int = option(448, "pseudo-labeled images per step of a round")
    batch_labeled: int = option(64, "labeled images per step of a round")
    epochs: int = option(1060, "Baseline: passes over the labels")
    epochs_oracle: int = option(300, "Oracle: passes over all training images")
    epochs_round: int | tuple[int, ...] = option(
        750, "each round: passes over its pseudo-labeled set; a list for one value per round"
    )
    pretrain: Literal["none", "rotation", "simsiam"] = option(
        "none",
        "images: self-supervised pretraining of fresh nets on unlabeled images: none, rotation or simsiam",
        neutral=True,
    )
    epochs_pretrain: int = option(
        100, "pretrain: passes over the unlabeled images, batch of them per step", neutral=True
    )
    online_stage: OnlineStage = option(
        "none",
        "DMT, CL and relatives (ours): an online method that continues training the Baseline before round 1, with "
        "its own options: fixmatch, flexmatch, freematch, softmatch; pixels: fixmatch-seg, cutmix-seg, classmix",
        neutral=True,
    )
    epochs_online_stage: int = option(100, "online_stage: passes over the unlabeled images", neutral=True)
    rate: float = option(0.2, "learning rate of Baseline and Oracle")
    rate_round: float | tuple[float, ...] = option(0.1, "learning rate of a round; a list for one value per round")
    rate_ramp: str = option("cosine", "how the learning rate falls: cosine, poly or constant")
    optimizer: Optimizer = option("sgd", "rounds and Baseline: sgd, nesterov, adam or adamw", neutral=True)
    momentum: float = option(0.9, "SGD momentum, or Adam's β1")
    weight_decay: float = option(5e-4, "weight decay")
    decay: Decay = option("all", "rounds and Baseline: which weights decay, all or kernels only", neutral=True)
    encoder: float = option(
        1.0, "rounds and Baseline: the encoder's learning rate as a fraction of the rate", neutral=True
    )
    encoder_round: float | Literal["same"] = option(
        "same",
        "the same in rounds; 0: the encoder is frozen in rounds; same: as encoder",
        neutral=True,
    )
    head_first: float = option(0.0, "fresh nets: fraction of the steps before the encoder is trained too", neutral=True)
    mixup: float | None = option(0.75, "mixup's Beta parameter, or none")
    mixup_round: float | Literal["same"] | tuple[float | None, ...] | None = option(
        "same",
        "mixup's Beta parameter in rounds, or none; same: as mixup; a list for one value per round",
        neutral=True,
    )
    gamma: float | tuple[float, ...] = option(
        4.0, "γ1 of the dynamic weight, where both nets agree; a list for one value per round"
    )
    gamma2: float | tuple[float, ...] | None = option(
        None,
        "γ2, where they disagree and the teacher is more confident; none: as gamma; a list for one value per round",
    )
    gamma_ramp: bool = option(True, "let γ grow over a round by exp(-5(1-t/T)²)")
    fractions: tuple[float, ...] = option((0.2, 0.4, 0.6, 0.8, 1.0), "fraction of pseudo labels kept, round by round")
    start_round: RoundStart | tuple[RoundStart, ...] = option(
        "fresh",
        "chain of DMT or CL: a round's net starts fresh, or from its teacher's weights (ours); a list for one "
        "value per round",
        neutral=True,
    )
    stop_rounds: int | None = option(
        None,
        "stop after this many rounds in a row without improvement on validation, and use the best; or none",
        neutral=True,
    )
    per_class: bool = option(False, "rank pseudo labels within each class instead of over all")
    shape: Literal["chain", "pair"] = option(
        "chain", "DMT's plan: a chain of fresh nets, or a pair that is fine-tuned round by round"
    )
    share: float | None = option(
        None, "pair: fraction of the labels that each first net is trained on (0.5 to 1), or none for all"
    )
    ema: float | None = option(0.999, "decay of the EMA copy kept of every net, or none for no copy")
    labeler: Labeler = option("raw", "which copy of a net labels for the next: raw, ema, or the mean of both (ours)")
    teachers: int | tuple[int, ...] = option(
        1,
        "label by the mean of this many nets (ours): of the stage before and of earlier ones, Baselines left out; a "
        "list for one value per round",
        neutral=True,
    )
    labeling_views: tuple[str, ...] = option(
        (),
        "additional passes to average an image's label over (ours): flip, dropout; for pixels also scales, e.g. 0.75",
        neutral=True,
    )
    soft_labels: bool = option(
        False, "rounds of images: learn all probabilities of the teacher instead of its hard label", neutral=True
    )
    strong_pseudo: bool = option(
        False, "rounds: train on strong views of pseudo-labeled images (pixels: with color changes)", neutral=True
    )
    weight_view: Literal["same", "weak"] = option(
        "same", "rounds: view from which the weight of a label is computed: same (as trained on), or weak", neutral=True
    )
    weight_every: int = option(
        1, "rounds of images: predict one in this many images per step for the weights (ours); 1: all", neutral=True
    )
    class_weights: tuple[float, ...] = option(
        (), "rounds and Baseline: class weights of the loss, one number per class; empty: equal", neutral=True
    )
    double_statistics: bool = option(False, "let the weight pass update BatchNorm too, as the paper's code did")
    batchnorm: BatchNorm = option(
        "running",
        "rounds and Baseline, images: BatchNorm statistics of finished nets: running, or reestimate on unaugmented "
        "unlabeled images (ours)",
        neutral=True,
    )
    pseudo_noise: float = option(0.0, "stress test: fraction of kept pseudo labels replaced by a wrong class")
    groups: Groups = Groups()

    def __post_init__(self) -> None:
        """Check all values."""
        if self.rate_ramp not in ramps.RATES:
            raise unknown("rate_ramp", self.rate_ramp, ramps.RATES)
        counts = (
            "batch",
            "batch_pseudo",
            "batch_labeled",
            "epochs",
            "epochs_oracle",
            "epochs_round",
            "weight_every",
            "epochs_pretrain",
            "epochs_online_stage",
            "teachers",
        )
        for key in counts:
            for value in self._values(key):
                require(key, value, value >= 1, "at least 1")
        for key in ("rate", "rate_round"):
            for value in self._values(key):
                require(key, value, value > 0, "greater than 0")
        require("encoder", self.encoder, self.encoder > 0, "greater than 0")
        rounds = self.encoder_round
        require("encoder_round", rounds, rounds == "same" or rounds >= 0, "at least 0, or same")
        require("head_first", self.head_first, 0 <= self.head_first < 1, "at least 0 and below 1")
        for key in ("gamma", "gamma2", "weight_decay"):
            for value in self._values(key):
                require(key, value, (value or 0) >= 0, "at least 0")
        for key in ("momentum", "ema", "pseudo_noise"):
            require(key, getattr(self, key), 0 <= (getattr(self, key) or 0) < 1, "at least 0 and below 1")
        require("labeler", self.labeler, self.labeler == "raw" or self.ema is not None, "raw when ema is none")
        labeling_views.every(self.labeling_views)  # raises ConfigError for unknown views
        for key in ("mixup", "mixup_round"):
            for value in self._values(key):
                require(key, value, value in (None, "same") or value > 0, "greater than 0, or none")
        patience = self.stop_rounds
        require("stop_rounds", patience, patience is None or patience >= 1, "at least 1, or none")
        require("share", self.share, self.share is None or 0.5 < self.share < 1, "between 0.5 and 1, or none")
        require("share", self.share, self.share is None or self.shape == "pair", "none unless shape is pair")
        good = bool(self.fractions) and all(0 < fraction <= 1 for fraction in self.fractions)
        require("fractions", list(self.fractions), good, "one or more numbers above 0 and up to 1")
        for key in self.lists:
            self._require_one_a_round(key)
        continued = any(each.start == "teacher" for each in self.rounds())
        require("start_round", self.start_round, not continued or self.shape == "chain", "fresh unless shape is chain")
        weights = self.class_weights
        require("class_weights", list(weights), all(each > 0 for each in weights), "numbers greater than 0")
        mixes = self.mixup is not None or any(each.mixup is not None for each in self.rounds())
        require("class_weights", list(weights), not (weights and mixes), "empty where mixup is on")

    @property
    def lists(self) -> tuple[str, ...]:
        """Names of the options that are given as a list with one value per round."""
        return tuple(key for key in BY_ROUND if isinstance(getattr(self, key), tuple))

    def rounds(self) -> tuple[Round, ...]:
        """Return the values for each round."""
        mixup = self.mixup if self.mixup_round == "same" else self.mixup_round
        first = 1 if self.online_stage == "none" else 2
        return tuple(
            Round(
                first + at,
                fraction,
                _of_round(self.epochs_round, at),
                _of_round(self.rate_round, at),
                _of_round(mixup, at),
                _of_round(self.gamma, at),
                _of_round(self.gamma2, at),
                _of_round(self.start_round, at),
                _of_round(self.teachers, at),
            )
            for at, fraction in enumerate(self.fractions)
        )

    def _values(self, key: str) -> tuple[Any, ...]:
        value = getattr(self, key)
        return value if isinstance(value, tuple) else (value,)

    def _require_one_a_round(self, key: str) -> None:
        given, rounds = len(getattr(self, key)), len(self.fractions)
        if given != rounds:
            fractions = ",".join(f"{fraction:g}" for fraction in self.fractions)
            raise ConfigError(
                f"{key} lists {given} values, but there are {rounds} rounds (fractions={fractions}); "
                f"give one value for each, or one for all"
            )


def _of_round(value: Value | tuple[Value, ...], at: int) -> Value:
    return value[at] if isinstance(value, tuple) else value
