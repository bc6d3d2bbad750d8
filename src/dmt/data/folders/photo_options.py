"""Options of a user's own images. A run stores them so that it can be resumed, scored and used without guessing."""

from dataclasses import dataclass

from dmt.core.labeling_views import LabelingView
from dmt.data.images import augment
from dmt.data.images.augment import Augment
from dmt.data.pixels.window_options import WindowOptions
from dmt.errors import ConfigError, unknown
from dmt.options import option, require
from dmt.types import Sizes

SHARDS = "more unlabeled images: tar files or URLs of such, {000..999} for many"


COUNTED = {
    "labels": "to train on fewer, move some from labeled/ to unlabeled/",
    "unlabeled": "to use fewer, move some out of the folder",
    "classes": "to change them, rename or move the folders of the classes",
    "palette": "to change it, write colors into classes.txt",
}
"""Options that say what a folder holds, and what to do instead of setting them."""


@dataclass(frozen=True)
class PhotoOptions:
    """Options of a user's images for classification."""

    dataset: str = option("photos", "your images")
    classes: tuple[str, ...] = option((), "names of the classes, from the folder")
    labels: int = option(0, "labeled images, from the folder")
    unlabeled: int = option(0, "unlabeled images, from the folder")
    validation: int = option(0, "labeled images of each class held out for validation, if the folder has no val/")
    size: int = option(64, "photos are cropped to a square and resized to this many pixels per side")
    augment: str = option("sane", "augmentation: " + ", ".join(augment.POLICIES))
    augment_weak: str | None = option(
        None, "augmentation of weak views (online methods, weight_view); none: by augment", neutral=True
    )
    augment_strong: str | None = option(
        None, "augmentation of strong views (online methods, strong_pseudo); none: by augment", neutral=True
    )

    stored_views: int = option(
        0,
        "frozen encoders: views of each photo to store features of, instead of augment; 0: compute them in every step",
        neutral=True,
    )

    shards: tuple[str, ...] = option((), SHARDS, neutral=True)

    def __post_init__(self) -> None:
        require("stored_views", self.stored_views, 0 <= self.stored_views <= 64, "between 0 and 64")
        for name in (self.augment, self.augment_weak, self.augment_strong):
            if name is not None and name not in augment.POLICIES:
                raise unknown("augmentation", name, augment.POLICIES)
        require("size", self.size, 8 <= self.size <= 1024, "between 8 and 1024")
        require("validation", self.validation, self.validation >= 0, "0 or more")

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
        held_out = self.validation * len(self.classes)
        return Sizes(self.labels - held_out, self.unlabeled, self.labels - held_out)


@dataclass(frozen=True)
class PhotoMaskOptions(WindowOptions):
    """Options of a user's images for segmentation."""

    dataset: str = option("photo-masks", "your images with masks")
    classes: tuple[str, ...] = option((), "names of the classes, from the folder")
    palette: tuple[int, ...] = option((), "red, green, blue of each class, from the folder")
    labels: int = option(0, "labeled images, from the folder")
    unlabeled: int = option(0, "unlabeled images, from the folder")
    validation: int = option(0, "labeled images held out for validation, if the folder has no val/")
    size: int = option(512, "photos whose longer side exceeds this are downscaled to it")
    shards: tuple[str, ...] = option((), SHARDS, neutral=True)

    def __post_init__(self) -> None:
        require("size", self.size, 16 <= self.size <= 4096, "between 16 and 4096")
        require("validation", self.validation, self.validation >= 0, "0 or more")
        super().__post_init__()
        if len(self.palette) % 3:
            raise ConfigError("palette must be three numbers for each class")

    @property
    def colors(self) -> tuple[tuple[int, int, int], ...]:
        """The (red, green, blue) of each class."""
        rows = [self.palette[at : at + 3] for at in range(0, len(self.palette), 3)]
        return tuple((row[0], row[1], row[2]) for row in rows)

    @property
    def sizes(self) -> Sizes:
        """Numbers of images, computed without opening the data."""
        left = self.labels - self.validation
        return Sizes(left, self.unlabeled, left, pixels=True)
