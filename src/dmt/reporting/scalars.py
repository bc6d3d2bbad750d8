"""The numbers of runs, written as TensorBoard scalars."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from dmt import outputs
from dmt.errors import DmtError, RunError
from dmt.results.job_results import JobResult
from dmt.results.report import Report
from dmt.results.stage_results import StageResult

STEPS = ("loss", "pseudo", "labeled", "rate", "gamma", "weight", "agree", "negative", "positive", "images_per_s",
         "waiting", "peak_memory_mb")  # fmt: skip
SCORES = ("accuracy", "mean_iou", "fine_grained", "calibration_error")

Scalar = tuple[str, float, int]
"""Tag, value and step."""


class Writer(Protocol):
    """The part of TensorBoard's SummaryWriter that is used here."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None: ...

    def close(self) -> None: ...


def write(paths: Iterable[Path], folder: Path) -> int:
    """Write the scalars of all jobs, each line of nets into its own folder, and return their number."""
    places = [
        (place, job, line) for job in Report.read(paths).jobs for line in job.lines for place in [_place(job, line)]
    ]
    if folder.is_file():
        raise RunError(f"{folder} is a file; give --tensorboard a folder")
    for place, _, _ in places:
        outputs.require_free(folder / place)
    board = _board()
    for path in [path for place, _, _ in places for path in _written(folder / place)]:
        path.unlink()
    count = 0
    for place, job, line in places:
        writer = board(str(folder / place))
        for tag, value, step in scalars([stage for stage in job.stages if stage.line == line]):
            writer.add_scalar(tag, value, step)
            count += 1
        writer.close()
    return count


def _written(folder: Path) -> list[Path]:
    """Return event files of an earlier call, which TensorBoard would show too; refuse a folder with other files."""
    there = list(folder.glob("*"))
    foreign = next((path for path in there if not path.name.startswith("events.out.tfevents.")), None)
    if foreign is not None:
        raise RunError(f"{foreign} is not TensorBoard's; give --tensorboard another folder")
    return there


def _board() -> Callable[[str], Writer]:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise DmtError("TensorBoard is not installed; pip install tensorboard") from None
    return SummaryWriter


def _place(job: JobResult, line: str) -> Path:
    """Return the folder of a line of nets; its name ends with an identity that tells apart runs by their options."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", f"{job.data}-{job.method}")
    kind = job.last_place.rpartition("-")[2][:6]
    return Path(f"{safe}-seed-{job.seed}-{kind}") / line


def scalars(stages: Iterable[StageResult]) -> Iterator[Scalar]:
    """Yield the scalars of one line of nets: by step, counted across rounds, and by round."""
    before = 0
    for stage in stages:
        last = 0
        for values in stage.journal("interval"):
            last = values["step"]
            yield from ((f"steps/{key}", values[key], before + last) for key in STEPS if values.get(key) is not None)
        before += last
        if stage.outcome is not None:
            yield from ((f"rounds/{tag}", value, stage.round) for tag, value in _round(stage.outcome))


def _round(outcome: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for split, copies in outcome["scores"].items():
        for copy, score in copies.items():
            yield from ((f"{split}/{copy}/{key}", score[key]) for key in SCORES if score.get(key) is not None)
    for key, value in (outcome["audit"] or {}).items():
        if isinstance(value, int | float):
            yield f"labels/{key}", value
