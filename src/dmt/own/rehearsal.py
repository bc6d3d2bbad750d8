"""Short measurement, before a run, of how fast this device reads a folder, labels it and trains on it."""

import copy
import importlib.util
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from dmt.config import Config
from dmt.core import codes
from dmt.core.execution import Execution
from dmt.data import ragged
from dmt.data.folders import samples
from dmt.data.folders.contents import FolderContents
from dmt.data.sets import LabeledSet, PseudoLabels, UnlabeledSet
from dmt.methods import catalogue
from dmt.methods.plan import Stage
from dmt.models import build
from dmt.models.frozen import Frozen
from dmt.objectives.base import Cost
from dmt.runs import timing
from dmt.tasks import opening
from dmt.tasks.base import Task
from dmt.tasks.classification import Classification
from dmt.tasks.features import FeatureTask
from dmt.tasks.opening import Opened
from dmt.training import beside, inference
from dmt.training.trainer import Trainer

PATIENCE = 6.0
"""Seconds that a rehearsal takes, for any net and device; only a step already begun may exceed it."""

FEW, SOME = 8, 64
"""Minimum and maximum number of labeled photos that a rehearsal reads, and likewise of unlabeled photos."""

BY_ONNX = 0.5
"""Time of an encoder on a CPU with ONNX Runtime relative to torch: 16 of 32 ms per image for Lite0."""

WARM_UP = 3
"""Number of steps needed to time one, since the first runs cold."""

Kind = tuple[str, Cost]
"""Key of stages whose steps take equally long: the class name of the objective, and the cost of a step."""


@dataclass(frozen=True)
class Rates:
    """Times measured by a rehearsal, in seconds."""

    reading: float  # reading one photo
    steps: Mapping[Kind, float]  # one training step of a stage, by its kind
    forward: float  # inference on one image
    encoding: float = 0.0  # encoding one view by all frozen encoders whose features are stored
    large: bool = False  # whether measured on a GPU


def kind(stage: Stage) -> Kind:
    """Return a key that is equal for stages whose steps take equally long."""
    return type(stage.objective).__name__, stage.cost()


def stages(config: Config, methods: Sequence[str]) -> list[Stage]:
    """Return all stages of these methods; stages that several have in common appear once."""
    every = (stage for method in methods for stage in catalogue.plan(method, config.recipe).stages)
    return list(dict.fromkeys(every))


def rehearse(
    config: Config,
    contents: FolderContents,
    execution: Execution,
    methods: Sequence[str],
    patience: float = PATIENCE,
) -> Rates:
    """Read some photos, label some images, and train a few steps of each kind of stage; keep nothing.

    This takes at most about ``patience`` seconds after the first pass of each net. Nothing is compiled, which alone
    would take longer, so the forecast includes neither the cost of compilation nor its gain in a long run. On a CPU,
    slow steps are timed with smaller batches, since their time is proportional to the batch size. The time of kinds for
    which no time is left is extrapolated from the other kinds or, if none was timed, from labeling.
    """
    device = execution.device
    end = timing.now(device) + patience
    opened, reading = _read(config, contents, device, patience / 4)
    task, _ = opened.split(1)
    execution = replace(execution.for_net(config.net, task.pixels), compiles=False)
    if config.stores_features("A"):
        return _of_features(config, task, execution, methods, reading, end)
    kinds = {kind(stage): stage for stage in _by_length(config, methods)}
    trial = _Trial(config, task, execution)
    lines = "AB" if config.recipe.shape == "pair" and config.net_b not in (None, config.net) else "A"
    with execution.active():
        end += trial.warm_up(lines)
        forwards = {line: trial.forward(patience / 4 / len(lines), line) for line in lines}
        forward = statistics.fmean(forwards.values())
        pace, steps = forward / _windows(task) / build.forward_share(config.net), dict[Kind, float]()
        for place, (each, stage) in enumerate(kinds.items()):
            left = end - timing.now(device)
            share, expected = left / (len(kinds) - place), pace * _work(stage, config)
            small = _smaller(stage, 1.0 if execution.on_cuda else WARM_UP * expected / max(share, 1e-9))
            if 2 * pace * _work(small, config) > max(left, patience / 10):
                steps[each] = expected
                continue
            factor = _work(stage, config) / _work(small, config)
            # two different nets alternate, but only one of them is timed
            factor *= forward / forwards.get("".join(stage.lines), forward)
            steps[each] = factor * trial.step(small, max(share, 0.0))
            pace = steps[each] / _work(stage, config)
    return Rates(reading, steps, forward, large=execution.on_cuda)


