"""The step as the paper's code did it: weights from the un-mixed batch, mixed like the images, one normalizer."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmt.core import mixing, ramps, weighting
from dmt.core.execution import Execution
from dmt.objectives.base import Cast, Progress
from dmt.objectives.stored import Stored, StoredDraw
from dmt.training.trainer import Student
from dmt.types import Batch, BatchShape, Target

CPU = torch.device("cpu")
PLAIN = Execution(CPU)
SHAPE = BatchShape(labeled=4, unlabeled=14, height=4, width=4)
PROGRESS = Progress(step=30, steps=60, seed=5)
WEIGHTED = ["dynamic", "naive", "flip"]


def draw(objective: Stored) -> StoredDraw:
    return objective.draw(PROGRESS, SHAPE, CPU)


class Small(nn.Module):
    """A net with BatchNorm, so that train mode matters."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.body = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(24, 5))

    def forward(self, images: Tensor) -> Tensor:
        return self.body(images)  # type: ignore[no-any-return]


class Counting(Student):
    """A student that counts its forwards."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__(net, PLAIN)
        self.peeks = self.forwards = 0

    def __call__(self, images: Tensor, *, update_statistics: bool = True) -> Tensor:
        self.forwards += 1
        return super().__call__(images, update_statistics=update_statistics)

    def peek(self, images: Tensor, *, update_statistics: bool = False) -> Tensor:
        self.peeks += 1
        self.forwards -= 1  # a peek is a forward of its own
        return super().peek(images, update_statistics=update_statistics)


@pytest.fixture
def batch(generator: torch.Generator) -> Batch:
    pseudo = Target(torch.randint(0, 5, (14,), generator=generator), torch.rand(14, generator=generator))
    return Batch(
        images=torch.rand(4, 3, 4, 4, generator=generator),
        truth=torch.randint(0, 5, (4,), generator=generator),
        views={"train": torch.rand(14, 3, 4, 4, generator=generator)},
        pseudo=pseudo,
    )


@pytest.mark.parametrize("name", ["uniform", *WEIGHTED])
def test_with_mixup_is_the_published_formula(name: str, batch: Batch) -> None:
    assert batch.pseudo is not None
    objective = Stored(name, gamma=4.0, gamma2=2.0, mixup=0.75)
    net = Small().train()
    total = objective.loss(Cast((Student(net, PLAIN),)), batch, draw(objective)).total

    images = torch.cat([batch.views["train"], batch.images])
    ramp = ramps.gamma(0.5)
    with torch.no_grad():
        reading = Small().train()(images)[:14]  # a twin: the un-mixed batch, in train mode
    labels, weights = weighting.WEIGHTINGS[name](reading, batch.pseudo, 4.0 * ramp, 2.0 * ramp)
    y, w = torch.cat([labels, batch.truth]), torch.cat([weights, torch.ones(4)])
    mix = mixing.draw(18, 0.75, PROGRESS.stream("mixup"), dominant=True, device=CPU)
    lam, pi = float(mix.coefficient), mix.partners
    assert lam >= 0.5
    logits = Small().train()(lam * images + (1 - lam) * images[pi])
    mixed = lam * w + (1 - lam) * w[pi]
    each = lam * F.cross_entropy(logits, y, reduction="none") + (1 - lam) * F.cross_entropy(
        logits, y[pi], reduction="none"
    )
    torch.testing.assert_close(total, (mixed * each).sum() / 18)


@pytest.mark.parametrize("name", WEIGHTED)
def test_without_mixup_weights_come_from_the_training_forward(name: str, batch: Batch) -> None:
    assert batch.pseudo is not None
    student = Counting(Small().train())
    objective = Stored(name, gamma=5.0, ramp=False)
    total = objective.loss(Cast((student,)), batch, draw(objective)).total
    assert (student.forwards, student.peeks) == (1, 0)
    logits = Small().train()(torch.cat([batch.views["train"], batch.images]))
    labels, weights = weighting.WEIGHTINGS[name](logits[:14], batch.pseudo, 5.0, None)
    pseudo = (weights * F.cross_entropy(logits[:14], labels, reduction="none")).sum() / 18
    torch.testing.assert_close(total, pseudo + F.cross_entropy(logits[14:], batch.truth, reduction="sum") / 18)


def test_uniform_has_no_weight_pass(batch: Batch) -> None:
    student = Counting(Small().train())
    objective = Stored("uniform", gamma=1.0, mixup=0.75)
    loss = objective.loss(Cast((student,)), batch, draw(objective))
    assert (student.forwards, student.peeks) == (1, 0)
    assert "agree" not in loss.logged
    assert float(loss.logged["weight"]) == 1.0
    assert objective.cost(SHAPE) == (18, 0)
    assert Stored("dynamic", gamma=1.0, mixup=0.75).cost(SHAPE) == (18, 18)
    assert Stored("dynamic", gamma=1.0).cost(SHAPE) == (18, 0)


@pytest.mark.parametrize(("double", "updates"), [(False, 1), (True, 2)])
def test_weight_pass_leaves_statistics_alone_unless_asked(double: bool, updates: int, batch: Batch) -> None:
    net = Small().train()
    objective = Stored("dynamic", gamma=4.0, mixup=0.75, double_statistics=double)
    objective.loss(Cast((Student(net, PLAIN),)), batch, draw(objective))
    assert int(net.body[1].num_batches_tracked) == updates  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["uniform", *WEIGHTED])
@pytest.mark.parametrize("mixup", [None, 0.75])
def test_journal_parts_add_up(name: str, mixup: float | None, batch: Batch) -> None:
    objective = Stored(name, gamma=4.0, mixup=mixup)
    loss = objective.loss(Cast((Student(Small().train(), PLAIN),)), batch, draw(objective))
    assert float(loss.logged["pseudo"]) + float(loss.logged["labeled"]) == pytest.approx(
        float(loss.total.detach()), rel=1e-5
    )
    if name != "uniform":
        assert sum(float(loss.logged[case]) for case in ("agree", "negative", "positive")) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["uniform", *WEIGHTED])
def test_unlabeled_images_move_the_net(name: str, batch: Batch) -> None:
    """Gradients differ when only the unlabeled images do."""
    gradients = []
    for shift in (0, 1):
        net = Small().train()
        views = {"train": batch.views["train"].roll(shift, dims=3)}
        changed = Batch(batch.images, batch.truth, views, batch.pseudo)
        objective = Stored(name, gamma=4.0, mixup=0.75)
        objective.loss(Cast((Student(net, PLAIN),)), changed, draw(objective)).total.backward()  # type: ignore[no-untyped-call]
        gradients.append(torch.cat([p.grad.flatten() for p in net.parameters() if p.grad is not None]))
    assert not torch.allclose(gradients[0], gradients[1])
