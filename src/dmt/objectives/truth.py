"""Only labels teach: Baseline and Oracle."""

from collections.abc import Sequence
from dataclasses import dataclass

from dmt.core import losses, mixing
from dmt.objectives.base import Loss, Net, Objective, Progress
from dmt.types import Batch


@dataclass(frozen=True)
class Supervised(Objective):
    """Cross-entropy with the truth, with mixup if asked.

    Attributes:
        mixup: α of λ ~ Beta(α, α), as drawn (without the maximum that the rounds take); None for no mixup.
    """

    mixup: float | None = None

    @property
    def passes(self) -> float:
        return 1.0

    def loss(self, nets: Sequence[Net], batch: Batch, progress: Progress) -> Loss:
        (net,) = nets
        images, truth = batch.images, batch.truth
        if self.mixup is None:
            total = losses.cross_entropy(net(images), truth)
        else:
            rng = progress.stream("mixup")
            mix = mixing.draw(len(images), self.mixup, rng, dominant=False, device=images.device)
            logits = net(mix.blend(images))
            first, second = (
                losses.cross_entropy(logits, truth),
                losses.cross_entropy(logits, truth[mix.partners]),
            )
            total = mix.coefficient * first + (1.0 - mix.coefficient) * second
        return Loss(total, {"labeled": total.detach()})
