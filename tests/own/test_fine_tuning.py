"""All of a net learns where folds of the labels clearly prefer that, and nowhere else."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import dmt
from dmt import config as configuration
from dmt import files, run_files
from dmt.config import Config
from dmt.core.execution import Execution
from dmt.data.images import augment
from dmt.data.sets import UnlabeledSet
from dmt.models.build import NetSpec, build
from dmt.own import fine_tuning
from dmt.own.findings import Found
from dmt.own.fine_tuning import FineTuning
from dmt.own.search import Search
from dmt.runs.progress import Silent
from dmt.tasks.base import Task
from dmt.tasks.classification import Classification
from dmt.tasks.features import FeatureTask
from dmt.types import Normalization
from tests.data.folders import photo_layout
from tests.own import test_search
from tests.own.test_search import STARTS, config_of, task_of

SMALL = "test_resnet"  # timm's own, for tests


def in_images() -> Classification:
    """The same images as `task_of` has, whose classes differ in color."""
    task = task_of(0.0)
    colors = torch.tensor([[200, 40, 40], [40, 200, 40], [40, 40, 200]], dtype=torch.uint8)

    def shown(labels: torch.Tensor) -> torch.Tensor:
        return colors[labels][:, :, None, None].expand(-1, -1, 32, 32).contiguous()

    known = {name: getattr(task, name) for name in ("labeled", "validation", "test")}
    sets = {name: replace(each, images=shown(each.labels)) for name, each in known.items()}
    pool = UnlabeledSet(task.unlabeled.ids, shown(torch.arange(len(task.unlabeled)) % 3))
    return Classification(
        task.classes, task.shape, task.normalization, augment.views("photo"), unlabeled=pool, **sets
    )  # fmt: skip


def tuning_of(config: Config, settings: Mapping[str, Any] | None = None) -> FineTuning | None:
    return fine_tuning.of(config, in_images(), settings or {}, large=True)


def test_the_same_encoders_learn_as_fine_tuning_wants() -> None:
    found = tuning_of(replace(config_of(), net_b="frozen:tf_efficientnet_lite2"), {"gamma": 7.0})
    assert found is not None
    config = found.config
    assert (config.net, config.net_b) == ("tuned:tf_efficientnet_lite0", "tuned:tf_efficientnet_lite2")
    assert config.recipe.share is None  # they see differently
    assert config.recipe.head_first > 0
    assert config.recipe.gamma == 7.0  # what the user set stays
    assert configuration.flat(config)["augment"] == "photo"
    assert not config.stores_features("A")


@pytest.mark.parametrize("settings", [{"net": "frozen:resnet18"}, {"stored_views": 4}, {"net_b": "none"}])
def test_who_names_what_learns_gets_that(settings: dict[str, Any]) -> None:
    assert tuning_of(config_of(), settings) is None


def test_there_must_be_last_layers_and_a_gpu() -> None:
    assert tuning_of(replace(config_of(), net="resnet8-4")) is None
    assert fine_tuning.of(config_of(), in_images(), {}, large=False) is None


@pytest.mark.parametrize(("noise", "prefers"), [(200.0, True), (0.1, False)])
def test_folds_decide(noise: float, prefers: bool) -> None:
    recipe = {"epochs": 8, "epochs_round": 1, "rate": 0.01, "batch": 16, "encoder": 1.0}
    tuning = tuning_of(config_of(), recipe)
    assert tuning is not None
    tuning = replace(tuning, config=replace(tuning.config, net=f"tuned:{SMALL}"))
    task = task_of(noise)
    found = Search(
        config_of(epochs=2), task, STARTS, Execution(torch.device("cpu")), ("baseline",), tuning=tuning
    ).run()
    told = next(line for line in found.lines if "all layers" in line)
    if prefers:
        assert found.config is not None
        assert found.config.net == f"tuned:{SMALL}"
        assert "fine-tuning all layers: all layers " in told
        assert found.record["chosen"]["net"] == f"tuned:{SMALL}"
        assert any("rate=" in line for line in found.lines)
        # rates of last layers, then all of the nets, then their rates
        assert len(found.record["tried"]) >= 6
    else:
        assert found.config is None
        assert "training last layers only: all layers " in told
    assert {"net": f"tuned:{SMALL}"} in [each["settings"] for each in found.record["tried"]]


def test_no_time_for_all_of_the_nets(monkeypatch: pytest.MonkeyPatch) -> None:
    tuning = tuning_of(config_of())
    assert tuning is not None
    tuning = replace(tuning, config=replace(tuning.config, net=f"tuned:{SMALL}"))
    clock, batches = [0.0], Classification.batches

    def late(self: Classification, *given: Any) -> Any:
        clock[0] = 0.0 if isinstance(self, FeatureTask) else 60.0
        return batches(self, *given)

    monkeypatch.setattr("dmt.own.search.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(Classification, "batches", late)
    found = Search(
        config_of(epochs=2), task_of(6.0), STARTS, Execution(torch.device("cpu")), ("baseline",),
        patience=30.0, tuning=tuning,
    ).run()  # fmt: skip
    assert found.config is None
    assert any("no time to try fine-tuning" in line for line in found.lines)
    assert any("rate=" in line for line in found.lines)  # what was found before counts


def start_file(path: Path) -> str:
    """Parameters for `SMALL`, as if published."""
    spec = NetSpec(f"timm:{SMALL}", 5, (3, 32, 32), Normalization((0.5,) * 3, (0.5,) * 3))
    files.write_tensors(path, build(spec, seed=3).body.state_dict())
    return str(path)


def test_a_run_trains_what_folds_prefer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = start_file(tmp_path / "start.safetensors")
    photos = photo_layout.write_classes(tmp_path / "photos", labeled=8, unlabeled=12, test=1)
    usual = fine_tuning.of

    def on_a_gpu(config: Config, task: Task, settings: Mapping[str, Any], large: bool) -> FineTuning | None:
        return usual(config, task, {key: value for key, value in settings.items() if key != "net"}, large=True)

    def prefers(self: Search) -> Found:
        assert self.tuning is not None
        assert self.tuning.task.labeled.images.dim() == 4
        assert self.task.labeled.images.dim() == 3
        return Found({"rate": 0.0123}, ("all of the nets",), {"chosen": {}}, self.tuning.config)

    monkeypatch.setattr(fine_tuning, "of", on_a_gpu)
    monkeypatch.setattr(Search, "run", prefers)
    settings = {
        "net": f"frozen:{SMALL}", "size": 32, "epochs": 1, "epochs_round": 1, "fractions": "1", "share": "none",
    }  # fmt: skip
    for _ in range(2):  # the second time it resumes
        dmt.fit(photos, out=tmp_path / "run", settings=settings, start=start, watcher=test_search.Heard())
        monkeypatch.setattr(Search, "run", None)
        settings = {}
    config = files.read_json(tmp_path / "run" / run_files.MANIFEST)["config"]
    assert (config["net"], config["rate"], config["stored_views"]) == (f"tuned:{SMALL}", 0.0123, 0)
    nets = sorted((tmp_path / "run").glob("stages/*/step-*/*-raw.safetensors"))
    kernels = [files.read_tensors(net)["body.encoder.layer4.0.conv1.weight"] for net in nets]
    assert len(kernels) == 4
    assert not torch.equal(kernels[0], kernels[1])
    report = dmt.Report.read([tmp_path / "run"])
    assert {job.method for job in report.jobs} == {"baseline", "dmt"}
    dmt.fit(photos, out=tmp_path / "run", start=start, watcher=Silent())
