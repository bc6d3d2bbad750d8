"""An audit from a run folder to its files: of images, of pixels, of a user's images with awkward names."""

import csv
import json
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import dmt
from dmt import files
from dmt.auditing import audit_files, audit_tables, auditor, label_studio, pseudo_labels, suspects
from dmt.auditing.audit_files import AuditOutput
from dmt.auditing.auditor import AuditOptions
from dmt.auditing.suspects import Judged, Suspect
from dmt.cli import app
from dmt.core.execution import Execution
from dmt.data.pixels.segment_sets import SegmentSet
from dmt.errors import DmtError, RunError
from dmt.fitting import run
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent
from dmt.runs.stopping import Stopped
from dmt.types import IGNORE
from dmt.use.scoring import Finished
from tests.conftest import TINY, TINY_PIXELS

CPU = torch.device("cpu")
NAMES = ('a "quoted", name', "<b>bold & co", "third\tclass")


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "digits"
    wrong = TINY | {"pseudo_noise": 0.2}  # so that there is something to find
    dmt.fit("digits", out=out, method=["baseline", "dmt"], settings=wrong, watcher=Silent())
    return out


@pytest.fixture(scope="module")
def scenes(few_scenes: SegmentSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "scenes"
    dmt.fit("scenes", out=out, method="dmt", settings=TINY_PIXELS, watcher=Silent())
    return out


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three classes of noise in their own colors, the unlabeled ones ten times each; their names need quoting."""
    root, noise = tmp_path_factory.mktemp("photos") / "all", np.random.default_rng(0)

    def write(path: Path, color: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        values = noise.integers(0, 120, (32, 32, 3))
        values[..., color] += 120
        Image.fromarray(values.astype(np.uint8)).save(path)

    for color, name in enumerate(NAMES):
        for number in range(6):
            write(root / "labeled" / name / f"it's <{number}>.png", color)
        write(root / "unlabeled" / f"{name}.png", color)
        for number in range(9):
            shutil.copy(root / "unlabeled" / f"{name}.png", root / "unlabeled" / f"{name} copy {number}.png")
    return root


@pytest.fixture(scope="module")
def own(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "own"
    brief = {"net": "resnet8-4", "size": 32, "epochs": 3, "epochs_round": 1, "fractions": "1", "batch_pseudo": 12}
    run.fit(photos, out=out, settings=brief | {"batch_labeled": 4}, device="cpu", watcher=Silent())
    return out


def audited(path: Path, out: Path, **options: int) -> auditor.Audited:
    asked = replace(AuditOptions(folds=2, count=12), **options)  # type: ignore[arg-type]
    return auditor.audit(path, out, asked, device="cpu", watcher=Silent())


@pytest.fixture(scope="module")
def of_images(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> auditor.Audited:
    return audited(digits, tmp_path_factory.mktemp("audits") / "digits")


@pytest.fixture(scope="module")
def of_pixels(scenes: Path, tmp_path_factory: pytest.TempPathFactory) -> auditor.Audited:
    return audited(scenes, tmp_path_factory.mktemp("audits") / "scenes")


@pytest.fixture(scope="module")
def of_photos(own: Path, tmp_path_factory: pytest.TempPathFactory) -> auditor.Audited:
    return audited(own, tmp_path_factory.mktemp("audits") / "own")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def state(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != ".lock"}


def test_every_file_is_there_and_the_lists_agree(of_images: auditor.Audited) -> None:
    place, findings = of_images.folder, of_images.findings
    assert isinstance(findings.labels, Judged)
    assert isinstance(findings.pseudo, Judged)
    given, pseudo, following = (rows(place / f"{name}.csv") for name in ("labels", "pseudo_labels", "label_next"))
    assert len(given) == 100
    assert [row["file"] for row in given] == [each.file for each in findings.labels.found]
    assert {row["suspicious"] for row in pseudo} <= {"yes"}
    assert len(following) == len({row["file"] for row in following}) == 12
    assert [row["rank"] for row in following] == [str(rank) for rank in range(1, 13)]
    tasks = json.loads((place / "label_studio.json").read_text())
    assert [task["data"]["image"].rpartition("-digit-")[2] for task in tasks] == [
        f"{row['file'].removeprefix('digit-')}.png" for row in following
    ]
    for task, row, each in zip(tasks, following, findings.candidates(), strict=True):
        assert task["predictions"][0]["result"][0]["value"]["choices"] == [row["class"]]
        assert task["predictions"][0]["score"] == pytest.approx(each.sure, abs=1e-6)
        assert each.sure <= sum(float(row[f"confidence_{net}"]) for net in (1, 2)) / 2 + 1e-4
        with Image.open(place / task["data"]["file"]) as image:
            assert image.size == (8, 8)
    page = (place / "index.html").read_text(encoding="utf-8")
    for row in following:
        assert row["file"] in page
    assert f"{len(findings.pseudo.suspicious)} of 1,097" in page


def test_a_pseudo_label_is_suspicious_where_the_nets_prefer_another_class(
    of_images: auditor.Audited, digits: Path
) -> None:
    pseudo = of_images.findings.pseudo
    assert isinstance(pseudo, Judged)
    assert pseudo.suspicious
    check = pseudo.checks[0]
    said = torch.cat([probabilities.mean(0) for _, probabilities, _ in check.predictions()])
    given = torch.cat([labels for _, _, labels in check.predictions()])
    wrong = (said.argmax(1) != given).nonzero().squeeze(1).tolist()
    assert {each.position for each in pseudo.found} == set(wrong)
    assert [each.score for each in pseudo.found] == sorted((each.score for each in pseudo.found), reverse=True)
    assert {each.source for each in pseudo.found} == {"A2"}


def test_the_run_is_not_touched_and_repeating_is_quick(digits: Path, tmp_path: Path) -> None:
    copy = tmp_path / "digits"
    shutil.copytree(digits, copy)
    before = state(copy)
    first = auditor.audit(copy, options=AuditOptions(folds=2, count=5), device="cpu", watcher=Silent())
    assert first.folder == tmp_path / "digits-audit"
    nets = state(first.folder / "work")
    lists = (first.folder / "label_next.csv").read_bytes()
    auditor.audit(copy, options=AuditOptions(folds=2, count=3), device="cpu", watcher=Silent())
    assert state(copy) == before
    assert state(first.folder / "work") == nets
    assert (first.folder / "label_next.csv").read_bytes() != lists
    assert len(list((first.folder / "images").iterdir())) == 3


@pytest.mark.parametrize(
    ("agreement", "words"), [(0.95, "probably wrong given labels"), (0.4, "most of these suspicions may be false")]
)
def test_how_far_the_judges_can_be_believed_is_said(
    of_images: auditor.Audited, agreement: float, words: str, tmp_path: Path
) -> None:
    labels = of_images.findings.labels
    assert isinstance(labels, Judged)
    assert labels.agreement is not None
    assert f"the nets of the audit agree with {labels.agreement:.0%} of the labels" in of_images.lines[0]
    findings = replace(of_images.findings, labels=replace(labels, agreement=agreement))
    (line, *_) = auditor.in_words(findings)
    assert words in line
    assert ("probably wrong" in line) == (agreement > suspects.POOR)
    ensemble = labels.checks[0].ensemble
    audit_files.write(AuditOutput(tmp_path, ensemble, "title", 3, None), findings)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert f"The nets of the audit agree with {agreement:.0%} of the labels" in page
    assert ("Given labels that look wrong" in page) == (agreement < suspects.POOR)


def test_pseudo_labels_that_were_not_kept_are_not_counted(of_images: auditor.Audited) -> None:
    pseudo = of_images.findings.pseudo
    assert isinstance(pseudo, Judged)
    (check,) = pseudo.checks
    few = replace(check, labels=lambda view, places: check.labels(view, places).where(places < 50, IGNORE))
    judged = pseudo_labels.examine(check.ensemble.task, [few])
    assert judged.of == 50
    assert judged.found == [each for each in pseudo.found if each.position < 50]
    assert judged.share == pytest.approx(len(judged.found) / 50)


def test_the_nets_that_are_kept_judge(digits: Path) -> None:
    job = replace(auditor.chosen_job(digits, "dmt", None), keep="best")
    case = Finished(digits, None, CPU, print)

    def names(best: str) -> tuple[tuple[str, ...], list[str]]:
        """The nets of the ensemble and of the pseudo labels, if validation likes this round best."""
        stages = tuple(
            replace(stage, outcome=(stage.outcome or {}) | {"scores": {"validation": {"raw": score}}})
            for stage in job.stages
            for score in [{"accuracy": 90.0 if stage.name == best else 50.0, "fine_grained": 1.0}]
        )
        liked = replace(job, stages=stages)
        nets = auditor.ensemble(Folder(digits), liked, case.task(job.seed), case.config, Execution(CPU))
        return nets.names, [each.source for each in pseudo_labels.checks(nets, Folder(digits), liked)]

    assert names("A2") == (("A1", "A2"), ["A2"])
    assert names("A1") == (("A0", "A1"), ["A1"])
    assert names("A0") == (("A0",), [])


def test_ctrl_c_ends_the_judging(digits: Path, of_images: auditor.Audited) -> None:
    class Impatient(Silent):
        def busy(self, title: str, done: int, of: int) -> None:
            assert not asked
            asked.append(title)
            signal.raise_signal(signal.SIGINT)

    asked: list[str] = []
    with pytest.raises(Stopped) as stopped:
        auditor.audit(digits, of_images.folder, AuditOptions(folds=2, count=12), device="cpu", watcher=Impatient())
    assert stopped.value.code == 130
    assert asked == ["judging labels"]


def test_another_method_or_seed_has_a_folder_of_its_own(digits: Path, tmp_path: Path) -> None:
    copy = tmp_path / "digits"
    shutil.copytree(digits, copy)
    few = AuditOptions(folds=101, count=2)  # so many are not judged
    asked = [few, replace(few, method="baseline"), replace(few, method="dmt", seed=1)]
    with pytest.raises(DmtError, match="no such"):
        auditor.audit(copy, options=replace(few, method="a/b"), device="cpu", watcher=Silent())
    places = [auditor.audit(copy, options=each, device="cpu", watcher=Silent()).folder.name for each in asked]
    assert places == ["digits-audit", "digits-audit-baseline", "digits-audit-dmt-seed-1"]


def test_masks_have_maps_and_strokes(of_pixels: auditor.Audited) -> None:
    place, findings = of_pixels.folder, of_pixels.findings
    assert isinstance(findings.pseudo, Judged)
    assert {check.source for check in findings.pseudo.checks} == {"A2", "B2"}
    assert len(rows(place / "labels.csv")) == 10
    positions = [each.position for each in findings.pseudo.found]
    assert len(positions) == len(set(positions))
    page = (place / "index.html").read_text(encoding="utf-8")
    shown = len(findings.pseudo.suspicious[:12]) + len(findings.labels.suspicious[:12])  # type: ignore[union-attr]
    assert page.count("<img") == 4 * shown + 3 * len(findings.candidates())
    for task in json.loads((place / "label_studio.json").read_text()):
        strokes = task["predictions"][0]["result"]
        with Image.open(place / task["data"]["file"]) as image:
            size = (image.height, image.width)
        assert {(each["original_height"], each["original_width"]) for each in strokes} == {size}
        covered = np.stack([label_studio.unstroke(each["value"]["rle"], size) for each in strokes])
        assert (covered.sum(0) == 1).all()  # every pixel has exactly one class


def test_own_images_keep_their_names_and_copies_are_listed_once(of_photos: auditor.Audited, photos: Path) -> None:
    place = of_photos.folder
    following = rows(place / "label_next.csv")
    originals = [row["file"].removeprefix("unlabeled/").split(" copy")[0].removesuffix(".png") for row in following]
    assert sorted(originals) == sorted(NAMES)
    given = rows(place / "labels.csv")
    assert {row["given"] for row in given} == set(NAMES)
    assert all((photos / row["file"]).is_file() for row in (*given, *following))
    assert not (place / "images").exists()
    for task, row in zip(json.loads((place / "label_studio.json").read_text()), following, strict=True):
        assert task["data"]["file"] == row["file"]
    page = (place / "index.html").read_text(encoding="utf-8")
    assert "<b>bold" not in page
    assert "&lt;b&gt;bold &amp; co" in page


def test_a_baseline_has_no_pseudo_labels_but_is_audited(digits: Path, tmp_path: Path) -> None:
    done = auditor.audit(digits, tmp_path, AuditOptions("baseline", folds=2, count=5), device="cpu", watcher=Silent())
    assert isinstance(done.findings.pseudo, str)
    assert rows(tmp_path / "pseudo_labels.csv") == []
    assert [(row["says_2"], row["confidence_2"]) for row in rows(tmp_path / "label_next.csv")] == [("", "")] * 5
    assert "no stored pseudo labels" in (tmp_path / "index.html").read_text()


def test_too_few_labels_for_the_folds_leave_the_rest_of_the_audit(own: Path, tmp_path: Path) -> None:
    done = audited(own, tmp_path, folds=50)
    assert isinstance(done.findings.labels, str)
    assert "--folds" in done.lines[0]
    assert len(done.findings.candidates()) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [({"folds": 1}, "--folds"), ({"count": 0}, "--count"), ({"method": "oracle"}, "Oracle"), ({"seed": 9}, "no such")],
)
def test_what_makes_no_sense_is_refused(digits: Path, tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(DmtError, match=words):
        auditor.audit(digits, tmp_path / "new", AuditOptions(**options), device="cpu", watcher=Silent())
    assert not (tmp_path / "new").exists()


def test_other_peoples_folders_are_refused(digits: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    for place in (tmp_path, tmp_path / "thesis.txt", digits):
        with pytest.raises(RunError, match="--out"):
            audited(digits, place)


def test_the_command_says_where_to_look(of_images: auditor.Audited, digits: Path) -> None:
    options = ["--folds", "2", "--count", "4", "--device", "cpu", "--out", str(of_images.folder)]
    result = CliRunner().invoke(app.app, ["audit", str(digits), *options])
    assert result.exit_code == 0, result.output
    assert "to label next: 4 images" in result.output
    assert "index.html" in result.output


def test_tables_hold_any_name() -> None:
    name = 'a "b",\nc'
    suspect = Suspect(0, name, 0, 1, True, 0.5, 1.0, ((0.1, 0.6),))
    text = audit_tables.suspects([suspect], ["x,y", "<z>"]).decode()
    (row,) = csv.DictReader(text.splitlines(keepends=True))
    assert (row["file"], row["given"], row["suggested"], row["given_2"]) == (name, "x,y", "<z>", "")


def test_an_audit_that_was_killed_at_once_is_repeated(digits: Path, tmp_path: Path) -> None:
    """It had its lock, and was about to write its first file."""
    place = tmp_path / "audited"
    place.mkdir()
    (place / ".lock").touch()
    left = place / f"{files.TEMPORARY}0"
    left.write_text("{")
    auditor.audit(digits, place, AuditOptions(folds=2, count=2), device="cpu", watcher=Silent())
    assert (place / "index.html").is_file()
    assert not left.exists()
