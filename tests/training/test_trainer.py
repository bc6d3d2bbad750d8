import pytest
import torch
from torch import Tensor, nn

from dmt.core.schedule import Schedule
from dmt.errors import DivergenceError
from dmt.objectives.truth import Supervised
from dmt.training.trainer import Trainer
from dmt.types import Batch

CPU = torch.device("cpu")
SCHEDULE = Schedule(epochs=1, rate=0.1, rate_ramp="cosine", labeled=8)


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3))


def batch(step: int) -> Batch:
    generator = torch.Generator().manual_seed(step)
    return Batch(torch.rand(8, 1, 4, 4, generator=generator), torch.randint(0, 3, (8,), generator=generator))


def flat(module: nn.Module) -> Tensor:
    return torch.cat([value.double().flatten() for value in module.state_dict().values()])


def test_is_plain_sgd_with_momentum_decay_and_cosine() -> None:
    trainer = Trainer([net()], Supervised(), SCHEDULE, steps=6, seed=1, device=CPU)
    twin = net().train()
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
    for step in range(6):
        assert trainer.rate == pytest.approx(optimizer.param_groups[0]["lr"])
        trainer.advance(batch(step))
        optimizer.zero_grad()
        nn.functional.cross_entropy(twin(batch(step).images), batch(step).truth).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        cosine.step()
    torch.testing.assert_close(flat(trainer.nets[0]), flat(twin))


def test_the_slow_copy_follows() -> None:
    trainer = Trainer([net()], Supervised(), SCHEDULE, steps=6, seed=1, device=CPU)
    start = flat(trainer.nets[0])
    for step in range(6):
        trainer.advance(batch(step))
    raw, slow = flat(trainer.nets[0]), flat(trainer.slow[0].net)
    assert 0 < (slow - start).norm() < (raw - start).norm()


def test_a_value_that_is_not_finite_is_refused() -> None:
    trainer = Trainer([net()], Supervised(), SCHEDULE, steps=6, seed=1, device=CPU)
    trainer.require_finite()
    with pytest.raises(DivergenceError, match="lower learning rate"):
        trainer.require_finite(torch.tensor(float("nan")))
    with torch.no_grad():
        next(trainer.nets[0].parameters()).view(-1)[0] = float("inf")
    with pytest.raises(DivergenceError, match="step 0 of 6"):
        trainer.require_finite()
