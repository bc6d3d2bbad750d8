"""Scores as tables and charts: what stands first, what is marked, and what is the final model."""

import re
from dataclasses import replace

from dmt.reporting import score_section
from dmt.reporting.studies import Study
from tests.reporting.made_up import made_up, made_up_pair


def test_the_papers_number_stands_beside_its_own_row_only() -> None:
    job = made_up("cifar10-4k", 10, [80.0, 90.0, 93.0])
    assert "paper&#x27;s DMT 94.2" in score_section.by_round(Study("c", [job]))
    other = replace(job, changes=("gamma=5",))
    assert "paper" not in score_section.by_round(Study("c", [other]))


def test_what_others_published_is_marked_in_the_table() -> None:
    job = made_up("cifar10-4k", 10, [80.0, 90.0, 93.0])
    other = replace(job, method="softmatch")
    both = score_section.table(Study("c", [job, other]))
    assert "94.21<" in both
    assert "95.73*<" in both
    assert "another net, start, split or schedule" in both
    assert "another net" not in score_section.table(Study("c", [job]))
    few = replace(other, data="cifar10-40")  # a preset of ours, without a row in the paper
    assert "94.94*<" in score_section.table(Study("c", [few]))


def test_numbers_of_other_nets_starts_or_splits_are_marked() -> None:
    job = made_up("voc-1of8", 21, [60.0, 65.0])
    other = replace(job, method="adv-semi-seg")
    text = str(score_section.table(Study("v", [job, other])))
    assert "69.50*" in text
    assert "another net, start, split or schedule" in text
    assert "another net" not in str(score_section.table(Study("v", [job])))


def heads(table: str) -> list[str]:
    return re.findall(r"<th [^>]*>(?:<button[^>]*>)?([^<]*)", table)


def test_score_and_gain_come_first_since_a_narrow_screen_shows_no_more() -> None:
    pairs = [made_up_pair("digits", [80.0], 82.0, "baseline"), made_up_pair("digits", [80.0, 90.0], 92.0)]
    assert heads(score_section.table(Study("d", pairs)))[:3] == ["method", "accuracy, %", "gain"]
    assert heads(score_section.comparison([Study("d", pairs)]))[:4] == ["run", "method", "score, %", "gain"]


def test_many_options_of_a_run_are_folded() -> None:
    job = made_up("digits", 10, [80.0])
    few, many = (replace(job, changes=tuple(f"o{number}=1" for number in range(count))) for count in (2, 3))
    assert "<details>" not in score_section.comparison([Study("d", [few])])
    assert "<summary>3 options</summary><p>o0=1, o1=1, o2=1" in score_section.comparison([Study("d", [many])])


def test_methods_are_compared_with_the_best_one_where_there_are_two() -> None:
    base, job = replace(made_up("digits", 10, [80.0]), method="baseline"), made_up("digits", 10, [86.0])
    assert score_section.between(Study("d", [base, job])) is None
    other = replace(made_up("digits", 10, [80.0, 84.5]), method="cl")
    shown = score_section.between(Study("d", [base, job, other]))
    assert shown is not None
    assert heads(shown) == ["best", "over", "points", "90 % interval", "more than chance", "seeds"]
    assert re.findall(r"<td[^>]*>([^<]*)", shown) == ["DMT", "CL", "+1.50", "–", "–", "1"]


def test_lines_of_single_nets_are_told_from_the_final_model() -> None:
    """The verdict and the table are about both nets together; a line that ends elsewhere must not pass for them."""
    pairs = [made_up_pair("digits", [76.3], 77.0, "baseline"), made_up_pair("digits", [76.3, 78.3], 79.2)]
    drawn = score_section.by_round(Study("d", pairs))
    for name in ("DMT, single 78.3", "DMT, final 79.2", "Baseline, single 76.3", "Baseline, final 77.0"):
        assert f">{name}<" in drawn
    assert drawn.count("ring line") == 2
    assert "Rings: the final models" in drawn
    assert "The columns accuracy and gain are of the final model" in score_section.table(Study("d", pairs))


def test_a_line_that_ends_at_the_final_model_needs_no_ring() -> None:
    drawn = score_section.by_round(Study("d", [made_up("digits", 10, [80.0, 90.0])]))
    assert ">DMT 90.0<" in drawn
    assert "ring" not in drawn.replace("Rings", "")
    assert "Rings" not in drawn


def test_a_round_that_is_kept_though_it_is_not_the_last_has_a_ring() -> None:
    best = replace(made_up("digits", 10, [80.0, 95.0, 90.0]), keep="best")
    drawn = score_section.by_round(Study("d", [best]))
    assert ">DMT, last round 90.0<" in drawn
    assert ">DMT, final 95.0<" in drawn
