"""Runs on unlabeled images in shards: to the bit what the same images in files give."""

import functools
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from dmt import files, run_files
from dmt.data import buffers
from dmt.data.folders import photo_pools, shards
from dmt.errors import ConfigError, DataError
from dmt.fitting import run
from dmt.pseudo.image_store import ImageStore
from dmt.results.report import Report
from dmt.runs.progress import Silent
from dmt.runs.stopping import Stop, Stopped
from dmt.use import scoring
from tests.data.folders import http_server, photo_layout, shard_layout

SETTINGS: dict[str, Any] = {
    "net": "resnet8-4",
    "size": 16,
    "epochs": 2,
    "epochs_round": 2,
    "fractions": "0.5,1",
    "batch_pseudo": 12,
    "batch_labeled": 4,
}
FEW = 20_000
"""Bytes of memory that labeled and test images fit into, and unlabeled ones do not."""

OUTCOMES = ("accuracy", "fine_grained", "confusion")


def fit(folder: Path, out: Path, stop: Stop | None = None, **settings: Any) -> Report:
    every = 0.0 if stop is not None else 30.0
    asked = SETTINGS | settings
    quiet: dict[str, Any] = {"watcher": Silent(), "folds": False, "baseline": False, "method": "dst"}
    return run.fit(folder, out=out, settings=asked, device="cpu", stop=stop, checkpoint_every=every, **quiet)


def outcomes(report: Report) -> dict[str, Any]:
    """Scores of every stage."""
    found: dict[str, Any] = {}
    for job in report.jobs:
        for stage in job.stages:
            assert stage.outcome is not None
            scores = stage.outcome["scores"]["test"]["raw"]
            found[f"{job.method} {stage.name}"] = [scores[name] for name in OUTCOMES]
    return found


def labels(out: Path) -> dict[str, Any]:
    """By the name of the stage that learned from them."""
    stages = [path.parent for path in out.glob("stages/*/pseudo.json")]
    stores = {path.name.split("-")[0]: ImageStore.load(path) for path in stages}
    return {
        name: (each.target.labels.tolist(), each.target.confidence.tolist(), each.selected.tolist())
        for name, each in stores.items()
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return photo_layout.write_classes(tmp_path_factory.mktemp("photos") / "files", labeled=4, unlabeled=30, test=3)


@pytest.fixture(scope="module")
def whole(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    """What files give."""
    out = tmp_path_factory.mktemp("runs") / "files"
    return fit(folder, out), out


@pytest.fixture
def packed(folder: Path, tmp_path: Path) -> Path:
    """The same images, those without labels in shards."""
    copy = tmp_path / "packed"
    shutil.copytree(folder, copy)
    shard_layout.pack(copy / "unlabeled", 11, 0)
    return copy


@pytest.mark.parametrize("memory", [FEW, buffers.MEMORY])
def test_shards_give_what_files_give(
    memory: int, whole: tuple[Report, Path], packed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Held in memory, or each image decoded whenever it is needed."""
    monkeypatch.setattr(buffers, "MEMORY", memory)
    report = fit(packed, tmp_path / "run")
    assert outcomes(report) == outcomes(whole[0])
    assert labels(tmp_path / "run") == labels(whole[1])
    split = files.read_json(tmp_path / "run" / "splits" / "seed-1.json")
    assert ("unlabeled" in split) == (memory > FEW)
    assert not list(tmp_path.rglob("*.bin"))  # nothing was unpacked
    finished = scoring.Finished(tmp_path / "run", None, torch.device("cpu"), print, unlabeled=True)
    assert len(finished.task(1).unlabeled) == 30


@pytest.mark.usefixtures("by_http")
def test_shards_at_an_http_server(
    whole: tuple[Report, Path], packed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (packed / "unlabeled").rename(tmp_path / "served")
    names = sorted(tar.name for tar in (tmp_path / "served").glob("*.tar"))
    monkeypatch.setattr(buffers, "MEMORY", FEW)
    with http_server.serving(tmp_path / "served") as url:
        report = fit(packed, tmp_path / "run", shards=",".join(f"{url}/{name}" for name in names))
    assert outcomes(report) == outcomes(whole[0])
    assert labels(tmp_path / "run") == labels(whole[1])
    with (
        http_server.serving(tmp_path / "served", http_server.WholeFiles) as url,
        pytest.raises(DataError, match="sends whole files only"),
    ):
        fit(packed, tmp_path / "other", shards=f"{url}/{names[0]}")
    assert not (tmp_path / "other").exists()


class After(Stop):
    """Stops after so many steps."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._left = steps

    def __call__(self) -> bool:
        self._left -= 1
        return self._left < 0


def test_a_run_on_shards_resumes_without_looking_at_all_images_again(
    whole: tuple[Report, Path], packed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(buffers, "MEMORY", FEW)
    for steps in (2, 5):
        with pytest.raises(Stopped):
            fit(packed, tmp_path / "run", After(steps))
    with monkeypatch.context() as patch:
        patch.setattr(photo_pools, "_check", functools.partial(pytest.fail, "all images were read again"))
        shards._read.cache_clear()
        patch.setattr(shards, "_members", functools.partial(pytest.fail, "the shards were read again"))
        report = fit(packed, tmp_path / "run")
    assert outcomes(report) == outcomes(whole[0])
    assert labels(tmp_path / "run") == labels(whole[1])


def test_shards_elsewhere(
    whole: tuple[Report, Path], packed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (packed / "unlabeled").rename(tmp_path / "elsewhere")
    monkeypatch.setattr(buffers, "MEMORY", FEW)
    tars = sorted((tmp_path / "elsewhere").glob("*.tar"))
    report = fit(packed, tmp_path / "run", shards=tuple(f"file://{tar}" for tar in tars))
    assert outcomes(report) == outcomes(whole[0])
    for tar in tars:  # where they are is no part of what is trained
        tar.rename(packed / tar.name)
    places = [str(packed / tar.name) for tar in tars]
    monkeypatch.chdir(packed)  # the run remembers them as they are found from anywhere
    moved = fit(packed, tmp_path / "run", shards=",".join(tar.name for tar in tars))
    assert [stage.place for stage in moved.jobs[0].stages] == [stage.place for stage in report.jobs[0].stages]
    assert files.read_json(tmp_path / "run" / run_files.MANIFEST)["config"]["shards"] == places
    for place in places:
        Path(place).unlink()
    finished = scoring.Finished(tmp_path / "run", None, torch.device("cpu"), print)  # scores need no unlabeled image
    (stage,) = report.jobs[0].kept()
    score = finished.score(report.jobs[0], "test")[stage.net("raw")]
    assert score.accuracy == outcomes(report)[f"dst {stage.name}"][0]
    with pytest.raises(ConfigError, match="cannot be read; give files, or URLs"):
        fit(packed, tmp_path / "other", shards=("pipe:cat x.tar",))
