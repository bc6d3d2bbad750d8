"""The tiny net for pixels: any size, full-size edges, and good enough to learn."""

import pytest
import torch
import torch.nn.functional as F

from dmt.models.fcn import SmallFCN


@pytest.mark.parametrize("size", [(64, 64), (33, 47), (8, 5), (1, 1)])
def test_any_size(size: tuple[int, int]) -> None:
    net = SmallFCN(4, classes=3, channels=1).eval()
    assert net(torch.rand(2, 1, *size)).shape == (2, 3, *size)


def test_every_parameter_gets_gradient() -> None:
    torch.manual_seed(0)
    net = SmallFCN(4, classes=3)
    net(torch.rand(4, 3, 32, 32)).square().sum().backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in net.parameters())


def test_logits_are_float32_under_autocast() -> None:
    net = SmallFCN(4, classes=3).eval()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        logits = net(torch.rand(1, 3, 16, 16))
    assert logits.dtype == torch.float32
    assert not torch.equal(logits, logits.bfloat16().float())


def test_it_learns_shapes_not_only_colors(generator: torch.Generator) -> None:
    """Crosses and squares of equal brightness on noise: a pixel's class depends on what is around it."""
    torch.manual_seed(0)
    net = SmallFCN(8, classes=3, channels=1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
    for _ in range(80):
        images, labels = _shapes(16, generator)
        optimizer.zero_grad()
        F.cross_entropy(net(images), labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    images, labels = _shapes(64, generator)
    with torch.no_grad():
        right = net.eval()(images).argmax(1) == labels
    assert right[labels > 0].float().mean() > 0.9


def _shapes(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Images (N, 1, 32, 32) with one shape of 11 pixels each, and labels: 0 ground, 1 cross, 2 frame."""
    cross = torch.zeros(11, 11, dtype=torch.bool)
    cross[4:7] = cross[:, 4:7] = True
    frame = torch.ones(11, 11, dtype=torch.bool)
    frame[2:-2, 2:-2] = False
    images = 0.3 * torch.rand(count, 1, 32, 32, generator=generator)
    labels = torch.zeros(count, 32, 32, dtype=torch.int64)
    for number, (top, left) in enumerate(torch.randint(0, 22, (count, 2), generator=generator).tolist()):
        shape = (cross, frame)[number % 2]
        box = slice(top, top + 11), slice(left, left + 11)
        labels[number][box][shape] = 1 + number % 2
        images[number, 0][box][shape] += 0.5
    return images, labels
