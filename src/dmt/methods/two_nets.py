"""Methods for images that train two nets at once, and temporal ensembling: options, plans and catalogue entries."""

from dataclasses import dataclass
from typing import ClassVar

from dmt.core import ramps
from dmt.core.schedule import Descent, Optimizer, Schedule
from dmt.errors import unknown
from dmt.methods.groups import MethodOptions
from dmt.methods.method import Method
from dmt.methods.online import LINES, StageOptions, one_stage
from dmt.methods.plan import Plan, Stage
from dmt.methods.recipe import Recipe
from dmt.objectives.noisy import CoTeaching, CoTeachingPlus
from dmt.objectives.remembered import TemporalEnsembling
from dmt.objectives.two_nets import DeepCoTraining, DualStudent
from dmt.options import option, require


@dataclass(frozen=True)
class TemporalEnsemblingOptions(StageOptions):
    """Options of temporal ensembling."""

    group: ClassVar[str] = "temporal_ensembling"

    weight: float = option(30.0, "weight of the unlabeled term after its ramp")
    ramp: float = option(0.27, "share of the training over which that weight grows")
    memory: float = option(0.6, "decay of the average of earlier predictions for an image")

    def __post_init__(self) -> None:
        super().__post_init__()
        require(f"{self.group}.memory", self.memory, 0 <= self.memory < 1, "at least 0 and below 1")


@dataclass(frozen=True)
class DualStudentOptions(StageOptions):
    """Options of Dual Student."""

    group: ClassVar[str] = "dual_student"

    threshold: float = option(
        0.8, "predictions at or below this confidence are not stable, and are not taught to the peer"
    )
    weight: float = option(100.0, "weight of the unlabeled terms after their ramp")
    own: float = option(0.2, "share of that weight for a net's consistency with itself across views")
    ramp: float = option(0.0167, "share of the training over which that weight grows")

    def __post_init__(self) -> None:
        super().__post_init__()
        require(f"{self.group}.own", self.own, self.own >= 0, "at least 0")


@dataclass(frozen=True)
class DeepCoTrainingOptions(StageOptions):
    """Options of Deep Co-Training."""

    group: ClassVar[str] = "deep_co_training"

    agree: float = option(10.0, "weight of the nets' agreement on unlabeled images, after its ramp")
    differ: float = option(0.5, "weight of robustness to adversarial examples of the other net, after its ramp")
    step: float = option(0.02, "size of the adversarial step, for pixels in [0, 1]")
    ramp: float = option(0.1333, "share of the training over which both weights grow")

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("agree", "differ", "step"):
            require(f"{self.group}.{key}", getattr(self, key), getattr(self, key) >= 0, "at least 0")


@dataclass(frozen=True)
class GivenLabelsOptions(MethodOptions):
    """Options of methods for noisy labels. Where an option is None, the Baseline's value is used."""

    epochs: int | None = option(None, "passes over the labels; none: epochs")
    labeled: int | None = option(None, "labeled images per step; none: batch")
    rate: float | None = option(None, "learning rate; none: rate")
    rate_ramp: str | None = option(None, "how the learning rate falls; none: rate_ramp")
    optimizer: Optimizer | None = option(None, "sgd, nesterov, adam or adamw; none: optimizer")
    weight_decay: float | None = option(None, "weight decay; none: weight_decay")
    noise: float = option(0.2, "estimated share of wrong labels: this share of each batch is left out")
    ramp: float = option(0.05, "share of the training over which the share left out grows; 0.5 for short runs")

    def __post_init__(self) -> None:
        for key in ("epochs", "labeled"):
            value = getattr(self, key)
            require(f"{self.group}.{key}", value, value is None or value >= 1, "at least 1")
        require(f"{self.group}.rate", self.rate, self.rate is None or self.rate > 0, "greater than 0")
        require(f"{self.group}.weight_decay", self.weight_decay, (self.weight_decay or 0) >= 0, "at least 0")
        if self.rate_ramp is not None and self.rate_ramp not in ramps.RATES:
            raise unknown(f"{self.group}.rate_ramp", self.rate_ramp, ramps.RATES)
        require(f"{self.group}.noise", self.noise, 0 <= self.noise < 1, "at least 0 and below 1")
        require(f"{self.group}.ramp", self.ramp, 0 <= self.ramp <= 1, "from 0 to 1")

    def schedule(self, recipe: Recipe) -> Schedule:
        """Return the schedule, with options that are None filled in from the recipe's values for the Baseline."""
        descent = Descent(
            rate=self.rate or recipe.rate,
            optimizer=self.optimizer or recipe.optimizer,
            momentum=recipe.momentum,
            weight_decay=recipe.weight_decay if self.weight_decay is None else self.weight_decay,
            decay=recipe.decay,
            encoder=recipe.encoder,
            head_first=recipe.head_first,
        )
        return Schedule(
            epochs=self.epochs or recipe.epochs,
            descent=descent,
            rate_ramp=self.rate_ramp or recipe.rate_ramp,
            labeled=self.labeled or recipe.batch,
            ema=recipe.ema,
            batchnorm=recipe.batchnorm,
        )


