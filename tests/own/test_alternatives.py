"""Another method takes the default's place where folds of the labels clearly prefer it, and nowhere else."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import dmt
from dmt import files, run_files
from dmt.config import Config
from dmt.core.evidence import Evidence
from dmt.core.execution import Execution
from dmt.methods import catalogue
from dmt.own import fine_tuning, folds
from dmt.own.findings import Found
from dmt.own.fine_tuning import FineTuning
from dmt.own.folds import Folds
from dmt.own.search import Search
from dmt.runs.progress import Silent
from dmt.tasks.base import Task
from tests.data.folders import photo_layout
from tests.own.test_fine_tuning import SMALL, start_file, tuning_of
from tests.own.test_search import STARTS, config_of, evidence_of, task_of

RIGHT = {"baseline": 15, "dmt": 18, "fixmatch": 29}
"""Of 30 images, in the tests below."""


def searched(
    monkeypatch: pytest.MonkeyPatch, right: Mapping[str, int], tuned: int = 15, others: tuple[str, ...] = ("fixmatch",)
) -> Found:
    """What a search finds if methods get so many of 30 images right; ``tuned``: first nets all of which learn."""
    tuning = tuning_of(config_of())
    assert tuning is not None

    def tried(folds: Folds, config: Config, method: str, **how: Any) -> list[Evidence]:
        count = tuned if method == "baseline" and config.net.startswith("tuned:") else right[method]
        return [evidence_of([at < count for at in range(30)])] * (3 if method == "dmt" else 1)

    monkeypatch.setattr(folds, "tried", tried)
    execution = Execution(torch.device("cpu"))
    return Search(config_of(), task_of(1.0), STARTS, execution, ("baseline", "dmt"), tuning=tuning, others=others).run()


def test_a_clearly_better_method_is_trained_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    found = searched(monkeypatch, RIGHT)
    assert found.method == "fixmatch"
    assert found.config is not None
    assert found.config.net == "tuned:tf_efficientnet_lite0"
    assert found.record["method"] == "fixmatch"
    assert not {"gain", "rounds", "helps"} & set(found.record)  # of the method that is not trained
    assert found.lines[-1] == (
        "cross-validation (3 folds, 30 labels): FixMatch, fine-tuned, 96.7, DMT 60.0: training FixMatch, with a "
        "fine-tuned Baseline; --method dmt overrides this"
    )
    assert found.record["tried"][-1]["method"] == "fixmatch"
    assert not any("predicts" in line for line in found.lines)  # for DMT, which is not trained


def test_a_method_that_may_be_better_by_chance_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    found = searched(monkeypatch, RIGHT | {"fixmatch": 19})
    assert found.method is None
    assert found.config is None
    assert (
        found.lines[-1] == "cross-validation (3 folds, 30 labels): FixMatch, fine-tuned, 63.3, DMT 60.0: training DMT"
    )
    assert found.record["rounds"]


def test_it_has_to_beat_nets_all_of_which_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    found = searched(monkeypatch, RIGHT, tuned=28)
    assert found.method is None
    assert found.config is not None  # first nets all of which learn are clearly better than last layers
    assert "FixMatch, fine-tuned, 96.7, Baseline 93.3: training DMT" in found.lines[-1]


def test_it_is_compared_with_a_baseline_at_the_same_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rates of nets all of which learn are searched on other folds; a Baseline at that rate is asked again."""
    tuning = tuning_of(config_of())
    assert tuning is not None

    def tried(folds: Folds, config: Config, method: str, **how: Any) -> list[Evidence]:
        rate = config.recipe.rate / tuning.config.recipe.rate
        count = 10 if config.net.startswith("frozen:") else 22 if method == "fixmatch" else 20 if rate == 1 else 28
        return [evidence_of([at < count for at in range(30)])] * (3 if method == "dmt" else 1)

    monkeypatch.setattr(folds, "tried", tried)
    execution = Execution(torch.device("cpu"))
    found = Search(
        config_of(), task_of(1.0), STARTS, execution, ("baseline", "dmt"), tuning=tuning, others=("fixmatch",)
    ).run()
    assert found.settings["rate"] != tuning.config.recipe.rate
    assert found.method is None
    assert "FixMatch, fine-tuned, 73.3, Baseline 93.3: training DMT" in found.lines[-1]
    again, other = found.record["tried"][-2:]
    assert (again["method"], other["method"]) == ("baseline", "fixmatch")
    assert again["settings"] == other["settings"]
    assert other["settings"]["rate"] == found.settings["rate"]


def test_nothing_is_tried_where_methods_were_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = searched(monkeypatch, RIGHT, others=())
    assert found.method is None
    assert all(each["method"] != "fixmatch" for each in found.record["tried"])


def test_alternatives_are_facts_of_the_catalogue() -> None:
    assert [method.name for method in catalogue.alternatives("images")] == ["fixmatch"]
    assert catalogue.alternatives("pixels") == []


@pytest.mark.slow
def test_a_run_trains_and_resumes_with_the_method_that_folds_prefer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos = photo_layout.write_classes(tmp_path / "photos", labeled=8, unlabeled=12, test=1)
    usual, offered = fine_tuning.of, []

    def on_a_gpu(config: Config, task: Task, settings: Mapping[str, Any], large: bool) -> FineTuning | None:
        return usual(config, task, {key: value for key, value in settings.items() if key != "net"}, large=True)

    def prefers(self: Search) -> Found:
        offered.append(self.others)
        assert self.tuning is not None
        config = replace(self.tuning.config, net=f"tuned:{SMALL}", net_b=None)
        return Found(
            {"fixmatch.epochs": 1}, ("FixMatch it is",), {"chosen": {}, "method": "fixmatch"}, config, "fixmatch"
        )

    monkeypatch.setattr(fine_tuning, "of", on_a_gpu)
    monkeypatch.setattr(Search, "run", prefers)
    given: dict[str, Any] = {"net": f"frozen:{SMALL}", "size": 32, "epochs": 1, "epochs_round": 1, "fractions": "1"}
    start, settings = start_file(tmp_path / "start.safetensors"), given
    for _ in range(2):  # the second time it resumes, and trains nothing else
        report = dmt.fit(photos, out=tmp_path / "run", settings=settings, start=start, watcher=Silent())
        assert {job.method for job in report.jobs} == {"baseline", "fixmatch"}
        settings = {}
    assert offered == [["fixmatch"]]
    assert files.read_json(tmp_path / "run" / run_files.MANIFEST)["search"]["method"] == "fixmatch"
    # whoever names a method, or has little time, gets what was asked for
    monkeypatch.setattr(Search, "run", lambda self: Found() if not self.others else pytest.fail("others are tried"))
    dmt.fit(photos, out=tmp_path / "named", method="dmt", settings=given, start=start, watcher=Silent())
    dmt.fit(photos, out=tmp_path / "hurried", settings=given, start=start, budget=600.0, watcher=Silent())
