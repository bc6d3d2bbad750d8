"""A user's images: from a folder to nets, reports, predictions and exports; of images and of pixels."""

import csv
import functools
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from dmt import files
from dmt.cli import app
from dmt.config import Config
from dmt.data.folders import photo_files
from dmt.errors import ConfigError, DataError, RunError
from dmt.fitting import folder_policy, run
from dmt.own import choosing, rehearsal
from dmt.own.known_nets import Asked
from dmt.results.report import Report
from dmt.runs import starting
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent
from dmt.runs.stopping import Stopped
from dmt.use import exporting, scoring
from tests import command
from tests.conftest import TINY
from tests.data.folders import photo_layout

CPU = torch.device("cpu")
BRIEF: dict[str, Any] = {"epochs": 1, "epochs_round": 1, "fractions": "1", "batch_pseudo": 12, "batch_labeled": 4}
SMALL: dict[str, dict[str, Any]] = {
    "images": {"net": "resnet8-4", "size": 32},
    "pixels": {"net": "fcn-4", "crop": "32,32"},
}
TASKS = ("images", "pixels")


class Notes(Silent):
    """Keeps what is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)

    def __contains__(self, words: str) -> bool:
        return any(words in line for line in self.lines)


def write(task: str, root: Path, labeled: int = 5, unlabeled: int = 40, test: int = 2) -> Path:
    """So many labels a class, or twice as many masks."""
    if task == "images":
        return photo_layout.write_classes(root, labeled, unlabeled, test)
    photo_layout.write_masks(root, 2 * labeled, unlabeled, test)
    photo_layout.write_names(root / "classes.txt")
    return root


def fit(task: str, folder: Path, out: Path, **options: Any) -> tuple[Report, Notes]:
    notes = Notes()
    settings = {**BRIEF, **SMALL[task], **options.pop("settings", {})}
    return run.fit(folder, out=out, settings=settings, watcher=notes, device="cpu", **options), notes


def trained(out: Path) -> dict[str, int]:
    """When the files of the stages were written."""
    return {str(path.relative_to(out)): path.stat().st_mtime_ns for path in out.glob("stages/**/*") if path.is_file()}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("photos")
    return {task: write(task, root / task) for task in TASKS}


@pytest.fixture(scope="module")
def runs(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A finished run of each task."""
    root = tmp_path_factory.mktemp("runs")
    for task in TASKS:
        fit(task, folders[task], root / task)
    return {task: root / task for task in TASKS}


