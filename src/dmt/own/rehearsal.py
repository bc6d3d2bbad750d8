"""How fast a folder is read, labeled and learned from on this device: a few seconds of each before a run."""

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
from dmt.data.folders.contents import FolderContents, Photo
from dmt.data.sets import PseudoLabels
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
from dmt.training.trainer import Trainer, Training

PATIENCE = 6.0
"""Seconds that a rehearsal takes, whatever the net and the device; a step that was begun may run over."""

FEW, SOME = 8, 64
"""Labeled, and as many unlabeled photos, that a rehearsal reads at least and at most."""

BY_ONNX = 0.5
"""What an image takes an encoder on a CPU by ONNX Runtime, of what it takes in torch: 16 of 32 ms for Lite0."""

COLD = 4
"""How many times its time a first look may take for a second one to be worth waiting for."""

WARM_UP = 3
"""Steps that it takes to time one: the first finds everything cold."""

Kind = tuple[str, Cost]
"""Stages of one kind have steps that take equally long: the name of their objective, and what a step costs."""


@dataclass(frozen=True)
class Rates:
    """What a rehearsal measured, in seconds."""

    reading: float  # one photo
    steps: Mapping[Kind, float]  # one step of a stage, by its kind
    forward: float  # one image outside of training
    encoding: float = 0.0  # one view of an image by every frozen encoder whose features are stored
    large: bool = False  # on a GPU


def kind(stage: Stage) -> Kind:
    """Which stages have steps that take equally long."""
    return type(stage.objective).__name__, stage.cost()


def stages(config: Config, methods: Sequence[str]) -> list[Stage]:
    """All that these methods train; what several have in common is trained once."""
    every = (stage for method in methods for stage in catalogue.plan(method, config.recipe).stages)
    return list(dict.fromkeys(every))


