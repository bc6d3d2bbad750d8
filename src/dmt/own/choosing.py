"""Task, net, image size and schedule for a user's folder, chosen from the data and the device."""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from dmt import config as configuration
from dmt import presets
from dmt.config import Config
from dmt.data.folders import photo_files, photo_options, photos, samples
from dmt.data.folders.contents import FolderContents
from dmt.data.folders.photo_options import PhotoMaskOptions, PhotoOptions
from dmt.errors import ConfigError, DataError
from dmt.methods.recipe import Recipe
from dmt.models import names
from dmt.own import choosing_pixels, folds, known_nets, schedules
from dmt.own.known_nets import Asked, Net
from dmt.presets import Preset

LOOKED_AT = 200
"""Number of photos whose size is read to choose an image size."""

LOOKS = 6_000
"""Number of views that the two frozen encoders can encode on a CPU within minutes."""

VIEWS = (6, 8)
"""Maximum number of stored views per photo, on a CPU and on a GPU."""

LEAST = 5
"""Minimum number of labels per class for any to be held out for validation."""

JUDGES = 50
"""Minimum number of validation images, since with fewer the choice between nets would be left to chance.

If fewer could be held out and there is a test set to measure on, all labels are used for training.
"""


@dataclass(frozen=True)
class FolderSetup:
    """A preset made for one folder, and a line of text about each choice."""

    preset: Preset
    contents: FolderContents
    lines: tuple[str, ...]


def override(config: Config, settings: Mapping[str, Any]) -> Config:
    """Return the configuration for a folder with the user's settings, which may not contradict what it holds."""
    changed = configuration.override(config, settings)
    for key, instead in photo_options.COUNTED.items():
        holds = getattr(config.data, key, None)
        if getattr(changed.data, key, None) != holds:
            raise ConfigError(f"{key} cannot be set here, since it is what your folder holds ({holds}); {instead}")
    return changed


def choose(folder: Path, device: torch.device, asked: Asked | None = None) -> FolderSetup:
    """Choose task, net, image size and schedule for a folder. Reads file names, headers and masks; writes nothing."""
    asked = asked or Asked()
    contents = photos.open_folder(folder, asked.shards)
    if not contents.labeled:
        raise DataError(f"{folder} has no labeled images; label a few images of each class")
    if len(contents.classes) < 2:
        raise DataError(f"{folder} has only one class, '{contents.classes[0]}'; label some images of another class too")
    side = _short_side(contents)
    return _pixels(contents, device, side, asked) if contents.pixels else _images(contents, device, side, asked)


def _short_side(contents: FolderContents) -> int:
    """Return the median of the shorter sides of at most `LOOKED_AT` photos from all over the folder."""
    known, others = contents.labeled, contents.unlabeled
    places = samples.evenly(range(len(known) + len(others)), LOOKED_AT)
    some = [known[place] if place < len(known) else others[place - len(known)] for place in places]
    sides = []
    for photo in some:
        try:
            sides.append(min(photo_files.photo_size(photo.path)))
        except DataError:
            continue  # reported when all images are read
    if not sides:
        raise DataError(
            f"none of {len(some)} images from all over {contents.root} can be read; see dmt check {contents.root}"
        )
    return int(statistics.median(sides))