@pytest.fixture
def dmt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The command in this process; returns what it printed if all went well."""

    def command(*words: object) -> str:
        monkeypatch.setattr(sys, "argv", ["dmt", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            app.main()
        said = capsys.readouterr()
        assert not ended.value.code, said.err
        return said.out

    return command


# --- fit ---


@pytest.mark.parametrize("task", TASKS)
def test_a_folder_becomes_a_run(task: str, runs: dict[str, Path]) -> None:
    report = Report.read([runs[task]])
    assert [job.method for job in report.jobs] == ["baseline", "dmt"]
    assert all(job.finished for job in report.jobs)
    text = str(report)
    assert "Baseline" in text
    assert "DMT" in text
    assert "Without test images" not in text
    assert all(0 <= job.test_score("shipped") <= 100 for job in report.jobs)
    split = files.read_json(runs[task] / "splits/seed-1.json")
    assert {part: len(ids) for part, ids in split.items()} == {
        "labeled": 15 if task == "images" else 10, "unlabeled": 40, "validation": 0,
    }  # fmt: skip


def test_a_run_of_a_folder_is_named_after_it(
    folders: dict[str, Path], dmt: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "linked").symlink_to(folders["images"])
    words = [word for key, value in (BRIEF | SMALL["images"]).items() for word in ("--set", f"{key}={value}")]
    printed = dmt("fit", "linked/", *words, "--no-folds", "--method", "baseline")
    assert "everything is in runs/linked; for charts: dmt report runs/linked --out report.html" in printed
    assert "to use it on new images: dmt predict runs/linked IMAGES/" in printed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["linked", "runs"]
    assert "gain" not in printed  # a Baseline has none
    assert "label error" not in printed  # nobody knows the truth of a user's unlabeled images
    assert "EMA" in printed


def test_a_run_of_several_methods_says_which_predicts(
    runs: dict[str, Path], folders: dict[str, Path], tmp_path: Path
) -> None:
    both = {job.method: job for job in Report.read([runs["images"]]).jobs}
    assert scoring.of_several(runs["images"], both["dmt"]) is None  # one method, and its Baseline
    note = scoring.of_several(runs["images"], both["baseline"])  # as if validation preferred it
    assert note is not None
    assert note.startswith("Baseline is used, not DMT: ")
    assert note.endswith("; --method dmt uses the other")
    again = Path(shutil.copytree(runs["images"], tmp_path / "run"))
    fit("images", folders["images"], again, method="cl")
    note = scoring.shipped_net(again, None, None, CPU).note
    assert note is not None
    used, other = ("CL", "DMT") if note.startswith("CL is used") else ("DMT", "CL")
    assert note.startswith(f"{used} is used, not {other}: ")
    assert f"--method {other.lower()} uses the other" in note
    assert scoring.shipped_net(again, "dmt", None, CPU).note is None
    fit("images", folders["images"], again, method="dst")
    note = scoring.shipped_net(again, None, None, CPU).note
    assert note is not None
    one, two = (name for name in ("DMT", "CL", "DST") if not note.startswith(name))
    assert f" is used, not {one} or {two}: " in note
    assert f"--method {one.lower()} or {two.lower()} uses another" in note


def test_an_unfinished_run_says_what_predicts(
    runs: dict[str, Path], folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = Path(shutil.copytree(runs["images"], tmp_path / "run"))
    with pytest.raises(Stopped):
        fit("images", folders["images"], again, method="cl", budget=0.0)
    note = scoring.shipped_net(again, None, None, CPU).note
    assert note is not None
    assert "CL with seed 1 is not finished (repeat the fit command to finish); DMT is used" in note
    assert "not finished" not in (scoring.shipped_net(again, "dmt", None, CPU).note or "")


@pytest.mark.parametrize("key", ["net", "net_b"])
def test_a_net_that_does_not_exist_is_refused_before_choices_are_told(
    key: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    notes = Notes()
    with pytest.raises(ConfigError, match="unknown net 'resnet999'"):
        run.fit(folders["images"], out=tmp_path / "r", settings={key: "resnet999"}, watcher=notes, device="cpu")
    assert notes.lines == []
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("task", TASKS)
def test_choices_are_told(task: str, folders: dict[str, Path], tmp_path: Path) -> None:
    _, notes = fit(task, folders[task], tmp_path / "run", method="baseline")
    for line in choosing.choose(folders[task], CPU, Asked(SMALL[task]["net"])).lines:
        assert line in notes.lines


@pytest.mark.parametrize("task", TASKS)
def test_repeating_trains_nothing_also_where_a_run_was_moved(
    task: str, runs: dict[str, Path], folders: dict[str, Path], tmp_path: Path
) -> None:
    moved, photos = tmp_path / "moved", tmp_path / "photos"
    shutil.copytree(runs[task], moved)
    shutil.copytree(folders[task], photos)  # other times and another place, the same images
    before = trained(moved)
    report, notes = fit(task, photos, moved)
    assert trained(moved) == before
    assert [job.test_score("raw") for job in report.jobs] == [
        job.test_score("raw") for job in Report.read([runs[task]]).jobs
    ]
    assert "size=" not in notes  # it was decided when the run was made
    assert Folder(moved).manifest()["folder"] == str(photos)
    assert scoring.Finished(moved, None, CPU, pytest.fail).score(report.jobs[0], "test")


def test_photos_that_were_moved_are_asked_for(
    runs: dict[str, Path], folders: dict[str, Path], dmt: Callable[..., str], tmp_path: Path
) -> None:
    again, photos = (
        Path(shutil.copytree(each["images"], tmp_path / name)) for each, name in ((runs, "r"), (folders, "p"))
    )
    fit("images", photos, again)
    photos.rename(tmp_path / "moved")
    for words in (("score", again), ("score", again, "--data", photos), ("audit", again, "--out", tmp_path / "a")):
        said = command.refused(*words)
        assert f"there is no folder {photos} with the images of {again}" in said
        assert "give the folder of its images with --data" in said
    assert "accuracy" in dmt("score", again, "--data", tmp_path / "moved")


@pytest.mark.parametrize("task", TASKS)
def test_a_run_goes_on_with_what_it_was_made_for(
    task: str, runs: dict[str, Path], folders: dict[str, Path], tmp_path: Path
) -> None:
    again = Path(shutil.copytree(runs[task], tmp_path / "run"))
    notes = Notes()
    run.fit(folders[task], out=again, device="cpu", watcher=notes)  # without a word about the settings
    assert "stages are finished: nothing is left to train" in notes
    photos = Path(shutil.copytree(folders[task], tmp_path / "photos"))
    photo_layout.write_images(photos / "unlabeled", ["disk"], 12_000)
    changed = r"\(unlabeled images have changed\)"
    with pytest.raises(RunError, match=f"made with other images than {photos} holds {changed}; give another --out"):
        fit(task, photos, again)


def test_a_place_without_permission_is_refused_before_any_image_is_read(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "choose", lambda *_: pytest.fail("looked at the images"))
    monkeypatch.setattr("os.access", lambda path, *_, **__: Path(path) != tmp_path)
    with pytest.raises(RunError, match=f"cannot make {tmp_path}/new/run in {tmp_path}: Permission denied; allow it"):
        fit("images", folders["images"], tmp_path / "new/run")


@pytest.mark.parametrize("task", TASKS)
def test_scoring_opens_no_unlabeled_image(
    task: str, runs: dict[str, Path], folders: dict[str, Path], tmp_path: Path
) -> None:
    photos = Path(shutil.copytree(folders[task], tmp_path / "photos"))
    for image in (photos / "unlabeled").iterdir():
        image.write_bytes(b"no image")
    job = Report.read([runs[task]]).jobs[0]
    scores = scoring.Finished(runs[task], photos, CPU, pytest.fail).score(job, "test")
    for stage in job.kept():
        assert stage.outcome is not None
        assert scores[stage.net("raw")].accuracy == stage.outcome["scores"]["test"]["raw"]["accuracy"]
    with pytest.raises(DataError, match="none of the 40 unlabeled images"):
        scoring.Finished(runs[task], photos, CPU, print, unlabeled=True)
    shutil.rmtree(photos / "test")
    with pytest.raises(RunError, match="other images"):
        scoring.Finished(runs[task], photos, CPU, print)


@pytest.mark.parametrize("task", TASKS)
def test_without_test_images(task: str, tmp_path: Path) -> None:
    report, notes = fit(task, write(task, tmp_path / "photos", test=0), tmp_path / "run")
    assert "There are no test images: scores are on the validation images" in str(report)
    assert "validation accuracy" in notes or "validation mean IoU" in notes
    finished = scoring.Finished(tmp_path / "run", None, CPU, print)
    assert "validation" in scoring.table(finished, report.jobs[0], "test").splitlines()[0]


@pytest.mark.parametrize("task", TASKS)
def test_one_label_a_class(task: str, dmt: Callable[..., str], tmp_path: Path) -> None:
    """No validation, no test: end to end all the same."""
    folder = write(task, tmp_path / "photos", labeled=1, unlabeled=12, test=0)
    if task == "pixels":
        photo_layout.write_pairs(folder / "labeled", 3)  # each shows one shape
    report, notes = fit(task, folder, tmp_path / "run")
    assert all(job.finished for job in report.jobs)
    assert "nothing can warn you" in notes
    str(report)
    dmt("report", tmp_path / "run")
    # nothing speaks for one net or another: the last is used, on trust
    assert "by dmt seed 1" in dmt("predict", tmp_path / "run", folder / "unlabeled", "--out", tmp_path / "p")
    exporting.export(tmp_path / "run", "safetensors")
    with pytest.raises(ConfigError, match="put some into test/ or val/"):
        scoring.Finished(tmp_path / "run", None, CPU, print).score(report.jobs[0], "test")


@pytest.mark.parametrize("task", TASKS)
def test_validation_put_aside(task: str, tmp_path: Path) -> None:
    folder = write(task, tmp_path / "photos")
    shutil.move(folder / "test", folder / "val")
    fit(task, folder, tmp_path / "run", method="baseline")
    split = json.loads((tmp_path / "run/splits/seed-1.json").read_text())
    assert len(split["labeled"]) == (15 if task == "images" else 10)
    assert all(each.startswith("val/") for each in split["validation"])


@pytest.mark.parametrize("task", TASKS)
def test_nothing_unlabeled_leaves_a_baseline(task: str, tmp_path: Path) -> None:
    folder = write(task, tmp_path / "photos", unlabeled=0)
    report, notes = fit(task, folder, tmp_path / "run")
    assert [job.method for job in report.jobs] == ["baseline"]
    assert "training uses the labels only" in notes
    with pytest.raises(ConfigError, match="no unlabeled images"):
        fit(task, folder, tmp_path / "other", method="dmt")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("task", TASKS)
def test_broken_unlabeled_files_are_skipped_and_told(task: str, tmp_path: Path) -> None:
    folder = write(task, tmp_path / "photos", unlabeled=12)
    for number in range(7):
        (folder / f"unlabeled/{number}.jpg").write_bytes(b"")
    _, notes = fit(task, folder, tmp_path / "run")
    assert "0.jpg is empty" in notes
    assert "skipped: 2 more" in notes
    split = json.loads((tmp_path / "run/splits/seed-1.json").read_text())
    assert len(split["unlabeled"]) == 12


def test_the_oracle_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="which are unknown here"):
        fit("images", folders["images"], tmp_path / "run", method=["dmt", "oracle"])
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("value", [5, 6, 100])
def test_validation_that_leaves_no_labels_is_refused(value: int, folders: dict[str, Path], tmp_path: Path) -> None:
    for task, count in (("images", value), ("pixels", 2 * value)):
        with pytest.raises(ConfigError, match="validation"):
            fit(task, folders[task], tmp_path / task, settings={"validation": count})
        assert not (tmp_path / task).exists()


@pytest.mark.parametrize(("task", "second"), [("images", "resnet8-8"), ("pixels", "fcn-8")])
def test_two_different_nets_for_a_pair(task: str, second: str, folders: dict[str, Path], tmp_path: Path) -> None:
    report, _ = fit(task, folders[task], tmp_path / "run", settings={"shape": "pair", "net_b": second})
    assert report.jobs[1].results == ("A1", "B1")
    stages = {path.name[:2]: path for path in (tmp_path / "run/stages").iterdir()}
    nets = {name: sum(file.stat().st_size for file in stages[name].glob("step-*/*-raw.safetensors")) for name in stages}
    assert nets["B1"] > 1.5 * nets["A1"]
    scoring.shipped_net(tmp_path / "run", "dmt", None, CPU)


def test_names_of_folders_that_are_also_presets(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``dmt fit photos`` means the folder, with a slash behind it or not."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="there is no folder photos"):
        folder_policy.own_folder("photos")
    Path("photos").symlink_to(folders["images"])
    assert folder_policy.own_folder("photos") == folder_policy.own_folder("photos/") == Path("photos")
    assert folder_policy.own_folder("digits") is None
    with pytest.raises(ConfigError, match="there is no folder 'digts' and no data set of that name; did you mean 'dig"):
        folder_policy.own_folder("digts")
    with pytest.raises(ConfigError, match="there is no folder 'photo' and no data set of that name; did you mean 'pho"):
        folder_policy.own_folder("photo")
    report, _ = fit("images", "photos", tmp_path / "run", method="baseline")  # type: ignore[arg-type]
    assert report.jobs[0].finished


# --- budget and plan ---


def slow(config: Config, contents: object, execution: object, methods: list[str]) -> rehearsal.Rates:
    """Slower than the truth: the clock must not end the test."""
    kinds = map(rehearsal.kind, rehearsal.stages(config, methods))
    return rehearsal.Rates(0.0, dict.fromkeys(kinds, 6.0), 0.0)


def test_a_budget_shortens_a_new_run(folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "rehearse", slow)
    wish = {"epochs": 40, "epochs_round": 30}
    report, notes = fit("images", folders["images"], tmp_path / "run", budget=600.0, settings=wish)
    assert "to fit into the 10.0 minutes left of the budget, the run uses epochs=" in notes
    kept = json.loads((tmp_path / "run/run.json").read_text())["config"]
    assert 1 <= kept["epochs"] < 40
    assert 1 <= kept["epochs_round"] < 30
    assert all(job.finished for job in report.jobs)
    assert 2 * kept["epochs"] <= 40  # so short that a gain over it means little, and that is said, resumed or not
    doubt = (
        f"the budget cut the Baseline short (epochs={kept['epochs']} instead of 40), so the gain may be far too large"
    )
    assert doubt in str(report)
    before = trained(tmp_path / "run")
    again, _ = fit("images", folders["images"], tmp_path / "run", budget=1200.0, settings=wish)  # the same, more time
    assert trained(tmp_path / "run") == before
    assert doubt in str(again)


def test_a_budget_is_planned_for_the_methods_asked_for(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Online ST has a length of its own, which a plan for Baseline and DMT would not know."""
    monkeypatch.setattr(rehearsal, "rehearse", slow)
    wish = {"epochs": 40, "epochs_round": 30, "online.epochs": 30}
    report, notes = fit("images", folders["images"], tmp_path / "run", budget=600.0, settings=wish, method="online")
    kept = json.loads((tmp_path / "run/run.json").read_text())["config"]
    assert (kept["epochs"] < 40, kept["online.epochs"] < 30, kept["epochs_round"]) == (True, True, 30)
    assert f"online.epochs={kept['online.epochs']} instead of 30" in notes
    assert not any("the run uses" in line and "epochs_round" in line for line in notes.lines)
    assert all(job.finished for job in report.jobs)
    before = trained(tmp_path / "run")
    fit("images", folders["images"], tmp_path / "run", budget=1200.0, settings=wish, method="online")
    assert trained(tmp_path / "run") == before