def _of_features(
    config: Config, task: Task, execution: Execution, methods: Sequence[str], reading: float, end: float
) -> Rates:
    """Time the encoders on images, and training of the last layers on dummy features."""
    assert isinstance(task, Classification)
    device, lines = execution.device, "AB" if config.recipe.shape == "pair" else "A"
    trial = _Trial(config, task, execution)
    encoding = 0.0
    end += trial.warm_up(lines)
    for line in lines:
        encoding += trial.forward((end - timing.now(device)) / 4, line)
    if device.type == "cpu" and importlib.util.find_spec("onnxruntime") is not None:
        encoding *= BY_ONNX
    widths = [_features(trial.net(line)) for line in lines]
    offsets = {config.net_of(line): sum(widths[:place]) for place, line in enumerate(lines)}
    sets = {}
    for name in ("labeled", "unlabeled", "validation", "test"):
        images = getattr(task, name)
        sets[name] = replace(images, images=torch.zeros(len(images), 1, sum(widths), dtype=torch.float16))
    seen = FeatureTask(task.classes, task.shape, task.normalization, task.policies, **sets, offsets=offsets)
    quick = _Trial(config, seen, execution)
    kinds = {kind(stage): stage for stage in stages(config, methods)}
    steps = {each: quick.step(stage, (end - timing.now(device)) / 8) for each, stage in kinds.items()}
    return Rates(reading, steps, 0.0, encoding, execution.on_cuda)


def _features(net: nn.Module) -> int:
    body = net.body
    assert isinstance(body, Frozen)
    return body.features


def _read(config: Config, contents: FolderContents, device: torch.device, patience: float) -> tuple[Opened, float]:
    """Open a sample of the photos, smaller if they are slow to read; return it with the seconds per photo."""
    count = FEW
    while True:
        some = replace(
            contents,
            labeled=samples.evenly(contents.labeled, count),
            unlabeled=samples.evenly(contents.unlabeled, count),
            validation=(),
            test=(),
        )
        began = timing.now(device)
        opened = opening.read_folder(replace(config.data, validation=0), some)  # type: ignore[arg-type]
        spent = timing.now(device) - began
        more = min(SOME, 4 * count, max(len(contents.labeled), len(contents.unlabeled)))
        if more <= count or spent * more / count > patience:
            return opened, spent / max(len(some.labeled) + len(some.unlabeled), 1)
        count = more


def _by_length(config: Config, methods: Sequence[str]) -> list[Stage]:
    """Return all stages, sorted by the time that a run spends on them, longest first."""
    sizes = config.data.sizes
    return sorted(stages(config, methods), key=lambda stage: -stage.steps(sizes) * _work(stage, config))


def _windows(task: Task) -> float:
    """Return the mean size of an image that is labeled, in images of the training size."""
    return task.images_to_label() / len(task.unlabeled) if len(task.unlabeled) else 1.0


def _work(stage: Stage, config: Config) -> float:
    """Return the cost of one step, in units of a training pass over one image."""
    cost = stage.cost()
    return cost.learned + build.forward_share(config.net) * cost.looked


