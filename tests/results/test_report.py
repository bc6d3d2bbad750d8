import dataclasses
import shutil
from pathlib import Path

import pytest

import dmt
from dmt.errors import ConfigError, DmtError, RunError
from dmt.results.report import JobResult, Report
from dmt.results.stage_results import StageResult
from dmt.results.tables import spread
from dmt.runs.folder import Folder, Job
from dmt.runs.progress import Silent
from dmt.training.journal import Journal
from tests.reporting.made_up import made_up_pair


def score(accuracy: float, fine: float) -> dict[str, float]:
    return {"accuracy": accuracy, "fine_grained": fine}


def stage(name: str, raw: tuple[float, float], ema: tuple[float, float], test: tuple[float, float]) -> StageResult:
    scores = {
        "validation": {"raw": score(*raw), "ema": score(*ema)},
        "test": {"raw": score(test[0], 0), "ema": score(test[1], 0)},
    }
    return StageResult(name, name[0], 1, name, None, {"scores": scores, "audit": None, "cost": {}})


def test_validation_chooses_the_net_and_test_does_not() -> None:
    lines = stage("A1", (90, 80), (89, 85), (10, 20)), stage("B1", (95, 84), (95, 84), (99, 99))
    job = JobResult("digits", "dmt", 1, lines, ("A1", "B1"))
    chosen, copy = job.preferred()
    assert (chosen.name, copy) == ("A1", "ema")  # by fine-grained validation, though B1 tests better
    assert job.test_score("shipped") == 20
    assert job.test_score("raw") == pytest.approx((10 + 99) / 2)


def test_of_equals_the_raw_net_of_the_first_line() -> None:
    lines = stage("A1", (90, 80), (90, 80), (1, 2)), stage("B1", (90, 80), (90, 80), (3, 4))
    job = JobResult("digits", "dmt", 1, lines, ("A1", "B1"))
    assert (job.preferred()[0].name, job.preferred()[1]) == ("A1", "raw")


def test_different_options_are_not_averaged(tiny: dict[str, object], tmp_path: Path) -> None:
    for name, rate in (("a", 0.1), ("b", 0.01)):
        settings = tiny | {"rate": rate}
        dmt.fit("digits", out=tmp_path / name, method="baseline", settings=settings, watcher=Silent())
    report = Report.read([tmp_path / "a", tmp_path / "b", tmp_path / "a"])
    assert len(report.jobs) == 2  # a folder named twice counts once
    text = str(report)
    assert "rate=0.01" in text
    assert "±" not in text.replace("mean ±", "")


def test_of_two_copies_the_finished_one_counts(tiny: dict[str, object], tmp_path: Path) -> None:
    dmt.fit("digits", out=tmp_path / "a", method="cl", settings=tiny, watcher=Silent())
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    shutil.rmtree(next(tmp_path.glob("b/stages/A2-*")))
    for order in ("ab", "ba"):
        assert Report.read([tmp_path / name for name in order]).jobs[0].finished


def test_a_score_of_zero_is_a_score() -> None:
    job = JobResult("digits", "dmt", 1, (stage("A1", (0, 0), (0, 0), (0, 0)),), ("A1",))
    assert job.test_score("raw") == job.test_score("shipped") == 0.0


def test_the_papers_number_stands_beside_its_own_row_only() -> None:
    done = stage("A0", (1, 1), (1, 1), (50, 50))
    row = JobResult("cifar10-4k", "baseline", 1, (done,), ("A0",))
    assert "86.08" in str(Report((row,)))
    assert "86.08" not in str(Report((dataclasses.replace(row, changes=("labels=100",)),)))


def test_what_others_published_is_marked() -> None:
    done = stage("A1", (1, 1), (1, 1), (50, 50))
    row = JobResult("cifar10-4k", "flexmatch", 1, (done,), ("A1",))
    told = str(Report((row,)))
    assert "95.81*" in told
    assert "* published with another net, start, split or schedule" in told
    assert "*" not in str(Report((dataclasses.replace(row, changes=("flexmatch.threshold=0.9",)),)))
    own = str(Report((dataclasses.replace(row, method="dmt"),)))
    assert "94.21" in own
    assert "*" not in own


def test_numbers_of_other_nets_starts_or_splits_are_marked() -> None:
    done = stage("A0", (1, 1), (1, 1), (50, 50))
    row = JobResult("voc-1of8", "adv-semi-seg", 1, (done,), ("A0",))
    assert "69.50*" in str(Report((row,)))
    assert "* published with another net, start, split or schedule" in str(Report((row,)))
    plain = str(Report((dataclasses.replace(row, method="dmt"),)))
    assert "72.70" in plain
    assert "*" not in plain


@pytest.mark.parametrize(("values", "text"), [([], "–"), ([95.0], "95.00"), ([94.0, 96.0], "95.00 ± 1.41")])
def test_spread_is_the_sample_deviation(values: list[float], text: str) -> None:
    assert spread(values) == text