def test_a_budget_is_rehearsed(folders: dict[str, Path], tmp_path: Path) -> None:
    report, notes = fit("images", folders["images"], tmp_path / "run", budget=600.0)
    assert "the whole schedule fits the budget" in notes
    assert all(job.finished for job in report.jobs)


@pytest.mark.parametrize("task", TASKS)
def test_plan(task: str, folders: dict[str, Path], dmt: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "rehearse", functools.partial(rehearsal.rehearse, patience=0.01))
    printed = dmt("plan", folders[task], "--device", "cpu", "--net", SMALL[task]["net"])
    assert "a run (Baseline and DMT) will take about" in printed
    assert "40 unlabeled images" in printed
    checked = dmt("check", folders[task], "--device", "cpu")
    assert "will take about" in checked
    assert "warning: " not in checked
    assert "error: " not in checked


def test_a_chosen_start_is_found_now_and_later(folders: dict[str, Path]) -> None:
    """A preset may start from published parameters without being asked to; so does the run when it goes on."""
    config = replace(choosing.choose(folders["images"], CPU).preset.config, net="timm:resnet18")
    first = starting.find({}, config, "timm", None)
    assert first.files.keys() == {"A", "B"}
    assert starting.find({}, config, "random", first.known) == first
    assert starting.find({}, replace(config, net="resnet8-4"), "random", first.known).files == {}  # gone, not needed


