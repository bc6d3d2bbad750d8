"""Given labels that are probably wrong, found by nets that were not trained on them.

The labels are split into folds. For each fold, nets are trained like the run's Baseline on all other folds, and judge
the labels of this one. Two nets judge each label: those of a pair, or two with different seeds.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dmt import options, run_files
from dmt.auditing import suspects
from dmt.auditing.ensembles import Ensemble
from dmt.auditing.suspects import Judged, LabelCheck
from dmt.config import Config
from dmt.core import streams
from dmt.core.execution import Execution
from dmt.data import sets
from dmt.errors import ConfigError
from dmt.methods import catalogue
from dmt.methods.plan import Stage
from dmt.models import build
from dmt.own import folds as own_folds
from dmt.runs.progress import Watcher
from dmt.runs.starting import Starts
from dmt.runs.stopping import Stop
from dmt.tasks.base import Task, View
from dmt.training import loop
from dmt.training.checkpoint import Checkpoint, finished_net
from dmt.training.journal import Journal
from dmt.training.trainer import Trainer, Training
from dmt.types import ProgressCallback, Sizes

NETS = 2
"""Number of nets that judge each label: the mean of two is wrong about a label less often than a single net."""

CHECKPOINT_EVERY = 30.0


@dataclass(frozen=True)
class CrossFit:
    """How the judges are trained.

    Attributes:
        config: configuration of the run.
        starts: initial parameters of fresh nets.
        seed: determines the folds and all random numbers.
        folds: number of folds.
        work: folder for the nets; those that are already there are not trained again.
    """

    config: Config
    starts: Starts
    seed: int
    folds: int
    work: Path


@dataclass(frozen=True)
class AuditContext:
    """Device settings, stop signal and progress watcher of an audit."""

    execution: Execution
    stop: Stop
    watcher: Watcher


@dataclass(frozen=True)
class Judge:
    """One net to be trained on the labels at positions ``learned``, to judge those at ``held``."""

    stage: Stage
    fold: int
    number: int
    learned: Tensor
    held: Tensor
    seed: int
    steps: int

    @property
    def line(self) -> str:
        """The line whose net and initial parameters it takes."""
        return self.stage.lines[0]

    @property
    def title(self) -> str:
        return f"fold {self.fold}, net {self.number}"


def deal(task: Task, folds: int, seed: int) -> list[Tensor]:
    """Return the positions of each fold: every label in exactly one, every class spread as evenly as possible."""
    if not 2 <= folds <= len(task.labeled):
        raise ConfigError(f"--folds must be between 2 and the number of labeled images, {len(task.labeled)}")
    return own_folds.split(task.labeled, folds, seed, "audit folds")


def judges(task: Task, recipe: CrossFit) -> list[Judge]:
    """Return all nets to train, fold by fold."""
    stages = catalogue.baseline().plan(recipe.config.recipe).stages
    found = []
    for fold, held in enumerate(deal(task, recipe.folds, recipe.seed), start=1):
        rest = torch.ones(len(task.labeled), dtype=torch.bool)
        rest[held] = False
        learned = rest.nonzero().squeeze(1)
        for number in range(1, NETS + 1):
            stage = stages[(number - 1) % len(stages)]
            steps = stage.steps(Sizes(len(learned), 0, len(learned), task.pixels))
            seed = streams.seed_of(recipe.seed, "audit", fold, number)
            found.append(Judge(stage, fold, number, learned, held, seed, steps))
    return found


def train(task: Task, recipe: CrossFit, context: AuditContext) -> list[LabelCheck]:
    """Train the judges that are missing, and return the labels of each fold with the nets that are to judge them."""
    every = judges(task, recipe)
    cost = every[0].stage.schedule.batch
    done = sum(_done(_place(task, recipe, judge)) * cost for judge in every)
    context.watcher.begin(sum(judge.steps * cost for judge in every), done)
    for judge in every:
        _train(task, recipe, context, judge)
    return [_check(task, recipe, context, [each for each in every if each.fold == fold])
            for fold in range(1, recipe.folds + 1)]  # fmt: skip


def examine(task: Task, checks: list[LabelCheck], on_progress: ProgressCallback | None = None) -> Judged:
    """Return a finding for every labeled image, the most suspicious first."""
    sure = suspects.thresholds(checks, len(task.classes), on_progress)
    bars = sure.values()
    found = suspects.ranked(each for check in checks for each in suspects.find(check, bars, on_progress))
    of = sum(each.labeled for each in found)
    return Judged(found, checks, bars, of, sum(each.share for each in found) / max(1, of), sure.agreement)


def _train(task: Task, recipe: CrossFit, context: AuditContext, judge: Judge) -> None:
    place = _place(task, recipe, judge)
    checkpoint = Checkpoint(place)
    if checkpoint.done:
        return
    stage, execution = judge.stage, context.execution
    spec = task.net_spec(recipe.config.net_of(judge.line))
    net = build.build(spec, streams.seed_of(judge.seed, "net"))
    if checkpoint.state() is None:
        recipe.starts.fill(net, spec, judge.line)
    labeled = task.labeled.take(judge.learned)
    batches = task.batches(labeled, None, stage.batch_plan(judge.seed), execution)
    clean = partial(task.clean_images, judge.seed)
    training = Training(stage.objective, stage.schedule, judge.steps, judge.seed, clean=clean)
    trainer = Trainer({judge.line: net}, training, batches, execution)
    context.watcher.stage(f"audit of labels, {judge.title}", judge.steps, _done(place), stage.schedule.batch)
    pace = loop.Pace(CHECKPOINT_EVERY, context.stop, context.watcher.step)
    if not loop.fit(trainer, checkpoint, Journal(place / run_files.JOURNAL), pace):
        raise context.stop.error()
    trainer.close()


def _check(task: Task, recipe: CrossFit, context: AuditContext, panel: list[Judge]) -> LabelCheck:
    held, learned = task.labeled.take(panel[0].held), task.labeled.take(panel[0].learned)
    device = context.execution.device
    nets = []
    for judge in panel:
        spec = task.net_spec(recipe.config.net_of(judge.line))
        nets.append(finished_net(_place(task, recipe, judge), spec, judge.line, "raw").to(device))
    ensemble = Ensemble(task, tuple(nets), tuple(f"net {judge.number}" for judge in panel), device)
    seen = sets.counts(learned.labels, len(task.classes)) > 0
    return LabelCheck(ensemble, held, _truth, panel[0].held, seen)


def _truth(view: View, places: Tensor) -> Tensor:
    assert view.truth is not None
    return view.truth


def _place(task: Task, recipe: CrossFit, judge: Judge) -> Path:
    """Return a folder whose name has a hash of all that determines a net, so that no other net is taken for it."""
    content: dict[str, Any] = {
        "stage": options.content(judge.stage) | {"objective": repr(judge.stage.objective)},
        "labeled": task.labeled.take(judge.learned).fingerprint,
        "data": asdict(recipe.config.data),
        "net": options.content(task.net_spec(recipe.config.net_of(judge.line))),
        "start": recipe.starts.digests[judge.line],
        "seed": judge.seed,
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return recipe.work / f"fold-{judge.fold}-net-{judge.number}-{digest[:12]}"


def _done(place: Path) -> int:
    state = Checkpoint(place).state()
    return 0 if state is None else int(state["step"])
