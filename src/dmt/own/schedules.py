"""Schedules for a user's images: batches, rates and lengths from their number, the device and what nets start from."""

import math
from dataclasses import replace

from dmt import presets
from dmt.data.folders.photo_options import PhotoMaskOptions, PhotoOptions
from dmt.methods import catalogue
from dmt.methods.groups import Groups, MethodOptions, OnlineOptions
from dmt.methods.method import Labeled
from dmt.methods.online import StageOptions
from dmt.methods.recipe import Recipe

TUNED_ONLINE = 1000
"""Steps of an online method that teaches encoders which know photos."""


def for_images(options: PhotoOptions, large: bool, pretrained: bool) -> Recipe:
    """For a net all of which learns.

    Args:
        large: there is a GPU.
        pretrained: it starts from published parameters.
    """
    labels, unlabeled = options.sizes.labeled, max(options.unlabeled, 1)
    # 128 images of 224 pixels take about 5 GB to learn from
    batch = 32 if not large else 128 if pretrained else 256
    pseudo = batch * 3 // 4
    recipe = Recipe(
        batch=batch,
        batch_pseudo=pseudo,
        batch_labeled=batch - pseudo,
        rate=0.1 if large else 0.05,
        rate_round=0.1 if large else 0.05,
        ema=0.99,
        per_class=True,  # with few labels one class would else take all the places
        fractions=_fractions(unlabeled),
    )
    # a Baseline that was cut short would flatter DMT; but a large net on a CPU has to be
    steps, steps_round = (2000, 1500) if large else (400, 120) if pretrained else (1500, 240)
    recipe = replace(
        recipe,
        epochs=_epochs(steps, recipe.batch, labels),
        epochs_round=_epochs(steps_round, pseudo, unlabeled),
    )
    if pretrained:
        # nets restarted from one start barely disagree: two lines on different labels do
        return replace(recipe, shape="pair", share=0.8 if labels >= 10 else None, rate=0.01, rate_round=0.01)
    if not large:
        # a chain trains every round from scratch, for which a CPU has no time; a pair continues
        return replace(recipe, shape="pair", gamma=2.0)
    return recipe


def for_a_last_layer(options: PhotoOptions, large: bool, alike: bool = True) -> Recipe:
    """For a net whose encoder stays: few steps, since one layer has learned soon, and no mixup or slow copy.

    Args:
        alike: both nets have one encoder, so that only different labels can make them differ.
    """
    labels, unlabeled = options.sizes.labeled, max(options.unlabeled, 1)
    batch = 128 if large else 32
    pseudo = batch * 3 // 4
    return Recipe(
        batch=batch,
        batch_pseudo=pseudo,
        batch_labeled=batch - pseudo,
        epochs=_epochs(150, batch, labels),
        epochs_round=_epochs(120, pseudo, unlabeled),
        rate=0.003,
        rate_round=0.003,
        mixup=None,  # what an encoder says of two photos at once is not what it says of each
        ema=None,
        gamma=2.0,
        fractions=_fractions(unlabeled),
        per_class=True,
        shape="pair",
        share=0.8 if alike and labels >= 10 else None,
    )


def for_tuning(options: PhotoOptions, large: bool, alike: bool = True) -> Recipe:
    """For an encoder that knows photos and learns too: slowly, after its head, and for a few hundred steps.

    Args:
        alike: both nets have one encoder, so that only different labels can make them differ.
    """
    labels, unlabeled = options.sizes.labeled, max(options.unlabeled, 1)
    steps, steps_round = (300, 200) if large else (100, 60)
    # later rounds teach wrong labels to nets that can learn anything by heart (benchmarks/results/folder_images.md)
    rounds = _fractions(unlabeled)[:1]
    return replace(
        for_a_last_layer(options, large=False, alike=alike),
        epochs=_epochs(steps, 32, labels),
        # a round's passes are over what it keeps
        epochs_round=_epochs(steps_round, 24, round(unlabeled * rounds[0])),
        fractions=rounds,
        optimizer="adamw",
        rate=1e-3,
        rate_round=5e-4,
        weight_decay=1e-2,
        decay="kernels",
        encoder=0.1,
        head_first=0.2,
        epochs_online_stage=_epochs(TUNED_ONLINE, 24, unlabeled),
        groups=_online("images", _epochs(TUNED_ONLINE, 24, unlabeled)),
    )


