"""Semantic segmentation: one label per pixel."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from dmt.core import codes, streams
from dmt.core.execution import Execution
from dmt.core.labeling_views import LabelingView
from dmt.data.folders import photo_sets
from dmt.data.folders.photo_options import PhotoMaskOptions
from dmt.data.pixels import mapped_views, published, size_groups
from dmt.data.pixels.pixel_audit import PixelAudit
from dmt.data.pixels.pixel_batches import PixelBatches, Unlabeled
from dmt.data.pixels.segment_options import SegmentOptions
from dmt.data.pixels.segment_sets import SEGMENT_SETS, Parts
from dmt.data.pixels.size_groups import Group
from dmt.data.pixels.windows import Window
from dmt.data.ragged import Ragged
from dmt.data.sets import LabeledSet, PseudoLabels, UnlabeledSet
from dmt.errors import ConfigError, DataError
from dmt.models.build import NetSpec
from dmt.tasks.base import Batches, Task, View, Wanted, every
from dmt.types import IMAGENET, BatchPlan, Normalization, Target

AT_ONCE, AT_ONCE_CPU = 4_000_000, 1 << 18
"""Pixels per forward pass outside of training; more on a CPU would not fit into its caches and take twice as long."""

LOGITS = 84_000_000
"""Greatest number of logits per forward pass outside of training."""


@dataclass(frozen=True)
class Segmentation(Task):
    """Segmentation of images of any size, kept in memory as uint8."""

    pixels: ClassVar[bool] = True
    samples: ClassVar[int] = 8

    classes: tuple[str, ...]
    palette: tuple[tuple[int, int, int], ...]
    normalization: Normalization
    window: Window
    labeled: LabeledSet[Ragged]
    unlabeled: UnlabeledSet[Ragged]
    validation: LabeledSet[Ragged]
    test: LabeledSet[Ragged]
    by_class: bool = False

    @property
    def colors(self) -> tuple[tuple[int, int, int], ...]:
        return self.palette

    def net_spec(self, name: str) -> NetSpec:
        return _spec(name, len(self.classes), self.window, self.normalization)

    def batches(
        self,
        labeled: LabeledSet[Ragged],
        pseudo: PseudoLabels[Ragged] | None,
        plan: BatchPlan,
        execution: Execution,
    ) -> Batches:
        unlabeled = None
        if plan.views:
            planes = (None, None) if pseudo is None else (pseudo.labels, pseudo.confidence)
            unlabeled = Unlabeled(self.unlabeled.images, *planes)
        return PixelBatches(labeled, plan, self.window, execution, unlabeled, by_class=self.by_class)

    def images_to_label(self) -> float:
        """Return the pixels of all unlabeled images, in units of training windows."""
        images = self.unlabeled.images
        return int((images.heights * images.widths).sum()) / (self.window.height * self.window.width)

    def views(
        self, images: UnlabeledSet[Ragged] | LabeledSet[Ragged], device: torch.device, wanted: Wanted = every
    ) -> Iterator[View]:
        """Yield images at native size, padded to a multiple of `PADDING`; those of equal padded size share a batch."""
        sizes = images.images.sizes
        most = AT_ONCE_CPU if device.type == "cpu" else AT_ONCE
        groups = size_groups.groups(sizes, pixels=min(most, LOGITS // len(self.classes)))
        for group in (each for number, each in enumerate(groups) if wanted(number)):
            truth = None
            if isinstance(images, LabeledSet):
                truth = size_groups.truth(size_groups.gather_plane(images.labels, group, device))
            gathered = size_groups.gather(images.images, group, device)
            yield View(torch.tensor(group.positions), gathered, truth, [sizes[each] for each in group.positions])

    def logits(self, view: View, seen: LabelingView, net: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        return mapped_views.logits(view.images, view.sizes, seen, net)

    def target(self, pseudo: PseudoLabels[Ragged], positions: torch.Tensor, view: View) -> Target:
        """Return the stored labels of the pixels that were kept, padded as in the view."""
        device, (height, width) = view.images.device, view.images.shape[-2:]
        group = Group(positions.tolist(), height, width)
        labels = size_groups.gather_plane(pseudo.labels, group, device)
        packed = size_groups.gather_plane(pseudo.confidence, group, device, fill=-codes.OFFSET)
        return Target(size_groups.truth(labels), codes.decode(packed))


def net_spec(options: SegmentOptions, net: str) -> NetSpec:
    """Return the specification of a net for a data set, without opening it."""
    data = SEGMENT_SETS[options.dataset]
    return _spec(net, len(data.classes), options.window, data.normalization)


def _spec(net: str, classes: int, window: Window, normalization: Normalization) -> NetSpec:
    return NetSpec(net, classes, (3, window.height, window.width), normalization, pixels=True)


def split_up(options: SegmentOptions, images: Parts, seed: int) -> tuple[Segmentation, PixelAudit]:
    """Make a task and, separately, the audit, which alone knows the masks of the unlabeled images.

    Args:
        options: the number of labels, the training window.
        images: the complete (train, test) of the data set, as its reader returns them.
        seed: determines which images are labeled, or which published list is used.
    """
    data = SEGMENT_SETS[options.dataset]
    train, test = images
    labeled, unlabeled, validation = _positions(options, train.ids, seed)
    hidden = train.take(unlabeled)
    task = Segmentation(
        classes=data.classes,
        palette=data.palette,
        normalization=data.normalization,
        window=options.window,
        labeled=train.take(labeled),
        unlabeled=hidden.without_truth(),
        validation=train.take(validation),
        test=test,
        by_class=options.by_class,
    )
    return task, PixelAudit(hidden.labels, train, len(task.classes))


def photo_spec(options: PhotoMaskOptions, net: str) -> NetSpec:
    """Return the specification of a net for a user's folder, without opening it."""
    return _spec(net, len(options.classes), options.window, IMAGENET)


