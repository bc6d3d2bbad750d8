"""Input of the last layer of a net for images: one feature vector per image."""

import torch
from torch import Tensor, nn

from dmt.errors import ConfigError


def known(body: nn.Module) -> bool:
    """Return whether a net provides its features: it has a method ``embed`` or is a net of timm."""
    return hasattr(body, "embed") or (hasattr(body, "forward_features") and hasattr(body, "forward_head"))


def embed(body: nn.Module, images: Tensor) -> Tensor:
    """Return the features (N, F) of normalized images, from a net with a method ``embed`` or a net of timm.

    Raises:
        ConfigError: if the net is neither.
    """
    if not known(body):
        raise ConfigError(
            f"{type(body).__name__} does not provide the input of its last layer, which this method needs; "
            f"give it a method embed(images) that returns (N, features)"
        )
    if hasattr(body, "embed"):
        return body.embed(images)  # type: ignore[no-any-return,operator]
    return body.forward_head(body.forward_features(images), pre_logits=True)  # type: ignore[no-any-return,operator]


@torch.no_grad()
def width(net: nn.Module, shape: tuple[int, int, int]) -> int:
    """Return the number of features F for images of shape (C, H, W)."""
    training, device = net.training, next(net.parameters()).device
    found = net.eval().embed(torch.zeros(1, *shape, device=device))  # type: ignore[operator]
    net.train(training)
    return int(found.shape[1])
