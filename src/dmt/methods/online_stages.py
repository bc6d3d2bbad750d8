"""Online stage: an online method that continues training the Baseline before it labels for round 1 (ours)."""

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
    """Return the options class of an online stage by the class name of its objective; None for other objectives."""
    for build, options in _BUILDS.values():
        (stage,) = build(Recipe(), options()).stages
        if type(stage.objective).__name__ == objective:
            return options
    return None


def after(first: Stage, recipe: Recipe) -> tuple[Stage, ...]:
    """Return the online stage that continues ``first``, with the options of its method; empty if there is none.

    Only the epochs come from the recipe's ``epochs_online_stage``.
    """
    if recipe.online_stage == "none":
        return ()
    build, options = _BUILDS[recipe.online_stage]
    own = replace(recipe.groups[options], epochs=recipe.epochs_online_stage)
    (stage,) = build(recipe, own).stages
    number = first.round + 1
    return (replace(stage, name=f"{first.lines[0]}{number}", lines=first.lines, round=number, start=first.name),)
