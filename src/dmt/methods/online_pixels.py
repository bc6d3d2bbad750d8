"""More online methods for pixels, beside those in `methods/online.py`: their options and plans."""

from dataclasses import dataclass
from typing import ClassVar

from dmt.errors import unknown
from dmt.methods.online import HARD_HELP, StageOptions, one_stage
from dmt.methods.plan import Plan
from dmt.methods.recipe import Recipe
from dmt.objectives.auxiliary import CCT
from dmt.objectives.flaws import GCT
from dmt.objectives.judged import S4GAN, AdvSemiSeg
from dmt.objectives.multi_label import S4GANMultiLabel
from dmt.objectives.perturbations import KINDS
from dmt.objectives.perturbed import UniMatch, UniMatchV2
from dmt.objectives.slow_pasted import AugSeg, ClassMix
from dmt.options import option, require


@dataclass(frozen=True)
class ClassMixOptions(StageOptions):
    """Options of ClassMix."""

    group: ClassVar[str] = "classmix"

    ema: float | None = option(0.99, "decay of the EMA teacher")
    threshold: float = option(0.968, "the share of pixels with at least this confidence weights the unlabeled term")
    weight: float = option(1.0, "weight of the unlabeled term")


@dataclass(frozen=True)
class AugSegOptions(StageOptions):
    """Options of AugSeg."""

    group: ClassVar[str] = "augseg"

    ema: float | None = option(0.999, "decay of the EMA teacher")
    threshold: float = option(0.95, "pixels below this confidence are ignored")
    weight: float = option(1.0, "weight of the unlabeled term")
    hard: float | None = option(None, HARD_HELP, neutral=True)


@dataclass(frozen=True)
class UniMatchOptions(StageOptions):
    """Options of UniMatch."""

    group: ClassVar[str] = "unimatch"

    threshold: float = option(0.95, "pixels below this confidence are ignored")
    hard: float | None = option(None, HARD_HELP, neutral=True)


@dataclass(frozen=True)
class UniMatchV2Options(StageOptions):
    """Options of UniMatch V2."""

    group: ClassVar[str] = "unimatch_v2"

    ema: float | None = option(0.996, "decay of the EMA teacher")
    threshold: float = option(0.95, "pixels below this confidence are ignored")
    hard: float | None = option(None, HARD_HELP, neutral=True)


@dataclass(frozen=True)
class CCTOptions(StageOptions):
    """Options of CCT."""

    group: ClassVar[str] = "cct"

    weight: float = option(30.0, "weight of the unlabeled term after its ramp")
    ramp: float = option(0.1, "share of the training over which that weight grows")
    decoders: int = option(6, "auxiliary decoders for each perturbation; context, objects and adversarial have a third")
    perturbations: tuple[str, ...] = option(KINDS, f"of features, some of {', '.join(KINDS)}")
    background: int = option(0, "number of the class that is no object, for cutout, context and objects")

    def __post_init__(self) -> None:
        super().__post_init__()
        require("cct.decoders", self.decoders, self.decoders >= 1, "at least 1")
        require("cct.background", self.background, self.background >= 0, "at least 0")
        require("cct.perturbations", "none", bool(self.perturbations), f"some of {', '.join(KINDS)}")
        for name in self.perturbations:
            if name not in KINDS:
                raise unknown("cct.perturbations", name, KINDS)


@dataclass(frozen=True)
class JudgedOptions(StageOptions):
    """Common options of methods with a discriminator."""

    judge_rate: float = option(1e-4, "learning rate of the discriminator (Adam)")
    judge_width: int = option(64, "channels of the discriminator's first layer")

    def __post_init__(self) -> None:
        super().__post_init__()
        require(f"{self.group}.judge_rate", self.judge_rate, self.judge_rate > 0, "greater than 0")
        require(f"{self.group}.judge_width", self.judge_width, self.judge_width >= 1, "at least 1")
        for key in ("semi", "adversarial", "adversarial_unlabeled", "matching", "consistency", "correction"):
            value = getattr(self, key, 0.0)
            require(f"{self.group}.{key}", value, value >= 0, "at least 0")


