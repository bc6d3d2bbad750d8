import pytest
import torch
from torch import Tensor, nn

from dmt.core.ema import SlowCopy
from dmt.models.frozen import Frozen


class One(nn.Module):
    """A single parameter, to follow by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.tensor(1.0, dtype=torch.float64))


def stride(slow: SlowCopy, step: int) -> Tensor:
    return torch.tensor(slow.stride(step))


def test_closed_form_of_one_parameter() -> None:
    """θ' = Π d_t·θ'_0 + Σ …: an inverted average would be near the raw value after one step."""
    net, decay = One(), 0.9
    slow = SlowCopy(net, decay)
    expected = 1.0
    for step in range(200):
        with torch.no_grad():
            net.value.copy_(torch.tensor(float(step % 7), dtype=torch.float64))
        slow.update(stride(slow, step))
        used = min(decay, (1 + step) / (10 + step))
        expected = used * expected + (1 - used) * float(step % 7)
        assert float(slow.net.value) == pytest.approx(expected)  # type: ignore[arg-type]


def test_after_the_warm_up_a_step_moves_it_by_one_minus_decay() -> None:
    net = One()
    slow = SlowCopy(net, 0.999)
    with torch.no_grad():
        net.value.zero_()
    slow.update(stride(slow, 10**6))
    assert float(slow.net.value) == pytest.approx(0.999)  # type: ignore[arg-type]


def test_batchnorm_statistics_are_averaged_and_counters_copied() -> None:
    net = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2))
    slow = SlowCopy(net, 0.5)
    before = slow.net[1].running_mean.clone()  # type: ignore[index]
    net(torch.randn(8, 1, 4, 4) + 3)
    slow.update(stride(slow, 100))
    fast_norm, slow_norm = net[1], slow.net[1]  # type: ignore[index]
    torch.testing.assert_close(slow_norm.running_mean, 0.5 * before + 0.5 * fast_norm.running_mean)  # type: ignore[operator]
    assert int(slow_norm.num_batches_tracked) == 1
    assert not any(parameter.requires_grad for parameter in slow.net.parameters())


def test_a_frozen_encoder_is_left_alone_and_stays_that_of_the_net() -> None:
    encoder = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten())
    encoder(torch.randn(8, 1, 4, 4) + 3)  # it has seen something before
    net = Frozen(encoder, 8, 3).train()
    slow = SlowCopy(net, 0.9)
    copied = slow.net
    assert isinstance(copied, Frozen)
    held = [*copied.encoder.parameters(), *copied.encoder.buffers()]
    untouched = [each._version for each in held]
    expected = {name: value.clone() for name, value in net.state_dict().items()}
    for step in range(3):
        net(torch.randn(8, 1, 4, 4)).square().sum().backward()
        with torch.no_grad():
            for each in net.head.parameters():
                each.sub_(0.01 * each.grad)  # type: ignore[operator]
        slow.update(stride(slow, step))
        for name, value in net.state_dict().items():  # all of them, as if any could change
            expected[name] = (
                expected[name] + stride(slow, step) * (value - expected[name]) if value.is_floating_point() else value
            )
    found = copied.state_dict()
    assert all(torch.equal(found[name], value) for name, value in expected.items())
    assert not torch.equal(found["head.1.weight"], net.state_dict()["head.1.weight"])
    assert [each._version for each in held] == untouched


@pytest.mark.parametrize("decay", [-0.1, 1.0])
def test_refuses_a_decay_that_is_none(decay: float) -> None:
    with pytest.raises(ValueError, match="decay"):
        SlowCopy(One(), decay)
