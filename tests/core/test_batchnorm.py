from collections.abc import Iterator

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


class Frozen(nn.Module):
    """A norm that never learns, then one that does, with dropout between."""

    def __init__(self) -> None:
        super().__init__()
        self.fixed, self.drop, self.norm = nn.BatchNorm2d(1), nn.Dropout(0.5), nn.BatchNorm2d(1)

    def train(self, mode: bool = True) -> "Frozen":
        super().train(mode)
        self.fixed.eval()
        return self

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.norm(self.drop(self.fixed(images)))  # type: ignore[no-any-return]


@pytest.mark.parametrize("training", [True, False])
def test_statistics_are_averages_over_the_given_batches(training: bool, generator: torch.Generator) -> None:
    net = Frozen().train(training)
    batches = [3 * torch.randn(5, 1, 4, 4, generator=generator) + 1 for _ in range(3)]
    net(9 * batches[0])
    batchnorm.reestimate(net, batches)
    seen = [net.fixed(images) for images in batches]
    means, variances = (torch.stack([getattr(each, name)() for each in seen]).mean() for name in ("mean", "var"))
    torch.testing.assert_close(net.norm.running_mean, means.detach()[None])
    torch.testing.assert_close(net.norm.running_var, variances.detach()[None])
    assert net.fixed.num_batches_tracked == 0
    assert (net.training, net.drop.training, net.fixed.training) == (training, training, False)
    assert net.norm.momentum == 0.1


def test_a_net_without_learning_norms_asks_for_no_image() -> None:
    def none() -> Iterator[torch.Tensor]:
        raise AssertionError
        yield

    batchnorm.reestimate(nn.Sequential(nn.Linear(2, 2), nn.GroupNorm(1, 2)), none())
