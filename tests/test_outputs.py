"""Nothing that someone may need is overwritten: by the rule itself, and by every command that writes."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from dmt import outputs
from dmt.cli import app
from dmt.data.pixels import published
from dmt.errors import RunError
from dmt.fitting import run
from dmt.outputs import Kind
from dmt.runs.progress import Silent

KIND = Kind("a list of ours", b"our list")
Command = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings: dict[str, Any] = {"net": "resnet8-4", "epochs": 1}
    out = tmp_path_factory.mktemp("runs") / "a"
    run.fit("digits", out=out, method="baseline", settings=settings, watcher=Silent(), device="cpu")
    return out


@pytest.fixture
def dmt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process: exit code and standard error."""

    def command(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["dmt", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            app.main()
        return int(ended.value.code or 0), capsys.readouterr().err

    return command


def refused(dmt: Command, *words: object) -> str:
    code, error = dmt(*words)
    assert code == 2, error
    assert error.splitlines()[-1].startswith("dmt: error: ")
    assert "Traceback" not in error
    return error.splitlines()[-1]


def held(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def photos(tmp_path: Path) -> list[Path]:
    (tmp_path / "new").mkdir()
    paths = [tmp_path / "new" / f"{name}.png" for name in "abc"]
    for number, path in enumerate(paths):
        Image.new("L", (8, 8), 50 * number).save(path)
    return paths


# --- the rule ---


def test_only_the_same_kind_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    outputs.require_file(path, KIND)
    for content in (b"", b"this is our list\n" + b"x" * 10_000):
        path.write_bytes(content)
        outputs.require_file(path, KIND)
    path.write_bytes(b"x" * 10_000 + b"our list")
    with pytest.raises(RunError, match=r"list\.txt is there already and is not a list of ours; .* --force"):
        outputs.require_file(path, KIND)
    outputs.require_file(path, KIND, force=True)


def test_folders_and_pipes_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is a folder; give --out a file"):
        outputs.require_file(tmp_path, KIND, force=True)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RunError, match="is there already"):
        outputs.require_file(tmp_path / "pipe", KIND)  # without reading from it


def test_inputs_stay_by_whatever_name(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(b"our list")
    (tmp_path / "link").symlink_to(path)
    for other in (path, tmp_path / "link", tmp_path / "x" / ".." / "list.txt"):
        (tmp_path / "x").mkdir(exist_ok=True)
        with pytest.raises(RunError, match="one of the images to read"):
            outputs.require_file(other, KIND, inputs=[tmp_path / "no", path])


def test_the_inside_of_a_run_is_its_own(trained: Path, tmp_path: Path) -> None:
    assert {path.name for path in trained.iterdir() if not path.name.startswith(".")} <= outputs.OURS
    for name in ("run.json", "stages/new.html", "splits/x", "pairs/x/y", ".lock", ".cache/x", "skipped.txt"):
        with pytest.raises(RunError, match=r"belongs to the run in .*; give another --out"):
            outputs.require_file(trained / name, KIND, force=True)
    outputs.require_file(trained / "report.html", KIND)
    (tmp_path / "link").symlink_to(trained / "stages")
    for place in (tmp_path / "link", tmp_path / "link/x", trained / "export/../stages/x"):
        with pytest.raises(RunError, match="belongs to the run"):
            outputs.require_free(place)
        with pytest.raises(RunError, match="is inside the run"):
            outputs.require_outside_runs(place)
    outputs.require_outside_runs(trained)


def test_a_run_json_alone_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    outputs.require_outside_runs(tmp_path / "new")


# --- the commands ---


def test_a_pattern_after_out_costs_no_photo(trained: Path, photos: list[Path], dmt: Command) -> None:
    before = held(photos[0].parent)
    error = refused(dmt, "predict", trained, "--out", *photos)
    assert "a.png is there already and is not a CSV of dmt predict" in error
    assert "one of the images to read" in refused(dmt, "predict", trained, *photos, "--out", photos[0])
    assert held(photos[0].parent) == before
    assert dmt("predict", trained, *photos[1:], "--out", photos[0], "--force")[0] == 0
    assert photos[0].read_text().startswith("file,class")


def test_predictions_replace_predictions_only(trained: Path, photos: list[Path], dmt: Command, tmp_path: Path) -> None:
    for _ in range(2):
        assert dmt("predict", trained, *photos, "--out", tmp_path / "pred.csv")[0] == 0
    (tmp_path / "labels.csv").write_text("file,label\na.png,cat\n")
    assert "is not a CSV of dmt predict" in refused(dmt, "predict", trained, *photos, "--out", tmp_path / "labels.csv")
    assert (tmp_path / "labels.csv").read_text() == "file,label\na.png,cat\n"


def test_reports_replace_reports_only(trained: Path, photos: list[Path], dmt: Command, tmp_path: Path) -> None:
    before = held(trained)
    (tmp_path / "other.html").write_text("<!doctype html><title>mine</title>")
    for out in (trained / "run.json", photos[0], tmp_path / "other.html", next(trained.glob("stages/*/journal.jsonl"))):
        for watch in ((), ("--watch",)):
            refused(dmt, "report", trained, "--out", out, *watch)
    assert "belongs to the run" in refused(dmt, "report", trained, "--out", trained / "run.json", "--force")
    refused(dmt, "report", trained, "--tensorboard", trained / "stages")
    refused(dmt, "report", trained, "--tensorboard", photos[0])
    assert held(trained) == before
    for out in (trained / "report.html", tmp_path / "report.html"):
        for _ in range(2):
            assert dmt("report", trained, "--out", out)[0] == 0
    (trained / "report.html").unlink()
    assert dmt("report", trained, "--out", tmp_path / "other.html", "--force")[0] == 0


def test_nothing_moves_into_a_run(trained: Path, dmt: Command, tmp_path: Path) -> None:
    before = held(trained)
    net = next(trained.glob("stages/*/step-*/*-raw.safetensors"))
    refused(dmt, "export", trained, "--to", "safetensors", "--out", trained / "run.safetensors", "--force")
    refused(dmt, "export", trained, "--to", "safetensors", "--out", net, "--force")
    for words in (("fit", "digits"), ("tune", "digits"), ("audit", trained), ("pack", trained)):
        for place in ("inner", "stages/inner"):
            assert "is inside the run in" in refused(dmt, *words, "--out", trained / place)
    assert dmt("pack", trained, "--out", tmp_path / "packed")[0] == 0
    assert "is inside the run in" in refused(dmt, "unpack", tmp_path / "packed", "--out", trained / "inner")
    (tmp_path / "file").write_text("precious")
    assert "is a file" in refused(dmt, "pack", trained, "--out", tmp_path / "file")
    refused(dmt, "splits", "voc", "--out", trained / "splits")
    assert held(trained) == before


def test_lists_replace_equal_lists_only(tmp_path: Path, dmt: Command) -> None:
    published.write(tmp_path, "voc", 0)
    published.write(tmp_path, "voc", 0)
    (tmp_path / "20_labeled_0.txt").write_text("mine\n")
    (tmp_path / "2_labeled_0.txt").unlink()
    assert "20_labeled_0.txt is there already and differs" in refused(dmt, "splits", "voc", "--out", tmp_path)
    assert not (tmp_path / "2_labeled_0.txt").exists()
    assert dmt("splits", "voc", "--out", tmp_path, "--force")[0] == 0
    assert (tmp_path / "20_labeled_0.txt").read_text() != "mine\n"


def test_the_folder_around_a_place_is_found_behind_links(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "photos")
    folders = [tmp_path / "other", tmp_path / "photos"]
    assert outputs.folder_around(tmp_path / "link" / "new" / "p.csv", folders) == tmp_path / "photos"
    assert outputs.folder_around(tmp_path / "photos", folders) == tmp_path / "photos"
    assert outputs.folder_around(tmp_path / "photos2", folders) is None
    assert outputs.folder_around(tmp_path / "photos", []) is None