def test_a_run_under_way_can_be_read(tmp_path: Path) -> None:
    """Stages without an outcome show as not finished, and their jobs are left out of means."""
    folder = Folder(tmp_path / "run")
    outline = {"name": "A0", "round": 0, "place": "A0-x"}
    with folder.claimed({"data": "digits", "config": {}, "images": "", "threads": 1}):
        assert "no method has started" in str(Report.read([tmp_path / "run"]))
        outlines = {1: outline, 2: outline | {"place": "A0-y"}}
        folder.add_jobs([Job("baseline", seed, [each], ["A0"]) for seed, each in outlines.items()])
    scores = {split: {copy: score(90, 80) for copy in ("raw", "ema")} for split in ("validation", "test")}
    Journal(folder.stage("A0-x") / "journal.jsonl").write("round", scores=scores, audit=None, cost={})
    report = Report.read([tmp_path / "run"])
    assert [job.finished for job in report.jobs] == [True, False]
    assert "1 of 2" in str(report)
    assert "90.00" in str(report)
    with pytest.raises(RunError, match="not finished"):
        report.jobs[1].shipped()


def test_gain_is_paired_by_seed(tiny: dict[str, object], tmp_path: Path) -> None:
    report = dmt.fit("digits", out=tmp_path, method=["baseline", "cl"], seed=[1, 2], settings=tiny, watcher=Silent())
    base, cl = ([job for job in report.jobs if job.method == name] for name in ("baseline", "cl"))
    gains = [b.test_score("shipped") - a.test_score("shipped") for a, b in zip(base, cl, strict=True)]
    assert spread(gains) in str(report)


def test_a_report_is_short_to_look_at() -> None:
    jobs = [made_up_pair("digits", [80.0], 82.0, "baseline"), made_up_pair("digits", [80.0, 90.0], 92.0)]
    more = made_up_pair("digits", [80.0, 90.0], 93.0, seed=2)
    shown = repr(Report((*jobs, more)))
    assert shown == "<Report digits: baseline 82.00 (seed 1), dmt 92.50 ± 0.71 (seeds 1, 2)>"
    assert repr(Report(())) == "<Report of nothing yet>"
    with pytest.raises(ConfigError, match="a report is read from run folders, as text or as Paths, not 3"):
        Report.read(3)  # type: ignore[arg-type]
    assert len(repr(jobs[1])) < 500


def test_results_are_there_as_numbers() -> None:
    jobs = [made_up_pair("digits", [80.0], 82.0, "baseline", seed) for seed in (1, 2)]
    jobs += [made_up_pair("digits", [80.0, 90.0], 90.0 + seed, seed=seed) for seed in (1, 2, 3)]
    report = Report(tuple(jobs))
    assert report.scores == {"baseline": {1: 82.0, 2: 82.0}, "dmt": {1: 91.0, 2: 92.0, 3: 93.0}}
    assert report.gain("dmt") == {1: 9.0, 2: 10.0}
    assert report.gain("baseline") == {}
    assert report.per_class("dmt") == {f"kind {number}": 90.0 for number in range(10)}
    with pytest.raises(DmtError, match="did you mean 'dmt'"):
        report.gain("dmtt")


def test_the_numbers_are_those_of_the_tables(tiny: dict[str, object], tmp_path: Path) -> None:
    report = dmt.fit("digits", out=tmp_path, method=["baseline", "cl"], seed=[1, 2], settings=tiny, watcher=Silent())
    assert spread(list(report.scores["cl"].values())) in str(report)
    assert spread(list(report.gain("cl").values())) in str(report)
    classes = report.per_class("cl")
    assert list(classes) == [str(digit) for digit in range(10)]
    assert sum(classes.values()) / 10 == pytest.approx(sum(report.scores["cl"].values()) / 2)  # 40 images of each


def test_numbers_of_an_unfinished_method_are_missing_not_wrong() -> None:
    done = made_up_pair("digits", [80.0, 90.0], 92.0)
    stages = (*done.stages[:-1], dataclasses.replace(done.stages[-1], outcome=None))
    report = Report((JobResult("digits", "dmt", 1, stages, done.results),))
    assert report.scores == {"dmt": {}}
    assert report.gain("dmt") == {}
    assert report.per_class("dmt") == {}
    assert repr(report) == "<Report digits: dmt not finished>"


def test_numbers_of_different_data_do_not_mix() -> None:
    report = Report((made_up_pair("digits", [80.0], 82.0), made_up_pair("scenes", [80.0], 82.0)))
    for ask in (lambda: report.scores, lambda: report.gain("dmt"), lambda: report.per_class("dmt")):
        with pytest.raises(DmtError, match="several data sets or options: digits, scenes"):
            ask()


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_report_fits_the_terminal(width: int) -> None:
    changes = tuple(f"an_option={number}" for number in range(20))
    jobs = [
        dataclasses.replace(made_up_pair("digits", [80.0 + seed], 82.0, method, seed), changes=changes)
        for method in ("baseline", "dmt")
        for seed in (1, 2)
    ]
    text = Report(tuple(jobs)).text(width)
    assert max(map(len, text.split("\n"))) <= width
    assert "an_option=19" in text
    assert str(Report(tuple(jobs))) == Report(tuple(jobs)).text()
    assert max(map(len, str(Report(tuple(jobs))).split("\n"))) > 120
    summary = Report(tuple(jobs)).summary(60)
    assert "A, B: the last nets" not in summary  # of columns that are not shown nothing is explained
