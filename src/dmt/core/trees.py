"""Nested tuples of tensors, the form of a step's draws: they can be copied, and the step captured as a CUDA graph."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor


def tensors(tree: Any) -> Iterator[Tensor]:
    """Yield all tensors of a tree of (named) tuples in order, skipping None."""
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, tuple):
        for branch in tree:
            yield from tensors(branch)
    elif tree is not None:
        raise TypeError(f"a tree holds tensors, tuples and None, not {type(tree).__name__}")


def clone(tree: Any) -> Any:
    """Return the same tree with cloned tensors."""
    if isinstance(tree, Tensor):
        return tree.clone()
    if tree is None:
        return None
    branches = [clone(branch) for branch in tree]
    return type(tree)(*branches) if hasattr(tree, "_fields") else tuple(branches)


def send(values: np.ndarray | float, device: torch.device) -> Tensor:
    """Copy an array or number from the host to a tensor on the device, asynchronously on CUDA."""
    tensor = torch.as_tensor(values, dtype=None if isinstance(values, np.ndarray) else torch.float32)
    # a copy from pinned memory can overlap with other work; torch keeps the memory until the copy is done
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


class Fetched:
    """Asynchronous copy of tensors to the host; nothing waits for the device until `arrived` is called."""

    def __init__(self, *tensors: Tensor) -> None:
        self._here, self._event = list(tensors), None
        if tensors and tensors[0].device.type == "cuda":
            self._here = [torch.empty(each.shape, dtype=each.dtype, pin_memory=True) for each in tensors]
            for here, there in zip(self._here, tensors, strict=True):
                here.copy_(there, non_blocking=True)
            self._event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._event.record()

    def arrived(self) -> list[np.ndarray]:
        """Wait for the copy to complete and return the values."""
        if self._event is not None:
            self._event.synchronize()
        return [each.numpy() for each in self._here]
