"""Several processes that train one stage: each runs nets on its rows of a batch, and sees what came of all rows."""

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from dmt.errors import ConfigError, LostProcessError


@dataclass(frozen=True)
class Processes:
    """All processes of a run, as one of them sees them. The first leads: it decides, and it alone writes.

    Attributes:
        rank: which of them this is, from 0.
        count: how many there are.
    """

    rank: int
    count: int

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def turn(self, number: int) -> int:
        """Whose turn it is with piece ``number`` of a work that is dealt out."""
        return number % self.count

    def has_turn(self, number: int) -> bool:
        """Whether it is this process's turn."""
        return self.turn(number) == self.rank

    def rows(self, count: int) -> slice:
        """Which of ``count`` rows are this process's own."""
        return slice(*self._bounds(count)[self.rank : self.rank + 2])

    def _bounds(self, count: int) -> list[int]:
        if count < self.count:
            raise ConfigError(
                f"{count} images at a time cannot be dealt out to {self.count} processes; start fewer processes, or "
                f"set batch, batch_pseudo and batch_labeled higher"
            )
        return [count * rank // self.count for rank in range(self.count + 1)]

    def gathered(self, mine: Tensor, count: int) -> Tensor:
        """All ``count`` rows of which each process has its own. The gradient of these comes back to it."""
        return mine if self.count == 1 else _Gathered.apply(mine, count, self)  # type: ignore[no-untyped-call]

    def dealt(self, values: Tensor) -> Tensor:
        """This process's own rows. Their gradient comes back in all processes, beside that of the others' rows."""
        return values if self.count == 1 else _Dealt.apply(values, self)  # type: ignore[no-untyped-call]

    def all_rows(self, mine: Tensor, count: int) -> Tensor:
        """The same without gradient."""
        bounds = self._bounds(count)
        sizes = [end - begin for begin, end in itertools.pairwise(bounds)]
        missing = max(sizes) - len(mine)
        padded = torch.cat([mine, mine.new_zeros(missing, *mine.shape[1:])]) if missing else mine.contiguous()
        found = [torch.empty_like(padded) for _ in sizes]
        with connected():
            dist.all_gather(found, padded)
        return torch.cat([each[:size] for each, size in zip(found, sizes, strict=True)])

    def sum_(self, tensor: Tensor) -> Tensor:
        """Replace a tensor by its sum over all processes."""
        with connected():
            dist.all_reduce(tensor)
        return tensor

    def sum_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Each process has the gradient through its own rows: add them up, all in one message."""
        gradients = [each.grad for each in parameters if each.grad is not None]
        if not gradients:
            return
        flat = self.sum_(torch.cat([each.reshape(-1) for each in gradients]))
        parts = torch.split(flat, [each.numel() for each in gradients])
        torch._foreach_copy_(gradients, [part.view(each.shape) for part, each in zip(parts, gradients, strict=True)])

    def align(self, tensors: Iterable[Tensor]) -> None:
        """Give all processes what the first has in these tensors."""
        with connected(), torch.no_grad():
            for tensor in tensors:
                dist.broadcast(tensor.detach(), src=0)

    def said(self, value: Any = None) -> Any:
        """What the first process says, in every process."""
        held = [value]
        with connected():
            dist.broadcast_object_list(held, src=0, device=torch.device("cpu"))
        return held[0]

    def largest(self, number: int) -> int:
        """Of the numbers that all processes give."""
        held = torch.tensor(number)
        with connected():
            dist.all_reduce(held, dist.ReduceOp.MAX)
        return int(held)

    def send(self, tensor: Tensor) -> None:
        """To the first process."""
        with connected():
            dist.send(tensor.contiguous().cpu(), dst=0)

    def receive(self, place: Tensor, rank: int) -> Tensor:
        """What another process sends, put into a tensor on the host."""
        with connected():
            dist.recv(place, src=rank)
        return place


@contextmanager
def connected() -> Iterator[None]:
    """Within, a process that is gone is told by an error of ours."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise LostProcessError from error


class _Gathered(torch.autograd.Function):
    """Rows of all processes. Every process computes the same loss of them, and descends through its own."""

    @staticmethod
    def forward(ctx: Any, mine: Tensor, count: int, processes: Processes) -> Tensor:
        ctx.rows = processes.rows(count)
        return processes.all_rows(mine, count)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient[ctx.rows], None, None


class _Dealt(torch.autograd.Function):
    """Own rows of what all processes have. Every process gets the gradient of all rows."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, processes: Processes) -> Tensor:
        ctx.count, ctx.processes = len(values), processes
        return values[processes.rows(len(values))]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.processes.all_rows(gradient, ctx.count), None
