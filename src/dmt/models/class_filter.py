"""Image classifier inside a net for pixels, which switches off classes that do not occur in the image."""

import torch
from torch import Tensor, nn

from dmt.models.encoder_decoder import EncoderDecoder

OFF = 1e4
"""Subtracted from the logits of a switched-off class: its probability becomes 0, while its logits stay finite."""


class ClassFilter(nn.Module):
    """Multi-label classifier: an encoder of its own, mean pooling and a linear layer.

    Args:
        encoder: its own encoder, used only up to the features.
        width: channels of the encoder's last feature map.
        classes: number of classes.
        threshold: classes with a lower probability are switched off.
    """

    threshold: Tensor

    def __init__(self, encoder: EncoderDecoder, width: int, classes: int, threshold: float = 0.0) -> None:
        super().__init__()
        self.body, self.head = encoder, nn.Linear(width, classes)
        self.register_buffer("threshold", torch.tensor(threshold))  # saved and shipped with the net

    def forward(self, images: Tensor) -> Tensor:
        """Map images (N, C, H, W) to multi-label logits (N, classes): whether each class occurs in the image."""
        pooled = self.body.features(images)[-1].mean((2, 3))
        with torch.autocast(pooled.device.type, enabled=False):
            return self.head(pooled.float())  # type: ignore[no-any-return]

    def switched(self, logits: Tensor, images: Tensor) -> Tensor:
        """Return logits (N, classes, H, W) with absent classes switched off; if all are absent, none is."""
        # s4GAN's code multiplies logits of absent classes by 0, which would win over negative logits
        absent: Tensor = self(images).sigmoid() < self.threshold
        off = absent & ~absent.all(1, keepdim=True)
        return logits - OFF * off[:, :, None, None]