def _rounded(side: int, most: int, step: int = 16) -> int:
    """Round a side down to a multiple of ``step``, to at most ``most`` and at least 32."""
    return max(-(-32 // step) * step, min(most, side) // step * step)


def _most(net: Net, large: bool, unlabeled: int) -> int:
    """Return the largest image side for a net.

    Published nets were trained on 224 pixels and recognize less in smaller images.
    """
    if large:
        return 224 if net.published else 128
    if net.frozen:  # it encodes every photo only a few times
        return 224
    if net.published:  # smaller, so that a CPU finishes in reasonable time
        return 160 if unlabeled <= 1000 else 128
    return 32


def _sides(*nets: str | None) -> int:
    """Return the number that image sides must be multiples of, so that the nets' patches divide them evenly."""
    patches = [names.patch(net) for net in nets if net is not None]
    return math.lcm(*(16 if 16 % patch == 0 else patch for patch in patches))


def _images(contents: FolderContents, device: torch.device, side: int, asked: Asked) -> FolderSetup:
    large = device.type == "cuda"
    net = known_nets.for_images(asked, large, side)
    ours = asked.net is None and net.frozen and not asked.single
    net_b = f"frozen:{known_nets.KNOWN_B}" if ours else asked.net_b
    size = _rounded(side, _most(net, large, len(contents.unlabeled)), _sides(net.name, net_b))
    validation, held_out_line = _held_out(contents)
    options = PhotoOptions(
        classes=contents.classes,
        labels=len(contents.labeled),
        unlabeled=len(contents.unlabeled),
        validation=validation,
        size=size,
        # in few steps, a small net or a single layer learns nothing from strongly augmented images
        augment="photo" if net.tuned else "sane" if large and not net.frozen else "crop-flip",
        stored_views=_views(contents, large) if net.frozen and (net_b is None or names.is_frozen(net_b)) else 0,
        shards=asked.shards,
    )
    recipe = (
        schedules.for_a_last_layer(options, large, alike=net_b in (None, net.name))
        if net.frozen
        else schedules.for_tuning(options, large, alike=net_b in (None, net.name))
        if net.tuned
        else schedules.for_images(options, large, net.published)
    )
    lines = (
        f"task: image classification, {len(contents.classes)} classes ({contents.layout})",
        f"size={size}: the median of the photos' shorter sides is {side}" + _cap(large, side, size),
        f"net={net.name}, start {net.start}: {net.why}",
        _second_line(net_b) if asked.net_b is None else "",
        f"stored_views={options.stored_views}: number of views of each photo that are encoded once, before training"
        if options.stored_views
        else "",
        held_out_line,
        _schedule_line(recipe, options.sizes.labeled, len(contents.unlabeled)),
    )
    config = Config(options, recipe, net=net.name, net_b=net_b if ours else None)
    preset = replace(presets.get("photos"), config=config, start=_default(net.start))
    return FolderSetup(preset, contents, tuple(line for line in lines if line))


def _views(contents: FolderContents, large: bool) -> int:
    """Return how many views of each photo to encode: the image, its mirror image, then crops."""
    photos = len(contents.labeled) + len(contents.unlabeled)
    return VIEWS[1] if large else max(1, min(VIEWS[0], LOOKS // photos))


def _pixels(contents: FolderContents, device: torch.device, side: int, asked: Asked) -> FolderSetup:
    large = device.type == "cuda"
    net = known_nets.for_pixels(asked, large, side)
    ours = asked.net is None and net.published and not asked.single
    net_b = f"{names.kind(net.name)}:{known_nets.KNOWN_B}" if ours else asked.net_b
    slow = choosing_pixels.CPU if net.frozen else choosing_pixels.CPU_SMALL
    seen = choosing_pixels.seen(contents, choosing_pixels.GPU if large else slow)
    held_out, held_out_line = _held_out(contents)
    options = PhotoMaskOptions(
        classes=contents.classes,
        palette=tuple(number for color in contents.palette for number in color),
        labels=len(contents.labeled),
        unlabeled=len(contents.unlabeled),
        validation=held_out,
        size=seen.size,
        shards=asked.shards,
        crop=seen.crop,
        by_class=len(contents.classes) > 2,
    )
    alike = net_b in (None, net.name)
    recipe = schedules.for_pixels(options, large, net.published, frozen=net.frozen, alike=alike)
    lines = (
        f"task: segmentation, {len(contents.classes)} classes ({contents.layout})",
        f"size={seen.size}, crop={seen.crop[0]},{seen.crop[1]}: {seen.why}",
        f"net={net.name}, start {net.start}: {net.why}",
        _second_line(net_b) if asked.net_b is None else "",
        "by_class=true: images with rare classes are sampled as often as others" if options.by_class else "",
        held_out_line,
        _schedule_line(recipe, options.sizes.labeled, len(contents.unlabeled)),
    )
    config = Config(options, recipe, net=net.name, net_b=net_b if ours else None)
    preset = replace(presets.get("photo-masks"), config=config, start=_default(net.start))
    return FolderSetup(preset, contents, tuple(line for line in lines if line))


def _second_line(net_b: str | None) -> str:
    return f"net_b={net_b}: two different nets learn more from each other" if net_b else ""


def _default(start: str) -> str:
    """Return what lines without an explicit start begin from; files and timm are always given per line."""
    return start if start == "wheel" else "random"


def judges(contents: FolderContents) -> int:
    """Return how many labels of each class, or images with masks, can be held out for validation at most."""
    if contents.validation:
        return 0
    given = [photo.label for photo in contents.labeled]
    labels = len(given) // 2 if contents.pixels else min(map(given.count, range(len(contents.classes))))
    return min(100 if contents.pixels else 20, labels // 5) if labels >= LEAST else 0


def holding_out(contents: FolderContents, count: int, why: str) -> str:
    """Describe how many labels are held out: ``count`` of each class or, for masks, ``count`` images."""
    per_class = "" if contents.pixels else f" per class ({count * len(contents.classes)})"
    return f"validation={count}{per_class}: held out from the labels{why}"


def _held_out(contents: FolderContents) -> tuple[int, str]:
    """Return how many labels to hold out for validation, of each class or of all masks, and a line about it."""
    if contents.validation:
        return 0, "validation: the images in val/"
    count = judges(contents)
    if count and not contents.test:
        return count, holding_out(contents, count, ", since there is no test/ to measure on")
    if count * (1 if contents.pixels else len(contents.classes)) >= JUDGES:
        return count, holding_out(contents, count, " to choose between nets")
    few = f"validation=0: {len(contents.labeled)} labels are too few to hold any out, so all are used for training"
    if len(contents.labeled) >= folds.FEWEST:
        return 0, f"{few}, and cross-validation chooses the settings; images in val/ would help choose between nets"
    return 0, f"{few}, and the last nets are used unchecked: nothing can warn you; put images into val/ to choose"


def _cap(large: bool, side: int, chosen: int) -> str:
    return "" if large or chosen >= side // 16 * 16 else "; reduced for speed on a CPU"


def _schedule_line(recipe: Recipe, labels: int, unlabeled: int) -> str:
    if not unlabeled:
        return "schedule: there are no unlabeled images, so training uses the labels only"
    rounds = f"{len(recipe.fractions)} rounds of epochs_round={recipe.epochs_round} over {unlabeled:,} images"
    return f"schedule: Baseline epochs={recipe.epochs} over {labels:,} labels, then {rounds}"
