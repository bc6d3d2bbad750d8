"""Tuning as a user meets it: what is trained and what is shared, what is chosen and what is left to chance."""

import re
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dmt
from dmt import config as configuration
from dmt import files, presets
from dmt.cli import app
from dmt.core.evidence import Evidence
from dmt.errors import ConfigError, RunError
from dmt.fitting import run
from dmt.runs import environment, sharing
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent
from dmt.runs.stopping import Stopped
from dmt.training.journal import Journal
from dmt.tuning import search_space, tuner
from dmt.tuning.outcome import Tuning
from dmt.tuning.trial_folder import Frame
from tests.conftest import TINY
from tests.data.folders import photo_layout

BRIEF = TINY | {"epochs": 4, "epochs_round": 1, "fractions": "1"}


class Watch(Silent):
    """Keeps the titles of stages that are trained, and the notes."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.notes: list[str] = []

    def stage(self, title: str, steps: int, done: int, work: float) -> None:
        self.stages.append(title)

    def note(self, text: str) -> None:
        self.notes.append(text)


def tune(out: Path, *, data: str | Path = "digits", **options: Any) -> tuple[Tuning, Watch]:
    watch = Watch()
    options = {"settings": BRIEF, "device": "cpu", "grid": {"gamma": [1.0]}} | options
    return dmt.tune(data, out=out, watcher=watch, **options), watch


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Tuning, Watch]:
    """γ of 4, which is the default, and of 1."""
    out = tmp_path_factory.mktemp("tune") / "t"
    return out, *tune(out, grid={"gamma": "4,1"})


def test_the_baseline_is_trained_once(tuned: tuple[Path, Tuning, Watch]) -> None:
    out, tuning, watch = tuned
    assert [(trial.name, trial.trained, trial.shared) for trial in tuning.trials] == [
        ("default", 2, 0),
        ("gamma=1", 1, 1),
    ]
    assert [title.rpartition("DMT ")[2] for title in watch.stages] == ["A0, seed 1", "A1, seed 1", "A1, seed 1"]
    first, second = (next((out / "trials" / name / "stages").glob("A0-*")) for name in ("default", "gamma=1"))
    assert first.name == second.name
    assert (first / "journal.jsonl").read_bytes() == (second / "journal.jsonl").read_bytes()
    nets = [next(place.glob("step-*/*-raw.safetensors")) for place in (first, second)]
    assert nets[0].stat().st_ino == nets[1].stat().st_ino  # linked: it takes no room
    assert tuning.trials[1].saved > 0


def test_what_may_be_written_to_is_not_linked(tuned: tuple[Path, Tuning, Watch]) -> None:
    out, _, _ = tuned
    journals = {path.stat().st_ino for path in out.glob("trials/*/stages/A0-*/journal.jsonl")}
    assert len(journals) == 2


def test_trials_are_runs_like_any_other(tuned: tuple[Path, Tuning, Watch]) -> None:
    out, tuning, _ = tuned
    report = dmt.Report.read([out / "trials" / "default", out / "trials" / "gamma=1"])
    shipped = [job.preferred()[0].outcome["scores"]["validation"] for job in report.jobs]  # type: ignore[index]
    assert [max(copy["fine_grained"] for copy in each.values()) for each in shipped] == pytest.approx(
        [trial.score for trial in tuning.trials], abs=1e-4
    )


def test_no_test_score_is_told(tuned: tuple[Path, Tuning, Watch]) -> None:
    out, tuning, watch = tuned
    texts = [*watch.notes, str(tuning), (out / "tune.json").read_text()]
    assert any("validation" in each for each in texts)
    assert not any(re.search(r"\btest\b", each) for each in texts)


def test_the_result_is_in_words_a_table_and_a_command(tuned: tuple[Path, Tuning, Watch]) -> None:
    _, tuning, _ = tuned
    text = str(tuning)
    assert "fine-grained accuracy on 200 validation images" in text
    assert "default: gamma=4" in text
    assert "--set net=resnet8-4" in tuning.line
    assert "with one seed, the intervals do not include randomness in training" in text
    assert "1 shared between trials" in text
    assert repr(tuning) == f"<Tuning of 2 trials on 200 validation images: use {tuning.chosen.name}>"
    accuracies = [f"{value:.2f}" for value in tuning.verdict.accuracies]
    rows = [line for line in tuning.table().splitlines() if "gamma=" in line]
    assert [line.split("│")[3].strip() for line in rows] == accuracies


def test_the_command_goes_on_without_training_anything(tuned: tuple[Path, Tuning, Watch]) -> None:
    out, tuning, _ = tuned
    words = [word for key, value in BRIEF.items() for word in ("--set", f"{key}={value}")]
    done = CliRunner().invoke(app.app, ["tune", "digits", "--out", str(out), "--grid", "gamma=1", *words])
    assert done.exit_code == 0, done.output
    assert tuning.table() in done.stdout
    assert f"the chosen run is in {tuning.chosen.folder}" in done.stdout


def test_a_broken_default_is_mended(tmp_path: Path) -> None:
    broken = TINY | {"rate_round": 1e-6, "fractions": "1", "epochs_round": 2}
    tuning, _ = tune(tmp_path / "t", settings=broken, grid={"rate_round": [1e-6, 2e-6, 0.1]})
    assert tuning.chosen.name == "rate_round=0.1"
    assert tuning.settings == broken | {"rate_round": 0.1}
    assert files.read_json(tmp_path / "t" / "tune.json")["settings"] == tuning.settings
    same: dict[str, Any] = {"settings": tuning.settings, "device": "cpu", "donors": [tuning.chosen.folder]}
    again = Watch()
    run.fit("digits", out=tmp_path / "fit", watcher=again, **same)
    assert again.stages == []  # the chosen trial has trained them all
    assert "--set rate_round=0.1" in tuning.line
    assert "1e-06" not in tuning.line
    assert "rate_round=0.1 is clearly better than the default" in str(tuning)
    assert files.read_json(tmp_path / "t" / "tune.json")["chosen"] == "rate_round=0.1"


@pytest.mark.parametrize(
    ("settings", "grid"),
    [
        ({}, {"mixup": "none"}),
        ({}, {"mixup": "0.5,none"}),
        ({"mixup": "none"}, {"mixup": "0.2..0.8"}),
        ({}, {"mixup_round": "none"}),
    ],
)
def test_mixup_is_not_compared_with_none(settings: dict[str, str], grid: dict[str, str], tmp_path: Path) -> None:
    search: dict[str, Any] = {"search": "optuna", "trials": 2} if ".." in grid.get("mixup", "") else {}
    with pytest.raises(ConfigError, match="with and without mixup cannot be compared"):
        tune(tmp_path / "t", settings=BRIEF | settings, grid=grid, **search)
    assert not (tmp_path / "t").exists()
    search_space.require_sense({"mixup": (0.5,)}, presets.get("digits").config, "dmt")  # two numbers may
    search_space.require_sense({"mixup": (0.5,)}, presets.get("scenes").config, "dmt")  # mean IoU is not fine-grained


def test_a_stopped_tuning_goes_on_and_ends_as_an_unbroken_one(
    tuned: tuple[Path, Tuning, Watch], tmp_path: Path
) -> None:
    with pytest.raises(Stopped, match="repeat the command to resume") as stopped:
        tune(tmp_path / "t", budget=1e-9)
    assert stopped.value.code == 3
    with pytest.raises(Stopped):
        tune(tmp_path / "t", budget=0.3)
    tuning, _ = tune(tmp_path / "t")
    assert [trial.score for trial in tuning.trials] == [trial.score for trial in tuned[1].trials]
    again, watch = tune(tmp_path / "t")
    assert watch.stages == []
    assert str(again) == str(tuning)


def test_seeds_and_values_may_be_added(tmp_path: Path) -> None:
    tune(tmp_path / "t")
    tuning, watch = tune(tmp_path / "t", seed=[1, 2], grid={"gamma": [1.0, 2.0]})
    assert len(watch.stages) == (2 + 1) + 2  # seed 2 of what was there, both seeds of what is new
    assert tuning.seeds == 2
    assert [trial.shared for trial in tuning.trials] == [0, 2, 2]


@pytest.mark.slow
def test_trials_at_once_give_the_same(tmp_path: Path) -> None:
    """The default first, then two others by two processes, one of which diverges."""
    grid = {"rate_round": [1e30, 0.05]}
    (alone, _), (at_once, watch) = tune(tmp_path / "1", grid=grid), tune(tmp_path / "2", grid=grid, jobs=2)
    assert [(trial.name, trial.score, trial.failed, trial.shared) for trial in at_once.trials] == [
        (trial.name, trial.score, trial.failed, trial.shared) for trial in alone.trials
    ]
    assert at_once.chosen.name == alone.chosen.name
    assert not [note for note in watch.notes if "test" in note]
    sessions = [Journal(out / "sessions.jsonl") for out in sorted((tmp_path / "2").glob("trials/*"))]
    assert {tuple(line["command"]) for session in sessions for line in session.read()} == {tuple(environment.command())}
    assert {title.partition(": ")[0] for title in watch.stages[2:]} == {"rate_round=1e+30", "rate_round=0.05"}


def test_a_trial_that_diverges_does_not_end_the_others(tmp_path: Path) -> None:
    grid = {"rate_round": [1e30, 0.05]}
    tuning, _ = tune(tmp_path / "t", grid=grid)
    assert [trial.failed is None for trial in tuning.trials] == [True, False, True]
    assert "failed" in tuning.table()
    _, watch = tune(tmp_path / "t", grid=grid)
    assert watch.stages == []
    mended, _ = tune(tmp_path / "u", settings=BRIEF | {"rate_round": 1e30}, grid={"rate_round": [0.05]})
    assert mended.chosen.name == "rate_round=0.05"
    assert "the default could not be trained" in str(mended)


def test_optuna_draws_and_repeats_itself(tmp_path: Path) -> None:
    options: dict[str, Any] = {"search": "optuna", "grid": {"rate_round": "0.01..0.3", "gamma": "1,4"}}
    first, _ = tune(tmp_path / "t", trials=1, **options)
    tuning, watch = tune(tmp_path / "t", trials=3, **options)
    assert tuning.trials[: len(first.trials)] == first.trials
    assert len(tuning.trials) == 4
    assert len(watch.stages) == 2
    assert all(0.01 <= trial.values["rate_round"] <= 0.3 for trial in tuning.trials)


def test_optuna_is_asked_for_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ConfigError, match=r"pip install 'dmt-vision\[tune\]'"):
        tune(tmp_path / "t", search="optuna", trials=2)
    assert not (tmp_path / "t").exists()


def test_own_images_are_tuned(tmp_path: Path) -> None:
    folder = photo_layout.write_classes(tmp_path / "photos", 10, 20, 0)
    settings = {"net": "resnet8-4", "size": 32, "epochs": 1, "epochs_round": 1, "fractions": "1"}
    tuning, watch = tune(tmp_path / "t", data=folder, settings=settings, budget=600.0)
    assert tuning.default.values == {"gamma": 2.0}
    assert tuning.images == 6
    assert any("task: image classification" in note for note in watch.notes)
    assert [trial.shared for trial in tuning.trials] == [0, 2]  # a pair has two first nets
    assert tuning.line.startswith(f"dmt fit {folder} --out {tmp_path / 't'}-fit --no-folds --device cpu --set")
    done = CliRunner().invoke(app.app, shlex.split(tuning.line)[1:])
    assert done.exit_code == 0, done.output
    trained, again = (
        {place.name for place in (each / "stages").iterdir()} for each in (tuning.chosen.folder, tmp_path / "t-fit")
    )
    assert trained == again  # the same stages, though cross-validation would choose other settings


def test_the_command_names_all_that_the_trials_had_in_common(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    preset = Frame("digits", Path("t"), "cl", (1,), {}, {"A": "random"}, "kept", "auto")
    assert shlex.join(preset.command()) == "dmt fit digits --out t-fit --method cl --start A=random --data kept"
    own = Frame(Path("digits"), Path("t"), "dmt", (1, 3), {}, {}, "data", "cuda:1", anyway=True)
    assert shlex.join(own.command()) == ("dmt fit ./digits --out t-fit --no-folds --seeds 1,3 --anyway --device cuda:1")
    assert (configuration.shown(0.1), configuration.shown(0.123456789)) == ("0.1", "0.123456789")


def test_the_papers_grids_are_the_default() -> None:
    grids = {name: search_space.default(presets.get(name).config)["gamma"] for name in presets.PRESETS}
    assert grids["cifar10-4k"] == grids["cityscapes-1of8"] == (3, 4, 5, 6)
    assert grids["voc-1of20"] == grids["scenes"] == (1, 3, 5, 7, 9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"grid": {"gama": "1"}}, "did you mean 'gamma'"),
        ({"grid": {"shape": "chain,pair"}}, "unknown option to tune 'shape'"),
        ({"grid": {"gamma": "1,x"}}, "gamma must be a number"),
        ({"grid": {"gamma": "-1"}}, "gamma must be at least 0"),
        ({"grid": {"gamma": 1}}, "a grid takes several values of gamma"),
        ({"grid": [("gamma", [1])]}, "a grid is lists of values by option"),
        ({"grid": {"gamma": "4"}}, "changes nothing that dmt trains"),
        ({"method": "cl"}, "gamma=1 changes nothing that cl trains"),
        ({"grid": {"gamma": "1..3"}}, "a grid needs the values"),
        ({"grid": {"fractions": "0.1..1"}, "search": "optuna", "trials": 1}, "separate its choices"),
        ({"trials": 3}, "trials is for search=optuna"),
        ({"search": "optuna"}, "needs the number of trials"),
        ({"search": "optuna", "trials": "20"}, "needs the number of trials"),
        ({"grid": {"gamma": []}}, "a grid takes several values of gamma"),
        ({"method": ["dmt"]}, "one method is tuned at a time"),
        ({"search": "random"}, "search takes grid or optuna"),
        ({"method": "oracle"}, "it cannot be tuned"),
        ({"settings": {"validation": 0}}, "no validation images to compare"),
    ],
)
def test_what_means_nothing_is_refused_in_one_line(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words) as error:
        tune(tmp_path / "t", **options)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "t").exists()


def test_choices_that_are_lists_are_separated_by_a_slash() -> None:
    given = search_space.from_pairs(["fractions=0.2, 0.6,1/0.5,1", "fractions=1", "gamma=1", "gamma=3"])
    assert search_space.parse(given) == {"fractions": ((0.2, 0.6, 1.0), (0.5, 1.0), (1.0,)), "gamma": (1.0, 3.0)}
    assert search_space.parse({"gamma": np.array([1, 3])}) == {"gamma": (1.0, 3.0)}
    assert len(list(search_space.grid(search_space.parse(given)))) == 6
    given = search_space.from_pairs(["gamma=1,2/3", "gamma=5,6", "epochs_round=1,2", "mixup_round=0.5,none/none/same"])
    assert search_space.parse(given) == {
        "gamma": ((1.0, 2.0), 3.0, 5.0, 6.0), "epochs_round": (1, 2), "mixup_round": ((0.5, None), None, "same"),
    }  # fmt: skip
    assert search_space.parse({"gamma": [[1, 2], 3]}) == {"gamma": ((1.0, 2.0), 3.0)}
    assert search_space.name({"gamma": (1.0, 2.0)}) == "gamma=1,2"
    with pytest.raises(ConfigError, match="--grid takes option=value"):
        search_space.from_pairs(["gamma"])


def test_a_folder_holds_one_tuning(tuned: tuple[Path, Tuning, Watch], tmp_path: Path) -> None:
    out, _, _ = tuned
    with pytest.raises(RunError, match=r"was tuned with rate=0\.1, not rate=0\.2"):
        tune(out, settings=BRIEF | {"rate": 0.2})
    with pytest.raises(RunError, match="was tuned with method dmt, not dst"):
        tune(out, method="dst")
    with pytest.raises(RunError, match="is the folder of a run"):
        tune(out / "trials" / "default")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match="contains other files"):
        tune(tmp_path)


def test_nothing_is_written_while_another_process_is_there(tmp_path: Path) -> None:
    place = tmp_path / "t"
    place.mkdir()
    with Folder(place).locked(), pytest.raises(RunError, match="in use by another process"):
        tune(place)
    assert [path.name for path in place.iterdir() if not path.name.startswith(".")] == []


def test_validation_without_a_label_is_refused(tuned: tuple[Path, Tuning, Watch], tmp_path: Path) -> None:
    out = tmp_path / "t"
    shutil.copytree(tuned[0], out)
    blank = np.zeros(0, np.int32)
    for path in out.glob("trials/*/stages/*/evidence-validation-*.npz"):
        head = Evidence.of(np.load(path))
        arrays: dict[str, Any] = replace(head, image=blank, truth=blank, said=blank, count=blank).arrays()
        np.savez(path, **arrays)
    for path in out.glob("trials/*/stages/*/journal.jsonl"):  # runs of before vouch for no evidence
        path.write_text(re.sub(r', "(evidence|crc32)": "[0-9a-f]+"', "", path.read_text()))
    with pytest.raises(RunError, match="no validation image has a labeled pixel"):
        tune(out)


def test_a_trial_that_was_killed_before_its_pair_was_measured_is_judged_by_both_nets(tmp_path: Path) -> None:
    settings = BRIEF | {"shape": "pair", "share": 0.8}
    before, _ = tune(tmp_path, settings=settings)
    for place in tmp_path.glob("trials/gamma=1/pairs/*"):
        shutil.rmtree(place)
    again, watch = tune(tmp_path, settings=settings)
    assert watch.stages == []
    assert [trial.score for trial in again.trials] == [trial.score for trial in before.trials]
    assert list(tmp_path.glob("trials/gamma=1/pairs/*/scores.json"))


def test_a_tuning_that_another_process_begins_meanwhile_is_known_as_one(
    tuned: tuple[Path, Tuning, Watch], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes its index after the other one looked for it, and before that one looks at what else is there."""
    real, out = Folder.require_ours, tmp_path / "t"

    def late(self: Folder) -> None:
        if self.path == out and not out.exists():
            shutil.copytree(tuned[0], out)
        real(self)

    monkeypatch.setattr(Folder, "require_ours", late)
    again, watch = tune(out, grid={"gamma": "4,1"})
    assert watch.stages == []
    assert [trial.score for trial in again.trials] == [trial.score for trial in tuned[1].trials]


