"""The command as a user meets it: a real process for what depends on one, this process for the rest."""

import contextlib
import csv
import io
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image

from dmt.cli import app
from dmt.runs.folder import Folder
from tests.conftest import TINY

SETTINGS = [word for key, value in TINY.items() for word in ("--set", f"{key}={value}")]


def dmt(*words: object, code: int = 0) -> tuple[str, str]:
    """Run the command in this process, which has torch loaded; returns what it printed to (stdout, stderr)."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr(sys, "argv", ["dmt", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            app.main()
    assert (ended.value.code or 0) == code, err.getvalue()
    return out.getvalue(), err.getvalue()


def process(*words: object, code: int = 0) -> tuple[str, str]:
    """The same as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "dmt.cli", *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished comparison of Baseline and DMT."""
    out = tmp_path_factory.mktemp("runs") / "cmp"
    printed, progress = dmt("fit", "digits", "--compare", "baseline,dmt", "--seeds", "1-2", "--out", out, *SETTINGS)
    assert "Baseline" in printed
    assert "±" in printed
    assert "Baseline, DMT A0, seed 1" in progress
    return out


def test_list_names_everything_once() -> None:
    printed, _ = dmt("list")
    for name in ("digits", "cifar10-4k", "cifar10-40", "baseline", "dmt-flip", "wrn-D-K", "timm:NAME"):
        assert printed.count(f"  {name} ") == 1
    options, _ = dmt("list", "options")
    assert "gamma2" in options
    assert "[none]" in options
    assert options.count("  METHOD.rate ") == 1
    assert "fixmatch.rate " not in options  # as of every online method
    assert "fixmatch.threshold " in options
    assert "mean_teacher.ema " in options  # has another default than most
    own, _ = dmt("list", "options", "fixmatch")
    shared, _, own = own.partition("options of the Baseline beside it:\n")
    beside, _, own = own.partition("options of FixMatch:\n")
    assert all(f"  {key} " in shared for key in ("labels", "augment_strong", "net", "batch_pseudo", "weight_decay"))
    assert all(f"  {key} " in beside for key in ("epochs", "mixup"))
    assert not any(f"  {key} " in shared + beside for key in ("gamma2", "fractions", "epochs_round", "share"))
    assert "  fixmatch.rate " in own
    assert "uda." not in own
    published, _ = dmt("list", "options", "cifar10-4k")
    assert "[1060]" in published
    assert "fixmatch.rate " in published  # published with a rate of its own


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["options", "fixmtch"], "unknown method or data set 'fixmtch'; did you mean 'fixmatch'?"),
        (["nets", "fixmatch"], "only dmt list options takes the name of a method or data set, here 'fixmatch'"),
    ],
)
def test_list_refuses_what_it_does_not_know(words: list[str], says: str) -> None:
    assert says in dmt("list", *words, code=2)[1]


def test_plan_counts_the_papers_steps_without_data() -> None:
    printed, _ = dmt("plan", "cifar10-4k", "--method", "dmt", "--no-time")
    for steps in ("8,480", "15,750", "30,750", "46,500", "61,500", "77,250"):
        assert steps in printed


def test_plan_forecasts_a_time() -> None:
    printed, _ = dmt("plan", "digits", "--method", "cl", *SETTINGS)
    assert "on this machine" in printed
    assert "uniform" in printed


def test_help_lists_commands_as_they_come_up() -> None:
    printed, _ = dmt("--help")
    listed = [line.split()[0] for line in printed.split("Commands:")[1].splitlines() if line.strip()]
    assert tuple(listed) == app.ORDER


@pytest.mark.parametrize(
    "verb", ["", "list", "plan", "fit", "score", "predict", "check", "export", "report", "audit", "tune"]
)
def test_help_has_an_example(verb: str) -> None:
    printed, _ = dmt(*filter(None, [verb]), "--help")
    assert f"dmt {verb}".strip() in printed
    assert "Usage" in printed


def test_score_prints_both_copies_and_every_class(run: Path) -> None:
    printed, _ = dmt("score", run, "--on", "test", "--method", "dmt", "--seed", 1)
    assert "A2 raw" in printed
    assert "A2 ema" in printed
    assert "fine-grained: each right answer counts as the confidence in it" in printed
    assert all(f"class {digit}" in printed for digit in range(10))
    assert "400 test images" in printed
    both, _ = dmt("score", run, "--on", "validation")
    assert both.count("200 validation images") == 4


def test_score_agrees_with_the_report(run: Path) -> None:
    from dmt.results.report import Report

    job = Report.read([run]).jobs[1]
    printed, _ = dmt("score", run, "--method", job.method, "--seed", job.seed)
    row = next(line for line in printed.splitlines() if "accuracy" in line)
    assert f"{job.test_score('raw'):.2f}" in row


def test_predict_writes_a_row_for_every_image(run: Path, tmp_path: Path) -> None:
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    Image.new("L", (8, 8), 0).save(tmp_path / "folder" / "black.png")
    Image.new("RGB", (30, 20), (255, 0, 0)).save(tmp_path / "folder" / "deep" / "red.jpg")
    Image.new("RGBA", (9, 9), (0, 0, 0, 0)).save(tmp_path / "ünï,cöde\n.png")
    (tmp_path / "folder" / "notes.txt").write_text("no image")
    printed, _ = dmt("predict", run, tmp_path / "ünï,cöde\n.png", tmp_path / "folder", "--out", tmp_path / "p.csv")
    assert "3 images" in printed
    with (tmp_path / "p.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [Path(row["file"]).name for row in rows] == ["ünï,cöde\n.png", "black.png", "red.jpg"]
    for row in rows:
        assert row["class"] in "0123456789"
        assert 0.1 <= float(row["probability"]) <= 1.0
        assert 0.0 <= float(row["margin"]) <= float(row["probability"])


def test_predict_writes_into_the_folder_that_a_slash_names(run: Path, tmp_path: Path) -> None:
    Image.new("L", (8, 8), 0).save(tmp_path / "a.png")
    for place in ("res/run-1.0/", "res/run-1.0"):  # new, then there already
        printed, _ = dmt("predict", run, tmp_path / "a.png", "--out", f"{tmp_path}/{place}")
        assert "1 image classified" in printed
        assert f"written to {tmp_path}/res/run-1.0/pred.csv" in printed


def test_predict_knows_the_digits(run: Path, tmp_path: Path) -> None:
    """Real images through files and back: far better than chance even for a net trained in seconds."""
    from dmt.data.images import embedded

    _, test = embedded.digits()
    for name, image, label in zip(test.ids[:100], test.images[:100], test.labels[:100].tolist(), strict=True):
        (tmp_path / str(label)).mkdir(exist_ok=True)
        Image.fromarray(image[0].numpy()).save(tmp_path / str(label) / f"{name}.png")
    dmt("predict", run, tmp_path, "--out", tmp_path / "p.csv", "--method", "baseline")
    with (tmp_path / "p.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    right = sum(Path(row["file"]).parent.name == row["class"] for row in rows)
    assert len(rows) == 100
    assert right > 25  # 10 would be chance


def test_report_of_several_runs(run: Path) -> None:
    printed, _ = dmt("report", run)
    for word in ("Baseline", "DMT", "A2", "label error", "weight wrong", "kept"):
        assert word in printed


MISTAKES: list[tuple[list[str], str]] = [
    (["fit", "digit", "--out", "x"], "there is no folder 'digit' and no data set of that name; did you mean 'digits'?"),
    (["fit", "nope", "--out", "x"], "there is no folder 'nope' and no data set of that name; dmt list data lists all"),
    (["plan", "nope"], "there is no folder 'nope' and no data set of that name"),
    (["tune", "nope", "--out", "x"], "there is no folder 'nope' and no data set of that name"),
    (["fit", "digits", "--method", "dmtt", "--out", "x"], "unknown method 'dmtt'; did you mean 'dmt'?"),
    (["fit", "digits", "--compare", "dmt,foo", "--out", "x"], "unknown method 'foo'"),
    (["fit", "digits", "--net", "wrn-28", "--out", "x"], "unknown net 'wrn-28'"),
    (["fit", "digits", "--device", "tpu", "--out", "x"], "unknown device 'tpu'"),
    (["fit", "digits", "--device", "cuda:99", "--out", "x"], "device 'cuda:99' does not exist"),
    (["fit", "digits", "--set", "gama=5", "--out", "x"], "unknown option 'gama'; did you mean 'gamma'?"),
    (["fit", "digits", "--set", "gamma", "--out", "x"], "--set takes key=value"),
    (["fit", "digits", "--set", "labels=105", "--out", "x"], "labels must be a multiple"),
    (["fit", "digits", "--config", "no.toml", "--out", "x"], "cannot read no.toml"),
    (["fit", "digits", "--seeds", "a-b", "--out", "x"], "--seeds takes 1-3 or 1,4,7"),
    (["fit", "digits", "--seeds", "3-1", "--out", "x"], "counts down; write 1-3"),
    (["fit", "digits", "--budget", "soon", "--out", "x"], "a budget looks like"),
    (["score", "nowhere"], "there is no run folder nowhere"),
    (["predict", "nowhere", "a.png"], "there is no run folder nowhere"),
    (["list", "everything"], "dmt list takes"),
    (["fit", "digits", "--set", "dataset=cifar10", "--out", "x"], "name another preset"),
    (["fit", "digits", "--set", "share=0.8", "--out", "x"], "share must be none unless shape is pair"),
    (["fit", "digits", "--method", "cl", "--compare", "dmt", "--out", "x"], "not both"),
    (["fit", "digits", "--seed", "1", "--seeds", "1-2", "--out", "x"], "not both"),
    (["fit", "digits", "--checkpoint-every", "nan", "--out", "x"], "checkpoint_every must be"),
    (["fit", "digits", "--net", "timm:", "--out", "x"], "unknown timm net"),
    (["plan", "digits", "--net", "foo", "--no-time"], "unknown net 'foo'"),
    (["plan", "digits", "--set", "fractions=0.0001", "--no-time"], "too small"),
]


@pytest.mark.parametrize(("words", "says"), MISTAKES, ids=lambda each: " ".join(each) if isinstance(each, list) else "")
def test_mistakes_are_one_line_and_exit_2(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["dmt", *words])
    with pytest.raises(SystemExit) as caught:
        app.main()
    error = capsys.readouterr().err
    assert caught.value.code == 2
    assert says in error
    assert error.startswith("dmt: error: ")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_mistakes_on_a_finished_run(run: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.png").write_text("not an image")
    csv_file = tmp_path / "p.csv"
    cases: list[tuple[list[object], str]] = [
        (["score", run, "--on", "train"], "--on takes test or validation"),
        (["score", run, "--method", "cl"], "has no such method"),
        (["score", run, "--line", "B"], f"there is no --line B to score in {run}; leave it out"),
        (["predict", run, tmp_path / "no.png", "--out", csv_file], "there is no file or folder"),
        (["predict", run, tmp_path / "empty", "--out", csv_file], "no images in"),
        (["predict", run, tmp_path / "text.png", "--out", csv_file], "is not an image"),
        (["fit", "digits", "--out", run, *SETTINGS, "--set", "gamma=9"], "made with gamma=4.0, not gamma=9.0"),
        (["fit", "cifar10-4k", "--out", tmp_path / "c", "--data", tmp_path / "none"], "--data DIR"),
    ]
    for words, says in cases:
        error = dmt(*words, code=2)[1]
        *notes, line = error.splitlines()
        assert says in line
        assert line.startswith("dmt: error: ")
        assert all(note.startswith("note: Baseline is used, not DMT: ") for note in notes)
    assert not csv_file.exists()
    assert not (tmp_path / "c").exists()


def test_reports_leave_out_what_is_no_run(run: Path, tmp_path: Path) -> None:
    printed, notes = dmt("report", run, tmp_path)
    assert "Baseline" in printed
    assert "is not a run folder; skipped" in notes
    assert "none of these is a run folder" in dmt("report", tmp_path, code=2)[1]


def test_a_fit_that_was_interrupted_early_is_told(run: Path, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    with Folder(begun).reserved():
        pass
    says = f"the fit in {begun} has not reached its first net; if it was interrupted, repeat the dmt fit command"
    assert says in dmt("predict", begun, tmp_path, code=2)[1]
    assert dmt("report", begun, code=2)[1] == f"dmt: error: {says}\n"
    assert f"{says}; skipped" in dmt("report", run, begun)[1]


def test_errors_of_the_system_are_one_line_too(run: Path, tmp_path: Path) -> None:
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    _, error = dmt("predict", run, tmp_path / "a.png", "--out", tmp_path / "a.png" / "b.csv", "--method", "dmt", code=2)
    assert error.startswith("dmt: error: ")
    assert error.count("\n") == 1


def test_too_little_memory_is_one_line_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate …")

    monkeypatch.setattr("dmt.fitting.run.fit", full)
    monkeypatch.setattr(sys, "argv", ["dmt", "fit", "digits", "--out", "x"])
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert "set batch" in error
    assert error.count("\n") == 1


def test_debug_shows_the_traceback() -> None:
    _, error = process("--debug", "fit", "digits", "--method", "cl", "--compare", "dmt", "--out", "x", code=1)
    assert "Traceback" in error


def test_budget_exits_with_3_and_says_how_to_go_on(tmp_path: Path) -> None:
    words = ["fit", "digits", "--method", "baseline", "--out", tmp_path / "r", *SETTINGS]
    _, error = process(*words, "--budget", "0.01s", code=3)
    assert "repeat the command to resume" in error
    dmt(*words)
