"""A classifier inside a net for pixels: it tells which classes an image shows, and switches the others off."""

import torch
from torch import Tensor, nn

from dmt.models.encoder_decoder import EncoderDecoder

OFF = 1e4
"""Subtracted from the logits of a class that is switched off: its probability becomes 0, its logit stays finite."""


class ClassFilter(nn.Module):
    """A copy of an encoder, mean pooling and a linear layer: a score for every class, on its own.

    Args:
        encoder: of its own, as far as features.
        width: channels of the encoder's last map.
        classes: of the net.
        threshold: classes of less probability are switched off.
    """

    threshold: Tensor

    def __init__(self, encoder: EncoderDecoder, width: int, classes: int, threshold: float = 0.0) -> None:
        super().__init__()
        self.body, self.head = encoder, nn.Linear(width, classes)
        self.register_buffer("threshold", torch.tensor(threshold))  # saved and shipped with the net

    def forward(self, images: Tensor) -> Tensor:
        """(N, C, H, W) to logits (N, classes) of whether a class is in the image."""
        pooled = self.body.features(images)[-1].mean((2, 3))
        with torch.autocast(pooled.device.type, enabled=False):
            return self.head(pooled.float())  # type: ignore[no-any-return]

    def switched(self, logits: Tensor, images: Tensor) -> Tensor:
        """Logits (N, classes, H, W) without the classes that are not in the image; where none is, all stay."""
        # a logit is lowered, never multiplied by 0 as in s4GAN's code: 0 would win over negative ones
        absent: Tensor = self(images).sigmoid() < self.threshold
        off = absent & ~absent.all(1, keepdim=True)
        return logits - OFF * off[:, :, None, None]
