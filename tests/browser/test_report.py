"""The report and the gallery of a run whose folders, classes, files and commands have hostile names."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dmt import files
from dmt.auditing import auditor
from dmt.auditing.auditor import AuditOptions
from dmt.fitting import run
from dmt.reporting import report_file
from dmt.runs.progress import Silent
from tests.browser.conftest import HOSTILE, Seen

Opener = Callable[..., Seen]
pytestmark = pytest.mark.slow
BRIEF: dict[str, object] = {
    "net": "resnet8-4", "size": 32, "epochs": 2, "epochs_round": 1, "fractions": "0.5,1", "batch_pseudo": 12,
    "batch_labeled": 4,
}  # fmt: skip


def write_photos(root: Path) -> Path:
    """A few images of each hostile class, of its own color, with hostile names."""
    noise = np.random.default_rng(0)

    def write(path: Path, color: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        values = noise.integers(0, 120, (32, 32, 3))
        values[..., color] += 120
        Image.fromarray(values.astype(np.uint8)).save(path)

    for color, name in enumerate(HOSTILE):
        for number in range(9):
            write(root / "labeled" / name / f"{HOSTILE[number % 3]}{number}.png", color)
        for number in range(10):
            write(root / "unlabeled" / f"{name}{number}.png", color)
            write(root / "test" / name / f"{HOSTILE[0]}{number}.png", color)
    return root


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    room = tmp_path_factory.mktemp("hostile")
    out = room / HOSTILE[0]
    photos = write_photos(room / HOSTILE[1])
    run.fit(photos, out=out, method=["baseline", "dmt"], settings=BRIEF, device="cpu", watcher=Silent())
    sessions = out / "sessions.jsonl"
    line = files.require_sealed(json.loads(sessions.read_text().splitlines()[0]))
    line["command"] = ["dmt", "fit", "</script><script>window.hacked=1</script>"]
    sessions.write_text(sessions.read_text() + json.dumps(line) + "\n")
    return out


@pytest.fixture(scope="module")
def report(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    report_file.write([trained], path)
    return path


def test_a_report_of_hostile_names_is_shown_and_does_nothing(open_page: Opener, report: Path) -> None:
    seen = open_page(report)
    seen.require_peace(report)
    text = seen.page.locator("body").inner_text()
    for name in (*HOSTILE, "window.hacked=1</script>"):
        assert name in text
    assert "DMT" in seen.page.locator(".verdict").inner_text()
    for width in (360, 1200):
        seen.require_width(width)


def test_its_escaping_does_not_lean_on_the_policy(open_page: Opener, report: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.html"
    bare.write_text(report.read_text(encoding="utf-8").replace("Content-Security-Policy", "x"), encoding="utf-8")
    open_page(bare).require_peace(bare)


def test_its_classes_can_be_sorted_by_change(open_page: Opener, report: Path) -> None:
    seen = open_page(report)
    table = seen.page.locator("table", has_text="Baseline, %")
    table.locator("th button", has_text="change").click()
    change = [float(cell.replace("−", "-")) for cell in table.locator("tbody td:nth-child(4)").all_inner_texts()]
    assert change == sorted(change)
    assert len(change) == len(HOSTILE)
    seen.require_peace(report)


def test_a_watched_report_reads_itself_again_and_a_finished_one_does_not(
    open_page: Opener, report: Path, trained: Path, tmp_path: Path
) -> None:
    path = tmp_path / "watched.html"
    report_file.write([trained], path, refresh=1)
    seen = open_page(path)
    with seen.page.expect_navigation(timeout=10_000):
        pass
    assert seen.requests.count(path.as_uri()) >= 2
    assert "refresh" not in report.read_text(encoding="utf-8").partition("<style>")[0]


def test_the_gallery_of_hostile_names_is_shown_and_does_nothing(
    open_page: Opener, trained: Path, tmp_path: Path
) -> None:
    copy = tmp_path / trained.name
    shutil.copytree(trained, copy)
    done = auditor.audit(copy, tmp_path / "audit", AuditOptions(folds=2, count=6), device="cpu", watcher=Silent())
    page = done.folder / "index.html"
    seen = open_page(page, color_scheme="light")
    seen.require_peace(page)
    text = seen.page.locator("body").inner_text()
    assert HOSTILE[0] in text
    before = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    seen.page.locator("#theme").click()
    assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    seen.require_width(360)
    seen.require_peace(page)