@dataclass(frozen=True)
class _Trial:
    """Nets and images for timing a few steps."""

    config: Config
    task: Task
    execution: Execution
    nets: dict[str, nn.Module] = field(default_factory=dict)  # nets by line, built once for all measurements

    def warm_up(self, lines: str) -> float:
        """Pass one image through the net of each line, and return the seconds that it took.

        The first pass loads libraries, selects kernels and exports encoders, which takes as long as thousands of
        images; with this time taken off its patience, a rehearsal would have to guess the rest.
        """
        began = timing.now(self.execution.device)
        for line in lines:
            self._see(1, line)
        return timing.now(self.execution.device) - began

    def forward(self, patience: float, line: str = "A") -> float:
        """Return the seconds of inference per image."""
        device = self.execution.device
        slowest = timing.seconds(lambda: self._see(1, line), device, 0.0)
        if 2 * slowest > patience:
            return slowest
        count = min(len(self._images), max(2, int(patience / (WARM_UP * max(slowest, 1e-9)))))
        self._see(count, line)  # warm up for this batch size, too
        return timing.seconds(lambda: self._see(count, line), device, patience / WARM_UP) / count

    @property
    def _images(self) -> UnlabeledSet[Any] | LabeledSet[Any]:
        return self.task.unlabeled if len(self.task.unlabeled) else self.task.labeled

    def _see(self, count: int, line: str) -> None:
        net = self.net(line).to(self.execution.device)
        for _ in inference.logits(net, self.task, self._images.take(torch.arange(count)), self.execution.device):
            pass

    def step(self, stage: Stage, patience: float) -> float:
        """Return the seconds of one training step."""
        pseudo = _made_up(self.task) if stage.labels is not None else None
        batches = self.task.batches(self.task.labeled, pseudo, stage.batch_plan(seed=0), self.execution)
        filters = stage.objective.class_threshold is not None  # class filters must not change the shared nets
        nets: dict[str, nn.Module] = {
            line: copy.deepcopy(self.net(line)) if filters else self.net(line) for line in stage.lines
        }
        slowly = replace(stage.schedule, descent=replace(stage.schedule.descent, rate=1e-6))
        spec = self.task.net_spec(self.config.net_of(stage.lines[0]))
        training = beside.training(replace(stage, schedule=slowly), nets, spec, self.task, steps=10**6, seed=0)
        trainer = Trainer(nets, training, batches, self.execution)
        try:
            return timing.step_seconds(trainer, patience * (1 - 1 / WARM_UP))
        finally:
            trainer.close()

    def net(self, line: str) -> nn.Module:
        if line not in self.nets:
            self.nets[line] = build.build(self.task.net_spec(self.config.net_of(line)), seed=0)
        return self.nets[line]


def _smaller(stage: Stage, shrink: float) -> Stage:
    """Divide the batch sizes by ``shrink``, if it exceeds 1, but keep two images, which BatchNorm needs."""
    if shrink <= 1:
        return stage
    labeled, unlabeled = (
        min(size, max(2, int(size / shrink))) for size in (stage.schedule.labeled, stage.schedule.unlabeled)
    )
    return replace(stage, schedule=replace(stage.schedule, labeled=labeled, unlabeled=unlabeled))


def _made_up(task: Task) -> PseudoLabels[Any]:
    """Return dummy pseudo labels of the right shape for the unlabeled images."""
    count = len(task.unlabeled)
    selected = torch.ones(count, dtype=torch.bool)
    if not task.pixels:
        soft = torch.full((count, len(task.classes)), 1 / len(task.classes))
        return PseudoLabels(torch.zeros(count, dtype=torch.int64), torch.full((count,), 0.9), selected, soft)
    sizes = task.unlabeled.images.sizes
    labels = ragged.stack([torch.zeros(size, dtype=torch.uint8).numpy() for size in sizes])
    code = codes.pack(torch.tensor(40_000)).item()
    return PseudoLabels(
        labels, ragged.stack([torch.full(size, code, dtype=torch.int16).numpy() for size in sizes]), selected
    )
