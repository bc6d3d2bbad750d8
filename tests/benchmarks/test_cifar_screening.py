"""One round repeated with other options: the same labels and random numbers, resumed, and a record of it."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch

import dmt
from benchmarks import cifar_screening as screening
from benchmarks.cifar_screening import TRIALS, Bench
from dmt import config, presets
from dmt.core.execution import Execution
from dmt.data.images.datasets import DATASETS
from dmt.data.sets import LabeledSet
from dmt.errors import ConfigError
from dmt.pseudo.image_store import ImageStore
from dmt.runs.progress import Silent
from dmt.runs.stopping import Stop, Stopped
from dmt.tasks import opening

SETTINGS: dict[str, object] = {
    "net": "resnet8-4", "labels": 20, "validation": 20, "epochs": 2, "batch": 10, "batch_pseudo": 14,
    "batch_labeled": 2, "ema": 0.5,
}  # fmt: skip


@pytest.fixture(autouse=True)
def few_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """CIFAR-10 is 120 images of noise on a color that tells their class."""
    drawn = torch.Generator().manual_seed(0)
    labels = torch.arange(120) % 10
    images = torch.randint(0, 30, (120, 3, 32, 32), generator=drawn) + 22 * labels[:, None, None, None]
    part = LabeledSet(tuple(map(str, range(120))), images.to(torch.uint8), labels)
    few = dataclasses.replace(DATASETS["cifar10"], train=120, test=120, read=lambda folder, notify: (part, part))
    monkeypatch.setitem(DATASETS, "cifar10", few)
    monkeypatch.setattr(screening, "digits_for_images", lambda: None)
    monkeypatch.setattr(screening, "TINY", SETTINGS)


class StopAfter(Stop):
    """Stops when it was asked so often."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self._left = times

    def __call__(self) -> bool:
        self._left -= 1
        return self._left < 0


def bench(runs: Path, stop: Stop) -> Bench:
    base = config.override(presets.get("cifar10-4k").config, SETTINGS)
    opened = opening.read(base.data, Path(), print, lambda done, of: None)
    return Bench(opened, base, Execution(torch.device("cpu")), runs, stop, 1, (), fraction=1.0, steps=4)


def test_every_trial_is_a_round_of_its_own() -> None:
    made = bench(Path("runs"), Stop())
    jobs = {name: screening.trial(made, name, 0, Path("teacher")) for name in TRIALS}
    assert len({job.place(made.runs) for job in jobs.values()}) == len(TRIALS)
    assert len({job.seed for job in jobs.values()}) == 1
    assert screening.trial(made, "sane", 1, Path("teacher")).seed != jobs["sane"].seed
    other = dataclasses.replace(made, steps=5)
    assert screening.trial(other, "sane", 0, Path("teacher")).place(made.runs) != jobs["sane"].place(made.runs)


def test_a_stopped_trial_is_resumed_to_the_same_nets(tmp_path: Path) -> None:
    teacher = screening.prepare(bench(tmp_path, Stop()))
    job = screening.trial(bench(tmp_path, Stop()), "weight-every-4", 0, teacher)
    whole = screening.train(bench(tmp_path / "whole", Stop()), job)
    with pytest.raises(Stopped):
        screening.train(bench(tmp_path / "parts", StopAfter(2)), job)
    parts = screening.train(bench(tmp_path / "parts", Stop()), job)
    for copy in ("raw", "ema"):
        one, other = (next(place.glob(f"step-*/A-{copy}.safetensors")).read_bytes() for place in (whole, parts))
        assert one == other


def test_the_record_compares_trials_on_held_out_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--tiny", "--runs", str(tmp_path), "--steps", "3", "--prepare", "none", "--trials", "round,batchnorm"]
    screening.main([*arguments, "--device", "cpu", "--minutes", "0"])
    assert "stopped by the budget" in capsys.readouterr().out
    screening.main([*arguments, "--device", "cpu"])
    found = json.loads((tmp_path / "cifar_screening.json").read_text())
    assert list(found["trials"]) == ["round", "batchnorm"]
    plain, other = found["trials"].values()
    assert other["settings"] == {"batchnorm": "reestimate"}
    assert other["raw_gain"][0] == pytest.approx(other["raw"] - plain["raw"], abs=0.01)
    assert plain["repetitions"][0]["held_out"] == 20
    assert found["teacher"]["steps"] == 4
    assert {"git", "hardware", "torch", "command"} <= set(found["sessions"][0])
    written = (tmp_path / "cifar_screening.md").read_text()
    assert "| batchnorm | `batchnorm=reestimate` | 1 |" in written
    places = {path.name.split("-")[0]: path for path in tmp_path.iterdir() if path.is_dir()}
    one, two = (ImageStore.load(places[name]).target for name in ("round", "batchnorm"))
    assert not torch.equal(one.confidence, two.confidence)  # the teacher was re-estimated too


def test_a_run_teaches_if_it_held_the_same_images_out(tmp_path: Path) -> None:
    settings = SETTINGS | {"fractions": "1", "epochs_round": 1}
    dmt.fit("cifar10-4k", out=tmp_path, method="dmt", baseline=False, settings=settings, watcher=Silent())
    made = bench(tmp_path.with_name("trials"), Stop())
    teacher = screening.last_nets(made, tmp_path)
    assert teacher.name.startswith("A1-")
    assert (screening.train(made, screening.trial(made, "mean", 0, teacher)) / "outcome.json").exists()
    others = dataclasses.replace(made, base=config.override(made.base, {"validation": 30}))
    with pytest.raises(ConfigError, match="validation=20; this needs validation=30"):
        screening.last_nets(others, tmp_path)


def test_the_best_trial_teaches_the_next_screening(tmp_path: Path) -> None:
    arguments = ["--tiny", "--runs", str(tmp_path), "--steps", "3", "--prepare", "none", "--device", "cpu"]
    screening.main([*arguments, "--trials", "round,sane", "--name", "first", "--labelings"])
    first = json.loads((tmp_path / "first.json").read_text())
    assert list(first["labelings"]) == list(screening.LABELINGS)
    assert all(set(errors) == {"20%", "40%", "60%", "80%", "100%"} for errors in first["labelings"].values())
    best = max(first["trials"].values(), key=lambda row: row["raw"])
    then = [*arguments, "--teacher", f"best:{tmp_path / 'first.json'}", "--trials", "fixmatch-continued"]
    screening.main([*then, "--name", "second"])
    second = json.loads((tmp_path / "second.json").read_text())
    assert second["teacher"]["accuracy"]["raw"] == best["raw"]
    folder = tmp_path / second["trials"]["fixmatch-continued"]["folders"][0]
    assert not (folder / "pseudo.json").exists()  # it labels within the step
    with pytest.raises(ConfigError, match="was trained with seed=1; this needs seed=2"):
        screening.main([*then, "--seed", "2"])
