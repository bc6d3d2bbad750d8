"""An online method between a Baseline and the rounds: it continues the net that is to label (ours)."""

from collections.abc import Callable
from dataclasses import replace

from dmt.methods import adaptive, online, online_pixels
from dmt.methods.online import StageOptions
from dmt.methods.plan import Plan, Stage
from dmt.methods.recipe import Recipe

_BUILDS: dict[str, tuple[Callable[..., Plan], type[StageOptions]]] = {
    "fixmatch": (online.fixmatch, online.FixMatchOptions),
    "flexmatch": (adaptive.flexmatch, adaptive.FlexMatchOptions),
    "freematch": (adaptive.freematch, adaptive.FreeMatchOptions),
    "softmatch": (adaptive.softmatch, adaptive.SoftMatchOptions),
    "fixmatch-seg": (online.fixmatch_seg, online.FixMatchSegOptions),
    "cutmix-seg": (online.cutmix_seg, online.CutMixSegOptions),
    "classmix": (online_pixels.classmix, online_pixels.ClassMixOptions),
}


def options_of(objective: str) -> type[StageOptions] | None:
    """The options of such a stage, by the class name of its objective; None for other stages."""
    for build, options in _BUILDS.values():
        (stage,) = build(Recipe(), options()).stages
        if type(stage.objective).__name__ == objective:
            return options
    return None


def after(first: Stage, recipe: Recipe) -> tuple[Stage, ...]:
    """The stage that continues ``first`` by the recipe's online method, with that method's own options; or none."""
    if recipe.online_stage == "none":
        return ()
    build, options = _BUILDS[recipe.online_stage]
    own = replace(recipe.groups[options], epochs=recipe.epochs_online_stage)
    (stage,) = build(recipe, own).stages
    number = first.round + 1
    return (replace(stage, name=f"{first.lines[0]}{number}", lines=first.lines, round=number, start=first.name),)
