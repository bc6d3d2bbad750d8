"""What `test_several_processes` has several processes do: ``torchrun … -m tests.fitting.by_torchrun FOLDER``."""

import contextlib
import dataclasses
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from torch import Tensor, nn

from dmt import config as configuration
from dmt import presets
from dmt.cli import app
from dmt.core import codes
from dmt.core.execution import Execution
from dmt.core.processes import Processes
from dmt.core.schedule import Descent, Schedule
from dmt.data import ragged
from dmt.data.images import augment, batches
from dmt.data.images.batches import ImageBatches
from dmt.data.pixels import scenes, segment_sets
from dmt.data.pixels.pixel_batches import PixelBatches, Unlabeled
from dmt.data.pixels.windows import Window
from dmt.data.sets import LabeledSet
from dmt.errors import SaidElsewhereError
from dmt.fitting import run
from dmt.models import build
from dmt.objectives.base import Objective
from dmt.objectives.itself import PiModel
from dmt.objectives.judged import S4GAN
from dmt.objectives.multi_label import S4GANMultiLabel
from dmt.objectives.peers import CrossPseudoPasted
from dmt.objectives.perturbed import UniMatch
from dmt.objectives.stored import Stored
from dmt.objectives.two_nets import DeepCoTraining
from dmt.pseudo import labeler
from dmt.pseudo.labeler import LabelFolder, Teacher, Wish
from dmt.runs import joining
from dmt.runs.progress import Silent
from dmt.runs.stopping import Stop, Stopped
from dmt.tasks import opening, segmentation
from dmt.tasks.base import Batches
from dmt.training import trainer as training
from dmt.training.trainer import Trainer, Training
from dmt.types import BatchPlan, Sizes, Target
from tests.conftest import TINY, TINY_PIXELS

STEPS = 50
LABELED_DATA = ("digits", "scenes")
LABELED, UNLABELED = 5, 7  # neither can be dealt out evenly
DEADLY = 7  # the step that a process does not survive
OBJECTIVES: dict[str, Objective] = {
    "images": Stored("flip", gamma=4.0, mixup=0.75, double_statistics=True, weight_every=2),
    "images, consistency": PiModel(),
    "images, gradient to them": DeepCoTraining(),
    "pixels": Stored("dynamic", gamma=4.0),
    "pixels, two nets": CrossPseudoPasted(),
    "pixels, features": UniMatch(threshold=0.3),
    "pixels, classes of images": S4GANMultiLabel(S4GAN(semi=0.0, matching=0.0, judge_width=2), start=0.0),
}


def objectives(count: int) -> list[str]:
    """What so many processes are tried on: two on all, three on the two that differ most."""
    return list(OBJECTIVES) if count == 2 else ["images", "pixels, two nets"]


class Double(nn.Module):
    """Computes in float64, and takes and gives float32 as every net does."""

    def __init__(self, seed: int, classes: int, pixels: bool) -> None:
        super().__init__()
        torch.manual_seed(seed)
        end = [nn.Conv2d(6, classes, 1)] if pixels else [nn.Flatten(), nn.Linear(6 * 64, classes)]
        self.body = nn.Sequential(nn.LazyConv2d(6, 3, padding=1), nn.BatchNorm2d(6), nn.Tanh(), *end)
        self.body(torch.zeros(1, 3 if pixels else 1, 8, 8))
        self.double()

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.body(images.double())
        return logits

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        return (self.body[:-1](images.double()),)

    def decode(self, features: tuple[Tensor, ...], size: tuple[int, int]) -> Tensor:
        return self.body[-1](features[0])  # type: ignore[no-any-return]

    def presence(self, images: Tensor) -> Tensor:
        return self.forward(images).mean((2, 3))


def images_of(plan: BatchPlan, execution: Execution) -> Batches:
    generator = torch.Generator().manual_seed(1)
    images = torch.randint(0, 256, (60, 1, 8, 8), dtype=torch.uint8, generator=generator)
    labels, confidence = torch.arange(60) % 4, torch.linspace(0.2, 1.0, 40)
    known = LabeledSet(tuple(map(str, range(20))), images[:20], labels[:20])
    other = batches.Unlabeled(images[20:], (torch.arange(40), Target(labels[20:], confidence)))
    return ImageBatches(known, plan, augment.views("shift"), execution, other)


def windows_of(plan: BatchPlan, execution: Execution, stored: bool) -> Batches:
    rng = np.random.default_rng(1)
    sizes = [(10, 12), (6, 9), (12, 8), (9, 9)] * 3  # some are smaller than the window: padding teaches nothing

    def planes(high: int, *channels: int) -> ragged.Ragged:
        return ragged.stack([rng.integers(0, high, (*size, *channels), np.uint8) for size in sizes])

    known = LabeledSet(tuple(map(str, range(len(sizes)))), planes(256, 3), planes(4))
    sure = [codes.pack(codes.encode(torch.from_numpy(rng.uniform(0.3, 1, size)).logit())) for size in sizes]
    labels = (planes(4), ragged.stack([each.numpy() for each in sure])) if stored else (None, None)
    return PixelBatches(known, plan, Window(8, 8), execution, Unlabeled(planes(256, 3), *labels))


