"""Compare a user's unlabeled photos with the labeled ones, before anything is trained."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

from dmt.core import outliers
from dmt.data.folders.photo_files import shown
from dmt.data.images import stored_views
from dmt.tasks.base import Task
from dmt.tasks.features import FeatureTask

FEWEST = 20
"""Least number of labeled, and of unlabeled, photos for a comparison."""

MANY = 0.25
"""Least share of outliers that is reported: pools that match the labels, with five per class, had up to a fifth."""

SHOWN = 5
"""Number of photos that are named."""


@dataclass(frozen=True)
class Pool:
    """The share of unlabeled photos that are unlike every labeled one, and the names of some of them."""

    unlike: float
    images: tuple[str, ...]

    @property
    def told(self) -> bool:
        """Whether the share is large enough for a warning."""
        return self.unlike >= MANY

    def record(self) -> Mapping[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        names = ", ".join(map(shown, self.images))
        return f"{self.unlike:.0%} of the unlabeled photos are unlike every labeled one ({names} …)"


def look(task: Task) -> Pool | None:
    """Compare the features of unlabeled and labeled photos; return None without stored features or with few photos."""
    if not isinstance(task, FeatureTask) or min(len(task.labeled), len(task.unlabeled)) < FEWEST:
        return None
    features = task.unlabeled.images
    assert isinstance(features, Tensor), "features are held, or mapped into memory"
    known, others = task.labeled.images[:, stored_views.PLAIN], features[:, stored_views.PLAIN]
    unlike = outliers.unlike(known, others)
    names = [task.unlabeled.ids[place] for place in unlike.nonzero().flatten().tolist()]
    return Pool(round(unlike.float().mean().item(), 4), tuple(names[:: max(1, len(names) // SHOWN)][:SHOWN]))