@dataclass(frozen=True)
class CoTeachingOptions(GivenLabelsOptions):
    """Options of Co-Teaching."""

    group: ClassVar[str] = "co_teaching"


@dataclass(frozen=True)
class CoTeachingPlusOptions(GivenLabelsOptions):
    """Options of Co-Teaching+."""

    group: ClassVar[str] = "co_teaching_plus"

    start: float = option(0.1, "share of the training after which only images that the nets disagree on are used")

    def __post_init__(self) -> None:
        super().__post_init__()
        require(f"{self.group}.start", self.start, 0 <= self.start <= 1, "from 0 to 1")


def temporal_ensembling(recipe: Recipe, own: TemporalEnsemblingOptions) -> Plan:
    return one_stage(recipe, own, TemporalEnsembling(own.weight, own.ramp, own.memory))


def dual_student(recipe: Recipe, own: DualStudentOptions) -> Plan:
    return one_stage(recipe, own, DualStudent(own.weight, own.own, own.threshold, own.ramp))


def deep_co_training(recipe: Recipe, own: DeepCoTrainingOptions) -> Plan:
    return one_stage(recipe, own, DeepCoTraining(own.agree, own.differ, own.step, own.ramp))


def co_teaching(recipe: Recipe, own: CoTeachingOptions) -> Plan:
    return _on_labels(recipe, own, CoTeaching(own.noise, own.ramp))


def co_teaching_plus(recipe: Recipe, own: CoTeachingPlusOptions) -> Plan:
    return _on_labels(recipe, own, CoTeachingPlus(own.noise, own.ramp, own.start))


def _on_labels(recipe: Recipe, own: GivenLabelsOptions, objective: CoTeaching) -> Plan:
    """Return the plan of one stage that trains two fresh nets on the given labels."""
    stage = Stage(f"{''.join(LINES)}1", LINES, 1, objective, own.schedule(recipe))
    return Plan((stage,), (stage.name,))


METHODS = (
    Method(
        "temporal-ensembling",
        "Temporal Ensembling",
        "the net learns the average of its own predictions for an image in earlier epochs",
        "online",
        temporal_ensembling,
        reference="Laine & Aila, ICLR 2017",
        serves=("images",),
        options=TemporalEnsemblingOptions,
    ),
    Method(
        "dual-student",
        "Dual Student",
        "two nets: for each image, the more stable one is the teacher of the other",
        "online",
        dual_student,
        reference="Ke et al., ICCV 2019",
        serves=("images",),
        options=DualStudentOptions,
    ),
    Method(
        "deep-co-training",
        "Deep Co-Training",
        "two nets agree on unlabeled images, and resist each other's adversarial examples",
        "online",
        deep_co_training,
        reference="Qiao et al., ECCV 2018",
        serves=("images",),
        options=DeepCoTrainingOptions,
    ),
    Method(
        "co-teaching",
        "Co-Teaching",
        "for noisy labels: each of two nets learns the labels on which the other has a small loss",
        "labels only",
        co_teaching,
        reference="Han et al., NeurIPS 2018",
        serves=("images",),
        options=CoTeachingOptions,
    ),
    Method(
        "co-teaching-plus",
        "Co-Teaching+",
        "like Co-Teaching, but later only on images that the nets disagree on",
        "labels only",
        co_teaching_plus,
        reference="Yu et al., ICML 2019",
        serves=("images",),
        options=CoTeachingPlusOptions,
    ),
)
"""Their catalogue entries."""
