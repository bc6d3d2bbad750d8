"""--keep best: the best round by validation is what predict, score, export, report and a lean pack agree on."""

import shutil
from pathlib import Path

import pytest
import torch

import dmt
from dmt.errors import ConfigError, RunError
from dmt.reporting import report_file
from dmt.results.report import Report
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent
from dmt.use import exporting, packing, scoring
from tests.conftest import TINY

RUIN = TINY | {"rate_round": 5.0, "fractions": "1,1"}
"""Rounds that unlearn what the first net knew."""

CPU = torch.device("cpu")


def fit(out: Path, keep: str | None = None, **settings: object) -> Report:
    return dmt.fit(
        "digits", out=out, method="cbst", baseline=False, keep=keep, settings=RUIN | settings, watcher=Silent()
    )


@pytest.fixture(scope="module")
def ruined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ruined")
    fit(out)
    return out


def shipped(run: Path) -> str:
    return Report.read([run]).jobs[0].preferred()[0].name


def test_it_can_be_changed_when_all_is_trained(ruined: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in ruined.glob("stages/**/*") if path.is_file()}
    assert shipped(ruined) == "A2"
    best = fit(ruined, "best")
    assert shipped(ruined) == "A0"
    assert fit(ruined).jobs[0].keep == "best"  # as it was
    assert "best round's nets" in str(best)
    assert Folder(ruined).manifest()["jobs"][0]["keep"] == "best"
    last = fit(ruined, "last")
    assert shipped(ruined) == "A2"
    assert best.jobs[0].test_score("shipped") > last.jobs[0].test_score("shipped") + 10
    assert best.jobs[0].test_score("raw") > last.jobs[0].test_score("raw") + 10
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_everyone_agrees_on_the_net(ruined: Path, tmp_path: Path) -> None:
    fit(ruined, "best")
    assert "A0" in scoring.shipped_net(ruined, None, None, CPU).name
    finished = scoring.Finished(ruined, None, CPU, print)
    (job,) = finished.jobs(None, None)
    assert {name.stage for name in finished.score(job, "test")} == {"A0"}
    exporting.export(ruined, "safetensors", out=tmp_path / "net.safetensors")
    assert "A0" in exporting.load(tmp_path / "net.safetensors").name


def test_a_lean_pack_holds_the_best_net(ruined: Path, tmp_path: Path) -> None:
    held = {}
    for keep in ("best", "last"):
        fit(ruined, keep)
        packing.pack(ruined, tmp_path / keep, 10**9, lean=True)
        again = packing.unpack(tmp_path / keep, tmp_path / f"{keep}-again")
        held[keep] = {path.parents[1].name[:2] for path in again.glob("stages/*/step-*/*-raw.safetensors")}
    assert held == {"best": {"A0", "A2"}, "last": {"A2"}}
    assert "A0" in scoring.shipped_net(tmp_path / "best-again", None, None, CPU).name
    fit(tmp_path / "last-again", "best")
    with pytest.raises(RunError, match="lean pack"):
        scoring.shipped_net(tmp_path / "last-again", None, None, CPU)


def test_without_validation_there_is_no_best(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--keep best needs validation images"):
        fit(tmp_path / "run", "best", validation=0)
    assert not (tmp_path / "run").exists()
    with pytest.raises(ConfigError, match="keep takes best or last, not 'first'"):
        fit(tmp_path / "run", "first")


def test_without_validation_a_baseline_is_not_used_unasked(tmp_path: Path) -> None:
    """It is there for comparison, and came last."""
    settings = TINY | {"epochs": 1, "epochs_round": 1, "batch_pseudo": 512, "fractions": "1", "validation": 0}
    report = dmt.fit("digits", out=tmp_path, settings=settings, watcher=Silent())
    assert [job.method for job in report.jobs] == ["dmt", "baseline"]
    assert scoring.preferred(tmp_path, None, None).method == "dmt"
    assert scoring.preferred(tmp_path, "baseline", None).method == "baseline"


def test_a_run_keeps_all_its_jobs_alike(ruined: Path, tmp_path: Path) -> None:
    """Their scores stand in one row, as a mean over seeds."""
    copy = Path(shutil.copytree(ruined, tmp_path / "run"))
    fit(copy, "best")
    dmt.fit("digits", out=copy, method="baseline", settings=RUIN, watcher=Silent())
    assert {job.keep for job in Folder(copy).jobs()} == {"best"}
    fit(copy, "last")
    assert {job.keep for job in Folder(copy).jobs()} == {"last"}


def test_reports_do_not_mix_rounds_that_were_chosen_differently(ruined: Path, tmp_path: Path) -> None:
    """Two copies of a run with different rules, in either order: a row for each, and no common score."""
    last, best = (Path(shutil.copytree(ruined, tmp_path / keep)) for keep in ("last", "best"))
    fit(last, "last")
    fit(best, "best")
    single = {path.name: Report.read(path).scores["cbst"][1] for path in (last, best)}
    assert single["best"] > single["last"] + 10
    for paths in ([last, best], [best, last]):
        both = Report.read(paths)
        assert len(both.jobs) == 2
        text = str(both)
        for rule, score in single.items():
            (line,) = [line for line in text.splitlines() if f", {rule} round" in line and "│" in line]
            assert f"{score:.2f}" in line
        with pytest.raises(RunError, match="last and of the best round"):
            _ = both.scores
        page = report_file.page(paths)
        assert all(f"{score:.2f}" in page or f"{score:.1f}" in page for score in single.values())
