"""Nets for pixels in two halves: images to features, and features to logits."""

from abc import ABC, abstractmethod

from torch import Tensor, nn


class EncoderDecoder(nn.Module, ABC):
    """A net whose features can be had, changed and decoded."""

    @abstractmethod
    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        """Images (N, C, H, W) to all maps that the decoder takes, from the finest to the coarsest."""

    @abstractmethod
    def decode(self, features: tuple[Tensor, ...], size: tuple[int, int]) -> Tensor:
        """Features of images of ``size`` (H, W) to logits (N, classes, H, W)."""

    def forward(self, images: Tensor) -> Tensor:
        """(N, C, H, W) to logits (N, classes, H, W)."""
        return self.decode(self.features(images), (images.shape[-2], images.shape[-1]))
