"""Methods compared with each other: by hand, and what is left out."""

import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dmt.core import evidence
from dmt.core.evidence import Interval
from dmt.errors import DmtError
from dmt.methods import catalogue
from dmt.results import comparisons, guard
from dmt.results.job_results import JobResult
from dmt.results.report import Report
from dmt.runs.folder import Folder
from tests.reporting.made_up import made_up, made_up_pair
from tests.results.test_guard import right, written


def of(method: str, *scores: float, seed: int = 1) -> JobResult:
    job = made_up("digits", 10, scores)
    stages = tuple(replace(stage, place=f"{stage.place}-{method}{seed}") for stage in job.stages)
    return replace(job, method=method, seed=seed, stages=stages)


def table(text: str) -> list[list[str]]:
    """The rows of the table that compares methods with each other; empty if there is none."""
    lines = text.partition("the best method over the others")[2].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if line.startswith("│")]


def test_one_seed_by_hand(tmp_path: Path) -> None:
    """Of 400 images, DMT is right on 16 more than CL and wrong on none that CL gets right; CBST differs in many."""
    folder = Folder(tmp_path)
    jobs = [
        written(folder, method, [answers])[1]
        for method, answers in (("baseline", right(300)), ("dmt", right(352)), ("cl", right(336)))
    ]
    jobs.append(written(folder, "cbst", [right(332, shift=100)])[1])
    cl, cbst = comparisons.of_best(jobs)
    assert (cl.method, cl.other, cl.told) == ("dmt", "cl", "yes")
    assert cl.points == pytest.approx({1: 4.0})
    alone = guard.gain(jobs[1], jobs[2])
    assert alone is not None
    assert (alone.low, alone.high) == pytest.approx((4 - 1.6, 4 + 1.6), abs=0.3)  # 16 of 400 images, ± 1.645 √16
    assert cl.interval is not None
    widened = [4.0 + 2.902 / 2.326 * (end - 4.0) for end in (alone.low, alone.high)]  # for one of three methods
    assert [cl.interval.low, cl.interval.high] == pytest.approx(widened)
    assert comparisons.of_best(jobs[:3])[0].interval == alone
    assert (cbst.other, cbst.told) == ("cbst", "no")
    assert cbst.mean == pytest.approx(5.0)
    shown = table(Report(tuple(jobs)).text())
    told = f"+4.00 ({cl.interval.low:+.2f} to {cl.interval.high:+.2f})"
    assert shown[0] == ["DMT", "CL", "1", told, "yes"]
    assert [row[:2] for row in shown] == [["DMT", "CL"], ["DMT", "CBST"]]
    assert "all pairs of these methods at once" in str(Report(tuple(jobs)))
    assert "all pairs of these methods" not in str(Report(tuple(jobs[:3])))


@pytest.mark.parametrize(("methods", "plain"), [(2, 0.10), (3, 0.23), (10, 0.82), (20, 0.98)])
def test_the_best_of_equals_is_rarely_called_better(methods: int, plain: float) -> None:
    """Scores of equally good methods: at least one of the others lies outside of its interval in 10 % of cases."""
    scores = np.random.default_rng(0).standard_normal((20_000, methods))
    alone = 1.645 * 2**0.5
    reach = comparisons.widened(Interval(0.0, -alone, alone), methods).high
    called = [(np.ptp(scores, axis=1) > limit).mean() for limit in (alone, reach)]
    assert called == pytest.approx([plain, 0.1], abs=0.01)


def test_several_seeds_by_hand(tmp_path: Path) -> None:
    """Two seeds hardly know how far a third may lie: 4 ± 6.3 · 1.4 / √2 points include 0."""
    folder = Folder(tmp_path)
    counts = {"cl": (300, 310), "dmt": (312, 330)}
    jobs = [
        written(folder, method, [right(count)], seed)[1]
        for method, each in counts.items()
        for seed, count in enumerate(each, start=1)
    ]
    (found,) = comparisons.of_best(jobs)
    assert found.points == {1: pytest.approx(3.0), 2: pytest.approx(5.0)}
    assert found.interval is not None
    reach = evidence.STUDENT[0] * statistics.stdev([3.0, 5.0]) / 2**0.5
    ends = (found.interval.value, found.interval.low, found.interval.high)
    assert ends == pytest.approx((4.0, 4.0 - reach, 4.0 + reach))
    assert found.told == "no"
    assert Report(tuple(jobs)).compare("cl", "dmt") == {1: pytest.approx(-3.0), 2: pytest.approx(-5.0)}


def test_the_best_is_so_on_the_seeds_that_all_have() -> None:
    jobs = [of("dmt", 90.0), of("dmt", 99.0, seed=2), of("cl", 91.0), of("cbst", 80.0), of("cbst", 98.0, seed=2)]
    found = comparisons.of_best(jobs)
    assert [(each.method, each.other, each.points) for each in found] == [
        ("cl", "dmt", {1: 1.0}), ("cl", "cbst", {1: 11.0}),
    ]  # fmt: skip
    assert [each.points for each in comparisons.of_best([*jobs, of("cl", 97.0, seed=3)])] == [{1: 1.0}, {1: 11.0}]


def test_without_a_common_seed_each_pair_is_compared_on_its_own() -> None:
    assert comparisons.of_best([of("dmt", 90.0), of("cl", 91.0, seed=2)]) == []
    jobs = [of("dmt", 90.0), of("dmt", 90.0, seed=2), of("cl", 91.0), of("cbst", 89.0, seed=2), of("dst", 88.0)]
    found = {each.other: each.points for each in comparisons.of_best(jobs)}
    assert found == {"dmt": {1: 1.0}, "dst": {1: 3.0}}


