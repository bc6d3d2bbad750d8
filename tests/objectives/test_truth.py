import torch
import torch.nn.functional as F
from torch import Tensor

from dmt.core import mixing
from dmt.objectives.base import Cast, Progress
from dmt.objectives.truth import Supervised
from dmt.types import Batch, BatchShape

CPU = torch.device("cpu")
SHAPE = BatchShape(labeled=6, unlabeled=0, height=2, width=2)


class Linear:
    """Logits as a fixed linear map; remembers what it was shown."""

    def __init__(self) -> None:
        self.matrix = torch.randn(12, 5, generator=torch.Generator().manual_seed(1)).requires_grad_()
        self.shown: list[Tensor] = []

    def __call__(self, images: Tensor, *, update_statistics: bool = True) -> Tensor:
        self.shown.append(images)
        return images.flatten(1) @ self.matrix

    def peek(self, images: Tensor, *, update_statistics: bool = False) -> Tensor:
        raise AssertionError("labels need no weights")

    def embed(self, images: Tensor, *, update_statistics: bool = True) -> Tensor:
        raise AssertionError("labels need no features")


def batch(generator: torch.Generator) -> Batch:
    return Batch(torch.rand(6, 3, 2, 2, generator=generator), torch.randint(0, 5, (6,), generator=generator))


def test_without_mixup_is_cross_entropy(generator: torch.Generator) -> None:
    net, given = Linear(), batch(generator)
    loss = Supervised().loss(Cast((net,)), given, None)
    torch.testing.assert_close(loss.total, F.cross_entropy(net(given.images), given.truth))


def test_mixup_takes_lambda_as_drawn(generator: torch.Generator) -> None:
    """λCE(a) + (1 − λ)CE(b), and λ may be below one half: the Baseline has no maximum."""
    given, seen = batch(generator), []
    for step in range(40):
        net, progress = Linear(), Progress(step, 40, seed=1)
        objective = Supervised(0.75)
        loss = objective.loss(Cast((net,)), given, objective.draw(progress, SHAPE, CPU))
        mix = mixing.draw(6, 0.75, progress.stream("mixup"), dominant=False, device=CPU)
        logits = mix.blend(given.images).flatten(1) @ net.matrix
        by_hand = mix.coefficient * F.cross_entropy(logits, given.truth)
        by_hand = by_hand + (1 - mix.coefficient) * F.cross_entropy(logits, given.truth[mix.partners])
        torch.testing.assert_close(loss.total, by_hand)
        seen.append(float(mix.coefficient))
    assert min(seen) < 0.5 < max(seen)


def test_a_step_is_repeatable(generator: torch.Generator) -> None:
    given, net, objective = batch(generator), Linear(), Supervised(0.75)
    draws = [objective.draw(Progress(step, 9, seed=4), SHAPE, CPU) for step in (2, 3, 2)]
    losses = [objective.loss(Cast((net,)), given, draw).total.item() for draw in draws]
    assert losses[0] == losses[2] != losses[1]
