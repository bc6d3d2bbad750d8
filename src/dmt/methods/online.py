"""Online methods, which label within the step, in one stage from fresh nets: their options and plans."""

import math
from dataclasses import dataclass
from typing import ClassVar

from dmt.core import ramps
from dmt.core.schedule import Decay, Descent, Optimizer, Schedule
from dmt.errors import ConfigError, unknown
from dmt.methods.groups import MethodOptions
from dmt.methods.plan import Line, Plan, Stage
from dmt.methods.recipe import Recipe
from dmt.objectives.base import Objective
from dmt.objectives.itself import UDA, FixMatch, FixMatchSeg, PiModel, PseudoLabel
from dmt.objectives.peers import CrossPseudo, CrossPseudoPasted
from dmt.objectives.slow import CutMixSeg, MeanTeacher, MeanTeacherSeg
from dmt.options import option, require

LINES: tuple[Line, ...] = ("A", "B")
HARD_HELP = "train on labels whose class has probability 0.7 or less, and at least on this share of all (OHEM); or none"


@dataclass(frozen=True)
class StageOptions(MethodOptions):
    """Options of the only stage of an online method. Where an option is None, the recipe's value is used."""

    epochs: int = option(100, "passes over the unlabeled images")
    labeled: int | None = option(None, "labeled images per step; none: batch_labeled")
    unlabeled: int | None = option(None, "unlabeled images per step, each counted once; none: batch_pseudo")
    rate: float | None = option(None, "learning rate; none: rate")
    rate_ramp: str | None = option(None, "how the learning rate falls; none: rate_ramp")
    optimizer: Optimizer = option(
        "sgd", "sgd, nesterov, adam or adamw; sgd becomes the recipe's adam or adamw if rate is none"
    )
    weight_decay: float | None = option(None, "weight decay; none: weight_decay")
    decay: Decay = option("all", "which parameters decay: all, or kernels only")
    encoder: float = option(1.0, "the encoder's learning rate as a share of the rate")
    ema: float | None = option(None, "decay of the EMA copy; none: ema")

    def __post_init__(self) -> None:
        for key in ("epochs", "labeled", "unlabeled"):
            value = getattr(self, key)
            require(f"{self.group}.{key}", value, value is None or value >= 1, "at least 1")
        require(f"{self.group}.rate", self.rate, self.rate is None or self.rate > 0, "greater than 0")
        require(f"{self.group}.ema", self.ema, self.ema is None or 0 <= self.ema < 1, "at least 0 and below 1")
        if self.rate_ramp is not None and self.rate_ramp not in ramps.RATES:
            raise unknown(f"{self.group}.rate_ramp", self.rate_ramp, ramps.RATES)
        for key, high in (("weight", math.inf), ("weight_decay", math.inf), ("threshold", 1.0), ("ramp", 1.0)):
            value, words = getattr(self, key, None), "at least 0" if high == math.inf else "from 0 to 1"
            require(f"{self.group}.{key}", value, value is None or 0 <= value <= high, words)
        hard = getattr(self, "hard", None)
        require(f"{self.group}.hard", hard, hard is None or 0 < hard <= 1, "above 0 and up to 1, or none")
        for key in ("encoder", "temperature"):
            value = getattr(self, key, 1.0)
            require(f"{self.group}.{key}", value, value > 0, "greater than 0")

    def schedule(self, recipe: Recipe) -> Schedule:
        """Return the schedule, with options that are None filled in from the recipe."""
        # a learning rate belongs to an optimizer: with the recipe's rate comes its adam or adamw, unless another is set
        adam = self.rate is None and self.optimizer == "sgd" and recipe.optimizer in ("adam", "adamw")
        descent = Descent(
            rate=self.rate or recipe.rate,
            optimizer=recipe.optimizer if adam else self.optimizer,
            momentum=recipe.momentum,
            weight_decay=recipe.weight_decay if self.weight_decay is None else self.weight_decay,
            decay=recipe.decay if adam else self.decay,
            encoder=self.encoder,
        )
        return Schedule(
            epochs=self.epochs,
            descent=descent,
            rate_ramp=self.rate_ramp or recipe.rate_ramp,
            labeled=self.labeled or recipe.batch_labeled,
            unlabeled=self.unlabeled or recipe.batch_pseudo,
            ema=recipe.ema if self.ema is None else self.ema,
        )


def one_stage(recipe: Recipe, own: StageOptions, objective: Objective) -> Plan:
    """Return the plan of an online method: a single stage from fresh nets, "A1" or, for two nets, "AB1"."""
    lines = LINES[: objective.lines]
    schedule = own.schedule(recipe)
    if objective.slow and schedule.ema is None:
        raise ConfigError(
            f"{own.group}.ema must be a number: the EMA copy is the teacher; try --set {own.group}.ema=0.99"
        )
    stage = Stage(f"{''.join(lines)}1", lines, 1, objective, schedule)
    return Plan((stage,), (stage.name,))


