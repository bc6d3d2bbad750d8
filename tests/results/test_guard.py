"""The guard, provoked: each rule on a real tiny run that goes wrong in its way, and silence on one that does not."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dmt
from dmt import files, presets
from dmt.cli import app
from dmt.core import evidence
from dmt.core.evidence import Evidence
from dmt.methods import catalogue
from dmt.results import guard, guard_rules, guard_summary, reading
from dmt.results.guard import Finding
from dmt.results.job_results import JobResult
from dmt.results.report import Report
from dmt.results.stage_results import StageResult
from dmt.runs.folder import Folder, Job
from dmt.runs.progress import Silent
from dmt.training import evidence_files
from dmt.training.journal import Journal
from tests.conftest import TINY

STILL = {"rate": 1e-9, "rate_round": 1e-9, "weight_decay": 0.0, "fractions": "1", "epochs": 2, "ema": "none"}
"""Nets stay where they start: what is wrong with the start is all that is wrong."""


class Notes(Silent):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parameters of a net that knows its digits."""
    out = tmp_path_factory.mktemp("start")
    dmt.fit("digits", out=out, method="baseline", settings=TINY | {"epochs": 40}, watcher=Silent())
    return next(out.glob("stages/A0-*/step-*/*-raw.safetensors"))


def biased(start: Path, place: Path, label: int, by: float) -> Path:
    """The same net, that likes one class more, or less."""
    tensors = files.read_tensors(start)
    tensors["body.head.bias"][label] += by
    files.write_tensors(place, tensors)
    return place


def fit(out: Path, start: Path, method: str, **settings: object) -> tuple[Report, list[str]]:
    watcher = Notes()
    report = dmt.fit(
        "digits", out=out, method=method, settings=TINY | STILL | settings, start=str(start), watcher=watcher
    )
    return report, [note for note in watcher.notes if note.startswith("guard: ")]


