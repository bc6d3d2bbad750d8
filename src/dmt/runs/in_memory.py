"""Training of a plan in memory, without a run folder: for cross-validation on the labels, and for arrays.

Nothing is saved, scored or audited, and EMA copies are kept only for objectives that need them.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from dmt.core import streams
from dmt.core.execution import Execution
from dmt.data.sets import LabeledSet, PseudoLabels
from dmt.errors import ConfigError
from dmt.methods.plan import Stage
from dmt.models import build, names
from dmt.models.frozen import Frozen
from dmt.pseudo import labeler
from dmt.pseudo.labeler import Teacher, Wish
from dmt.runs.starting import Starts
from dmt.tasks.base import Task
from dmt.tasks.features import FeatureTask
from dmt.training import beside
from dmt.training.trainer import Trainer

Nets = Mapping[str, nn.Module]
"""Nets by line."""


@dataclass(frozen=True)
class Trained:
    """A finished stage.

    Attributes:
        stage: the stage.
        nets: its trained nets, by line.
        pseudo: the stored pseudo labels it learned from, if any.
    """

    stage: Stage
    nets: Nets
    pseudo: PseudoLabels[Any] | None


@dataclass(frozen=True)
class InMemory:
    """Trainer of a plan's stages, one after the other.

    Attributes:
        task: the data.
        starts: initial parameters of fresh nets.
        execution: the device, and how steps run on it.
        net_of: returns the name of a line's net.
        tell: called after every step; it may raise to stop training.
        built: nets with frozen encoders that were built before, by name, so that each encoder is loaded once.
    """

    task: Task
    starts: Starts
    execution: Execution
    net_of: Callable[[str], str]
    tell: Callable[[], None] = lambda: None
    built: dict[str, nn.Module] = field(default_factory=dict)

    def train(
        self,
        stages: Sequence[Stage],
        labeled: LabeledSet[Any],
        seed_of: Callable[[Stage], int],
        longest: int | None = None,
    ) -> Iterator[Trained]:
        """Train stages and yield each when it is finished.

        Args:
            stages: stages of a plan in training order, each preceded by its parents.
            labeled: the labeled images to train on.
            seed_of: returns the seed of all random numbers of a stage.
            longest: maximum number of steps of a stage, whose schedule is compressed; None for no limit.
        """
        done: dict[str, Nets] = {}
        for stage in stages:
            found = self._train(stage, labeled, done, seed_of(stage), longest)
            done[stage.name] = found.nets
            yield found

    def _train(
        self, stage: Stage, labeled: LabeledSet[Any], done: Mapping[str, Nets], seed: int, longest: int | None
    ) -> Trained:
        if not stage.objective.slow:
            stage = replace(stage, schedule=replace(stage.schedule, ema=None))
        nets: Nets
        if stage.start is not None:
            nets = {line: _copied(done[stage.start][line]) for line in stage.lines}
        else:
            nets = {line: self._fresh(line, seed) for line in stage.lines}
        pseudo, sizes = None, replace(self.task.sizes(0), labeled=len(labeled))
        steps = stage.steps(sizes)
        if stage.labels is not None:
            teachers = tuple(done[name][stage.labels.line] for name in stage.labels.teachers)
            pseudo = self._labels(teachers, stage, seed)
            steps = stage.steps_over(int(pseudo.selected.sum()))
        steps = steps if longest is None else min(steps, longest)
        batches = self.task.batches(labeled, pseudo, stage.batch_plan(seed), self.execution)
        spec = self.task.net_spec(self.net_of(stage.lines[0]))
        trainer = Trainer(nets, beside.training(stage, nets, spec, self.task, steps, seed), batches, self.execution)
        try:
            with torch.random.fork_rng(devices=[self.execution.device] if self.execution.on_cuda else []):
                while trainer.step < steps:
                    trainer.advance(trainer.draw())
                    self.tell()
            trainer.finish()
            trainer.require_finite({})
        finally:
            trainer.close()
        return Trained(stage, nets, pseudo)

    def _fresh(self, line: str, seed: int) -> nn.Module:
        spec = self.task.net_spec(self.net_of(line))
        number = streams.seed_of(seed, "net", line)
        if not (isinstance(self.task, FeatureTask) and names.is_frozen(spec.name)):
            net = build.build(spec, number)
            self.starts.fill(net, spec, line)
            return net
        if spec.name not in self.built:
            self.built[spec.name] = build.build(spec, number)
        fresh = _copied(self.built[spec.name])  # shares the frozen encoder; only the head is initialized anew
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(number)
            for module in fresh.body.head.modules():  # type: ignore[union-attr]
                if isinstance(module, nn.Linear | nn.BatchNorm1d):
                    module.reset_parameters()
        return fresh

    def _labels(self, teachers: tuple[nn.Module, ...], stage: Stage, seed: int) -> PseudoLabels[Any]:
        wanted = stage.labels
        assert wanted is not None
        assert not self.task.pixels  # labels of pixels are files
        by = Teacher(teachers, self.task, self.execution.device, wanted.seen, whole=wanted.whole)
        wish = Wish(wanted.fraction, wanted.per_class, wanted.noise, seed)
        wish = replace(wish, soft=wanted.soft, renormalized=wanted.renormalized, graph=wanted.graph)
        store = labeler.label(by, wish)
        if not store.kept:
            raise ConfigError(f"{stage.name} keeps no pseudo label at all; set fractions higher")
        return store.open(self.task.unlabeled)


def _copied(net: nn.Module) -> nn.Module:
    """Return a deep copy of a net that shares its frozen encoder, if it has one."""
    body = getattr(net, "body", None)
    shared = {id(body.encoder): body.encoder} if isinstance(body, Frozen) else {}
    return copy.deepcopy(net, shared)