def test_only_finished_stages_are_taken(tuned: tuple[Path, Tuning, Watch], tmp_path: Path) -> None:
    out, _, _ = tuned
    donor = Folder(out / "trials" / "default")
    places = [stage["place"] for stage in donor.jobs()[0].stages]
    half = Folder(tmp_path / "half")
    assert sharing.take(half, places[:1], [donor.path]) == places[:1]
    (half.stage(places[0]) / "journal.jsonl").write_text("")  # trained, but not scored
    (half.path / "stages" / ".taking-left").mkdir()
    new = Folder(tmp_path / "new")
    assert sharing.take(new, places, [half.path]) == []
    assert sharing.take(half, places, [donor.path]) == places[1:]  # what began here goes on here
    assert not list(half.path.rglob(".taking-*"))


def test_fit_takes_what_another_run_has(tuned: tuple[Path, Tuning, Watch], tmp_path: Path) -> None:
    out, _, _ = tuned
    watch = Watch()
    options: dict[str, Any] = {"settings": BRIEF, "device": "cpu", "watcher": watch}
    run.fit("digits", out=tmp_path / "r", method="baseline", donors=[str(out / "trials" / "default")], **options)
    assert watch.stages == []
    with pytest.raises(ConfigError, match="donors: there is no run in"):
        run.fit("digits", out=tmp_path / "s", method="baseline", donors=[out], **options)
    assert not (tmp_path / "s").exists()


def test_labels_of_a_folder_are_held_out_to_judge_by(tmp_path: Path) -> None:
    photos = photo_layout.write_classes(tmp_path, labeled=10, unlabeled=4, test=1)
    settings, config, notes = tuner._default(photos, {}, {}, "cpu")
    assert settings == {"validation": 2}
    assert config.data.validation == 2
    (line,) = [note for note in notes if note.startswith("validation=")]
    assert line == "validation=2 per class (6): held out from the labels to compare settings on"
    (warning,) = [note for note in notes if note.startswith("warning: ")]
    assert "6 validation images are too few to choose by, so the default will be kept" in warning
    assert f"put 30 or more into {photos / 'val'}" in warning
    asked, config, _ = tuner._default(photos, {"validation": 1}, {}, "cpu")
    assert asked == {"validation": 1}
    assert config.data.validation == 1
