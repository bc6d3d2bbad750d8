"""What needs no second process; the rest is in `tests/fitting/test_several_processes.py`."""

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


def test_a_lost_connection_is_an_error_of_ours_and_too_little_memory_is_not() -> None:
    with pytest.raises(LostProcessError, match="repeat the command"), connected():
        raise RuntimeError("Connection closed by peer")
    with pytest.raises(torch.OutOfMemoryError), connected():
        raise torch.OutOfMemoryError
