from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from dmt.core.execution import Execution
from dmt.core.schedule import Descent, Schedule
from dmt.data.images.augment import POLICIES
from dmt.data.images.batches import ImageBatches, Unlabeled
from dmt.data.sets import LabeledSet
from dmt.errors import DivergenceError
from dmt.models.build import NetSpec, build
from dmt.objectives.stored import Stored
from dmt.objectives.truth import Supervised
from dmt.training.trainer import Student, Trainer, Training
from dmt.types import Batch, BatchPlan, BatchShape, Normalization, Target

CPU = torch.device("cpu")
PLAIN = Execution(CPU)
SCHEDULE = Schedule(epochs=1, descent=Descent(0.1), rate_ramp="cosine", labeled=8)


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3))


def batch(step: int) -> Batch:
    generator = torch.Generator().manual_seed(step)
    return Batch(torch.rand(8, 1, 4, 4, generator=generator), torch.randint(0, 3, (8,), generator=generator))


class Fixed:
    """Batches of this file's `batch`."""

    shape = BatchShape(8, 0, 4, 4)

    def __init__(self, make: Callable[[int], Batch] = batch) -> None:
        self._make = make

    def draw(self, step: int) -> tuple[Tensor, Tensor]:
        given = self._make(step)
        return given.images, given.truth

    def make(self, drawn: tuple[Tensor, Tensor]) -> Batch:
        return Batch(*drawn)


def trainer(execution: Execution = PLAIN) -> Trainer:
    return Trainer({"A": net()}, Training(Supervised(), SCHEDULE, steps=6, seed=1), Fixed(), execution)


def flat(module: nn.Module) -> Tensor:
    return torch.cat([value.double().flatten() for value in module.state_dict().values()])


def test_is_plain_sgd_with_momentum_decay_and_cosine() -> None:
    training = trainer()
    twin = net().train()
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
    for step in range(6):
        inputs = training.draw()
        assert float(inputs.rate) == pytest.approx(optimizer.param_groups[0]["lr"])
        training.advance(inputs)
        optimizer.zero_grad()
        nn.functional.cross_entropy(twin(batch(step).images), batch(step).truth).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        cosine.step()
    torch.testing.assert_close(flat(training.nets["A"]), flat(twin))


def test_the_slow_copy_follows() -> None:
    training = trainer()
    start = flat(training.nets["A"])
    for _ in range(6):
        training.advance(training.draw())
    raw, slow = flat(training.nets["A"]), flat(training.slow["A"].net)
    assert 0 < (slow - start).norm() < (raw - start).norm()


def test_a_value_that_is_not_finite_is_refused() -> None:
    training = trainer()
    training.require_finite({"loss": 1.0})
    with pytest.raises(DivergenceError, match="lower learning rate"):
        training.require_finite({"loss": float("nan")})
    with torch.no_grad():
        next(training.nets["A"].parameters()).view(-1)[0] = float("inf")
    with pytest.raises(DivergenceError, match="step 0 of 6"):
        training.require_finite({"loss": 1.0})


def test_numbers_are_named_in_order() -> None:
    training = trainer()
    numbers = training.advance(training.draw())
    assert training.logged == ("loss", "rate", "labeled")
    assert float(numbers[1]) == pytest.approx(0.1)
    assert numbers[0] == numbers[2]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the compiler's own
def test_compiled_and_plain_steps_agree() -> None:
    """The whole step of a round, augmentation and all; the compiler may round differently, and no more."""
    images = torch.randint(0, 256, (60, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    labels = torch.arange(60) % 10
    pseudo = Unlabeled(images[20:], (torch.arange(40), Target(labels[20:], torch.linspace(0.2, 1.0, 40))))
    schedule = Schedule(epochs=1, descent=Descent(0.1), rate_ramp="cosine", labeled=8, unlabeled=24)
    objective = Stored("dynamic", gamma=4.0, mixup=0.75)
    results = []
    for fast in (False, True):
        execution = Execution(CPU, fast)
        labeled = LabeledSet(tuple(map(str, range(20))), images[:20], labels[:20])
        plan = BatchPlan(8, 24, objective.views, seed=1)
        batches = ImageBatches(labeled, plan, {"train": POLICIES["paper"]}, execution, pseudo)
        spec = NetSpec("wrn-10-1", 10, (3, 32, 32), Normalization((0.5,) * 3, (0.25,) * 3))
        training = Trainer({"A": build(spec, 1)}, Training(objective, schedule, 5, 1), batches, execution)
        numbers = [training.advance(training.draw()) for _ in range(5)]
        results.append((torch.stack(numbers), flat(training.nets["A"]), flat(training.slow["A"].net)))
    for plain, fast_ in zip(*results, strict=True):
        torch.testing.assert_close(plain, fast_, rtol=2e-3, atol=2e-4)


def test_features_are_taken_where_images_have_channels_last() -> None:
    """As on a GPU; torch refuses that layout for anything but images."""
    net = build(NetSpec("mlp-4", 2, (3, 1, 1), Normalization((0.5,), (0.25,))), seed=1)
    student = Student(net, Execution(torch.device("cpu"), pixels=True))
    assert student(torch.rand(4, 3)).shape == (4, 2)
