"""A folder that the doctor calls meaningless is not trained on unless someone insists; then every report says so."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dmt import files
from dmt.cli import app
from dmt.errors import DataError
from dmt.fitting import run
from dmt.own import precheck
from dmt.reporting import report_file
from dmt.results.report import Report
from dmt.runs.progress import Silent
from tests.data.folders import photo_layout

BRIEF: dict[str, Any] = {"epochs": 1, "epochs_round": 1, "fractions": "1", "net": "resnet8-4", "size": 16}
WORDS = [word for key, value in BRIEF.items() for word in ("--set", f"{key}={value}")]
LEAK = "15 test pictures are also in labeled: 'test/disk/0000.jpg' = 'labeled/disk/0000.jpg'"


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Nothing is wrong with it."""
    return photo_layout.write_classes(tmp_path / "photos", labeled=5, unlabeled=6)


def leak(root: Path) -> None:
    shutil.copytree(root / "labeled", root / "test")


def two_labels(root: Path) -> None:
    shutil.copy(root / "labeled/disk/0001.jpg", root / "labeled/square/other.jpg")


def fit(folder: Path, out: Path, **options: Any) -> Report:
    return run.fit(folder, out=out, settings=BRIEF, watcher=Silent(), device="cpu", **options)


def command(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["dmt", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        app.main()
    return int(ended.value.code or 0)


@pytest.mark.parametrize(("spoil", "says"), [(leak, LEAK), (two_labels, "1 picture has different labels")])
def test_errors_are_refused_in_one_line(
    photos: Path,
    spoil: Callable[[Path], None],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spoil(photos)
    out = photos.parent / "run"
    assert command(monkeypatch, "fit", photos, "--out", out, *WORDS) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"dmt: error: a run on {photos} would be meaningless: {says}")
    assert error.endswith(f"; dmt check {photos} shows all of it, --anyway trains nevertheless\n")
    assert error.count("\n") == 1
    assert not out.exists()


def test_the_first_error_is_named_and_the_others_are_counted(photos: Path) -> None:
    leak(photos)
    two_labels(photos)
    found = precheck.check(photos).errors
    assert len(found) == 2
    with pytest.raises(DataError, match=r"1 picture has different labels.* \(and 1 more error\); dmt check "):
        precheck.require_none(photos, found)
    (photos / "labeled/disk/0000.jpg").write_bytes(b"")
    with pytest.raises(DataError, match=r"labeled/disk/0000\.jpg is empty .* \(and 2 more errors\); "):
        precheck.require_none(photos, precheck.check(photos).errors)


def test_only_what_has_truth_is_looked_at(photos: Path) -> None:
    told: list[tuple[str, int, int]] = []

    class Busy(Silent):
        def busy(self, title: str, done: int, of: int) -> None:
            told.append((title, done, of))

    assert precheck.check(photos, Busy()).errors == ()
    assert told[-1] == ("checking labeled images", 15, 15)


def test_a_fit_shows_the_warnings_of_the_check_before_it_trains(
    photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        (photos / f"labeled/disk/{number:04d}.jpg").unlink()
    out = photos.parent / "run"
    assert command(monkeypatch, "fit", photos, "--out", out, *WORDS) == 0
    said = capsys.readouterr().err
    assert said.count("warning: fewer than 5 labels for 'disk'") == 1
    assert said.index("warning: fewer than") < said.index("done after" if "done after" in said else "accuracy")
    assert "no unlabeled images" not in said
    assert command(monkeypatch, "fit", photos, "--out", out, *WORDS) == 0
    assert "warning:" not in capsys.readouterr().err


def test_a_run_that_was_insisted_on_says_so_everywhere(
    photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    leak(photos)
    out = photos.parent / "run"
    assert command(monkeypatch, "fit", photos, "--out", out, "--anyway", *WORDS) == 0
    printed = capsys.readouterr().out
    (warning,) = files.read_json(out / "run.json")["warnings"]
    assert warning.startswith(LEAK)
    assert f"\nwarning: the scores may be meaningless: {LEAK}" in printed
    assert printed.count(LEAK) == 1
    report = Report.read([out])
    assert [line for line in report.verdicts() if "do not trust it: there are errors in the images" in line]
    page = report_file.page([out])
    assert page.count("Warning: the scores may be meaningless") == 1
    assert "do not trust it" in page
    assert command(monkeypatch, "score", out, "--method", "dmt") == 0
    assert f"warning: the scores may be meaningless: {LEAK}" in capsys.readouterr().err
    # it was checked and recorded: repeating the command needs no more insisting, and no second look
    monkeypatch.setattr(precheck, "check", lambda *_: pytest.fail("checked again"))
    assert fit(photos, out).errors() == report.errors()


def test_sound_folders_record_that_they_were_checked(photos: Path) -> None:
    out = photos.parent / "run"
    report = fit(photos, out, method="baseline")
    assert files.read_json(out / "run.json")["warnings"] == []
    assert report.errors() == []
    assert "trust" not in str(report)


def test_runs_from_before_the_check_go_on_and_then_say_what_is_wrong(photos: Path) -> None:
    leak(photos)
    out = photos.parent / "run"
    fit(photos, out, method="baseline", anyway=True)
    manifest = files.read_json(out / "run.json")
    del manifest["warnings"]
    (out / "run.json").write_text(json.dumps(manifest))
    assert Report.read([out]).errors() == []
    assert LEAK in fit(photos, out, method="baseline").errors()[0]
    assert files.read_json(out / "run.json")["warnings"][0].startswith(LEAK)


def test_data_sets_have_no_such_record(tmp_path: Path, tiny: dict[str, object]) -> None:
    run.fit("digits", out=tmp_path / "run", method="baseline", settings=tiny, watcher=Silent())
    assert "warnings" not in files.read_json(tmp_path / "run/run.json")


def test_tuning_refuses_them_too(
    photos: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    leak(photos)
    out = photos.parent / "tune"
    words = ("tune", photos, "--grid", "gamma=1", "--out", out, *WORDS)
    assert command(monkeypatch, *words) == 2
    assert LEAK in capsys.readouterr().err
    assert not out.exists()
    assert command(monkeypatch, *words, "--anyway") == 0
    printed = capsys.readouterr().out
    assert f"warning: the scores may be meaningless: {LEAK}" in printed
    assert " --anyway " in printed
