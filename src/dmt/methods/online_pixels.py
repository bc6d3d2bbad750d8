"""Methods for pixels that label within the step, beside those of `methods/online.py`: their options and plans."""

from dataclasses import dataclass
from typing import ClassVar

from dmt.methods.online import StageOptions, one_stage
from dmt.methods.plan import Plan
from dmt.methods.recipe import Recipe
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


def classmix(recipe: Recipe, own: ClassMixOptions) -> Plan:
    return one_stage(recipe, own, ClassMix(own.threshold, own.weight))


def augseg(recipe: Recipe, own: AugSegOptions) -> Plan:
    return one_stage(recipe, own, AugSeg(own.threshold, own.weight))
