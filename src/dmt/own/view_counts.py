"""Number of stored views of each photo that a method needs."""

from collections.abc import Sequence

from dmt.config import Config
from dmt.data.folders.photo_options import PhotoOptions
from dmt.data.images import batches, feature_batches
from dmt.errors import ConfigError
from dmt.methods import catalogue
from dmt.types import STRONG


def fewest(config: Config, method: str) -> int:
    """Return the smallest number of stored views with which the views that a method asks for differ.

    The image and its mirror image are weak views; further ones are crops, which are strong views.
    """
    stages = catalogue.plan(method, config.recipe).stages
    most = max((stage.objective.views for stage in stages), key=len)
    if any(batches.kind_of(view) == STRONG for stage in stages for view in stage.objective.views):
        return feature_batches.GENTLE + 1
    return min(len(most), feature_batches.GENTLE) or 1


def require(config: Config, methods: Sequence[str]) -> None:
    """Refuse methods that would get the same stored features for views that should differ.

    Raises:
        ConfigError: if fewer views are stored than a method needs.
    """
    data = config.data
    if not (isinstance(data, PhotoOptions) and any(map(config.stores_features, "AB"))):
        return
    for method in methods:
        need = fewest(config, method)
        if data.stored_views < need:
            kind = "strong views" if need > feature_batches.GENTLE else "different views"
            raise ConfigError(
                f"{catalogue.get(method).title}, as it is set, learns from {kind} of a photo, "
                f"but only stored_views={data.stored_views} of each would be stored; add --set stored_views={need}"
            )
