"""Where and how tensor code runs. Fast execution computes the same as plain, up to rounding."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import torch
from torch import Tensor, nn

from dmt.core import blocks
from dmt.core.processes import Processes

WORTH_COMPILING = 4000
"""Steps of a large net from which on compiling its blocks, most of a minute, is won back: a fifth of each step."""

Code = TypeVar("Code", bound=Callable[..., object])


@dataclass(frozen=True)
class Execution:
    """A device, and whether steps are compiled and, on CUDA, recorded as a graph.

    Plain execution needs no compiler and is what a CPU run uses.
    """

    device: torch.device
    fast: bool = False
    compiles: bool = True  # whole nets: large ones would take minutes, so of them only blocks are compiled
    blocks: bool = False  # those that a large net repeats
    pixels: bool = False  # large images are faster with channels last on a CPU too
    processes: Processes | None = None  # that share every step; None for this one alone

    @property
    def layout(self) -> torch.memory_format:
        """How images and parameters lie in memory."""
        return torch.channels_last if self.on_cuda or self.pixels else torch.contiguous_format

    def for_net(self, name: str, pixels: bool) -> "Execution":
        """The same for a net: large ones, from other libraries or for pixels, are not compiled."""
        return replace(self, compiles=self.compiles and not pixels and ":" not in name, pixels=pixels)

    def for_steps(self, steps: int) -> "Execution":
        """The same for so many steps to come: the blocks of large nets are compiled where that is won back."""
        large = self.records and self.pixels and not self.compiles
        return replace(self, blocks=large and steps >= WORTH_COMPILING)

    def plain(self) -> "Execution":
        """The same without compiling or recording."""
        return replace(self, fast=False)

    @property
    def on_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def records(self) -> bool:
        """Whether a step is recorded once and then replayed: one launch by the host instead of hundreds."""
        return self.fast and self.on_cuda

    @contextmanager
    def active(self) -> Iterator[None]:
        """Within, work goes to a stream of its own where steps are recorded.

        Compiled code ties gradients to the stream it was compiled on, and CUDA's default stream cannot be recorded: so
        nets are made, compiled, recorded and replayed on one other stream.
        """
        if not self.records:
            yield
            return
        with torch.cuda.stream(torch.cuda.Stream(self.device)):  # type: ignore[no-untyped-call]
            yield
        torch.cuda.synchronize(self.device)

    def compiled(self, code: Code) -> Code:
        """``code``, compiled for fixed shapes if this execution is fast."""
        if not (self.fast and self.compiles):
            return code
        _allow_recompiling()
        return cast(Code, torch.compile(code, dynamic=False))

    def compiled_net(self, net: nn.Module) -> Callable[[Tensor], Tensor]:
        """A net, or the blocks that it repeats, compiled for fixed shapes if this execution is fast."""
        if self.blocks:
            _allow_recompiling()
            blocks.compile_repeated(net)
        return self.compiled(net)


def _allow_recompiling() -> None:
    """Every stage brings a new net; past its limit the compiler would silently fall back to plain code."""
    import torch._dynamo as dynamo  # slow to import, and plain execution does not need it

    dynamo.config.recompile_limit = max(dynamo.config.recompile_limit, 64)
