"""Every rule equals torch's own, by groups; what a stage remembers survives a stop."""

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, ClassVar, get_args

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dmt.core.schedule import Decay, Descent, Optimizer, Schedule
from dmt.errors import RunError
from dmt.objectives.base import Cast, Cost, Loss, Objective, Part, detached
from dmt.training import loop
from dmt.training.checkpoint import Checkpoint
from dmt.training.journal import Journal
from dmt.training.optimizers import Optimizers
from dmt.training.trainer import Trainer, Training
from dmt.types import TRAIN, Batch, BatchShape, Sizes
from tests.training.test_trainer import PLAIN, batch, flat

OPTIMIZERS: tuple[Optimizer, ...] = get_args(Optimizer)
RATES = (0.05, 0.05, 0.04, 0.03, 0.01)


class Net(nn.Module):
    """An encoder with BatchNorm and dropout, and a head."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.encoder = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.2), nn.Flatten())
        self.head = nn.Linear(16, 3)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.encoder(images))  # type: ignore[no-any-return]


def reference(descent: Descent, module: nn.Module) -> torch.optim.Optimizer:
    """The same in torch's plain words: a group for every parameter."""
    groups = []
    for name, parameter in module.named_parameters():
        share = descent.encoder if name.startswith("encoder.") else 1.0
        decays = descent.decay == "all" or (name.endswith("weight") and "encoder.1" not in name)  # BatchNorm's
        groups.append({
            "params": [parameter], "lr": descent.rate * share, "share": share,
            "weight_decay": descent.weight_decay if decays else 0.0,
        })  # fmt: skip
    match descent.optimizer:
        case "sgd" | "nesterov" as name:
            return torch.optim.SGD(groups, momentum=descent.momentum, nesterov=name == "nesterov", foreach=False)
        case "adam":
            return torch.optim.Adam(groups, betas=(descent.momentum, 0.999), foreach=False)
        case "adamw":
            return torch.optim.AdamW(groups, betas=(descent.momentum, 0.999), foreach=False)


def gradients(*modules: nn.Module, step: int) -> None:
    """The same random ones for equal modules."""
    for module in modules:
        generator = torch.Generator().manual_seed(step)
        for parameter in module.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=generator)


@pytest.mark.parametrize("encoder", [1.0, 0.1])
@pytest.mark.parametrize("decay", get_args(Decay))
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_equals_torch(optimizer: Optimizer, decay: Decay, encoder: float) -> None:
    descent = Descent(0.05, optimizer, momentum=0.8, weight_decay=0.1, decay=decay, encoder=encoder)
    net = Net()
    twin = deepcopy(net)
    ours, theirs = Optimizers({"A": net}, {}, descent), reference(descent, twin)
    for step, rate in enumerate(RATES):
        gradients(net, twin, step=step)
        ours.step(torch.tensor(rate))
        for group in theirs.param_groups:
            group["lr"] = rate * group["share"]
        theirs.step()
        torch.testing.assert_close(flat(net), flat(twin))
    ours.zero_grad()
    assert all(parameter.grad is None for parameter in net.parameters())


def test_a_part_follows_its_own_rule_and_the_nets_ramp() -> None:
    """Adam beside the SGD of two nets; its rate stays the same share of theirs."""
    nets = {"A": Net(0), "B": Net(1)}
    torch.manual_seed(2)
    module = nn.Linear(3, 2)
    rule = Descent(0.001, "adam", momentum=0.5, weight_decay=0.0)
    part = Part(module, rule)
    descent = Descent(0.05, weight_decay=0.1)
    twins, twin = deepcopy(nets), deepcopy(module)
    ours = Optimizers(nets, {"judge": part}, descent)
    theirs = [*(reference(descent, each) for each in twins.values()), reference(rule, twin)]
    for step, rate in enumerate(RATES):
        gradients(*nets.values(), *twins.values(), module, twin, step=step)
        ours.step(torch.tensor(rate))
        for optimizer, share in zip(theirs, (1.0, 1.0, 0.02), strict=True):
            for group in optimizer.param_groups:
                group["lr"] = rate * share
            optimizer.step()
    for one, other in ((nets["A"], twins["A"]), (nets["B"], twins["B"]), (module, twin)):
        torch.testing.assert_close(flat(one), flat(other))


