"""From options to data: the one place that knows which options belong to which task."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dmt.data import sets
from dmt.data.audit import Audit
from dmt.data.datasets import DATASETS
from dmt.data.options import DataOptions
from dmt.data.pixel_audit import PixelAudit
from dmt.data.ragged import Tell
from dmt.data.segment_options import SegmentOptions
from dmt.data.segment_sets import SEGMENT_SETS
from dmt.data.sets import LabeledSet
from dmt.models.build import NetSpec
from dmt.tasks import classification, segmentation
from dmt.tasks.base import Task

Options = DataOptions | SegmentOptions
Notify = Callable[[str], None]


@dataclass(frozen=True)
class Opened:
    """A data set in memory, not split yet."""

    options: Options
    parts: tuple[LabeledSet[Any], LabeledSet[Any]]  # train, test

    @property
    def fingerprint(self) -> str:
        """Of all images and labels."""
        return sets.fingerprint(self.parts)

    def split(self, seed: int) -> tuple[Task, Audit | PixelAudit]:
        """The task of this seed, and the audit that alone knows the truth of its unlabeled images."""
        if isinstance(self.options, SegmentOptions):
            return segmentation.split_up(self.options, self.parts, seed)
        return classification.split_up(self.options, self.parts, seed)


def read(options: Options, folder: Path, notify: Notify, tell: Tell) -> Opened:
    """Read a data set; ``tell`` hears how many files are done."""
    if isinstance(options, SegmentOptions):
        masked = SEGMENT_SETS[options.dataset]
        opened, known = Opened(options, masked.read(folder, notify, tell)), (masked.train, masked.test)
    else:
        data = DATASETS[options.dataset]
        opened, known = Opened(options, data.read(folder, notify)), (data.train, data.test)
    found = (len(opened.parts[0]), len(opened.parts[1]))
    if found != known:
        notify(
            f"note: {options.dataset} has {known[0]:,} training and {known[1]:,} test images, "
            f"this folder has {found[0]:,} and {found[1]:,}"
        )
    return opened


def net_spec(options: Options, net: str) -> NetSpec:
    """What a net must fit to work on a data set that is not open."""
    if isinstance(options, SegmentOptions):
        return segmentation.net_spec(options, net)
    return classification.net_spec(options, net)


def classes(options: Options) -> tuple[str, ...]:
    """Their names, in order."""
    if isinstance(options, SegmentOptions):
        return SEGMENT_SETS[options.dataset].classes
    return DATASETS[options.dataset].classes


def palette(options: Options) -> tuple[tuple[int, int, int], ...]:
    """Colors of the classes, of data with masks."""
    return SEGMENT_SETS[options.dataset].palette if isinstance(options, SegmentOptions) else ()