@pytest.fixture(scope="module")
def ruined(start: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A run whose first round unlearns everything, and what was said while it trained."""
    out = tmp_path_factory.mktemp("ruined")
    return out, fit(out, start, "cbst", rate_round=5.0)[1]


def found(report: Report) -> dict[str, Finding]:
    job = report.jobs[0]
    base = next(each for each in report.jobs if each.method == "baseline")
    return {f"{finding.where} {finding.kind}": finding for finding in guard.findings(job, base)}


def test_a_run_in_which_nothing_happens_is_left_in_peace(start: Path, tmp_path: Path) -> None:
    report, said = fit(tmp_path, start, "dst")
    assert said == []
    assert list(found(report)) == [" no gain"]  # indeed: nothing happened
    assert "indistinguishable from chance" in report.verdicts()[0]


def test_a_round_that_makes_validation_worse(ruined: tuple[Path, list[str]]) -> None:
    report, said = Report.read([ruined[0]]), ruined[1]
    finding = found(report)["A1 worse"]
    assert "clearly worse than after A0" in finding.text
    assert "rate_round=2.5" in finding.remedy
    assert "--keep best" in finding.remedy
    assert any(f"guard: CBST A1, seed 1: {finding}" == line for line in said)
    assert f"guard: CBST A1, seed 1: {finding}" in str(report)
    assert "clearly worse than Baseline" in found(report)[" no gain"].text
    assert "no round beat the first nets" in report.verdicts()[0]


def test_a_class_whose_pseudo_labels_vanish(start: Path, tmp_path: Path) -> None:
    """It is said before the stage trains on them, and once for a line."""
    start = biased(start, tmp_path / "start.safetensors", 3, -100.0)
    report, said = fit(tmp_path / "run", start, "dst", fractions="0.5,1")
    assert [key for key in found(report) if "vanished" in key] == ["A1 vanished"]
    assert "class 3 has hardly any pseudo labels: 0 are kept, but 55 would match its share of the labels" in said[0]
    assert said[0].endswith("try --set per_class=true or more labels of class 3")


def test_classes_that_are_predicted_but_never_kept(start: Path, tmp_path: Path) -> None:
    """In early rounds of a curriculum the hardest class may wait; when it ends it may not."""
    base, _ = fit(tmp_path / "run", start, "dst", fractions="0.2")
    job = base.jobs[0]
    stage = job.stages[1]
    assert stage.labels is not None
    coverage = {"predicted": [110] * 10, "kept": [0, *[24] * 9]}
    labels = stage.labels | {"coverage": coverage, "kept": 216}
    last = dataclasses.replace(stage, labels=labels)
    assert [finding.kind for finding in guard_rules.of_labels(job, last)] == ["vanished"]
    early = dataclasses.replace(job, results=("A2",))  # another round follows
    assert not list(guard_rules.of_labels(early, last))


def test_classes_in_other_proportions(start: Path, tmp_path: Path) -> None:
    report, _ = fit(tmp_path, start, "dst")
    job = report.jobs[0]
    stage = next(each for each in job.stages if each.round == 1)
    assert stage.labels is not None

    def said(predicted: list[int]) -> list[Finding]:
        coverage = {**stage.labels["coverage"], "predicted": predicted, "kept": predicted}  # type: ignore[index]
        changed = dataclasses.replace(stage, labels={**stage.labels, "coverage": coverage}, outcome=None)  # type: ignore[dict-item]
        return guard.of_stage(job, changed)

    due = [round(1000 * count / sum(stage.labels["labeled"])) for count in stage.labels["labeled"]]
    assert said(due) == []
    skewed = list(due)
    skewed[3] += 150
    skewed[5] -= due[5] // 2
    (finding,) = said(skewed)
    assert finding.kind == "skewed"
    assert "seem to differ from those of the labels" in finding.text
    assert finding.about == "classes 3 and 5"
    assert "more labels of class 5" in finding.remedy
    few = [count // 20 for count in skewed]
    assert said(few) == []  # chance could do that


def test_a_collapse_to_one_class(start: Path, tmp_path: Path) -> None:
    report, said = fit(tmp_path / "run", biased(start, tmp_path / "start.safetensors", 4, 100.0), "dst")
    findings = guard.findings(report.jobs[0])
    assert [(each.kind, each.where) for each in findings] == [
        ("collapsed", "A0"), ("collapsed", "A1"), ("collapsed", "A1"),
    ]  # fmt: skip
    assert findings[0].text == "the net predicts 100% of validation as class 4, but only 10% is"
    assert findings[0].remedy == "--set epochs=4, or --set rate=5e-10"  # a first net has mostly seen too little
    assert findings[2].remedy == "--set rate_round=5e-10"
    assert findings[1].text == "100% of the pseudo labels are class 4, but only 10% of the labels are"
    assert len(said) == 3


def test_an_online_method_is_told_its_own_options_and_of_both_its_lines(start: Path, tmp_path: Path) -> None:
    start = biased(start, tmp_path / "start.safetensors", 4, 100.0)
    report, said = fit(tmp_path / "run", start, "cps", **{"cps.epochs": 1})
    findings = guard.findings(report.jobs[0])
    assert [(each.kind, each.where) for each in findings] == [("collapsed", "A1"), ("collapsed", "B1")]
    assert {each.remedy for each in findings} == {"--set cps.epochs=2, or --set cps.rate=5e-10"}
    assert len([line for line in said if "CPS AB1" in line]) == 1  # the same of both is said once
    assert "best by validation" not in report.verdicts()[0]


def test_nets_that_know_one_class_are_not_told_that_they_agree(start: Path, tmp_path: Path) -> None:
    """A teacher that collapsed is what is wrong, and it was said."""
    start = biased(start, tmp_path / "start.safetensors", 4, 100.0)
    report, _ = fit(tmp_path / "run", start, "dmt", shape="pair")
    assert {finding.kind for finding in guard.findings(report.jobs[0])} == {"collapsed"}


def test_much_background_is_no_collapse() -> None:
    due = np.array([0.96, 0.02, 0.02])
    assert guard_rules._collapse(np.array([970.0, 10.0, 20.0]), due) is None
    assert guard_rules._collapse(np.array([999.0, 1.0, 0.0]), due) == 0


def test_nets_that_agree_almost_everywhere(start: Path, tmp_path: Path) -> None:
    # all labels in every batch, so that not even the statistics of BatchNorm differ
    still = {"batch": 100, "batch_labeled": 100, "batch_pseudo": 1, "epochs": 20, "mixup": "none", "augment": "none"}
    report, said = fit(tmp_path, start, "dmt", shape="pair", fractions="0.02", epochs_round=1, **still)
    assert {"A1 alike", "B1 alike"} <= set(found(report))
    line = next(line for line in said if "DMT A1" in line)
    assert "hardly differs from its teacher B0" in line
    assert "share=0.8" in line


@pytest.mark.parametrize(("images", "says"), [(20, "20 validation images are too few"), (0, "without validation")])
def test_validation_that_is_too_small_to_tell(images: int, says: str, start: Path, tmp_path: Path) -> None:
    report, said = fit(tmp_path, start, "baseline", validation=images)
    assert len(said) == 1
    assert says in said[0]
    assert "validation=" in said[0]
    assert not report.verdicts()


def test_it_is_in_the_journal_and_not_said_again(start: Path, tmp_path: Path) -> None:
    settings = {"validation": 20}
    report, _ = fit(tmp_path, start, "dst", **settings)
    line = report.jobs[0].stages[0].journal("guard")[-1]
    assert [finding["kind"] for finding in line["findings"]] == ["unsure"]
    before = {path: path.read_bytes() for path in tmp_path.glob("stages/*/journal.jsonl")}
    again, said = fit(tmp_path, start, "dst", **settings)
    assert said == []
    assert before == {path: path.read_bytes() for path in before}
    assert guard.findings(again.jobs[0]) == guard.findings(report.jobs[0])
    journal = Journal(tmp_path / "journal.jsonl")
    journal.write("labels", kept=1, of=1, coverage={"predicted": [1], "kept": [1]})
    journal.write("round", scores={}, audit=None, cost={})
    journal.write("guard", findings=[])
    journal.rewind(0)
    assert [each["kind"] for each in journal.read()] == ["labels"]


def test_what_was_made_before_there_was_a_guard_is_judged_now(ruined: tuple[Path, list[str]], tmp_path: Path) -> None:
    shutil.copytree(ruined[0], tmp_path / "old")
    told = guard.findings(Report.read([tmp_path / "old"]).jobs[0])
    assert told
    for path in tmp_path.glob("old/stages/*/journal.jsonl"):
        lines = [line for line in path.read_text().splitlines() if json.loads(line)["kind"] != "guard"]
        path.write_text("\n".join(lines) + "\n")
    assert guard.findings(Report.read([tmp_path / "old"]).jobs[0]) == told


@pytest.mark.parametrize("shape", ["chain", "pair"])
def test_every_fit_trains_its_baseline(shape: str, tiny: dict[str, object], tmp_path: Path) -> None:
    settings = tiny | {"epochs": 1, "epochs_round": 1, "batch_pseudo": 512, "fractions": "1", "shape": shape}
    report = dmt.fit("digits", out=tmp_path / "a", settings=settings, watcher=Silent())
    assert [job.method for job in report.jobs] == ["dmt", "baseline"]
    dmt.fit("digits", out=tmp_path / "b", settings=settings, watcher=Silent(), baseline=False)
    stages = [{path.name for path in (tmp_path / name / "stages").iterdir()} for name in "ab"]
    assert stages[0] == stages[1]  # it costs nothing
    assert [job.method for job in reading.read(Folder(tmp_path / "b"))] == ["dmt"]
    said = [Report.read([tmp_path / name]).verdicts()[0] for name in "ab"]
    assert said[1] == f"{said[0]}; Baseline is round 0 of the same run"


def test_with_a_share_the_baseline_is_two_trainings_more(tiny: dict[str, object], tmp_path: Path) -> None:
    settings = tiny | {
        "epochs": 1,
        "epochs_round": 1,
        "batch_pseudo": 512,
        "fractions": "1",
        "shape": "pair",
        "share": 0.8,
    }
    report = dmt.fit("digits", out=tmp_path / "run", settings=settings, watcher=Silent())
    assert all(job.finished for job in report.jobs)
    # its own first nets see fewer labels than a Baseline does
    assert guard.base(report.jobs[0], report.jobs[:1]) is None
    assert guard.base(report.jobs[0], report.jobs) is report.jobs[1]
    assert len(list((tmp_path / "run" / "stages").iterdir())) == 4 + 2
    oracle = dmt.fit(
        "digits",
        out=tmp_path.with_name("oracle"),
        method="oracle",
        settings=settings | {"shape": "chain", "share": "none"},
        watcher=Silent(),
    )
    assert [job.method for job in oracle.jobs] == ["oracle"]


def test_a_plan_counts_the_baseline_where_it_costs_something() -> None:
    def planned(*settings: str) -> str:
        words = [word for setting in settings for word in ("--set", setting)]
        return CliRunner().invoke(app.app, ["plan", "digits", "--no-time", *words]).stdout

    assert "Baseline" not in planned()
    assert "Baseline" not in planned("shape=pair")
    shared = planned("shape=pair", "share=0.8")
    assert "Baseline A0" in shared
    assert "Baseline B0" in shared


def written(
    folder: Folder, method: str, rights: list[np.ndarray], seed: int = 1, split: str = "test"
) -> tuple[Job, JobResult]:
    """A job of a chain whose nets were right on these images, (N,) bool for each round; truth is class 3."""
    outlines: list[dict[str, Any]] = []
    for number, right in enumerate(rights):
        place = f"A{number}-{method}{seed}"
        outlines.append({"name": f"A{number}", "lines": ["A"], "round": number, "place": place})
        count = len(right)
        said = np.where(right, 3, 5).astype(np.int32)
        truth, ones = np.full(count, 3, np.int32), np.ones(count, np.int32)
        said_of_all = Evidence(np.arange(count, dtype=np.int32), truth, said, ones, right * np.float32(0.9), 10, False)
        splits = ("validation",) if split == "validation" else ("validation", "test")
        for each in splits:
            evidence_files.write(folder.stage(place), each, "A", "raw", said_of_all)
        score = {"accuracy": said_of_all.score(), "fine_grained": said_of_all.fine_grained()}
        scores = {each: {"A": {"raw": score}} for each in splits}
        Journal(folder.stage(place) / "journal.jsonl").write("round", scores=scores, audit=None, cost={})
    job = Job(method, seed, outlines, [outlines[-1]["name"]])
    return job, reading.of_job(folder, {"data": "digits", "config": {}, "images": ""}, job)


def right(count: int, of: int = 400, shift: int = 0) -> np.ndarray:
    return np.roll(np.arange(of) < count, shift)


def test_the_verdict_on_one_seed_has_an_interval(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    _, base = written(folder, "baseline", [right(320)])
    _, job = written(folder, "dmt", [right(320), right(344), right(336)])
    gain = guard.gain(job, base)
    assert gain is not None
    assert gain.value == pytest.approx(4.0)
    assert 2.0 < gain.low < 4.0 < gain.high < 6.0
    text = guard.verdict([job], [base])
    interval = f"({gain.low:+.1f} to {gain.high:+.1f}, 90 % interval over the 400 test images)"
    shipped = job.shipped().evidence("test")
    assert shipped is not None
    own = evidence.interval(84.0, evidence.spread([shipped], []))
    assert own.low < 82 < 86 < own.high
    assert text == (
        f"DMT +4.0 points over Baseline with the same labels {interval}; accuracy 84.0 ({own.low:.1f} to "
        f"{own.high:.1f}), Baseline 80.0; round 1 was best by validation"
    )
    assert [finding.kind for finding in guard.findings(job, base)] == ["worse"]  # the last round
    worse = guard.verdict([base], [base]), guard.verdict([dataclasses.replace(base, method="dmt")], [job])
    assert "indistinguishable from chance" in worse[0]
    assert "class 3 got worse" in worse[1]
    assert "4.0 points below Baseline with the same labels (−" in worse[1]
    ways = guard.findings(dataclasses.replace(base, method="dmt"), job)[-1]
    assert "clearly worse than Baseline with the same labels: −4.0 points (−" in ways.text
    assert "gamma" not in ways.remedy  # nothing here weighs its labels


ONE_STAGE = [
    method.name
    for method in catalogue.METHODS.values()
    if method.compared and len(method.plan(presets.get("digits").config.recipe).stages) == 1
]


@pytest.mark.parametrize("method", ONE_STAGE)
def test_a_method_of_one_stage_has_no_best_round_and_options_of_its_own(method: str, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    _, base = written(folder, "baseline", [right(344)])
    _, job = written(folder, method, [right(320)])
    outline = {"schedule": {"epochs": 3, "descent": {"rate": 0.5}}}
    stage = dataclasses.replace(job.stages[0], name="A1", round=1, outline=outline)
    job = dataclasses.replace(job, stages=(stage,), results=("A1",))
    assert "by validation" not in guard.verdict([job], [base])
    group = catalogue.get(method).options
    assert group is not None
    assert guard.findings(job, base)[-1].remedy == f"a lower {group.group}.rate, or use --method baseline"
    assert guard_rules._trained(job, stage) == f"--set {group.group}.epochs=6, or --set {group.group}.rate=0.25"


@pytest.mark.parametrize(
    ("method", "number", "keys"),
    [("dmt", 0, ["rate", "epochs"]), ("dmt", 1, ["rate_round", "epochs_round"]),
     ("online", 0, ["rate", "epochs"]), ("online", 1, ["rate_round", "online.epochs"])],
)  # fmt: skip
def test_options_are_those_that_the_stage_reads(method: str, number: int, keys: list[str], tmp_path: Path) -> None:
    _, job = written(Folder(tmp_path), method, [right(320), right(344)])
    assert [guard_rules.option(job, job.stages[number], name) for name in ("rate", "epochs")] == keys
    assert guard_rules._slower(job, job.stages[number]) == f"a lower {keys[0]}"
    old = dataclasses.replace(job.stages[number], outline={"schedule": {"rate": 0.5}})  # as release 0.1 wrote it
    assert guard_rules._slower(job, old) == f"--set {keys[0]}=0.25"


def test_the_verdict_over_seeds_has_their_spread(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    bases = [written(folder, "baseline", [right(320)], seed)[1] for seed in (1, 2, 3)]
    gains = (12, 16, 20)
    jobs = [written(folder, "dmt", [right(320 + more)], seed)[1] for seed, more in zip((1, 2, 3), gains, strict=True)]
    assert guard.verdict(jobs, bases) == (
        "DMT +4.0 ± 1.0 points over Baseline with the same labels (3 seeds); accuracy 84.0 ± 1.0, Baseline 80.0"
    )
    two = [written(folder, "dst", [right(320 + more)], seed)[1] for seed, more in ((1, 8), (2, 24))]
    # both gain, but two seeds hardly know how far a third may lie
    assert (
        "+4.0 ± 2.8 points over Baseline with the same labels (2 seeds); this is indistinguishable from chance; "
        "accuracy 84.0 ± 2.8"
    ) in guard.verdict(two, bases)
    mixed = [
        written(folder, "cl", [right(320 + more)], seed)[1] for seed, more in zip((1, 2, 3), (40, -36, 2), strict=True)
    ]
    assert "indistinguishable from chance" in guard.verdict(mixed, bases)


def test_the_verdict_says_why_it_may_mean_little(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    _, base = written(folder, "baseline", [right(6, of=12)])
    _, job = written(folder, "dmt", [right(6, of=12), right(12, of=12)])
    said = guard.verdict([job], [base])
    assert said.endswith("; only 12 test images, so another few may say something else")
    job = dataclasses.replace(job, shortened="epochs=1 instead of 80")
    assert guard.verdict([job], [base]).endswith(
        "; the budget cut the Baseline short (epochs=1 instead of 80), so the gain may be far too large"
    )


def test_the_verdict_says_when_validation_images_were_all_there_was(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    _, base = written(folder, "baseline", [right(320)], split="validation")
    _, job = written(folder, "dmt", [right(344)], split="validation")
    assert "400 validation images" in guard.verdict([job], [base])
    assert "which also chose the net" in guard.verdict([job], [base])


def test_the_best_round_is_the_one_that_keep_best_would_choose(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    bests = [[320, 344, 336], [320, 340, 350], [320, 330, 350]]
    jobs = [written(folder, "dmt", list(map(right, each)), seed)[1] for seed, each in enumerate(bests, start=1)]
    bases = [base for job in jobs if (base := guard.base(job, jobs)) is not None]
    assert len(bases) == 3
    assert "; round 2 was best by validation in 2 of 3 cases" in guard.verdict(jobs, bases)
    unmeasured = [dataclasses.replace(job, stages=tuple(map(without_validation, job.stages))) for job in jobs]
    assert "was best" not in guard.verdict(unmeasured, bases)


def without_validation(stage: StageResult) -> StageResult:
    assert stage.outcome is not None
    return dataclasses.replace(stage, outcome=stage.outcome | {"scores": {"test": stage.outcome["scores"]["test"]}})


def test_of_first_nets_that_were_kept_no_gain_is_expected(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    _, job = written(folder, "dmt", [right(320), right(300)])
    job = dataclasses.replace(job, keep="best")
    base = guard.base(job, [job])
    assert base is not None
    assert guard.verdict([job], [base]) == (
        "DMT kept its first nets, which are the Baseline's: no round did better on validation"
    )
    assert "--seeds" not in guard.findings(job, base)[-1].remedy


def test_a_handful_of_validation_images_tells_nothing(tmp_path: Path) -> None:
    for images, kinds in ((400, ["worse"]), (20, [])):
        share = images // 20
        _, job = written(Folder(tmp_path / str(images)), "dmt", [right(19 * share, images), right(2 * share, images)])
        assert [finding.kind for finding in guard.findings(job) if finding.kind != "unsure"] == kinds


def test_what_comes_back_is_said_in_one_line(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    falling = [right(400 - 40 * number) for number in range(5)]
    jobs = [written(folder, "dmt", falling, seed)[1] for seed in (1, 2)]
    ((where, finding),) = guard_summary.told(jobs)
    assert where == "DMT A1–A4, seeds 1, 2"
    assert finding.text.startswith("first in A1 of seed 1: validation got clearly worse than after A0: −10.0 points")
    assert guard_summary.told(jobs[:1])[0][1].text.startswith("first in A1: validation got clearly worse")
    (alone,) = [each for place, each in guard_summary.told(jobs[:1]) if place == "DMT, seed 1"]
    assert alone.kind == "no gain"  # of several seeds the verdict says it


def test_a_text_holds_a_handful_of_lines(tmp_path: Path) -> None:
    _, job = written(Folder(tmp_path), "dmt", [right(320)])
    many = [Finding("vanished", "A0", f"class {number} is gone", f"labels of class {number}") for number in range(8)]
    Journal(job.stages[0].path / "journal.jsonl").write("guard", findings=list(map(dataclasses.asdict, many)))
    lines = Report((job,)).warnings()
    assert lines[4] == "guard: DMT A0, seed 1: class 4 is gone; try labels of class 4"
    assert lines[5:] == ["guard: 3 more; dmt report RUN --out report.html shows all"]


def test_no_evidence_is_no_interval(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    _, base = written(folder, "baseline", [right(320)])
    _, job = written(folder, "dmt", [right(344)])
    for path in tmp_path.rglob("*.npz"):
        path.unlink()
    assert guard.gain(job, base) is None
    assert guard.verdict([job], [base]) == "DMT +6.0 points over Baseline with the same labels"
    assert not guard.findings(job, base)


def test_the_table_tells_the_interval_of_a_single_seed(ruined: tuple[Path, list[str]]) -> None:
    report = Report.read([ruined[0]])
    gain = guard.gain(report.jobs[0], report.jobs[1])
    assert gain is not None
    assert f"{gain.value:.2f} ({gain.low:+.2f} to {gain.high:+.2f})" in report.summary()
