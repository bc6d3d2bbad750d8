"""Schedules for a user's images, derived from the number of images, the device and the nets' initialization."""

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
"""Number of steps of online methods that fine-tune pretrained encoders."""


def for_images(options: PhotoOptions, large: bool, pretrained: bool) -> Recipe:
    """Return a recipe for classification with a net whose every layer is trained.

    Args:
        large: whether there is a GPU.
        pretrained: whether the net starts from published parameters.
    """
    labels, unlabeled = options.sizes.labeled, max(options.unlabeled, 1)
    # training on a batch of 128 images of 224 pixels takes about 5 GB
    batch = 32 if not large else 128 if pretrained else 256
    pseudo = batch * 3 // 4
    recipe = Recipe(
        batch=batch,
        batch_pseudo=pseudo,
        batch_labeled=batch - pseudo,
        rate=0.1 if large else 0.05,
        rate_round=0.1 if large else 0.05,
        ema=0.99,
        per_class=True,  # with few labels, one class could otherwise fill the whole selection
        fractions=_fractions(unlabeled),
    )
    # an undertrained Baseline would make DMT's gain look larger than it is, but a CPU has no time for more
    steps, steps_round = (2000, 1500) if large else (400, 120) if pretrained else (1500, 240)
    recipe = replace(
        recipe,
        epochs=_epochs(steps, recipe.batch, labels),
        epochs_round=_epochs(steps_round, pseudo, unlabeled),
    )
    if pretrained:
        # nets restarted from the same parameters barely disagree, but two lines trained on different labels do
        return replace(recipe, shape="pair", share=0.8 if labels >= 10 else None, rate=0.01, rate_round=0.01)
    if not large:
        # a chain trains every round from scratch, which takes too long on a CPU; a pair continues its nets
        return replace(recipe, shape="pair", gamma=2.0)
    return recipe


def for_a_last_layer(options: PhotoOptions, large: bool, alike: bool = True) -> Recipe:
    """Return a recipe for a frozen encoder: few steps, since one layer learns fast, and no mixup or EMA copy.

    Args:
        large: whether there is a GPU.
        alike: whether both nets have the same encoder, so that only different labels can make them differ.
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
        mixup=None,  # the features of two mixed photos are not the mix of their features
        ema=None,
        gamma=2.0,
        fractions=_fractions(unlabeled),
        per_class=True,
        shape="pair",
        share=0.8 if alike and labels >= 10 else None,
    )


def for_tuning(options: PhotoOptions, large: bool, alike: bool = True) -> Recipe:
    """Return a recipe for fine-tuning a pretrained encoder for a few hundred steps.

    The head is trained first, then the encoder too, at a lower learning rate.

    Args:
        large: whether there is a GPU.
        alike: whether both nets have the same encoder, so that only different labels can make them differ.
    """
    labels, unlabeled = options.sizes.labeled, max(options.unlabeled, 1)
    steps, steps_round = (300, 200) if large else (100, 60)
    # in later rounds, whole nets would memorize wrong pseudo labels (benchmarks/results/folder_images.md)
    rounds = _fractions(unlabeled)[:1]
    return replace(
        for_a_last_layer(options, large=False, alike=alike),
        epochs=_epochs(steps, 32, labels),
        # an epoch of a round covers only the kept pseudo labels
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
    """Return a recipe for segmentation.

    Args:
        large: whether there is a GPU.
        pretrained: whether the encoder starts from published parameters.
        frozen: whether only the decoder is trained.
        alike: whether both nets have the same encoder, so that only different labels can make them differ.
    """
    if pretrained:
        return _for_published_pixels(options, large, frozen, alike)
    labels, unlabeled = options.sizes.labeled, max(options.unlabeled, 1)
    base = presets.get("scenes").config.recipe
    recipe = replace(base, batch=min(16, max(4, labels)), fractions=_fractions(unlabeled), share=None)
    if not large:
        # students trained from random parameters stay unconfident for long, and a large γ would keep them from
        # learning; rounds are fewer, but each is long enough for a small net to make use of its labels
        recipe = replace(recipe, gamma=0.5, fractions=(0.4, 0.7, 1.0) if unlabeled >= 50 else recipe.fractions)
    steps, steps_round = (2000, 1000) if large else (600, 240)
    return replace(
        recipe,
        epochs=_epochs(steps, recipe.batch, labels),
        epochs_round=_epochs(steps_round, recipe.batch_pseudo, unlabeled),
    )


def _for_published_pixels(options: PhotoMaskOptions, large: bool, frozen: bool, alike: bool) -> Recipe:
    """Return a recipe for a pretrained encoder with a new decoder; chosen in benchmarks/results/folder_masks.md."""
    labels, unlabeled = options.sizes.labeled, max(options.unlabeled, 1)
    batch = 16 if large else 8
    pseudo = batch * 3 // 4
    # the time of a step is proportional to its pixels, and a CPU should finish in minutes
    height, width = options.crop
    length = 1.0 if large else min(1.0, 128 * 128 / (height * width))
    # decoders alone learn slowly: with 20 classes, four times 400 steps bring 20 points of mean IoU
    steps, steps_round = (1000, 450) if large else (round(1600 * length), round(600 * length))
    # with color augmentation, nets learn more from one long round than from two short ones
    rounds = (0.5, 0.9)
    rate = 3e-3 if frozen else 1e-3
    # an online method gets as many steps as one line of DMT
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
    """Return options of online methods for pretrained encoders.

    All methods share one learning rate, so their optimizer must be the one that this rate is meant for.

    Args:
        labeled: what gets labels, images or pixels.
        epochs: epochs of each method.
        more: options of other methods.
    """
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
