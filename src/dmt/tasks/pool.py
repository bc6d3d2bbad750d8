"""What the unlabeled photos of a user are like beside the labeled ones, told before anything is trained."""

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
"""Labels below which nothing can be said, and unlabeled photos."""

MANY = 0.25
"""Share of unlike photos that is told: of pools like the labels, with five labels a class, up to a fifth were."""

SHOWN = 5
"""Photos that are named."""


@dataclass(frozen=True)
class Pool:
    """How many unlabeled photos are unlike every labeled one, as a share, and some of them by name."""

    unlike: float
    images: tuple[str, ...]

    @property
    def told(self) -> bool:
        """Whether it is worth a warning."""
        return self.unlike >= MANY

    def record(self) -> Mapping[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        names = ", ".join(map(shown, self.images))
        return f"{self.unlike:.0%} of the unlabeled photos are unlike every labeled one ({names} …)"


def look(task: Task) -> Pool | None:
    """None where nets have no features of the photos, or where there are too few."""
    if not isinstance(task, FeatureTask) or min(len(task.labeled), len(task.unlabeled)) < FEWEST:
        return None
    features = task.unlabeled.images
    assert isinstance(features, Tensor), "features are held, or mapped into memory"
    known, others = task.labeled.images[:, stored_views.PLAIN], features[:, stored_views.PLAIN]
    unlike = outliers.unlike(known, others)
    names = [task.unlabeled.ids[place] for place in unlike.nonzero().flatten().tolist()]
    return Pool(round(unlike.float().mean().item(), 4), tuple(names[:: max(1, len(names) // SHOWN)][:SHOWN]))
