"""A published encoder with a classifier on its features: either only the classifier learns, or all of it."""

from typing import Any

import torch
from torch import Tensor, nn


class OnEncoder(nn.Module):
    """An encoder that always works as outside of training, and a head that tells classes by its features.

    What BatchNorm layers of the encoder know of photos in general is better than what a small batch tells them.

    Args:
        encoder: from images to features (N, F).
        features: F.
        classes: how many there are.
        offset: where they begin among features of several encoders.
    """

    def __init__(self, encoder: nn.Module, features: int, classes: int, offset: int = 0) -> None:
        super().__init__()
        self.features, self.offset = features, offset
        self.encoder = encoder
        # features of published nets differ in scale by far, from channel to channel and from size to size of image
        self.head = nn.Sequential(nn.BatchNorm1d(features, affine=False), nn.Linear(features, classes))
        self.pretrained_cfg: dict[str, Any] = getattr(encoder, "pretrained_cfg", {})
        self.encoder.eval()

    def train(self, mode: bool = True) -> "OnEncoder":
        """The head's mode."""
        super().train(mode)
        self.encoder.eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        """Images (N, C, H, W) to logits (N, classes)."""
        return self.head(self.seen(images))  # type: ignore[no-any-return]

    def embed(self, images: Tensor) -> Tensor:
        """The same to what the last layer reads, (N, F)."""
        return self.head[0](self.seen(images))  # type: ignore[no-any-return]

    def seen(self, images: Tensor) -> Tensor:
        """Features (N, F) by the encoder."""
        return self.encoder(images.contiguous(memory_format=torch.channels_last))  # type: ignore[no-any-return]


class Frozen(OnEncoder):
    """Only the head learns.

    A hundred times fewer parameters, and nobody goes backward through the encoder: for CPUs and few labels.
    """

    def __init__(self, encoder: nn.Module, features: int, classes: int, offset: int = 0) -> None:
        super().__init__(encoder.requires_grad_(False), features, classes, offset)

    def seen(self, images: Tensor) -> Tensor:
        """Of images (N, C, H, W), or found among what encoders saw in them before.

        That is (N, F), or (N, V, F) for several views of each image, of which the first counts; features of other
        encoders may stand beside them.
        """
        if images.dim() == 4:
            return super().seen(images)
        first = images[:, 0] if images.dim() == 3 else images
        return first.narrow(-1, self.offset, self.features)


class Tuned(OnEncoder):
    """All of it learns: for photos unlike those that the encoder knows."""