def test_a_part_without_a_rule_is_moved_like_the_nets() -> None:
    net, module = Net(0), nn.Linear(3, 2)
    descent = Descent(0.05, "nesterov", weight_decay=0.1, decay="kernels")
    twins = deepcopy(net), deepcopy(module)
    ours = Optimizers({"A": net}, {"head": Part(module)}, descent)
    theirs = [reference(descent, each) for each in twins]
    for step, rate in enumerate(RATES):
        gradients(net, module, *twins, step=step)
        ours.step(torch.tensor(rate))
        for optimizer in theirs:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
    for mine, twin in zip((net, module), twins, strict=True):
        for value, expected in zip(mine.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(value, expected)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_what_is_remembered_has_its_place_before_the_first_step(optimizer: Optimizer) -> None:
    """A recorded step needs its tensors where they are, and parameters that stay as they are need none."""
    net = Net()
    net.head.bias.requires_grad_(False)
    ours = Optimizers({"A": net}, {}, Descent(0.05, optimizer))
    before = ours.state()
    assert all(not tensor.any() for tensor in before.values())
    kinds = {"momentum_buffer"} if optimizer in ("sgd", "nesterov") else {"exp_avg", "exp_avg_sq", "step"}
    names = {f"A.{name}" for name, _ in net.named_parameters()} - {"A.head.bias"}
    assert set(before) == {f"{name}:{kind}" for name in names for kind in kinds}
    gradients(net, step=0)
    net.head.bias.grad = None
    ours.step(torch.tensor(0.05))
    after = ours.state()
    assert all(after[name] is tensor for name, tensor in before.items())
    assert all(tensor.any() for tensor in after.values())


class Everything(Objective):
    """Uses all that an objective may ask for; means nothing."""

    lines: ClassVar[int] = 2
    views: ClassVar[tuple[str, ...]] = (TRAIN,)
    slow: ClassVar[bool] = True

    def memory(self, sizes: Sizes, classes: int) -> Mapping[str, Tensor]:
        return {"mean": torch.zeros(classes), "count": torch.zeros((), dtype=torch.int64)}

    def parts(self, channels: int, classes: int) -> Mapping[str, Part]:
        torch.manual_seed(7)
        return {"judge": Part(nn.Linear(classes, 1), Descent(0.01, "adam", weight_decay=0.0))}

    def cost(self, shape: BatchShape) -> Cost:
        return Cost(2 * shape.images, 2 * shape.unlabeled)

    def loss(self, cast: Cast, batch: Batch, draw: Any) -> Loss:
        view, judge, mean = batch.views[TRAIN], cast.parts["judge"], cast.memory["mean"]
        total = torch.zeros(())
        for net, teacher in zip(cast.nets, reversed(cast.slow), strict=True):
            total = total + F.cross_entropy(net(batch.images), batch.truth)
            likely = net(view).softmax(1)
            total = total + ((likely - teacher(view).softmax(1) - mean) ** 2).mean() + judge(likely).sigmoid().mean()
        moved = 0.9 * mean + 0.1 * likely.detach().mean(0)
        return Loss(total, detached(total=total), {"mean": moved, "count": cast.memory["count"] + 1})


class Views:
    """The batches of `test_trainer`, with the labeled images of the next step as unlabeled ones."""

    shape = BatchShape(8, 8, 4, 4)

    def draw(self, step: int) -> tuple[Tensor, Tensor, Tensor]:
        given = batch(step)
        return given.images, given.truth, batch(step + 1).images

    def make(self, drawn: tuple[Tensor, Tensor, Tensor]) -> Batch:
        return Batch(*drawn[:2], {TRAIN: drawn[2]})


def fit(folder: Path, optimizer: Optimizer, stop_after: int | None = None) -> Trainer:
    objective = Everything()
    descent = Descent(0.01, optimizer, decay="kernels", encoder=0.1)
    schedule = Schedule(epochs=1, descent=descent, rate_ramp="cosine", labeled=8, unlabeled=8, ema=0.9)
    memory, parts = objective.memory(Sizes(1, 1, 1), 3), objective.parts(1, 3)
    training = Training(objective, schedule, 9, 1, parts, memory)
    trainer = Trainer({"A": Net(1), "B": Net(2)}, training, Views(), PLAIN)
    pace = loop.Pace(1e9, lambda: trainer.step == stop_after, lambda step: None)
    loop.fit(trainer, Checkpoint(folder), Journal(folder / "journal.jsonl"), pace)
    return trainer


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_resumed_equals_unbroken(optimizer: Optimizer, tmp_path: Path) -> None:
    whole = fit(tmp_path / "whole", optimizer)
    for stop in (1, 4):
        fit(tmp_path / "parts", optimizer, stop_after=stop)
    saved = {path.name for path in (tmp_path / "parts").glob("step-*/*")}
    nets = {f"{line}-{copy}.safetensors" for line in "AB" for copy in ("raw", "ema")}
    assert saved == {*nets, "part-judge.safetensors", "optimizer.safetensors", "memory.safetensors"}
    parts = fit(tmp_path / "parts", optimizer)
    assert len(parts.state()) == len(whole.state())
    assert all(map(torch.equal, parts.state(), whole.state()))
    assert int(parts.memory["count"]) == 9
    assert not torch.equal(flat(parts.nets["A"]), flat(parts.nets["B"]))
    assert {path.name for path in (tmp_path / "parts").glob("step-*/*")} == {*nets, "part-judge.safetensors"}


def test_a_checkpoint_without_its_memory_is_refused(tmp_path: Path) -> None:
    fit(tmp_path, "sgd", stop_after=4)
    (path,) = tmp_path.glob("step-*/optimizer.safetensors")
    path.write_bytes((path.parent / "memory.safetensors").read_bytes())
    with pytest.raises(RunError, match="to train that stage again"):
        fit(tmp_path, "sgd")


def test_objective_and_schedule_must_fit() -> None:
    schedule = Schedule(epochs=1, descent=Descent(0.1), rate_ramp="cosine", labeled=8, ema=None)
    with pytest.raises(ValueError, match="trains 2 nets, not 1"):
        Trainer({"A": Net()}, Training(Everything(), schedule, 9, 1), Views(), PLAIN)
    with pytest.raises(ValueError, match="keeps none"):
        Trainer({"A": Net(), "B": Net()}, Training(Everything(), schedule, 9, 1), Views(), PLAIN)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("share", [1.0, 0.1])
def test_an_encoder_stays_until_the_head_has_learned(optimizer: Optimizer, share: float) -> None:
    descent = Descent(0.05, optimizer, weight_decay=0.1, encoder=share, head_first=0.5)
    schedule, net = Schedule(1, descent, "cosine", 4), Net()
    optimizers, before = Optimizers({"A": net}, {}, descent), deepcopy(net.state_dict())
    moved = []
    for step in range(4):
        gradients(net, step=step)
        moves = float(schedule.encoder_moves(step / 4))
        optimizers.step(torch.tensor(0.05), torch.tensor(moves))
        now = net.state_dict()
        moved.append({part for name in before if not torch.equal(now[name], before[name]) for part in [name[:4]]})
    assert moved == [{"head"}, {"head"}, {"head", "enco"}, {"head", "enco"}]
