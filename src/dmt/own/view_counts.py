"""How many views of each photo must be stored for a method to see what it asks for."""

from collections.abc import Sequence

from dmt.config import Config
from dmt.data.folders.photo_options import PhotoOptions
from dmt.data.images import batches, feature_batches
from dmt.errors import ConfigError
from dmt.methods import catalogue
from dmt.types import STRONG


def fewest(config: Config, method: str) -> int:
    """The image and its mirror image are weak views, crops are strong ones: with fewer, all views are alike."""
    stages = catalogue.plan(method, config.recipe).stages
    most = max((stage.objective.views for stage in stages), key=len)
    if any(batches.kind_of(view) == STRONG for stage in stages for view in stage.objective.views):
        return feature_batches.GENTLE + 1
    return min(len(most), feature_batches.GENTLE) or 1


def require(config: Config, methods: Sequence[str]) -> None:
    """Refuse methods that would be shown the same features as if these were of different views."""
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
