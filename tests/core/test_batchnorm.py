import pytest
import torch
from torch import nn

from dmt.core import batchnorm


def test_batch_statistics_are_used_and_no_buffer_changes() -> None:
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3)).train()
    images = 5 * torch.randn(6, 1, 8, 8) + 2
    before = {name: value.clone() for name, value in net.state_dict().items()}
    with batchnorm.statistics_untouched(net):
        seen = net(images)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    torch.testing.assert_close(seen, net(images))  # the same normalization as a training forward
    assert not torch.equal(net[1].running_mean, before["1.running_mean"])  # type: ignore[arg-type]


def test_is_undone_after_an_error() -> None:
    norm = nn.BatchNorm1d(2)
    with pytest.raises(RuntimeError), batchnorm.statistics_untouched(norm):
        raise RuntimeError
    assert norm.track_running_stats