def trained(name: str, processes: Processes | None = None) -> dict[str, Tensor]:
    """All that a stage of 50 steps leaves."""
    objective, pixels = OBJECTIVES[name], name.startswith("pixels")
    execution = Execution(torch.device("cpu"), processes=processes)
    plan = BatchPlan(LABELED, UNLABELED, objective.views, objective.labeled_view, seed=3)
    source = windows_of(plan, execution, objective.stored) if pixels else images_of(plan, execution)
    schedule = Schedule(1, Descent(0.05), "cosine", LABELED, UNLABELED, ema=0.9)
    memory = objective.memory(Sizes(20, 40, 60), 4)
    nets = {line: Double(seed, 4, pixels) for seed, line in enumerate("AB"[: objective.lines])}
    torch.manual_seed(2)
    beside = objective.parts(3, 4)
    trainer = Trainer(nets, Training(objective, schedule, STEPS, 1, beside, memory), source, execution)
    for _ in range(STEPS):
        trainer.advance(trainer.draw())
    trainer.close()
    return {f"{place}": tensor.detach().clone() for place, tensor in enumerate(trainer.state())}


@contextlib.contextmanager
def small_scenes() -> Iterator[None]:
    """Within there are few scenes, and they are labeled a few at a time."""
    few = scenes.scenes(train=40, test=12)
    known = segment_sets.SEGMENT_SETS["scenes"]
    changed = dataclasses.replace(known, train=40, test=12, read=lambda folder, notify, tell: few)
    with (
        mock.patch.dict(segment_sets.SEGMENT_SETS, {"scenes": changed}),
        mock.patch.object(segmentation, "LOGITS", 100_000),
    ):
        yield


def label(data: str, folder: Path, processes: Processes | None = None) -> None:
    """The labels that a net gives all unlabeled images, of which half are kept."""
    config = configuration.override(presets.get(data).config, {"scenes": TINY_PIXELS, "digits": TINY}[data])
    task, audit = opening.read(config.data, Path(), print, lambda done, of: None).split(1)
    net = build.build(task.net_spec(config.net), seed=5)
    teacher = Teacher((net,), task, torch.device("cpu"), processes=processes)
    if processes is not None and not processes.leads:
        labeler.help_label(teacher)
        return
    store = labeler.make(teacher, Wish(0.5, per_class=True), LabelFolder(folder), audit)
    if store.pending is not None:
        store.pending(lambda: False)


class After(Stop):
    """Stops after so many steps."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._left = steps

    def __call__(self) -> bool:
        self._left -= 1
        return self._left < 0


def fit(out: Path, steps: int | None = None) -> None:
    """The run of these tests, or a part of it."""
    settings = json.loads((out.parent / "settings.json").read_text())
    stop = None if steps is None else After(steps)
    run.fit("digits", out=out, settings=settings, device="cpu", watcher=Silent(), stop=stop)


def fit_scenes(out: Path) -> None:
    """A short one of pixels."""
    settings = {key: value for key, value in TINY_PIXELS.items() if key != "share"} | {"fractions": "0.5"}
    with small_scenes():
        run.fit("scenes", out=out, method="cbst", baseline=False, settings=settings, device="cpu", watcher=Silent())


def fit_until_killed(out: Path) -> None:
    """The command, of which the last process is killed on the way."""
    advance = training.Trainer.advance

    def deadly(self: Trainer, inputs: training.Inputs) -> Tensor:
        if self.step == DEADLY and os.environ["RANK"] == str(int(os.environ["WORLD_SIZE"]) - 1):
            os.kill(os.getpid(), signal.SIGKILL)
        return advance(self, inputs)

    words = ["dmt", "fit", "digits", "--device", "cpu", "--checkpoint-every", "0"]
    words += ["--out", str(out), "--config", str(out.parent / "settings.toml")]
    with mock.patch.object(training.Trainer, "advance", deadly), mock.patch("sys.argv", words):
        app.main()


def main(folder: Path) -> None:
    count = os.environ["WORLD_SIZE"]
    with joining.joined() as processes:
        for name in objectives(int(count)):
            found = trained(name, processes)
            if joining.leads():
                torch.save(found, folder / f"{name} {count}.pt")
        with small_scenes():
            for data in LABELED_DATA:
                label(data, folder / f"labels of {data} {count}", processes)
    if count == "2":
        fit(folder / "whole 2")
        fit_scenes(folder / "scenes 2")
    with contextlib.suppress(Stopped, SaidElsewhereError):
        fit(folder / "moved", steps=40)
    if count == "3":
        fit_until_killed(folder / "killed 3")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