# --- use ---


def test_predicted_classes(
    runs: dict[str, Path], folders: dict[str, Path], dmt: Callable[..., str], tmp_path: Path
) -> None:
    printed = dmt("predict", runs["images"], folders["images"] / "unlabeled", "--out", tmp_path / "p.csv")
    assert "40 images classified" in printed
    with (tmp_path / "p.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["file", "class", "probability", "margin"]
    assert [Path(row["file"]).name for row in rows] == [f"{9000 + number}.jpg" for number in range(40)]
    assert {row["class"] for row in rows} <= {"disk", "square", "triangle"}
    assert all(1 / 3 <= float(row["probability"]) <= 1 for row in rows)


def test_predicted_masks_have_the_size_of_the_photos(
    runs: dict[str, Path], dmt: Callable[..., str], tmp_path: Path
) -> None:
    sizes = {"small": (20, 30), "odd": (37, 91), "large": (300, 200)}
    for number, (name, size) in enumerate(sizes.items()):
        photo_layout.save(photo_layout.scene("disk", number, size)[0], tmp_path / f"new/{name}.jpg")
    assert "3 images segmented" in dmt("predict", runs["pixels"], tmp_path / "new", "--out", tmp_path / "out")
    for name, size in sizes.items():
        for kind in ("masks", "overlays"):
            with Image.open(tmp_path / "out" / kind / f"{name}.png") as picture:
                assert picture.size == size[::-1]
        with Image.open(tmp_path / "out/masks" / f"{name}.png") as mask:
            assert np.asarray(mask).max() < 4
    assert (tmp_path / "out/classes.csv").read_text().splitlines()[1] == "0,ground,0,0,0"


def test_predictions_do_not_get_mixed_up_with_images(
    runs: dict[str, Path], folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photo_layout.save(photo_layout.scene("disk", 0)[0], tmp_path / "new/1.jpg")

    def predict(task: str, out: Path, code: int = 0) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["dmt", "predict", *map(str, (runs[task], tmp_path / "new", "--out", out))])
            with pytest.raises(SystemExit) as ended:
                app.main()
        assert (ended.value.code or 0) == code
        return capsys.readouterr().err

    mine = folders["pixels"]
    before = sorted(mine.rglob("*"))
    said = predict("pixels", mine / "unlabeled" / "pred", code=2)
    assert f"is inside {mine}, the images that the run was trained on, and could be read as some of them" in said
    assert "the images that the run was trained on" in predict("pixels", mine / "unlabeled/pred-%06d.tar", code=2)
    assert sorted(mine.rglob("*")) == before
    said = predict("pixels", tmp_path / "new" / "pred")
    assert (
        f"note: {tmp_path / 'new/pred'} is inside {tmp_path / 'new'}, whose images are read; repeated, predict" in said
    )
    place = folders["images"] / "pred.csv"
    assert f"note: {place} is inside {folders['images']}, the images that the run was trained on; move" in predict(
        "images", folders["images"]
    )
    place.unlink()
    assert "whose images are read\n" in predict("images", tmp_path / "new")
    assert predict("images", tmp_path / "elsewhere.csv") == ""


@pytest.mark.parametrize("task", TASKS)
def test_score_finds_the_images_again(
    task: str, runs: dict[str, Path], folders: dict[str, Path], dmt: Callable[..., str], tmp_path: Path
) -> None:
    printed = dmt("score", runs[task])  # fit has remembered where they are
    assert f"on {6 if task == 'images' else 2 * 48 * 64:,} test" in printed
    job = Report.read([runs[task]]).jobs[0]
    assert f"{job.test_score('raw', ('A',)):.2f}" in printed
    moved = Path(shutil.copytree(folders[task], tmp_path / "moved"))
    assert dmt("score", runs[task], "--data", moved) == printed


@pytest.mark.parametrize("task", TASKS)
def test_export_to_safetensors(task: str, runs: dict[str, Path], folders: dict[str, Path], tmp_path: Path) -> None:
    exporting.export(runs[task], "safetensors", out=tmp_path / "net.safetensors")
    shipped, again = scoring.shipped_net(runs[task], None, None, CPU), exporting.load(tmp_path / "net.safetensors")
    assert again.classes == shipped.classes
    photo = photo_files.read_photo(folders[task] / "unlabeled/9000.jpg")[:32, :32]
    images = torch.from_numpy(photo.copy()).permute(2, 0, 1)[None] / 255
    with torch.no_grad():
        assert torch.equal(again.net(images), shipped.net(images))


@pytest.mark.parametrize("task", TASKS)
def test_export_to_onnx(task: str, runs: dict[str, Path], tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    exported = exporting.export(runs[task], "onnx", out=tmp_path / "net.onnx")
    assert "logits of ONNX and PyTorch differ by" in exported.summary
    assert "random images" not in exported.summary


@pytest.mark.parametrize("task", TASKS)
def test_what_a_folder_holds_is_not_set(
    task: str, runs: dict[str, Path], folders: dict[str, Path], tmp_path: Path
) -> None:
    for key, value in (("labels", 3), ("unlabeled", 4)):
        with pytest.raises(ConfigError, match=rf"{key} cannot be set here, since it is what your folder holds \(\d+\)"):
            fit(task, folders[task], tmp_path / "run", settings={key: value})
        with pytest.raises(ConfigError, match=f"{key} cannot be set here"):
            run.fit(folders[task], out=runs[task], settings={key: value}, device="cpu", watcher=Silent())
    assert not (tmp_path / "run").exists()


def test_a_folder_with_the_name_of_a_data_set_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    notes = Notes()
    run.fit("digits", out="run", method="baseline", settings=TINY | {"epochs": 1}, watcher=notes)
    assert "digits is a data set of dmt list; for your folder of that name, write ./digits" in notes


def test_reports_tell_two_folders_apart(tmp_path: Path) -> None:
    for name in ("hall", "garden"):
        folder = write("images", tmp_path / name, test=2 if name == "hall" else 3)
        run.fit(folder, out=tmp_path / "runs" / name, method="baseline", settings=BRIEF | SMALL["images"], device="cpu")
    text = str(Report.read([tmp_path / "runs/hall", tmp_path / "runs/garden"]))
    assert "photos hall" in text
    assert "photos garden" in text
    assert "photos hall" not in str(Report.read([tmp_path / "runs/hall"]))
