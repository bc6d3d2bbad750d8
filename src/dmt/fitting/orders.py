"""Orders and pseudo labels that the first of several processes sends to the others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dmt.config import Config
from dmt.core.execution import Execution
from dmt.core.processes import Processes
from dmt.data.ragged import Ragged
from dmt.data.sets import PseudoLabels
from dmt.pseudo import pixel_writer
from dmt.runs.identity import Work
from dmt.runs.starting import Starts
from dmt.tasks.base import Task

PIECE = 1 << 26
"""Maximum number of bytes of label planes in one message."""

PLANES = "planes"
"""Placeholder sent instead of pixel labels, which follow in separate messages."""


@dataclass(frozen=True)
class Open:
    """Order to read the data of a run."""

    config: Config
    starts: Starts
    run: Path
    data_folder: Path
    seeds: Sequence[int]
    threads: int


@dataclass(frozen=True)
class Label:
    """Order to help label the unlabeled images for a stage."""

    work: Work


@dataclass(frozen=True)
class Train:
    """Order to train a stage together."""

    work: Work
    steps: int
    execution: Execution


Order = Open | Label | Train


def give(processes: Processes | None, order: Order | None) -> None:
    """Send an order to the other processes; None dismisses them."""
    if processes is not None:
        processes.said(order)


def align_nets(processes: Processes | None, nets: Sequence[nn.Module]) -> None:
    """Copy parameters and buffers of these nets from the first process to all others."""
    if processes is not None:
        processes.align(each for net in nets for each in (*net.parameters(), *net.buffers()))


def hand_out(processes: Processes | None, pseudo: PseudoLabels[Any] | None) -> None:
    """Send the pseudo labels of a stage to the other processes."""
    if processes is None:
        return
    if pseudo is None or not isinstance(pseudo.labels, Ragged):
        processes.said(pseudo)
        return
    processes.said(PLANES)
    processes.align(_pieces(pseudo.labels, pseudo.confidence))


def handed_out(processes: Processes, task: Task, cache: Path) -> PseudoLabels[Any] | None:
    """Receive the pseudo labels that the first process sends with `hand_out`."""
    said: PseudoLabels[Any] | str | None = processes.said()
    if not isinstance(said, str):
        return said
    sizes = task.unlabeled.images.sizes
    labels, codes = (pixel_writer.empty_plane(sizes, dtype, cache) for dtype in (torch.uint8, torch.int16))
    processes.align(_pieces(labels, codes))
    return PseudoLabels(labels, codes, selected=torch.ones(len(sizes), dtype=torch.bool))


def _pieces(*planes: Ragged) -> Iterator[Tensor]:
    """Yield the memory of planes in pieces small enough to send."""
    for each in planes:
        yield from torch.split(each.pixels.view(torch.uint8), PIECE)
