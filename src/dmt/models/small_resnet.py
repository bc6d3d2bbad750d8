"""Small ResNet for tiny images on a CPU: three basic blocks."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class BasicBlock(nn.Module):
    """Basic residual block: conv-BN-ReLU-conv-BN plus shortcut, then ReLU."""

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or width_in != width:
            self.shortcut = nn.Conv2d(width_in, width, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        residual = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(residual + self.shortcut(x))


class SmallResNet(nn.Module):
    """ResNet-8: a stem and one block each at widths w, 2w, 4w and strides 1, 2, 2."""

    def __init__(self, width: int, classes: int, channels: int = 3) -> None:
        super().__init__()
        self.stem = nn.Conv2d(channels, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.blocks = nn.Sequential(
            BasicBlock(width, width, 1), BasicBlock(width, 2 * width, 2), BasicBlock(2 * width, 4 * width, 2)
        )
        self.head = nn.Linear(4 * width, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Map images (N, C, H, W) to logits (N, classes)."""
        return self.head(self.embed(images))  # type: ignore[no-any-return]

    def embed(self, images: Tensor) -> Tensor:
        """Map images (N, C, H, W) to the input of the head, (N, F)."""
        features = self.blocks(F.relu(self.norm(self.stem(images))))
        return torch.mean(features, dim=(2, 3))
