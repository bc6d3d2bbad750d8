"""Connecting the processes that torchrun started; only one of them reports an error."""

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

from dmt.core.processes import Processes
from dmt.errors import ConfigError, SaidElsewhereError

PATIENCE = timedelta(days=30)
"""How long processes wait for one that is alive. That one has died is noticed at once, by its closed connection."""


_meetings = itertools.count()
"""Counts connections of this process, so that each uses its own prefix of keys in the shared store."""


def launched() -> bool:
    """Whether torchrun started this process and it is not connected to the others yet."""
    return dist.is_available() and dist.is_torchelastic_launched() and not dist.is_initialized()


def leads() -> bool:
    """Whether this process is the first one of torchrun, or the only one."""
    return not dist.is_available() or not dist.is_torchelastic_launched() or os.environ["RANK"] == "0"


def require_gpu_each(device: str) -> None:
    """Refuse one GPU for several processes of torchrun on this machine, which take its GPUs in turn."""
    if device.startswith("cuda:") and int(os.environ.get("LOCAL_WORLD_SIZE", "1")) > 1:
        raise ConfigError(f"torchrun gives each process a GPU of its own, so {device} cannot be for all; give cuda")


@contextmanager
def joined() -> Iterator[Processes | None]:
    """Connect all processes of torchrun; yield None if this process was not started by torchrun.

    The first process that fails raises its error; in the others, any error becomes `SaidElsewhereError`.
    """
    if not launched():
        yield None
        return
    on_cuda = torch.cuda.is_available() and dist.is_nccl_available()
    if on_cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    whole, rank, count = next(rendezvous("env://"))
    store = dist.PrefixStore(f"dmt {next(_meetings)}", whole)  # type: ignore[attr-defined]
    backend = "cpu:gloo,cuda:nccl" if on_cuda else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=count, timeout=PATIENCE)
    try:
        yield Processes(rank, count)
    except Exception as error:
        spoken = _spoken(store)
        if not on_cuda:  # a GPU may be waiting for the process that ended, and this call would wait for the GPU
            dist.destroy_process_group()
        if spoken:
            raise SaidElsewhereError from error
        raise
    dist.destroy_process_group()


def _spoken(store: Any) -> bool:
    """Whether another process has failed before this one, since torchrun last restarted them."""
    try:
        ended: int = store.add(f"dmt ended {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", 1)
        return ended > 1
    except RuntimeError:  # the process that held the store is gone
        return False