def for_pixels(
    options: PhotoMaskOptions, large: bool, pretrained: bool, *, frozen: bool = False, alike: bool = True
) -> Recipe:
    """For a net that labels pixels; arguments as in `for_images`.

    Args:
        frozen: only its decoder learns.
        alike: both nets have one encoder, so that only different labels can make them differ.
    """
    if pretrained:
        return _for_published_pixels(options, large, frozen, alike)
    labels, unlabeled = options.sizes.labeled, max(options.unlabeled, 1)
    base = presets.get("scenes").config.recipe
    recipe = replace(base, batch=min(16, max(4, labels)), fractions=_fractions(unlabeled), share=None)
    if not large:
        # from random parameters students are unsure for long, and a large γ would keep them from learning;
        # fewer rounds, each long enough for a small net to use its labels
        recipe = replace(recipe, gamma=0.5, fractions=(0.4, 0.7, 1.0) if unlabeled >= 50 else recipe.fractions)
    steps, steps_round = (2000, 1000) if large else (600, 240)
    return replace(
        recipe,
        epochs=_epochs(steps, recipe.batch, labels),
        epochs_round=_epochs(steps_round, recipe.batch_pseudo, unlabeled),
    )


def _for_published_pixels(options: PhotoMaskOptions, large: bool, frozen: bool, alike: bool) -> Recipe:
    """For an encoder that knows photos with a decoder that does not; chosen in benchmarks/results/folder_masks.md."""
    labels, unlabeled = options.sizes.labeled, max(options.unlabeled, 1)
    batch = 16 if large else 8
    pseudo = batch * 3 // 4
    # a step's time follows its pixels, and a CPU has to be done in minutes
    height, width = options.crop
    length = 1.0 if large else min(1.0, 128 * 128 / (height * width))
    steps, steps_round = (1000, 450) if large else (round(400 * length), round(240 * length))
    # nets that see colors changed learn more from a long round than from two short ones
    rounds = (0.5, 0.9)
    rate = 3e-3 if frozen else 1e-3
    # an online method takes as many steps as a line of DMT
    online = _epochs(steps + len(rounds) * steps_round, pseudo, unlabeled)
    return replace(
        presets.get("scenes").config.recipe,
        batch=batch,
        batch_pseudo=pseudo,
        batch_labeled=batch - pseudo,
        epochs=_epochs(steps, batch, labels),
        epochs_round=max(1, round(steps_round / math.ceil(unlabeled / pseudo))),
        optimizer="adamw",
        rate=rate,
        rate_round=rate / 2,
        weight_decay=1e-2,
        encoder=0.1,
        gamma=2.0,
        fractions=rounds,
        strong_pseudo=True,
        share=0.8 if alike and labels >= 10 else None,
        epochs_online_stage=online,
        groups=_online("pixels", online, OnlineOptions(epochs=10)),
    )


def _online(labeled: Labeled, epochs: int, *more: MethodOptions) -> Groups:
    """Of online methods, for encoders that know photos: their optimizer must go with the rate, which all share."""
    kinds = {method.options for method in catalogue.METHODS.values() if labeled in method.serves}
    taught = (
        kind(optimizer="adamw", encoder=0.1, decay="kernels", epochs=epochs)
        for kind in kinds
        if kind is not None and issubclass(kind, StageOptions)
    )
    return Groups.of(*more, *taught)


def _fractions(unlabeled: int) -> tuple[float, ...]:
    return (0.2, 0.4, 0.6, 0.8, 1.0) if unlabeled >= 50 else (0.5, 1.0)


def _epochs(steps: int, batch: int, images: int) -> int:
    return max(1, math.ceil(steps / math.ceil(max(images, 1) / batch)))