def rehearse(
    config: Config,
    contents: FolderContents,
    execution: Execution,
    methods: Sequence[str],
    patience: float = PATIENCE,
) -> Rates:
    """Read some photos, label some images, train a few steps of each kind that these methods have. Keeps nothing.

    It takes about ``patience`` seconds at most. Nothing is compiled, which alone would take longer: what that wins in
    a long run, and costs in any, is not foretold. On a CPU slow steps are tried with smaller batches, since they take
    in proportion. Kinds for which no time is left get the pace of the others, and of labeling if there are none.
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
        forwards = {line: trial.forward(patience / 4 / len(lines), line) for line in lines}
        forward = statistics.fmean(forwards.values())
        pace, steps = forward / build.forward_share(config.net), dict[Kind, float]()
        for place, (each, stage) in enumerate(kinds.items()):
            left = end - timing.now(device)
            share, expected = left / (len(kinds) - place), pace * _work(stage, config)
            small = _smaller(stage, 1.0 if execution.on_cuda else WARM_UP * expected / max(share, 1e-9))
            if 2 * pace * _work(small, config) > max(left, patience / 10):
                steps[each] = expected
                continue
            factor = _work(stage, config) / _work(small, config)
            # two different nets take turns, and one of them is tried
            factor *= forward / forwards.get("".join(stage.lines), forward)
            steps[each] = factor * trial.step(small, max(share, 0.0))
            pace = steps[each] / _work(stage, config)
    return Rates(reading, steps, forward, large=execution.on_cuda)


def _of_features(
    config: Config, task: Task, execution: Execution, methods: Sequence[str], reading: float, end: float
) -> Rates:
    """Encoders are tried on images, last layers on made-up features."""
    assert isinstance(task, Classification)
    device, lines = execution.device, "AB" if config.recipe.shape == "pair" else "A"
    trial = _Trial(config, task, execution)
    encoding = 0.0
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
    """Some photos of a folder, and what reading one of them took; large ones are fewer."""
    count = FEW
    while True:
        some = replace(
            contents,
            labeled=_spread(contents.labeled, count),
            unlabeled=_spread(contents.unlabeled, count),
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


def _spread(photos: Sequence[Photo], count: int) -> tuple[Photo, ...]:
    """So many photos from all over."""
    places = range(len(photos))[:: max(1, len(photos) // count)][:count]
    return tuple(photos[place] for place in places)


def _by_length(config: Config, methods: Sequence[str]) -> list[Stage]:
    """All stages, those that a run spends most of its time on first."""
    sizes = config.data.sizes
    return sorted(stages(config, methods), key=lambda stage: -stage.steps(sizes) * _work(stage, config))


def _work(stage: Stage, config: Config) -> float:
    """A step of a stage, in training passes over an image."""
    cost = stage.cost()
    return cost.learned + build.forward_share(config.net) * cost.looked


@dataclass(frozen=True)
class _Trial:
    """Nets and images to try a few steps with."""

    config: Config
    task: Task
    execution: Execution
    nets: dict[str, nn.Module] = field(default_factory=dict)  # built once for all steps

    def forward(self, patience: float, line: str = "A") -> float:
        """Seconds for one image outside of training."""
        images = self.task.unlabeled if len(self.task.unlabeled) else self.task.labeled
        device, net = self.execution.device, self.net(line).to(self.execution.device)

        def see(count: int) -> None:
            for _ in inference.logits(net, self.task, images.take(torch.arange(count)), device):
                pass

        count = min(2, len(images))
        # the first time, libraries are loaded and choose their kernels: that may take a hundred times as long
        slowest = timing.seconds(lambda: see(count), device, 0.0) / count
        if slowest * count <= COLD * patience:
            slowest = timing.seconds(lambda: see(count), device, 0.0) / count
        if slowest * count > patience:
            return slowest
        count = max(count, min(len(images), int(patience / (WARM_UP * max(slowest, 1e-9)))))
        see(count)  # likewise for this size
        return timing.seconds(lambda: see(count), device, patience / WARM_UP) / count

    def step(self, stage: Stage, patience: float) -> float:
        """Seconds of one step."""
        pseudo = _made_up(self.task) if stage.labels is not None else None
        batches = self.task.batches(self.task.labeled, pseudo, stage.batch_plan(seed=0), self.execution)
        filters = stage.objective.class_threshold is not None  # not on nets that other stages are timed with
        nets: dict[str, nn.Module] = {
            line: copy.deepcopy(self.net(line)) if filters else self.net(line) for line in stage.lines
        }
        slowly = replace(stage.schedule, descent=replace(stage.schedule.descent, rate=1e-6))
        memory = stage.objective.memory(self.task.sizes(0), len(self.task.classes))
        line = stage.lines[0]
        spec = self.task.net_spec(self.config.net_of(line))
        beside.add_class_filters(stage.objective, nets, spec, seed=0)
        parts = beside.parts(stage.objective, nets[line], spec, seed=0)
        training = Training(stage.objective, slowly, steps=10**6, seed=0, parts=parts, memory=memory)
        trainer = Trainer(nets, training, batches, self.execution)
        found = timing.step_seconds(trainer, patience * (1 - 1 / WARM_UP))
        trainer.close()
        return found

    def net(self, line: str) -> nn.Module:
        if line not in self.nets:
            self.nets[line] = build.build(self.task.net_spec(self.config.net_of(line)), seed=0)
        return self.nets[line]


def _smaller(stage: Stage, shrink: float) -> Stage:
    """The same with batches so many times as small, if that is more than once; BatchNorm needs two images."""
    if shrink <= 1:
        return stage
    labeled, unlabeled = (
        min(size, max(2, int(size / shrink))) for size in (stage.schedule.labeled, stage.schedule.unlabeled)
    )
    return replace(stage, schedule=replace(stage.schedule, labeled=labeled, unlabeled=unlabeled))


def _made_up(task: Task) -> PseudoLabels[Any]:
    """Labels for the unlabeled images, of no meaning but of the right shape."""
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
