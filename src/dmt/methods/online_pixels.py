"""Methods for pixels that label within the step, beside those of `methods/online.py`: their options and plans."""

from dataclasses import dataclass
from typing import ClassVar

from dmt.methods.online import StageOptions, one_stage
from dmt.methods.plan import Plan
from dmt.methods.recipe import Recipe
from dmt.objectives.perturbed import UniMatch, UniMatchV2
from dmt.objectives.slow_pasted import AugSeg, ClassMix
from dmt.options import option


@dataclass(frozen=True)
class ClassMixOptions(StageOptions):
    """Of ClassMix."""

    group: ClassVar[str] = "classmix"

    ema: float | None = option(0.99, "decay of the slow copy, which teaches")
    threshold: float = option(0.968, "pixels of at least this confidence count as sure; their share weighs the term")
    weight: float = option(1.0, "weight of the unlabeled term")


@dataclass(frozen=True)
class AugSegOptions(StageOptions):
    """Of AugSeg."""

    group: ClassVar[str] = "augseg"

    ema: float | None = option(0.999, "decay of the slow copy, which teaches")
    threshold: float = option(0.95, "pixels below this confidence teach nothing")
    weight: float = option(1.0, "weight of the unlabeled term")


@dataclass(frozen=True)
class UniMatchOptions(StageOptions):
    """Of UniMatch."""

    group: ClassVar[str] = "unimatch"

    threshold: float = option(0.95, "pixels below this confidence teach nothing")


@dataclass(frozen=True)
class UniMatchV2Options(StageOptions):
    """Of UniMatch V2."""

    group: ClassVar[str] = "unimatch_v2"

    ema: float | None = option(0.996, "decay of the slow copy, which teaches")
    threshold: float = option(0.95, "pixels below this confidence teach nothing")


def classmix(recipe: Recipe, own: ClassMixOptions) -> Plan:
    return one_stage(recipe, own, ClassMix(own.threshold, own.weight))


def augseg(recipe: Recipe, own: AugSegOptions) -> Plan:
    return one_stage(recipe, own, AugSeg(own.threshold, own.weight))


def unimatch(recipe: Recipe, own: UniMatchOptions) -> Plan:
    return one_stage(recipe, own, UniMatch(own.threshold))


def unimatch_v2(recipe: Recipe, own: UniMatchV2Options) -> Plan:
    return one_stage(recipe, own, UniMatchV2(own.threshold))
