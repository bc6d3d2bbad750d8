"""Classification on stored features: a frozen encoder has processed a few views of every image in advance."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dmt.core.execution import Execution
from dmt.core.labeling_views import LabelingView
from dmt.data.images import batches, stored_views
from dmt.data.images.feature_batches import FeatureBatches
from dmt.data.sets import LabeledSet, PseudoLabels
from dmt.models.build import NetSpec
from dmt.tasks.base import Batches, View, Wanted, every
from dmt.tasks.classification import Classification, Images
from dmt.types import BatchPlan

VIEWED = 4096
"""Number of images per forward pass of a last layer."""


@dataclass(frozen=True)
class FeatureTask(Classification):
    """A task whose sets hold features (N, V, F) in place of images; nets with a frozen encoder accept both.

    Attributes:
        offsets: for each net, the index of its first feature among the features of all encoders.
    """

    offsets: Mapping[str, int]

    def net_spec(self, name: str) -> NetSpec:
        return replace(super().net_spec(name), offset=self.offsets[name])

    def batches(
        self,
        labeled: LabeledSet[Tensor],
        pseudo: PseudoLabels[Tensor] | None,
        plan: BatchPlan,
        execution: Execution,
    ) -> Batches:
        return FeatureBatches(labeled, plan, execution, self._teaching(pseudo, plan))

    def views(self, images: Images, device: torch.device, wanted: Wanted = every) -> Iterator[View]:
        held = images.images
        assert isinstance(held, Tensor), "features are held, or mapped into memory"
        for start in batches.starts(len(images), VIEWED, wanted):
            positions = torch.arange(start, min(start + VIEWED, len(images)))
            truth = images.labels[positions].to(device) if isinstance(images, LabeledSet) else None
            # the image and, if stored, its mirror image: crops are used only in training
            yield View(positions, held[positions, : stored_views.MIRRORED + 1].to(device).float(), truth)

    def logits(self, view: View, seen: LabelingView, net: Callable[[Tensor], Tensor]) -> Tensor:
        return net(view.images[:, stored_views.MIRRORED if seen.mirrored else stored_views.PLAIN])
