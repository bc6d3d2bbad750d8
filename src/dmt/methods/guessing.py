"""MixMatch and ReMixMatch: their options, plans and catalogue entries."""

from dataclasses import dataclass
from typing import ClassVar

from dmt.methods.method import Method
from dmt.methods.online import StageOptions, one_stage
from dmt.methods.plan import Plan
from dmt.methods.recipe import Recipe
from dmt.objectives.guessing import MixMatch, ReMixMatch
from dmt.options import option, require


@dataclass(frozen=True)
class MixMatchOptions(StageOptions):
    """Options of MixMatch."""

    group: ClassVar[str] = "mixmatch"

    temperature: float = option(0.5, "temperature for sharpening guesses")
    mixup: float | None = option(0.75, "mixup's Beta parameter, drawn for every image; or none")
    weight: float = option(75.0, "weight of the unlabeled term after its ramp")
    ramp: float = option(1 / 64, "share of the training over which that weight grows")

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_mixup(self.group, self.mixup)


@dataclass(frozen=True)
class ReMixMatchOptions(StageOptions):
    """Options of ReMixMatch."""

    group: ClassVar[str] = "remixmatch"

    temperature: float = option(0.5, "temperature for sharpening guesses")
    mixup: float | None = option(0.75, "mixup's Beta parameter, drawn for every image; or none")
    strong_views: int = option(8, "mixed strong views per unlabeled image; 1 for 40 labels")
    weight: float = option(1.5, "weight of mixed unlabeled images after its ramp")
    weight_strong: float = option(0.5, "weight of an unmixed strong view after its ramp")
    weight_rotation: float = option(0.5, "weight of predicting the rotation of a strong view; 2 for 40 labels")
    ramp: float = option(1 / 64, "share of the training over which the first two weights grow")

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_mixup(self.group, self.mixup)
        require("remixmatch.strong_views", self.strong_views, self.strong_views >= 1, "at least 1")
        for key in ("weight_strong", "weight_rotation"):
            require(f"remixmatch.{key}", getattr(self, key), getattr(self, key) >= 0, "at least 0")


def _require_mixup(group: str, alpha: float | None) -> None:
    require(f"{group}.mixup", alpha, alpha is None or alpha > 0, "greater than 0, or none")


def mixmatch(recipe: Recipe, own: MixMatchOptions) -> Plan:
    return one_stage(recipe, own, MixMatch(own.temperature, own.mixup, own.weight, own.ramp))


def remixmatch(recipe: Recipe, own: ReMixMatchOptions) -> Plan:
    objective = ReMixMatch(
        own.temperature,
        own.mixup,
        own.strong_views,
        own.weight,
        own.weight_strong,
        own.weight_rotation,
        own.ramp,
    )
    return one_stage(recipe, own, objective)


METHODS = (
    Method(
        "mixmatch",
        "MixMatch",
        "mixup of all images; soft labels of unlabeled ones are the sharpened mean prediction over two views",
        "online",
        mixmatch,
        reference="Berthelot et al., NeurIPS 2019",
        serves=("images",),
        options=MixMatchOptions,
    ),
    Method(
        "remixmatch",
        "ReMixMatch",
        "like MixMatch, with guesses aligned to the label distribution, many strong views, and rotation prediction",
        "online",
        remixmatch,
        reference="Berthelot et al., ICLR 2020",
        serves=("images",),
        options=ReMixMatchOptions,
    ),
)
