"""Nets for pixels in two halves: images to features, and features to logits."""

import copy
from abc import ABC, abstractmethod
from typing import ClassVar, Self

from torch import Tensor, nn


class EncoderDecoder(nn.Module, ABC):
    """A net whose features can be had, changed and decoded."""

    only_decode: ClassVar[tuple[str, ...]] = ()
    """Names of the modules that features do not pass through."""

    @abstractmethod
    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        """Images (N, C, H, W) to all maps that the decoder takes, from the finest to the coarsest."""

    @abstractmethod
    def decode(self, features: tuple[Tensor, ...], size: tuple[int, int]) -> Tensor:
        """Features of images of ``size`` (H, W) to logits (N, classes, H, W)."""

    def encoder_alone(self) -> Self:
        """A copy with parameters of its own that gives the same features, and cannot decode them."""
        found = copy.deepcopy(self)
        for name in self.only_decode:
            found.set_submodule(name, nn.Identity())
        return found

    def forward(self, images: Tensor) -> Tensor:
        """(N, C, H, W) to logits (N, classes, H, W)."""
        return self.decode(self.features(images), (images.shape[-2], images.shape[-1]))
