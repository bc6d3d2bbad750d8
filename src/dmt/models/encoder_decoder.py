"""Nets for pixels that are split into an encoder, images to features, and a decoder, features to logits."""

import copy
from abc import ABC, abstractmethod
from typing import ClassVar, Self

from torch import Tensor, nn


class EncoderDecoder(nn.Module, ABC):
    """Base class of nets whose features can be taken, changed and decoded."""

    only_decode: ClassVar[tuple[str, ...]] = ()
    """Names of the modules that only `decode` uses."""

    @abstractmethod
    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        """Encode images (N, C, H, W) to all maps that the decoder takes, from the finest to the coarsest."""

    @abstractmethod
    def decode(self, features: tuple[Tensor, ...], size: tuple[int, int]) -> Tensor:
        """Decode the features of images of ``size`` (H, W) to logits (N, classes, H, W)."""

    def encoder_alone(self) -> Self:
        """Return a deep copy without the modules in `only_decode`, for `features` only."""
        found = copy.deepcopy(self)
        for name in self.only_decode:
            found.set_submodule(name, nn.Identity())
        return found

    def forward(self, images: Tensor) -> Tensor:
        """Map images (N, C, H, W) to logits (N, classes, H, W)."""
        return self.decode(self.features(images), (images.shape[-2], images.shape[-1]))
