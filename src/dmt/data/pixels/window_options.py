"""Options of the random training crops of segmentation, shared by data sets and a user's folder."""

from dataclasses import dataclass

from dmt.core.labeling_views import LabelingView
from dmt.data.pixels.windows import Window
from dmt.errors import ConfigError
from dmt.options import option, require


@dataclass(frozen=True, kw_only=True)
class WindowOptions:
    """Options of the random training crop of every image."""

    crop: tuple[int, ...] = option((64, 64), "height and width of the random crops for training")
    scale: tuple[float, ...] = option((0.5, 1.5), "images are resized at random between these factors")
    flip: bool = option(True, "mirror half of the images")
    by_class: bool = option(
        False, "draw labeled images by class, so that rare classes come up as often as others", neutral=True
    )

    def __post_init__(self) -> None:
        require("crop", list(self.crop), len(self.crop) == 2, "two whole numbers, height and width")
        require("scale", list(self.scale), len(self.scale) == 2, "two numbers")
        self.window  # noqa: B018  raises an error if it is invalid

    @property
    def window(self) -> Window:
        height, width = self.crop
        low, high = self.scale
        return Window(height, width, (low, high), self.flip)

    def require_shown(self, view: LabelingView) -> None:
        """Refuse a labeling view that nets never see in training."""
        low, high = self.scale
        if view.mirrored and not self.flip:
            raise ConfigError(
                "labeling_views=flip needs nets that see mirrored images; set flip=true too, or leave it out here"
            )
        if view.scale != 1 and not low <= view.scale <= high:
            raise ConfigError(
                f"labeling_views={view.scale:g} is no scale that nets see in training, {low:g} to {high:g}; "
                f"set scale wider, or choose a view within it"
            )
