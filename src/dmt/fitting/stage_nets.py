"""The nets of a stage: initial and finished ones, and the trainer with everything that is trained beside them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from dmt.config import Config
from dmt.core import streams
from dmt.data.audits import Audit
from dmt.data.sets import PseudoLabels
from dmt.fitting import teaching
from dmt.fitting.conditions import Conditions
from dmt.models import build
from dmt.options import require
from dmt.runs.folder import Folder
from dmt.runs.identity import Work
from dmt.runs.starting import Starts
from dmt.tasks.base import Task
from dmt.training import beside
from dmt.training.checkpoint import Checkpoint, finished_net
from dmt.training.trainer import Trainer, Training


@dataclass(frozen=True)
class StageNets:
    """Builds, initializes and loads the nets of a run."""

    config: Config
    folder: Folder
    starts: Starts
    conditions: Conditions

    def finished(self, work: Work, task: Task, line: str, copy: str) -> nn.Module:
        """Return a net of a finished stage, on the device."""
        spec = task.net_spec(self.config.net_of(line))
        return self._placed(finished_net(self.folder.stage(work.place), spec, line, copy))

    def empty(self, line: str, task: Task) -> nn.Module:
        """Return a net of a line, whose parameters will be received from another process."""
        return self._placed(build.build(task.net_spec(self.config.net_of(line)), seed=0))

    def _placed(self, net: nn.Module) -> nn.Module:
        execution = self.conditions.execution
        return net.to(execution.device, memory_format=execution.layout)  # type: ignore[call-overload,no-any-return]

    def first(self, work: Work, line: str, task: Task, family: Mapping[str, Work]) -> nn.Module:
        """Return the net of a line that the stage starts with: a fresh one, or that of an earlier stage."""
        stage = work.stage
        if stage.start is not None:
            return self.finished(family[stage.start], task, line, "raw")
        spec = task.net_spec(self.config.net_of(line))
        first = line == stage.lines[0]  # it gets the same seed as in a stage with this line alone
        names = ("net",) if first else ("net", line)
        fresh = build.build(spec, streams.seed_of(work.stream_seed, *names))
        # a resumed stage loads its parameters from its own checkpoint
        if Checkpoint(self.folder.stage(work.place)).state() is None:
            said = self.starts.fill(fresh, spec, line)
            if said is not None:
                self.conditions.watcher.note(f"{stage.name}: {said}")
        return fresh

    def training(self, work: Work, steps: int, task: Task, nets: Mapping[str, nn.Module]) -> Training:
        """Return what the stage trains besides its nets, and how; class filters are added to the nets."""
        weights, classes = self.config.recipe.class_weights, len(task.classes)
        must = f"a number for each of the {classes} classes"
        require("class_weights", list(weights), len(weights) in (0, classes), must)
        spec = task.net_spec(self.config.net_of(work.stage.lines[0]))
        return beside.training(work.stage, nets, spec, task, steps, work.stream_seed)

    def trainer(
        self,
        work: Work,
        steps: int,
        opened: tuple[Task, Audit[Any]],
        pseudo: PseudoLabels[Any] | None,
        nets: Mapping[str, nn.Module],
    ) -> Trainer:
        """Return a trainer for the stage, in which all processes take part."""
        task, audit = opened
        labeled = teaching.shared(audit.everything if work.stage.truth == "everything" else task.labeled, work)
        together = replace(self.conditions.execution, processes=self.conditions.processes)
        batches = task.batches(labeled, pseudo, work.stage.batch_plan(work.stream_seed), together)
        return Trainer(nets, self.training(work, steps, task, nets), batches, together)