@dataclass(frozen=True)
class AdvSemiSegOptions(JudgedOptions):
    """Options of AdvSemiSeg."""

    group: ClassVar[str] = "adv_semi_seg"

    threshold: float = option(
        0.2, "pixels that the discriminator scores at least this high are trained on their own label"
    )
    semi: float = option(0.1, "weight of these labels")
    adversarial: float = option(0.01, "weight of fooling the discriminator on labeled images")
    adversarial_unlabeled: float = option(0.001, "weight of fooling it on unlabeled images")
    start: float = option(0.25, "share of the training before pixels are trained on their own labels")

    def __post_init__(self) -> None:
        super().__post_init__()
        require("adv_semi_seg.start", self.start, 0 <= self.start <= 1, "from 0 to 1")


@dataclass(frozen=True)
class ImageJudgedOptions(JudgedOptions):
    """Common options of s4GAN with and without MLMT."""

    threshold: float = option(0.6, "images that the discriminator scores higher are trained on their own labels")
    semi: float = option(1.0, "weight of these labels")
    matching: float = option(
        0.1, "weight of the distance between the discriminator's features of ground truth and of predictions"
    )


@dataclass(frozen=True)
class S4GANOptions(ImageJudgedOptions):
    """Options of s4GAN."""

    group: ClassVar[str] = "s4gan"


@dataclass(frozen=True)
class S4GANMultiLabelOptions(ImageJudgedOptions):
    """Options of s4GAN with MLMT."""

    group: ClassVar[str] = "s4gan_mlmt"

    ema: float | None = option(0.999, "decay of the EMA copy, whose classifier is the teacher of the net's")
    consistency: float = option(1.0, "weight of the classifier's consistency with its EMA copy, after its ramp")
    start: float = option(
        0.1, "share of the training before that term starts; its weight grows over the next half of the training"
    )
    present: float = option(
        0.2, "outside of training, classes with a lower probability by the classifier are switched off"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require("s4gan_mlmt.start", self.start, 0 <= self.start <= 1, "from 0 to 1")
        require("s4gan_mlmt.present", self.present, 0 <= self.present <= 1, "from 0 to 1")


@dataclass(frozen=True)
class GCTOptions(JudgedOptions):
    """Options of GCT."""

    group: ClassVar[str] = "gct"

    consistency: float = option(100.0, "weight of what the nets teach each other after its ramp")
    ramp: float = option(0.15, "share of the training over which that weight grows")
    threshold: float = option(0.6, "flaws above this are corrected where both nets have them")
    correction: float = option(1.0, "weight of that")


def classmix(recipe: Recipe, own: ClassMixOptions) -> Plan:
    return one_stage(recipe, own, ClassMix(own.threshold, own.weight))


def augseg(recipe: Recipe, own: AugSegOptions) -> Plan:
    return one_stage(recipe, own, AugSeg(own.threshold, own.weight, hard=own.hard))


def unimatch(recipe: Recipe, own: UniMatchOptions) -> Plan:
    return one_stage(recipe, own, UniMatch(own.threshold, hard=own.hard))


def unimatch_v2(recipe: Recipe, own: UniMatchV2Options) -> Plan:
    return one_stage(recipe, own, UniMatchV2(own.threshold, hard=own.hard))


def cct(recipe: Recipe, own: CCTOptions) -> Plan:
    kinds = tuple(kind for kind in KINDS if kind in own.perturbations)  # fixed order: it is part of a stage's identity
    descent = own.schedule(recipe).descent
    return one_stage(recipe, own, CCT(own.weight, own.ramp, own.decoders, descent, kinds, own.background))


def adv_semi_seg(recipe: Recipe, own: AdvSemiSegOptions) -> Plan:
    objective = AdvSemiSeg(
        own.threshold, own.semi, own.adversarial, own.adversarial_unlabeled, own.start, own.judge_rate, own.judge_width
    )
    return one_stage(recipe, own, objective)


def _s4gan(own: ImageJudgedOptions) -> S4GAN:
    return S4GAN(own.threshold, own.semi, own.matching, own.judge_rate, own.judge_width)


def s4gan(recipe: Recipe, own: S4GANOptions) -> Plan:
    return one_stage(recipe, own, _s4gan(own))


def s4gan_mlmt(recipe: Recipe, own: S4GANMultiLabelOptions) -> Plan:
    return one_stage(recipe, own, S4GANMultiLabel(_s4gan(own), own.consistency, own.start, own.present))


def gct(recipe: Recipe, own: GCTOptions) -> Plan:
    objective = GCT(
        own.consistency,
        own.ramp,
        own.threshold,
        own.correction,
        judge_rate=own.judge_rate,
        judge_width=own.judge_width,
    )
    return one_stage(recipe, own, objective)
