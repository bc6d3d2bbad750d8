"""The end of a stage: its nets are scored, its pseudo labels audited, and the results written to its journal."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dmt import run_files
from dmt.data.audits import Audit
from dmt.fitting import assessment, samples
from dmt.fitting.teaching import Lesson
from dmt.runs import progress
from dmt.runs.identity import Work
from dmt.tasks.base import Task
from dmt.training.checkpoint import Checkpoint
from dmt.training.journal import Journal
from dmt.training.trainer import Trainer


def conclude(work: Work, trainer: Trainer, lesson: Lesson | None, opened: tuple[Task, Audit[Any]], place: Path) -> str:
    """Write scores, audit and cost of a finished stage to its journal; return the scores in words."""
    task, audit = opened
    seconds = (Checkpoint(place).state() or {})["seconds"]
    steps = trainer.steps
    step = work.stage.cost()
    cost = {
        "steps": steps,
        "images": steps * work.stage.schedule.batch,
        "learned": steps * step.learned,
        "looked": steps * step.looked,
        "seconds": seconds,
    }
    # the Oracle was trained on the validation images, too
    splits = () if work.stage.before else ("test",) if work.stage.truth == "everything" else ("validation", "test")
    scores = assessment.scores(trainer, task, splits, place)
    checked = None if lesson is None else lesson.judge(trainer, task, audit, place)
    net = next(iter(trainer.nets.values()))
    samples.write_prediction(place / run_files.SAMPLES, net, task, trainer.device)
    Journal(place / run_files.JOURNAL).write("round", scores=scores, audit=checked, cost=cost)
    if lesson is not None:
        lesson.close()
    return f"{_said(scores)} after {steps} steps, {progress.duration(seconds)}"


def _said(scores: Mapping[str, Mapping[str, Mapping[str, Mapping[str, Any]]]]) -> str:
    """Describe a stage's scores on the test images or, if there are none, on the validation images."""
    split = next((split for split in ("test", "validation") if split in scores), None)
    if split is None:
        return "done"
    lines = scores[split]
    key, name = (
        ("mean_iou", "mean IoU") if "mean_iou" in next(iter(lines.values()))["raw"] else ("accuracy", "accuracy")
    )

    def net(copies: Mapping[str, Mapping[str, Any]]) -> str:
        slow = f" (EMA {copies['ema'][key]:.2f})" if "ema" in copies else ""
        return f"{copies['raw'][key]:.2f}{slow}"

    return f"{split} {name} {', '.join(map(net, lines.values()))}"
