"""`batchnorm=reestimate`: the net that is saved, labels, scores and ships has the statistics of clean images."""

from pathlib import Path

import pytest
import torch

import dmt
from dmt import config, presets
from dmt.core import batchnorm, streams
from dmt.errors import ConfigError
from dmt.pseudo.image_store import ImageStore
from dmt.results import reading
from dmt.runs.folder import Folder
from dmt.tasks import classification, opening
from dmt.training import inference
from dmt.training.checkpoint import finished_net
from tests.conftest import TINY
from tests.fitting.test_run import StopAt, fit, nets

CPU = torch.device("cpu")
REESTIMATED = {"batchnorm": "reestimate", "fractions": "1", "epochs": 4}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reestimated")
    fit(out, TINY | REESTIMATED)
    return out


def test_labels_scores_and_use_see_the_same_statistics(run: Path) -> None:
    settings = Folder(run).manifest()["config"]
    chosen = config.override(presets.get("digits").config, {key: settings[key] for key in ("net", "batchnorm")})
    task, _ = opening.read(chosen.data, Path(), print, lambda done, of: None).split(1)
    (job,) = (job for job in reading.read(Folder(run)) if job.method == "dmt")
    spec = task.net_spec(chosen.net)
    for stage in job.stages:
        seed = streams.seed_of(1, stage.name)
        for copy in ("raw", "ema"):
            net = finished_net(stage.path, spec, "A", copy)
            saved = {name: value.clone() for name, value in net.state_dict().items()}
            batchnorm.reestimate(net, task.clean_images(seed, CPU))
            for name, value in net.state_dict().items():
                torch.testing.assert_close(value, saved[name])
            assert stage.outcome is not None
            score = inference.score(net, task, task.validation, CPU)
            assert stage.outcome["scores"]["validation"][copy]["accuracy"] == pytest.approx(score.accuracy)
    teacher = finished_net(job.stages[0].path, spec, "A", "raw")
    stored = ImageStore.load(job.stages[1].path).target
    said = inference.label([teacher], task, task.unlabeled, CPU)
    assert torch.equal(stored.labels, said.labels)
    torch.testing.assert_close(stored.confidence, said.confidence)


def test_parameters_are_those_of_a_plain_run(run: Path, tiny: dict[str, object], tmp_path: Path) -> None:
    fit(tmp_path, tiny | REESTIMATED | {"batchnorm": "running"}, "baseline")
    spec = opening.net_spec(presets.get("digits").config.data, str(tiny["net"]))
    first = (next((folder / "stages").glob("A0-*")) for folder in (tmp_path, run))
    plain, other = (finished_net(place, spec, "A", "raw").state_dict() for place in first)
    changed = {name for name in plain if not torch.equal(plain[name], other[name])}
    assert changed
    assert all(name.endswith(("running_mean", "running_var", "num_batches_tracked")) for name in changed)


def test_resumed_equals_unbroken(run: Path, tiny: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(dmt.DmtError):
        fit(tmp_path, tiny | REESTIMATED, watcher=StopAt(10))
    fit(tmp_path, tiny | REESTIMATED)
    assert nets(tmp_path) == nets(run)


def test_clean_images_are_drawn_from_all_classes_in_equal_batches() -> None:
    data = presets.get("digits").config.data
    task, _ = opening.read(data, Path(), print, lambda done, of: None).split(1)
    first, again = (list(task.clean_images(seed=3, device=CPU)) for _ in range(2))
    assert {len(batch) for batch in first} == {500}
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))
    assert not torch.equal(first[0], next(iter(task.clean_images(seed=4, device=CPU))))
    shown = {image.numpy().tobytes() for batch in first for image in batch}
    assert len(shown) == pytest.approx(500 * len(first), abs=5)  # none twice


def test_a_net_that_needs_several_images_is_refused_before_it_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Photos may be so large that each is a batch of its own; the run failed at the end of its first stage."""
    monkeypatch.setattr(classification, "VIEWED", 1)
    with pytest.raises(ConfigError, match=r"batchnorm=reestimate does not work for net 'mlp-8'.*more than 1 value"):
        fit(tmp_path, TINY | REESTIMATED | {"net": "mlp-8"})
    assert not (tmp_path / "stages").exists()
    fit(tmp_path, TINY | REESTIMATED, "baseline")  # its layers have many pixels


def test_pixels_are_refused() -> None:
    with pytest.raises(ConfigError, match="batchnorm must be running where pixels get labels"):
        config.override(presets.get("scenes").config, {"batchnorm": "reestimate"})
