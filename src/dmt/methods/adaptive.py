"""FlexMatch, FreeMatch and SoftMatch: their options, plans and catalogue entries."""

from dataclasses import dataclass
from typing import ClassVar

from dmt.methods.method import Method
from dmt.methods.online import StageOptions, one_stage
from dmt.methods.plan import Plan
from dmt.methods.recipe import Recipe
from dmt.objectives.adaptive import FlexMatch, FreeMatch, SoftMatch
from dmt.options import option, require


@dataclass(frozen=True)
class FlexMatchOptions(StageOptions):
    """Options of FlexMatch."""

    group: ClassVar[str] = "flexmatch"

    threshold: float = option(0.95, "confidence threshold of a well-learned class")
    weight: float = option(1.0, "weight of the unlabeled term")


@dataclass(frozen=True)
class FreeMatchOptions(StageOptions):
    """Options of FreeMatch."""

    group: ClassVar[str] = "freematch"

    weight: float = option(1.0, "weight of the unlabeled term")
    weight_fairness: float = option(0.01, "weight of the fairness term, over all classes")
    memory_ema: float = option(0.999, "decay of the averages that thresholds follow")

    def __post_init__(self) -> None:
        super().__post_init__()
        require("freematch.weight_fairness", self.weight_fairness, self.weight_fairness >= 0, "at least 0")
        _require_decay(self.group, self.memory_ema)


@dataclass(frozen=True)
class SoftMatchOptions(StageOptions):
    """Options of SoftMatch."""

    group: ClassVar[str] = "softmatch"

    weight: float = option(1.0, "weight of the unlabeled term")
    memory_ema: float = option(0.999, "decay of the averages that weights follow")

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_decay(self.group, self.memory_ema)


def _require_decay(group: str, decay: float) -> None:
    require(f"{group}.memory_ema", decay, 0 <= decay < 1, "at least 0 and below 1")


def flexmatch(recipe: Recipe, own: FlexMatchOptions) -> Plan:
    return one_stage(recipe, own, FlexMatch(own.threshold, own.weight))


def freematch(recipe: Recipe, own: FreeMatchOptions) -> Plan:
    return one_stage(recipe, own, FreeMatch(own.weight, own.weight_fairness, own.memory_ema))


def softmatch(recipe: Recipe, own: SoftMatchOptions) -> Plan:
    return one_stage(recipe, own, SoftMatch(own.weight, own.memory_ema))


METHODS = (
    Method(
        "flexmatch",
        "FlexMatch",
        "like FixMatch, with lower thresholds for classes that are hard to learn",
        "online",
        flexmatch,
        reference="Zhang et al., NeurIPS 2021",
        serves=("images",),
        options=FlexMatchOptions,
    ),
    Method(
        "freematch",
        "FreeMatch",
        "like FixMatch, with thresholds that adapt to the net's confidence in each class",
        "online",
        freematch,
        reference="Wang et al., ICLR 2023",
        serves=("images",),
        options=FreeMatchOptions,
    ),
    Method(
        "softmatch",
        "SoftMatch",
        "like FixMatch, with a weight that decreases as confidence drops, instead of a threshold",
        "online",
        softmatch,
        reference="Chen et al., ICLR 2023",
        serves=("images",),
        options=SoftMatchOptions,
    ),
)
