"""Classifiers on a pretrained encoder: either only the head is trained, or the encoder too."""

from typing import Any

import torch
from torch import Tensor, nn


class OnEncoder(nn.Module):
    """A pretrained encoder, always in eval mode, and a linear head on its normalized features.

    The encoder's BatchNorm statistics, learned on many photos, are better than those of small batches.

    Args:
        encoder: from images to features (N, F).
        features: F.
        classes: number of classes.
        offset: first column of these features among stored features of several encoders.
    """

    def __init__(self, encoder: nn.Module, features: int, classes: int, offset: int = 0) -> None:
        super().__init__()
        self.features, self.offset = features, offset
        self.encoder = encoder
        # pretrained features differ widely in scale, between channels and between image sizes
        self.head = nn.Sequential(nn.BatchNorm1d(features, affine=False), nn.Linear(features, classes))
        self.pretrained_cfg: dict[str, Any] = getattr(encoder, "pretrained_cfg", {})
        self.encoder.eval()

    def train(self, mode: bool = True) -> "OnEncoder":
        """Set the mode of the head; the encoder stays in eval mode."""
        super().train(mode)
        self.encoder.eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        """Map images (N, C, H, W) to logits (N, classes)."""
        return self.head(self.seen(images))  # type: ignore[no-any-return]

    def embed(self, images: Tensor) -> Tensor:
        """Map images to the input of the last layer, (N, F)."""
        return self.head[0](self.seen(images))  # type: ignore[no-any-return]

    def seen(self, images: Tensor) -> Tensor:
        """Return the encoder's features of images, (N, F)."""
        return self.encoder(images.contiguous(memory_format=torch.channels_last))  # type: ignore[no-any-return]


class Frozen(OnEncoder):
    """Only the head is trained.

    There are a hundred times fewer parameters to train, and no backward through the encoder: for CPUs and few labels.
    """

    def __init__(self, encoder: nn.Module, features: int, classes: int, offset: int = 0) -> None:
        super().__init__(encoder.requires_grad_(False), features, classes, offset)

    def seen(self, images: Tensor) -> Tensor:
        """Return the features (N, F) of images (N, C, H, W), or select them from stored features.

        Stored features are (N, F'), or (N, V, F') for several views of each image, of which the first is used. Their
        columns may also hold features of other encoders.
        """
        if images.dim() == 4:
            return super().seen(images)
        first = images[:, 0] if images.dim() == 3 else images
        return first.narrow(-1, self.offset, self.features)


class Tuned(OnEncoder):
    """Encoder and head are trained: for photos unlike those of the encoder's pretraining."""
