"""Nested tuples of tensors: what a step takes, small enough to copy, regular enough to record."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor


def tensors(tree: Any) -> Iterator[Tensor]:
    """All tensors of a tree of (named) tuples, in order; None holds none."""
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, tuple):
        for branch in tree:
            yield from tensors(branch)
    elif tree is not None:
        raise TypeError(f"a tree holds tensors, tuples and None, not {type(tree).__name__}")


def clone(tree: Any) -> Any:
    """The same tree with tensors of its own."""
    if isinstance(tree, Tensor):
        return tree.clone()
    if tree is None:
        return None
    branches = [clone(branch) for branch in tree]
    return type(tree)(*branches) if hasattr(tree, "_fields") else tuple(branches)


def send(values: np.ndarray | float, device: torch.device) -> Tensor:
    """Numbers of the host as a tensor on the device, without making either wait for the other."""
    tensor = torch.as_tensor(values, dtype=None if isinstance(values, np.ndarray) else torch.float32)
    # from pinned memory a copy can overlap with work; torch keeps the memory until the copy is done
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor
