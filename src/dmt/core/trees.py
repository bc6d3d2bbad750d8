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


class Fetched:
    """Tensors on their way to the host: the device goes on working, and nobody waits until `arrived` is asked."""

    def __init__(self, *tensors: Tensor) -> None:
        self._here, self._event = list(tensors), None
        if tensors and tensors[0].device.type == "cuda":
            self._here = [torch.empty(each.shape, dtype=each.dtype, pin_memory=True) for each in tensors]
            for here, there in zip(self._here, tensors, strict=True):
                here.copy_(there, non_blocking=True)
            self._event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._event.record()

    def arrived(self) -> list[np.ndarray]:
        """The values, once they are here."""
        if self._event is not None:
            self._event.synchronize()
        return [each.numpy() for each in self._here]
