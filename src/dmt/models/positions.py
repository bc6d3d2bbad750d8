"""Resample the position embeddings of a vision transformer from its published image size to that of the task."""

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from dmt.models import start_names


def resampled(tensors: Mapping[str, Tensor], body: nn.Module) -> dict[str, Tensor]:
    """Return the given tensors, with position embeddings interpolated to the net's grid of patches.

    Nothing changes for nets without such a grid, or if the given embeddings are not of a square grid.
    """
    encoder: Any = getattr(body, "encoder", body)
    own, grid = getattr(encoder, "pos_embed", None), getattr(getattr(encoder, "patch_embed", None), "grid_size", None)
    if not isinstance(own, Tensor) or own.dim() != 3 or grid is None:
        return dict(tensors)
    prefix = own.shape[1] - math.prod(grid)  # number of tokens that are no patches, such as the class token
    return {name: _fitted(name, tensor, own, list(grid), prefix) for name, tensor in tensors.items()}


def _fitted(name: str, given: Tensor, own: Tensor, grid: list[int], prefix: int) -> Tensor:
    if start_names.plain(name) != "pos.embed" or given.dim() != 3 or given.shape == own.shape:
        return given
    if math.isqrt(given.shape[1] - prefix) ** 2 != given.shape[1] - prefix:
        return given
    from timm.layers.pos_embed import resample_abs_pos_embed

    found: Tensor = resample_abs_pos_embed(given, new_size=grid, num_prefix_tokens=prefix)
    return found