def split_photos(
    options: PhotoMaskOptions, parts: photo_sets.FolderSets[Ragged, Ragged], seed: int
) -> tuple[Segmentation, PixelAudit]:
    """Make a task of a user's images. The split is the same for every seed, and the audit knows no masks.

    Validation images, if the folder has none of its own, are held out from the labeled ones.
    """
    labeled, validation = parts.labeled, parts.validation
    if options.validation and not len(validation):
        if len(labeled) <= options.validation:
            raise ConfigError(f"{len(labeled)} images have masks, so validation={options.validation} is too many")
        order = torch.from_numpy(streams.stream("validation").permutation(len(labeled)))
        carved, rest = order[: options.validation].sort().values, order[options.validation :].sort().values
        labeled, validation = parts.labeled.take(rest), parts.labeled.take(carved)
    task = Segmentation(
        classes=options.classes,
        palette=options.colors,
        normalization=IMAGENET,
        window=options.window,
        labeled=labeled,
        unlabeled=parts.unlabeled,
        validation=validation,
        test=parts.test,
        by_class=options.by_class,
    )
    return task, PixelAudit(None, labeled, len(task.classes))


def _positions(
    options: SegmentOptions, ids: tuple[str, ...], seed: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the positions of labeled, unlabeled and validation images."""
    where = {each: position for position, each in enumerate(ids)}
    if options.published is not None:
        split = (seed - 1) % len(published.SPLITS) if options.split is None else options.split
        chosen, _ = published.labeled_ids(*options.published, split)
        lost = [each for each in chosen if each not in where]
        if lost:
            raise DataError(
                f"the published list names {len(lost):,} images that are not here, first {lost[0]}; "
                f"give the whole data set by --data, or set labels to a number"
            )
        labeled = np.array([where[each] for each in chosen])
    else:
        if options.labeled >= len(ids):
            raise DataError(f"{options.labeled} labels were requested, but there are only {len(ids)} training images")
        labeled = streams.stream(seed, "labels").permutation(len(ids))[: options.labeled]
    # one order for all seeds, so that validation images differ only where some of them are labeled
    order = streams.stream("validation").permutation(len(ids))
    rest = order[~np.isin(order, labeled)]
    if len(rest) <= options.validation:
        raise DataError(f"only {len(rest)} images are left for validation and as unlabeled ones; set validation lower")
    validation, unlabeled = rest[: options.validation], np.sort(rest[options.validation :])
    return torch.from_numpy(labeled), torch.from_numpy(unlabeled), torch.from_numpy(np.sort(validation))
