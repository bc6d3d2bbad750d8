"""A published encoder that stays as it is, and a classifier on its features that learns."""

from typing import Any

import torch
from torch import Tensor, nn


class Frozen(nn.Module):
    """Trains a hundred times fewer parameters and goes backward through none of the encoder: for CPUs and few labels.

    Args:
        encoder: from images to features (N, F).
        features: F.
        classes: how many there are.
        offset: where they begin among features of several encoders.
    """

    def __init__(self, encoder: nn.Module, features: int, classes: int, offset: int = 0) -> None:
        super().__init__()
        self.features, self.offset = features, offset
        self.encoder = encoder.requires_grad_(False)
        # features of published nets differ in scale by far, from channel to channel and from size to size of image
        self.head = nn.Sequential(nn.BatchNorm1d(features, affine=False), nn.Linear(features, classes))
        self.pretrained_cfg: dict[str, Any] = getattr(encoder, "pretrained_cfg", {})
        self.encoder.eval()

    def train(self, mode: bool = True) -> "Frozen":
        """The encoder always works as outside of training."""
        super().train(mode)
        self.encoder.eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        """Images (N, C, H, W), or features of them, to logits (N, classes).

        Features are (N, F), or (N, V, F) for several views of each image, of which the first counts; those of other
        encoders may stand beside them.
        """
        if images.dim() == 4:
            return self.head(self.encoder(images.contiguous(memory_format=torch.channels_last)))  # type: ignore[no-any-return]
        first = images[:, 0] if images.dim() == 3 else images
        return self.head(first.narrow(-1, self.offset, self.features))  # type: ignore[no-any-return]