@dataclass(frozen=True)
class PseudoLabelOptions(StageOptions):
    """Options of Pseudo-Label."""

    group: ClassVar[str] = "pseudo_label"

    threshold: float = option(0.95, "images or pixels at or below this confidence are ignored")
    weight: float = option(1.0, "weight of the unlabeled term after its ramp")
    ramp: float = option(0.4, "share of the training over which that weight grows")


@dataclass(frozen=True)
class PiModelOptions(StageOptions):
    """Options of the Π-model."""

    group: ClassVar[str] = "pi_model"

    weight: float = option(20.0, "weight of the unlabeled term after its ramp")
    ramp: float = option(0.4, "share of the training over which that weight grows")


@dataclass(frozen=True)
class UDAOptions(StageOptions):
    """Options of UDA."""

    group: ClassVar[str] = "uda"

    threshold: float = option(0.8, "images or pixels at or below this confidence are ignored")
    temperature: float = option(0.4, "by which the target is sharpened")
    weight: float = option(1.0, "weight of the unlabeled term")


@dataclass(frozen=True)
class FixMatchOptions(StageOptions):
    """Options of FixMatch."""

    group: ClassVar[str] = "fixmatch"

    threshold: float = option(0.95, "images below this confidence are ignored")
    weight: float = option(1.0, "weight of the unlabeled term")


@dataclass(frozen=True)
class FixMatchSegOptions(StageOptions):
    """Options of FixMatch-Seg."""

    group: ClassVar[str] = "fixmatch_seg"

    threshold: float = option(0.95, "pixels below this confidence are ignored")
    hard: float | None = option(None, HARD_HELP, neutral=True)


@dataclass(frozen=True)
class MeanTeacherOptions(StageOptions):
    """Options of Mean Teacher."""

    group: ClassVar[str] = "mean_teacher"

    ema: float | None = option(0.999, "decay of the EMA teacher")
    weight: float = option(50.0, "weight of the unlabeled term after its ramp")
    ramp: float = option(0.4, "share of the training over which that weight grows")


@dataclass(frozen=True)
class MeanTeacherSegOptions(StageOptions):
    """Options of MT-Seg."""

    group: ClassVar[str] = "mt_seg"

    ema: float | None = option(0.99, "decay of the EMA teacher")
    weight: float = option(1.0, "weight of the unlabeled term after its ramp")
    ramp: float = option(0.15, "share of the training over which that weight grows")


@dataclass(frozen=True)
class CutMixSegOptions(StageOptions):
    """Options of CutMix-Seg."""

    group: ClassVar[str] = "cutmix_seg"

    ema: float | None = option(0.99, "decay of the EMA teacher")
    threshold: float = option(0.97, "the share of pixels with at least this confidence weights the unlabeled term")
    weight: float = option(1.0, "weight of the unlabeled term")


@dataclass(frozen=True)
class CrossPseudoOptions(StageOptions):
    """Options of CPS."""

    group: ClassVar[str] = "cps"

    weight: float = option(1.5, "weight of the labels that the nets give each other")
    hard: float | None = option(None, HARD_HELP, neutral=True)


@dataclass(frozen=True)
class CrossPseudoPastedOptions(StageOptions):
    """Options of CPS with CutMix."""

    group: ClassVar[str] = "cps_cutmix"

    weight: float = option(1.0, "weight of the labels that the nets give each other")
    hard: float | None = option(None, HARD_HELP, neutral=True)


def pseudo_label(recipe: Recipe, own: PseudoLabelOptions) -> Plan:
    return one_stage(recipe, own, PseudoLabel(own.threshold, own.weight, own.ramp))


def pi_model(recipe: Recipe, own: PiModelOptions) -> Plan:
    return one_stage(recipe, own, PiModel(own.weight, own.ramp))


def uda(recipe: Recipe, own: UDAOptions) -> Plan:
    return one_stage(recipe, own, UDA(own.threshold, own.temperature, own.weight))


def fixmatch(recipe: Recipe, own: FixMatchOptions) -> Plan:
    return one_stage(recipe, own, FixMatch(own.threshold, own.weight))


def fixmatch_seg(recipe: Recipe, own: FixMatchSegOptions) -> Plan:
    return one_stage(recipe, own, FixMatchSeg(own.threshold, hard=own.hard))


def mean_teacher(recipe: Recipe, own: MeanTeacherOptions) -> Plan:
    return one_stage(recipe, own, MeanTeacher(own.weight, own.ramp))


def mt_seg(recipe: Recipe, own: MeanTeacherSegOptions) -> Plan:
    return one_stage(recipe, own, MeanTeacherSeg(own.weight, own.ramp))


def cutmix_seg(recipe: Recipe, own: CutMixSegOptions) -> Plan:
    return one_stage(recipe, own, CutMixSeg(own.threshold, own.weight))


def cps(recipe: Recipe, own: CrossPseudoOptions) -> Plan:
    return one_stage(recipe, own, CrossPseudo(own.weight, own.hard))


def cps_cutmix(recipe: Recipe, own: CrossPseudoPastedOptions) -> Plan:
    return one_stage(recipe, own, CrossPseudoPasted(own.weight, hard=own.hard))
