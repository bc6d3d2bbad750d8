"""Where and how tensor code runs. None of it changes what is computed, beyond the last bits."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, cast

import torch

Code = TypeVar("Code", bound=Callable[..., object])


@dataclass(frozen=True)
class Execution:
    """A device, and whether steps are compiled and, on CUDA, recorded as a graph.

    Plain execution needs no compiler and is what a CPU run uses.
    """

    device: torch.device
    fast: bool = False

    @property
    def on_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def records(self) -> bool:
        """Whether a step is recorded once and then replayed: one launch by the host instead of hundreds."""
        return self.fast and self.on_cuda

    def compiled(self, code: Code) -> Code:
        """``code``, compiled for fixed shapes if this execution is fast."""
        return cast(Code, torch.compile(code, dynamic=False)) if self.fast else code