@pytest.mark.parametrize(
    "jobs",
    [
        [of("baseline", 80.0), of("dmt", 90.0)],
        [of("baseline", 80.0), of("oracle", 99.0), of("dmt", 90.0)],
        [of("dmt", 90.0), of("cl", float("nan"))],
        [of("dmt", 90.0), replace(of("cl", 80.0), stages=tuple(
            replace(stage, outcome=None) for stage in of("cl", 80.0).stages))],
        [of("dmt", 90.0), replace(of("cl", 80.0), changes=("gamma=5",))],
    ],
    ids=["one method", "ceiling", "unknown score", "unfinished", "other options"],
)  # fmt: skip
def test_nothing_is_said_with_fewer_than_two_methods(jobs: Sequence[JobResult]) -> None:
    assert table(Report(tuple(jobs)).text()) == []


def test_a_pair_and_a_single_net_are_compared_net_by_net() -> None:
    """An ensemble would make the pair look too good, whichever of the two is the first; a Baseline may be one."""
    pair, alone = made_up_pair("digits", [90.0], 94.0), of("fixmatch", 91.0)
    base = made_up_pair("digits", [80.0], 82.0, "baseline")
    report = Report((base, pair, alone))
    assert report.compare("dmt", "fixmatch") == {1: -1.0}
    assert report.compare("fixmatch", "dmt") == {1: 1.0}
    (found,) = comparisons.of_best(report.jobs)
    assert (found.method, found.points, found.single) == ("dmt", {1: -1.0}, True)
    assert table(str(report)) == [["DMT", "FixMatch", "1", "single", "-1.00"]]
    assert "single: net over net" in str(report)
    for method, points in (("dmt", 12.0), ("fixmatch", 9.0)):
        assert report.compare(method, "baseline") == report.gain(method) == {1: points}
        assert report.compare("baseline", method) == {1: -points}


def test_two_methods_that_kept_the_same_first_nets_differ_by_nothing(tmp_path: Path) -> None:
    _, job = written(Folder(tmp_path), "dmt", [right(320), right(300)])
    jobs = [replace(job, method=method, keep="best") for method in ("dmt", "cl")]
    (found,) = comparisons.of_best(jobs)
    assert (found.points, found.told) == ({1: 0.0}, "same nets")


def test_without_evidence_there_is_no_interval() -> None:
    report = Report((of("dmt", 90.0), of("cl", 88.5)))
    assert table(str(report)) == [["DMT", "CL", "1", "+1.50"]]


@pytest.mark.parametrize("width", [60, 80, None])
def test_many_methods_have_a_row_each(width: int | None) -> None:
    names = [method.name for method in catalogue.METHODS.values() if method.compared][:20]
    jobs = [of(name, 70.0 + number % 7, seed=seed) for number, name in enumerate(names) for seed in (1, 2)]
    text = Report(tuple(jobs)).text(width)
    found = comparisons.of_best(jobs)
    assert len(found) == len(names) - 1
    assert [each.mean for each in found] == sorted(each.mean for each in found)
    part = text.partition("the best method over the others")[2].split("\n\n")[0]
    assert len(part.splitlines()) <= len(names) + 8
    assert width is None or max(map(len, text.splitlines())) <= width


def test_data_and_options_are_named_where_there_are_several() -> None:
    jobs = [replace(of(method, score), changes=changes)
            for changes, method, score in (((), "dmt", 90.0), ((), "cl", 89.0),
                                           (("gamma=5",), "dmt", 87.0), (("gamma=5",), "cl", 88.0))]  # fmt: skip
    assert [row[:3] for row in table(str(Report(tuple(jobs))))] == [
        ["digits", "DMT", "CL"], ["digits [1]", "CL", "DMT"],
    ]  # fmt: skip
    more = Report((*jobs[:2], replace(of("dmt", 86.0), data="scenes")))
    assert [row[:3] for row in table(str(more))] == [["digits", "DMT", "CL"]]


def test_nets_of_the_last_and_of_the_best_round_are_compared_apart() -> None:
    trained = of("dmt", 80.0, 92.0, 90.0), of("cl", 80.0, 91.0, 91.0)
    jobs = [replace(job, keep=keep) for keep in ("last", "best") for job in trained]
    assert [row[:3] + row[4:] for row in table(str(Report(tuple(jobs))))] == [
        ["digits, last round", "CL", "DMT", "+1.00"], ["digits, best round", "DMT", "CL", "+1.00"],
    ]  # fmt: skip


def test_methods_of_a_report_are_named_as_in_the_command() -> None:
    report = Report((of("dmt", 90.0), of("cl", 88.5)))
    with pytest.raises(DmtError, match="did you mean 'dmt'"):
        report.compare("cl", "dmtt")
    assert report.compare("dmt", "dmt") == {1: 0.0}


def test_a_score_is_computed_once_for_all_comparisons(tmp_path: Path) -> None:
    """Twenty methods are compared with one best method: its draws are the same each time."""
    folder = Folder(tmp_path)
    methods = ("cl", "dmt", "cbst")
    jobs = [written(folder, method, [right(320 + 8 * number)])[1] for number, method in enumerate(methods)]
    guard._drawn.cache_clear()
    comparisons.of_best(jobs)
    assert guard._drawn.cache_info().misses == len(jobs)
