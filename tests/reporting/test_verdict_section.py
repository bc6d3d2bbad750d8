"""The verdict's second sentence: which method gained the most, if it is not the one that the verdict is about."""

from dataclasses import replace
from pathlib import Path

from dmt.reporting import verdict_section
from dmt.reporting.studies import Study
from dmt.results.job_results import JobResult
from dmt.runs.folder import Folder
from tests.reporting.made_up import made_up
from tests.results.test_guard import right, written


def of(method: str, score: float, seed: int = 1) -> JobResult:
    return replace(made_up("digits", 10, [score]), method=method, seed=seed)


def test_a_method_that_gained_more_is_named() -> None:
    jobs = [of("baseline", 80.0), of("dmt", 86.0), of("cl", 88.0)]
    assert verdict_section.best(Study("d", jobs)) == (
        "CL gained more: +8.0 points over Baseline, 2.0 points more than DMT."
    )
    said = verdict_section.best(Study("d", [*jobs, of("cbst", 87.0)]))
    assert said is not None
    assert said.startswith("CL gained the most of 3 methods: +8.0")


def test_nothing_is_said_where_the_verdict_is_about_the_best_or_nobody_was_trained_beside_it() -> None:
    assert verdict_section.best(Study("d", [of("baseline", 80.0), of("dmt", 86.0), of("cl", 84.0)])) is None
    assert verdict_section.best(Study("d", [of("baseline", 80.0), of("dmt", 86.0), of("cl", 86.04)])) is None
    assert verdict_section.best(Study("d", [of("baseline", 80.0), of("dmt", 86.0)])) is None
    assert verdict_section.best(Study("d", [of("baseline", 80.0), of("oracle", 99.0), of("dmt", 86.0)])) is None
    assert verdict_section.best(Study("d", [of("dmt", 86.0)])) is None


def test_other_seeds_are_no_fair_comparison() -> None:
    jobs = [of("baseline", 80.0), of("baseline", 80.0, 2), of("dmt", 86.0), of("dmt", 86.0, 2), of("cl", 88.0)]
    said = verdict_section.best(Study("d", jobs))
    assert said == "CL gained more: +8.0 points over Baseline, but with other seeds than DMT."


def test_it_says_whether_the_difference_may_be_chance(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    _, base = written(folder, "baseline", [right(300)])
    _, main = written(folder, "dmt", [right(320)])
    for count, shift, words in ((324, 60, "indistinguishable from chance"), (390, 0, "more than chance")):
        _, other = written(Folder(tmp_path / words), "cl", [right(count, shift=shift)])
        said = verdict_section.best(Study("d", [base, main, other]))
        assert said is not None
        assert said.endswith(f", which is {words}.")
