"""Wide ResNet WRN-d-k with pre-activation blocks, as trained on CIFAR-10 in the paper (docs/decisions, 11)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    """Pre-activation block: BN-ReLU-conv twice, plus a shortcut.

    Where the width changes, the shortcut convolution takes the *activated* input, the same tensor as the residual
    branch; elsewhere the raw input passes unchanged.
    """

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(width_in)
        self.conv1 = nn.Conv2d(width_in, width, 3, stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.shortcut: nn.Module | None = None
        if width_in != width:
            self.shortcut = nn.Conv2d(width_in, width, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        activated = F.relu(self.norm1(x))
        residual: Tensor = self.conv2(F.relu(self.norm2(self.conv1(activated))))
        shortcut: Tensor = x if self.shortcut is None else self.shortcut(activated)
        return residual + shortcut


class WideResNet(nn.Module):
    """WRN-depth-width: three groups of (depth − 4) / 6 blocks, at strides 1, 2, 2.

    WRN-28-2 has 1,467,610 parameters with 3 input channels and 10 classes.
    """

    def __init__(self, depth: int, width: int, classes: int, channels: int = 3) -> None:
        super().__init__()
        if depth < 10 or (depth - 4) % 6:
            raise ValueError(f"depth must be 6n + 4, n at least 1, not {depth}")
        count = (depth - 4) // 6
        self.stem = nn.Conv2d(channels, 16, 3, padding=1, bias=False)
        blocks: list[Block] = []
        width_in = 16
        for group, stride in enumerate((1, 2, 2)):
            out = 16 * width * 2**group
            blocks += [Block(width_in if n == 0 else out, out, stride if n == 0 else 1) for n in range(count)]
            width_in = out
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(width_in)
        self.head = nn.Linear(width_in, classes)
        self.apply(_initialize)

    def forward(self, images: Tensor) -> Tensor:
        """Map images (N, C, H, W) to logits (N, classes)."""
        return self.head(self.embed(images))  # type: ignore[no-any-return]

    def embed(self, images: Tensor) -> Tensor:
        """Map images (N, C, H, W) to the input of the head, (N, F)."""
        features = F.relu(self.norm(self.blocks(self.stem(images))))
        return torch.mean(features, dim=(2, 3))


def _initialize(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    elif isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)  # its weight keeps PyTorch's default
