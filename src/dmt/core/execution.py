"""Where and how tensor code runs: device, compilation and CUDA graphs. All give the same result up to rounding."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import torch
from torch import Tensor, nn

from dmt.core import blocks
from dmt.core.processes import Processes

WORTH_COMPILING = 4000
"""Fewest steps for which compiling the blocks of a large net pays off: it takes most of a minute and saves a fifth of
each step."""

Code = TypeVar("Code", bound=Callable[..., object])


@dataclass(frozen=True)
class Execution:
    """A device, and whether steps are compiled and, on CUDA, captured as a graph.

    Plain execution (``fast=False``) needs no compiler and is what a CPU run uses.
    """

    device: torch.device
    fast: bool = False
    compiles: bool = True  # compile whole nets; false for large ones, which would take minutes
    blocks: bool = False  # compile only the repeated blocks of a large net
    pixels: bool = False  # the net labels pixels: large images are faster with channels last, also on a CPU
    processes: Processes | None = None  # the processes that share every step; None for a single one

    @property
    def layout(self) -> torch.memory_format:
        """Memory format of images and parameters."""
        return torch.channels_last if self.on_cuda or self.pixels else torch.contiguous_format

    def for_net(self, name: str, pixels: bool) -> "Execution":
        """Return the execution for a net by name: nets for pixels or of other libraries are not compiled as a whole."""
        return replace(self, compiles=self.compiles and not pixels and ":" not in name, pixels=pixels)

    def for_steps(self, steps: int) -> "Execution":
        """Return the execution for a number of steps: a large net's blocks are compiled if there are enough steps."""
        large = self.records and self.pixels and not self.compiles
        return replace(self, blocks=large and steps >= WORTH_COMPILING)

    def plain(self) -> "Execution":
        """Return the same execution without compilation and CUDA graphs."""
        return replace(self, fast=False)

    @property
    def on_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def records(self) -> bool:
        """Whether a step is captured as a CUDA graph and then replayed: one launch by the host instead of hundreds."""
        return self.fast and self.on_cuda

    @contextmanager
    def active(self) -> Iterator[None]:
        """Within this context, work goes to a separate CUDA stream if steps are captured.

        Compiled code ties gradients to the stream it was compiled on, and CUDA's default stream cannot be captured. So
        nets are built, compiled, captured and replayed on one other stream.
        """
        if not self.records:
            yield
            return
        with torch.cuda.stream(torch.cuda.Stream(self.device)):  # type: ignore[no-untyped-call]
            yield
        torch.cuda.synchronize(self.device)

    def compiled(self, code: Code) -> Code:
        """Return ``code``, compiled for fixed shapes if this execution compiles."""
        if not (self.fast and self.compiles):
            return code
        _allow_recompiling()
        return cast(Code, torch.compile(code, dynamic=False))

    def compiled_net(self, net: nn.Module) -> Callable[[Tensor], Tensor]:
        """Return the net, compiled for fixed shapes as a whole or in its repeated blocks, or not at all."""
        if self.blocks:
            _allow_recompiling()
            blocks.compile_repeated(net)
        return self.compiled(net)


def _allow_recompiling() -> None:
    """Raise the compiler's recompile limit: every stage has a new net, and past it torch silently stops compiling."""
    import torch._dynamo as dynamo  # slow to import, and plain execution does not need it

    dynamo.config.recompile_limit = max(dynamo.config.recompile_limit, 64)
