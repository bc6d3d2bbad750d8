"""Options of classification data sets."""

from dataclasses import dataclass

from dmt.core.labeling_views import LabelingView
from dmt.data.images import augment
from dmt.data.images.augment import Augment
from dmt.data.images.datasets import DATASETS
from dmt.errors import ConfigError, unknown
from dmt.options import option, require
from dmt.types import Sizes


@dataclass(frozen=True)
class DataOptions:
    """Options of a classification data set: which one, how many labels, and the augmentation."""

    dataset: str = option("digits", "the data set (a preset's name stands for one)")
    labels: int = option(100, "labeled images in all, the same number of each class")
    validation: int = option(200, "images of the training part held out for validation")
    augment: str = option("shift", "augmentation: " + ", ".join(augment.POLICIES))
    augment_weak: str | None = option(
        None, "augmentation of weak views (online methods, weight_view); none: by augment", neutral=True
    )
    augment_strong: str | None = option(
        None, "augmentation of strong views (online methods, strong_pseudo); none: by augment", neutral=True
    )

    label_noise: float = option(
        0.0, "stress test: share of the given labels replaced by a wrong class (co-teaching)", neutral=True
    )

    def __post_init__(self) -> None:
        if self.dataset not in DATASETS:
            raise unknown("data set", self.dataset, DATASETS)
        for name in (self.augment, self.augment_weak, self.augment_strong):
            if name is not None and name not in augment.POLICIES:
                raise unknown("augmentation", name, augment.POLICIES)
        require("label_noise", self.label_noise, 0 <= self.label_noise < 1, "at least 0 and below 1")
        classes, train = len(DATASETS[self.dataset].classes), DATASETS[self.dataset].train
        for key, least in (("labels", classes), ("validation", 0)):
            value = getattr(self, key)
            if value < least or value % classes:
                raise ConfigError(f"{key} must be a multiple of the {classes} classes, {least} or more, not {value}")
        if self.labels + self.validation >= train:
            raise ConfigError(f"labels and validation must leave some of the {train} training images unlabeled")

    @property
    def policies(self) -> dict[str, Augment]:
        """The augmentation policy of every kind of view."""
        return augment.views(self.augment, self.augment_weak, self.augment_strong)

    def require_shown(self, view: LabelingView) -> None:
        """Refuse a labeling view that nets never see in training."""
        augment.require_shown(self.augment, view)

    @property
    def sizes(self) -> Sizes:
        """Numbers of images, computed without opening the data."""
        train = DATASETS[self.dataset].train
        return Sizes(self.labels, train - self.labels - self.validation, train)
