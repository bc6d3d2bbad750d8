"""Processes that torchrun started find each other, and one of them speaks."""

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
from dmt.errors import SaidElsewhereError

PATIENCE = timedelta(days=30)
"""How long processes wait for one that is alive; of one that died its connection tells at once."""


_meetings = itertools.count()
"""Every time that processes find each other has its own names in their store."""


def launched() -> bool:
    """Whether torchrun started this process."""
    return dist.is_available() and dist.is_torchelastic_launched() and not dist.is_initialized()


def leads() -> bool:
    """Whether this process is the first, or alone."""
    return not dist.is_available() or not dist.is_torchelastic_launched() or os.environ["RANK"] == "0"


def local_device(name: str) -> str:
    """The same name, but of several processes on one machine each takes a GPU of its own."""
    if launched() and name in ("auto", "cuda") and torch.cuda.is_available():
        return f"cuda:{os.environ['LOCAL_RANK']}"
    return name


@contextmanager
def joined() -> Iterator[Processes | None]:
    """Within, all processes of torchrun are connected; None if it started none.

    Whatever ends the first of them is said there; others end by `SaidElsewhereError`.
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
        if not on_cuda:  # a GPU may be waiting for the process that is gone, and closing would wait with it
            dist.destroy_process_group()
        if spoken:
            raise SaidElsewhereError from error
        raise
    dist.destroy_process_group()


def _spoken(store: Any) -> bool:
    """Whether another process was first to end in an error; of a job that torchrun restarted, this time."""
    try:
        ended: int = store.add(f"dmt ended {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", 1)
        return ended > 1
    except RuntimeError:  # the store went with the process that held it
        return False
