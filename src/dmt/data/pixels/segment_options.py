"""Options of segmentation data sets."""

from dataclasses import dataclass
from functools import cached_property

from dmt.data.pixels import published
from dmt.data.pixels.segment_sets import SEGMENT_SETS
from dmt.data.pixels.window_options import WindowOptions
from dmt.errors import ConfigError, unknown
from dmt.options import option, require
from dmt.types import Sizes


@dataclass(frozen=True)
class SegmentOptions(WindowOptions):
    """Options of a segmentation data set: which one, how many labels, and the training crops."""

    dataset: str = option("scenes", "the data set (a preset's name stands for one)")
    labels: str = option("40", "labeled images: a number, drawn by seed, or a published list such as 1/20")
    split: int | None = option(None, "published list 0, 1 or 2; none: by seed (seed 1 uses list 0)")
    validation: int = option(100, "images taken out of the unlabeled ones for validation")

    def __post_init__(self) -> None:
        if self.dataset not in SEGMENT_SETS:
            raise unknown("data set", self.dataset, SEGMENT_SETS)
        require("split", self.split, self.split in (None, *published.SPLITS), "0, 1, 2 or none")
        require("validation", self.validation, self.validation >= 0, "0 or more")
        super().__post_init__()
        if self.labeled + self.validation >= SEGMENT_SETS[self.dataset].train:
            total = SEGMENT_SETS[self.dataset].train
            raise ConfigError(f"labels and validation must leave some of the {total:,} training images unlabeled")

    @cached_property
    def labeled(self) -> int:
        """Number of labeled images."""
        if self.published is not None:
            return len(published.labeled_ids(*self.published, self.split or 0)[0])
        if not self.labels.isdecimal() or int(self.labels) < 1:
            raise ConfigError(f"labels must be a number above 0 or {self._lists()}, not '{self.labels}'")
        return int(self.labels)

    @property
    def published(self) -> tuple[str, str] | None:
        """The (data set, ratio) of the published list that ``labels`` names, or None if it is a number or unknown."""
        of = SEGMENT_SETS[self.dataset].lists
        ratio = self.labels.removeprefix("1/") if self.labels != "train" else published.SBD
        known = of is not None and (ratio in published.RATIOS[of] or (of == "voc" and ratio == published.SBD))
        return (of, ratio) if of is not None and known and not self.labels.isdecimal() else None

    def _lists(self) -> str:
        of = SEGMENT_SETS[self.dataset].lists
        names = [] if of is None else [f"1/{name}" for name in published.RATIOS[of]]
        return ", ".join([*names, "train"] if of == "voc" else names) or "nothing else here"

    @property
    def sizes(self) -> Sizes:
        """Numbers of images, computed without opening the data."""
        train = SEGMENT_SETS[self.dataset].train
        return Sizes(self.labeled, train - self.labeled - self.validation, train, pixels=True)
