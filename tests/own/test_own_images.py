"""From made-up photos to predictions in two commands, for both tasks."""

import csv
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks import made_photos
from benchmarks.made_photos import NAMES, Made
from dmt.cli import app
from dmt.results.report import Report

SHORT = ("--set", "epochs=2", "--set", "epochs_round=1", "--set", "fractions=1")


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["dmt", *words])
    with pytest.raises(SystemExit) as end:
        app.main()
    assert end.value.code in (0, None)


def fitted(folder: Path, run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Train as a user would, for a shorter time; what the report says of DMT's gain."""
    command(monkeypatch, "fit", str(folder), "--out", str(run), *SHORT)
    printed = capsys.readouterr().out
    jobs = {job.method: job for job in Report.read([run]).jobs}
    assert jobs.keys() == {"baseline", "dmt"}
    gain = jobs["dmt"].test_score("raw") - jobs["baseline"].test_score("raw")
    row = next(line for line in printed.splitlines() if " DMT " in line and "│" in line)
    assert f"{gain:+.2f}" in row
    return row


@pytest.mark.slow
def test_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    photos = made_photos.write_images(tmp_path / "photos", seed=1, made=Made(labeled=8, total=200, test=50))
    assert len(list((photos / "unlabeled").iterdir())) == 160
    fitted(photos, tmp_path / "run", monkeypatch, capsys)
    command(monkeypatch, "predict", str(tmp_path / "run"), str(photos / "unlabeled"), "--out", str(tmp_path / "p.csv"))
    with (tmp_path / "p.csv").open() as table:
        rows = list(csv.DictReader(table))
    assert {Path(row["file"]).name for row in rows} == {path.name for path in (photos / "unlabeled").iterdir()}
    assert {row["class"] for row in rows} <= set(NAMES.values())
    assert all(0.2 <= float(row["probability"]) <= 1 for row in rows)  # the first of five classes


@pytest.mark.slow
def test_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    photos = made_photos.write_masks(tmp_path / "photos", seed=1, made=Made(labeled=20, total=60, test=10))
    fitted(photos, tmp_path / "run", monkeypatch, capsys)
    command(monkeypatch, "predict", str(tmp_path / "run"), str(photos / "unlabeled"), "--out", str(tmp_path / "p"))
    for photo in (photos / "unlabeled").iterdir():
        with Image.open(photo) as image, Image.open(tmp_path / "p" / "masks" / f"{photo.stem}.png") as mask:
            assert mask.size == image.size
            assert np.asarray(mask).max() <= len(NAMES)
    assert len(list((tmp_path / "p" / "overlays").iterdir())) == 40


def test_a_folder_depends_on_its_seed(tmp_path: Path) -> None:
    made = Made(labeled=1, total=6, test=5)
    first, same, other = (
        made_photos.write_images(tmp_path / name, seed, made) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    files = sorted(path.relative_to(first) for path in first.rglob("*.jpg"))
    assert len(files) == 11
    assert all((first / file).read_bytes() == (same / file).read_bytes() for file in files)
    assert all((first / file).read_bytes() != (other / file).read_bytes() for file in files)
