"""Labels by the mean of the nets of several rounds (`teachers`)."""

from dataclasses import replace
from pathlib import Path

import torch

import dmt
from dmt import config as configuration
from dmt import presets
from dmt.methods import catalogue
from dmt.methods.plan import Plan
from dmt.methods.recipe import Recipe
from dmt.pseudo.image_store import ImageStore
from dmt.results import reading
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent
from dmt.tasks import opening
from dmt.training import inference
from dmt.training.checkpoint import finished_net
from tests.conftest import TINY

CPU = torch.device("cpu")


def teachers(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {stage.name: stage.labels.teachers for stage in plan.stages if stage.labels is not None}


def test_earlier_rounds_label_too_and_baselines_only_where_there_is_nothing_else() -> None:
    recipe = Recipe(fractions=(0.3, 0.6, 1.0, 1.0), teachers=3)
    assert teachers(catalogue.plan("dmt", recipe)) == {
        "A1": ("A0",), "A2": ("A1",), "A3": ("A2", "A1"), "A4": ("A3", "A2", "A1"),
    }  # fmt: skip
    online = replace(recipe, online_stage="fixmatch", teachers=(1, 2, 1, 2))
    assert teachers(catalogue.plan("cl", online)) == {
        "A2": ("A1",), "A3": ("A2", "A1"), "A4": ("A3",), "A5": ("A4", "A3"),
    }  # fmt: skip


def test_the_other_line_of_a_pair_labels() -> None:
    recipe = replace(presets.get("scenes").config.recipe, fractions=(0.3, 0.6, 1.0), teachers=2)
    plan = catalogue.plan("dmt", recipe)
    assert teachers(plan) == {
        "A1": ("B0",), "B1": ("A0",), "A2": ("B1",), "B2": ("A1",), "A3": ("B2", "B1"), "B3": ("A2", "A1"),
    }  # fmt: skip
    assert set(plan["A3"].parents) == {"A2", "B2", "B1"}
    assert plan["A3"].labels.passes == 2 * plan["A2"].labels.passes  # type: ignore[union-attr]


def test_labels_are_the_mean_over_the_nets(tmp_path: Path) -> None:
    settings = TINY | {"fractions": "1,1,1", "teachers": "1,1,2", "labeler": "mean"}
    dmt.fit("digits", baseline=False, out=tmp_path, settings=settings, watcher=Silent())
    folder = Folder(tmp_path)
    (job,) = reading.read(folder)
    places = {stage.name: folder.stage(stage.place) for stage in job.stages}
    store = ImageStore.load(places["A3"])
    assert (store.provenance["by"], store.provenance["also"]) == ("A2", ["A1"])
    config = configuration.override(presets.get("digits").config, settings)
    task, _ = opening.read(config.data, tmp_path, print, lambda done, of: None).split(1)
    spec = task.net_spec("resnet8-4")
    nets = [finished_net(places[name], spec, "A", copy) for name in ("A2", "A1") for copy in ("raw", "ema")]
    expected = torch.cat(
        [torch.stack([inference.forward(net.eval(), task, view).softmax(1) for net in nets]).mean(0)
         for view in task.views(task.unlabeled, CPU)]
    )  # fmt: skip
    confidence, labels = expected.max(1)
    assert torch.equal(store.target.labels, labels)
    torch.testing.assert_close(store.target.confidence, confidence)
    alone, _ = torch.cat(
        [inference.forward(nets[0], task, view).softmax(1) for view in task.views(task.unlabeled, CPU)]
    ).max(1)
    assert not torch.allclose(store.target.confidence, alone)
