"""What needs no second process; the rest is in `tests/fitting/test_several_processes.py`."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor, nn

from dmt.core import batchnorm_sync
from dmt.core.processes import Processes, connected
from dmt.errors import ConfigError, LostProcessError


class NormAct(nn.BatchNorm2d):
    """As timm has them."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.drop, self.act = nn.Identity(), nn.ReLU()

    def forward(self, input: Tensor) -> Tensor:
        activated: Tensor = self.act(self.drop(super().forward(input)))
        return activated


@dataclass(frozen=True)
class Threads(Processes):
    """Threads instead of processes: what each says lies in a list."""

    meeting: threading.Barrier = field(default_factory=lambda: threading.Barrier(1))
    told: list[Tensor] = field(default_factory=list)

    def all_rows(self, mine: Tensor, count: int) -> Tensor:
        return torch.cat(self._all(mine))

    def sum_(self, tensor: Tensor) -> Tensor:
        return tensor.copy_(torch.stack(self._all(tensor)).sum(0))

    def _all(self, mine: Tensor) -> list[Tensor]:
        self.told[self.rank] = mine.clone()
        self.meeting.wait(10)
        found = list(self.told)
        self.meeting.wait(10)
        return found


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("rows", [7, 8, 64])
def test_every_row_belongs_to_one_process_and_they_get_about_as_many(rows: int, count: int) -> None:
    parts = [list(range(rows))[Processes(rank, count).rows(rows)] for rank in range(count)]
    assert [row for part in parts for row in part] == list(range(rows))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_fewer_rows_than_processes_are_refused() -> None:
    with pytest.raises(ConfigError, match="2 images at a time cannot be dealt out to 3 processes"):
        Processes(0, 3).rows(2)


def test_one_process_keeps_its_rows_and_norms() -> None:
    rows, net = torch.rand(4, 3), nn.BatchNorm2d(3)
    assert Processes(0, 1).gathered(rows, 4) is rows
    batchnorm_sync.synchronize(net, Processes(0, 1))
    assert type(net) is nn.BatchNorm2d


def test_synchronized_norms_keep_their_parameters_and_are_put_back() -> None:
    net = nn.Sequential(nn.BatchNorm2d(3), NormAct(3), nn.Conv2d(3, 2, 1)).eval()
    images, kinds = torch.rand(4, 3, 5, 5), [type(each) for each in net]
    names, before = list(net.state_dict()), net(images)
    parameters = list(net.parameters())
    batchnorm_sync.synchronize(net, Processes(0, 2))
    assert [type(each) for each in net][:2] != kinds[:2]
    assert list(net.state_dict()) == names
    assert all(one is other for one, other in zip(net.parameters(), parameters, strict=True))
    assert torch.equal(net(images), before)  # in eval mode nobody else is asked
    batchnorm_sync.separate(net)
    assert [type(each) for each in net] == kinds
    assert torch.equal(net.train()(images), net(images))


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: nn.BatchNorm2d(3), (7, 3, 4, 5)),
        (lambda: nn.BatchNorm2d(3, affine=False), (7, 3, 4, 5)),
        (lambda: nn.BatchNorm2d(3, momentum=None), (2, 3, 1, 2)),
        (lambda: nn.BatchNorm1d(3, track_running_stats=False), (7, 3)),
        (lambda: NormAct(3), (7, 3, 4, 5)),
    ],
)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_norms_over_the_rows_of_all_are_those_of_one(
    make: Callable[[], nn.Module], shape: tuple[int, ...], layout: torch.memory_format
) -> None:
    torch.manual_seed(0)
    rows, slope = 3.0 + 2.0 * torch.randn(2, *shape, dtype=torch.float64)
    layout = layout if len(shape) == 4 else torch.contiguous_format
    meeting, told = threading.Barrier(2), [torch.empty(0)] * 2

    def normalized(processes: Processes | None) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Its rows after the norm and their gradients; gradients of parameters; running statistics."""
        mine = slice(None) if processes is None else processes.rows(len(rows))
        norm = make().double().train()
        for number, each in enumerate(norm.parameters()):
            nn.init.constant_(each, 0.5 + number)
        if processes is not None:
            batchnorm_sync.synchronize(norm, processes)
        values = rows[mine].contiguous(memory_format=layout).requires_grad_()
        for _ in range(2):
            found = norm(values)
            found.backward(slope[mine])
        assert values.grad is not None
        learned = [each.grad for each in norm.parameters() if each.grad is not None]
        return torch.stack([found.detach(), values.grad], 1), learned, list(norm.buffers())

    alone = normalized(None)
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(normalized, [Threads(rank, 2, meeting, told) for rank in range(2)])
    learned = [sum(each) for each in zip(one[1], other[1], strict=True)]  # as after a backward
    for found in (one[2], other[2]):
        torch.testing.assert_close(
            [torch.cat([one[0], other[0]]), *learned, *found], [alone[0], *alone[1], *alone[2]], rtol=0, atol=1e-12
        )


def test_a_lost_connection_is_an_error_of_ours_and_too_little_memory_is_not() -> None:
    with pytest.raises(LostProcessError, match="repeat the command"), connected():
        raise RuntimeError("Connection closed by peer")
    with pytest.raises(torch.OutOfMemoryError), connected():
        raise torch.OutOfMemoryError
