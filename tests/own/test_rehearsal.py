"""A rehearsal measures what a run will do, and takes a few seconds whatever the net and the device."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from dmt.config import Config, override
from dmt.core.execution import Execution
from dmt.data.folders.contents import FolderContents
from dmt.methods.plan import Stage
from dmt.models import build
from dmt.models.build import NetSpec, Normalized
from dmt.own import choosing, planning, rehearsal
from dmt.runs import timing
from dmt.tasks import opening
from dmt.training import inference
from dmt.training.trainer import Trainer
from tests.data.folders import photo_layout
from tests.own.test_planning import CPU, USUAL, kinds


@pytest.fixture
def images(tmp_path: Path) -> tuple[Config, FolderContents]:
    setup = choosing.choose(photo_layout.write_classes(tmp_path, labeled=5, unlabeled=60, test=2), CPU)
    return setup.preset.config, setup.contents


@pytest.fixture
def pixels(tmp_path: Path) -> tuple[Config, FolderContents]:
    setup = choosing.choose(photo_layout.write_masks(tmp_path, labeled=10, unlabeled=6), CPU)
    return setup.preset.config, setup.contents


@pytest.mark.parametrize("kind", ["images", "pixels"])
@pytest.mark.parametrize("unlabeled", [True, False])
def test_a_rehearsal_measures(kind: str, unlabeled: bool, request: pytest.FixtureRequest) -> None:
    config, contents = request.getfixturevalue(kind)
    if unlabeled:
        assert {name for name, _ in kinds(config)} > {"Supervised"}
    else:
        contents = replace(contents, unlabeled=())
    methods = planning.usual(contents)
    config = replace(config, net="fcn-4" if contents.pixels else "resnet8-4")
    seen = rehearsal.rehearse(config, contents, Execution(CPU), methods, patience=0.01)
    assert seen.steps.keys() == kinds(config, methods)
    assert min(seen.reading, seen.forward, *seen.steps.values()) > 0
    seconds = planning.forecast(config, contents, seen, methods)
    assert seconds > 0
    named = "Baseline and DMT" if unlabeled else "Baseline"
    assert planning.line(seconds, CPU, methods).startswith(f"a run ({named}) will take about ")


@pytest.mark.parametrize(
    ("kind", "methods"), [("images", ["online", "fixmatch"]), ("pixels", ["cps", "cutmix-seg", "cct", "s4gan"])]
)
def test_a_rehearsal_trains_what_is_asked_for(kind: str, methods: list[str], request: pytest.FixtureRequest) -> None:
    config, contents = request.getfixturevalue(kind)
    config = replace(config, net="fcn-4" if contents.pixels else "resnet8-4")
    seen = rehearsal.rehearse(config, contents, Execution(CPU), methods, patience=0.01)
    assert seen.steps.keys() == kinds(config, methods)
    assert planning.forecast(config, contents, seen, methods) > 0


def test_a_rehearsal_reads_some_photos_only(
    images: tuple[Config, FolderContents], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, contents = images
    monkeypatch.setattr(rehearsal, "FEW", 4)
    monkeypatch.setattr(rehearsal, "SOME", 4)
    for photo in [photo for part in (contents.validation, contents.test) for photo in part]:
        Path(str(photo.path)).unlink()  # not asked for
    rehearsal.rehearse(replace(config, net="resnet8-4"), contents, Execution(CPU), USUAL, patience=0.01)


# --- how long it takes ---


@dataclass
class Machine:
    """A device on which everything takes as long as it is told to; nothing is computed.

    Attributes:
        reading: seconds for a photo.
        passing: seconds for a training pass over an image; seeing it takes a third.
        cold: seconds for whatever is done first, on top.
        cold_look: the same for the first time that images are seen.
    """

    reading: float
    passing: float
    cold: float = 0.0
    cold_look: float = 0.0
    now: float = 0.0
    steps: int = 0

    def spend(self, seconds: float) -> None:
        self.now += seconds + self.cold
        self.cold = 0.0

    def install(self, patch: pytest.MonkeyPatch) -> None:
        read = opening.read_folder

        def read_folder(options: Any, contents: FolderContents) -> Any:
            self.spend(self.reading * (len(contents.labeled) + len(contents.unlabeled)))
            return read(options, contents)

        def logits(net: object, task: object, some: Any, device: object) -> Iterator[None]:
            self.spend(self.passing / 3 * len(some) + self.cold_look)
            self.cold_look = 0.0
            yield None

        def advance(trainer: Trainer, inputs: object) -> None:
            shape = trainer._batches.shape
            self.spend(self.passing * trainer.objective.cost(shape).passes)
            self.steps += 1

        patch.setattr(timing, "now", lambda device: self.now)
        patch.setattr(opening, "read_folder", read_folder)
        patch.setattr(inference, "logits", logits)
        patch.setattr(Trainer, "advance", advance)
        patch.setattr(Trainer, "draw", lambda trainer: None)

    def truth(self, stage: Stage) -> float:
        """Seconds that a step takes."""
        return self.passing * stage.cost().passes


MACHINES = {
    "a GPU": Machine(reading=0.002, passing=5e-5, cold=2.0),
    "a CPU": Machine(reading=0.005, passing=0.002),
    "a CPU that others use": Machine(reading=0.005, passing=0.06, cold_look=1.0),
    "encoders are exported first": Machine(reading=0.005, passing=0.06, cold_look=7.0),
    "a large net on a CPU": Machine(reading=0.01, passing=0.1),
    "a huge net on a CPU, photos of a large camera": Machine(reading=0.1, passing=1.0),
}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("methods", [USUAL, ["fixmatch", "online", "cps", *USUAL]], ids=["usual", "many"])
def test_ten_seconds_tell_what_a_run_will_take(
    name: str, methods: list[str], images: tuple[Config, FolderContents], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, contents = images
    config = replace(config, net="resnet8-4")
    machine = replace(MACHINES[name])
    machine.install(monkeypatch)
    seen = rehearsal.rehearse(config, contents, Execution(CPU), methods)
    assert machine.now < 10 + MACHINES[name].cold_look
    assert machine.steps < 2000
    assert seen.reading == pytest.approx(machine.reading, rel=0.25, abs=0.3)
    assert seen.forward == pytest.approx(machine.passing / 3, rel=0.05)
    assert seen.steps.keys() == kinds(config, methods)
    for stage in rehearsal.stages(config, methods):
        assert seen.steps[rehearsal.kind(stage)] == pytest.approx(machine.truth(stage), rel=0.05)


def test_nothing_is_compiled_and_nets_are_built_once(
    images: tuple[Config, FolderContents], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, contents = images
    config = override(config, {"net": "resnet8-4"})
    Machine(0.001, 1e-4).install(monkeypatch)
    built: list[str] = []
    make = build.build

    def counted(spec: NetSpec, seed: int) -> Normalized:
        built.append(spec.name)
        return make(spec, seed)

    monkeypatch.setattr(build, "build", counted)
    monkeypatch.setattr(torch, "compile", lambda *code, **options: pytest.fail("compiling takes long"))
    rehearsal.rehearse(config, contents, Execution(CPU, fast=True), ["cps", *USUAL])
    assert built == ["resnet8-4"] * 2  # lines A and B
