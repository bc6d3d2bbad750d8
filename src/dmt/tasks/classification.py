"""Image classification: one label per image."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from dmt.core.execution import Execution
from dmt.core.labeling_views import LabelingView
from dmt.data.folders import photo_sets
from dmt.data.folders.photo_options import PhotoOptions
from dmt.data.images import augment, batches, splits
from dmt.data.images.audit import ImageAudit
from dmt.data.images.batches import Unlabeled
from dmt.data.images.datasets import DATASETS
from dmt.data.images.options import DataOptions
from dmt.data.sets import LabeledSet, PseudoLabels, UnlabeledSet
from dmt.data.squares import ReadAhead, Squares
from dmt.errors import ConfigError, DataError
from dmt.models.build import NetSpec
from dmt.tasks.base import Batches, Task, View, Wanted, every
from dmt.types import IMAGENET, BatchPlan, Normalization, Target

VIEWED = 500
"""Greatest number of images per forward pass outside of training."""

VIEWED_PIXELS = 1 << 19
"""Pixels of all images of such a pass on a CPU, whose caches would not hold more; a GPU gets 32 times as many."""


Images = UnlabeledSet[Tensor] | UnlabeledSet[Squares] | LabeledSet[Tensor]


@dataclass(frozen=True)
class Classification(Task):
    """Classification of small images of one size, kept in memory as uint8; unlabeled ones may be read on access."""

    pixels: ClassVar[bool] = False

    classes: tuple[str, ...]
    shape: tuple[int, int, int]
    normalization: Normalization
    policies: Mapping[str, augment.Augment]  # the policy of every kind of view
    labeled: LabeledSet[Tensor]
    unlabeled: UnlabeledSet[Tensor] | UnlabeledSet[Squares]
    validation: LabeledSet[Tensor]
    test: LabeledSet[Tensor]

    def net_spec(self, name: str) -> NetSpec:
        return NetSpec(name, len(self.classes), self.shape, self.normalization)

    def batches(
        self,
        labeled: LabeledSet[Tensor],
        pseudo: PseudoLabels[Tensor] | None,
        plan: BatchPlan,
        execution: Execution,
    ) -> Batches:
        return batches.ImageBatches(labeled, plan, self.policies, execution, self._teaching(pseudo, plan))

    def _teaching(self, pseudo: PseudoLabels[Tensor] | None, plan: BatchPlan) -> Unlabeled | None:
        """Return the unlabeled images, with the stored labels of those kept, if any; None if the plan has no views."""
        if not plan.views:
            return None
        if pseudo is None:
            return Unlabeled(self.unlabeled.images)
        positions = pseudo.selected.nonzero().squeeze(1)
        target = Target(pseudo.labels, pseudo.confidence, pseudo.soft).take(positions)
        return Unlabeled(self.unlabeled.images, (positions, target))

    def views(self, images: Images, device: torch.device, wanted: Wanted = every) -> Iterator[View]:
        held, count = images.images, images_per_forward(tuple(images.images.shape[2:]), device)
        starts = batches.starts(len(images), count, wanted)
        read = ReadAhead(
            lambda turn: held[starts[turn] : starts[turn] + count] if turn < len(starts) else torch.empty(0)
        )
        for turn, start in enumerate(starts):
            positions = torch.arange(start, min(start + count, len(images)))
            truth = images.labels[positions].to(device) if isinstance(images, LabeledSet) else None
            part = read(turn) if isinstance(held, Squares) else held[positions]
            yield View(positions, batches.scale(part.to(device)), truth)

    def logits(self, view: View, seen: LabelingView, net: Callable[[Tensor], Tensor]) -> Tensor:
        """Compute logits of the plain or mirrored images; resized views are refused earlier, by ``require_shown``."""
        return net(view.images.flip(-1) if seen.mirrored else view.images)

    def target(self, pseudo: PseudoLabels[Tensor], positions: Tensor, view: View) -> Target:
        """Return the stored label of every image, whether it was kept or not."""
        device = view.images.device
        return Target(pseudo.labels[positions].to(device), pseudo.confidence[positions].to(device))


def images_per_forward(size: tuple[int, ...], device: torch.device) -> int:
    """Return the number of images of this (height, width) per forward pass outside of training."""
    pixels = VIEWED_PIXELS * (1 if device.type == "cpu" else 32)
    return max(1, min(VIEWED, pixels // int(math.prod(size))))


def net_spec(options: DataOptions, net: str) -> NetSpec:
    """Return the specification of a net for a data set, without opening it."""
    data = DATASETS[options.dataset]
    return NetSpec(net, len(data.classes), data.shape, data.normalization)


def photo_spec(options: PhotoOptions, net: str) -> NetSpec:
    """Return the specification of a net for a user's folder, without opening it."""
    return NetSpec(net, len(options.classes), (3, options.size, options.size), IMAGENET)


def split_photos(options: PhotoOptions, parts: photo_sets.SquareSets, seed: int) -> tuple[Classification, ImageAudit]:
    """Make a task of a user's images. The split is the same for every seed, and the audit knows no ground truth.

    Validation images, if the folder has none of its own, are held out from the labeled ones.
    """
    labeled, validation = parts.labeled, parts.validation
    if options.validation and not len(validation):
        fewest = int(labeled.labels.bincount(minlength=len(options.classes)).min())
        if fewest <= options.validation:
            raise ConfigError(f"a class has {fewest} labels, so validation={options.validation} is too many; set fewer")
        held_out = options.validation * len(options.classes)
        rest, carved = splits.carve(labeled.labels, len(options.classes), held_out, "validation")
        labeled, validation = parts.labeled.take(rest), parts.labeled.take(carved)
    task = Classification(
        classes=options.classes,
        shape=(3, options.size, options.size),
        normalization=IMAGENET,
        policies=options.policies,
        labeled=labeled,
        unlabeled=parts.unlabeled,
        validation=validation,
        test=parts.test,
    )
    return task, ImageAudit(None, labeled, len(task.classes))


def split_up(
    options: DataOptions, images: tuple[LabeledSet[Tensor], LabeledSet[Tensor]], seed: int
) -> tuple[Classification, ImageAudit]:
    """Make a task and, separately, the audit, which alone knows the ground truth of the unlabeled images.

    Args:
        options: the number of labels, the augmentation.
        images: the complete (train, test) of the data set, as its reader returns them.
        seed: determines which images are labeled.
    """
    data = DATASETS[options.dataset]
    train, test = images
    found = list(train.images.shape[1:])
    if found != list(data.shape):
        raise DataError(f"{data.name} has images of {list(data.shape)}, not {found}; is it the right folder?")
    parts = splits.draw(train.labels, len(data.classes), options.labels, options.validation, seed)
    hidden, labeled = train.take(parts.unlabeled), train.take(parts.labeled)
    if options.label_noise:
        wrong = splits.mislabeled(labeled.labels, len(data.classes), options.label_noise, seed)
        labeled = replace(labeled, labels=wrong)
    task = Classification(
        classes=data.classes,
        shape=data.shape,
        normalization=data.normalization,
        policies=options.policies,
        labeled=labeled,
        unlabeled=hidden.without_truth(),
        validation=train.take(parts.validation),
        test=test,
    )
    return task, ImageAudit(hidden.labels, train, len(task.classes))
