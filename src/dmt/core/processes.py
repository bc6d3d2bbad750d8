"""Data parallelism: several processes train one stage, each on its own samples of every batch.

Each process runs the nets on its samples only. Their outputs are gathered, so that all processes compute the same loss
over the whole batch.
"""

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
    """The processes of a run, as one of them sees them. The first one leads: it takes decisions and writes files.

    Attributes:
        rank: number of this process, from 0.
        count: number of processes.
    """

    rank: int
    count: int

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def turn(self, number: int) -> int:
        """Return the rank of the process that handles piece ``number`` of work that is divided among all."""
        return number % self.count

    def has_turn(self, number: int) -> bool:
        """Return whether this process handles piece ``number``."""
        return self.turn(number) == self.rank

    def rows(self, count: int) -> slice:
        """Return the slice of ``count`` rows that belongs to this process."""
        return slice(*self._bounds(count)[self.rank : self.rank + 2])

    def _bounds(self, count: int) -> list[int]:
        if count < self.count:
            raise ConfigError(
                f"{count} images at a time cannot be dealt out to {self.count} processes; start fewer processes, or "
                f"set batch, batch_pseudo and batch_labeled higher"
            )
        return [count * rank // self.count for rank in range(self.count + 1)]

    def gathered(self, mine: Tensor, count: int) -> Tensor:
        """Gather the rows of all processes, ``count`` in total; the gradient of its own rows flows back to each."""
        return mine if self.count == 1 else _Gathered.apply(mine, count, self)  # type: ignore[no-untyped-call]

    def dealt(self, values: Tensor) -> Tensor:
        """Return this process's rows of a tensor that all processes have; the gradient of all rows is gathered."""
        return values if self.count == 1 else _Dealt.apply(values, self)  # type: ignore[no-untyped-call]

    def all_rows(self, mine: Tensor, count: int) -> Tensor:
        """Gather the rows of all processes, ``count`` in total, without gradient."""
        bounds = self._bounds(count)
        sizes = [end - begin for begin, end in itertools.pairwise(bounds)]
        missing = max(sizes) - len(mine)
        padded = torch.cat([mine, mine.new_zeros(missing, *mine.shape[1:])]) if missing else mine.contiguous()
        found = [torch.empty_like(padded) for _ in sizes]
        with connected():
            dist.all_gather(found, padded)
        return torch.cat([each[:size] for each, size in zip(found, sizes, strict=True)])

    def sum_(self, tensor: Tensor) -> Tensor:
        """Replace a tensor by its sum over all processes, in place."""
        with connected():
            dist.all_reduce(tensor)
        return tensor

    def sum_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Sum the gradients of these parameters over all processes, in a single message."""
        gradients = [each.grad for each in parameters if each.grad is not None]
        if not gradients:
            return
        flat = self.sum_(torch.cat([each.reshape(-1) for each in gradients]))
        parts = torch.split(flat, [each.numel() for each in gradients])
        torch._foreach_copy_(gradients, [part.view(each.shape) for part, each in zip(parts, gradients, strict=True)])

    def align(self, tensors: Iterable[Tensor]) -> None:
        """Copy the values of these tensors from the first process to all others, in place."""
        with connected(), torch.no_grad():
            for tensor in tensors:
                dist.broadcast(tensor.detach(), src=0)

    def said(self, value: Any = None) -> Any:
        """Broadcast a picklable value from the first process; return it in every process."""
        held = [value]
        with connected():
            dist.broadcast_object_list(held, src=0, device=torch.device("cpu"))
        return held[0]

    def largest(self, number: int) -> int:
        """Return the largest of the numbers that all processes pass."""
        held = torch.tensor(number)
        with connected():
            dist.all_reduce(held, dist.ReduceOp.MAX)
        return int(held)

    def send(self, tensor: Tensor) -> None:
        """Send a tensor to the first process."""
        with connected():
            dist.send(tensor.contiguous().cpu(), dst=0)

    def receive(self, place: Tensor, rank: int) -> Tensor:
        """Receive what another process sends into ``place``, a tensor on the host, and return that."""
        with connected():
            dist.recv(place, src=rank)
        return place


@contextmanager
def connected() -> Iterator[None]:
    """Within this context, a failure of communication raises `LostProcessError`."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise LostProcessError from error


class _Gathered(torch.autograd.Function):
    """Gather the rows of all processes. Each computes the same loss from them and backpropagates to its own rows."""

    @staticmethod
    def forward(ctx: Any, mine: Tensor, count: int, processes: Processes) -> Tensor:
        ctx.rows = processes.rows(count)
        return processes.all_rows(mine, count)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient[ctx.rows], None, None


class _Dealt(torch.autograd.Function):
    """Select a process's rows of a tensor that all have. The backward gives every process the gradient of all rows."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, processes: Processes) -> Tensor:
        ctx.count, ctx.processes = len(values), processes
        return values[processes.rows(len(values))]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.processes.all_rows(gradient, ctx.count), None
