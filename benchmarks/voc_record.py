"""The record of some runs, as it is committed: what was run where, and the results by method, stage and class.

    python -m benchmarks.voc_record RUN … --out benchmarks/results/voc_1of50

Writes OUT.json and OUT.md from the files of the runs alone; nothing is trained or measured again. A run that was
stopped is recorded as far as it got. Gains are over the best of all Baselines with the same labels and seed, so that a
Baseline trained as long as DMT can be given as a separate run. Methods with the same labels and seed are also compared
with each other, in whichever of the runs they are.
"""

import argparse
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import provenance as provenances
from benchmarks import voc_jobs
from benchmarks.voc_jobs import Recorded
from dmt import files, run_files
from dmt.core.weighting import CASES
from dmt.methods import catalogue
from dmt.results import job_results, reading, stage_results
from dmt.results.job_results import JobResult
from dmt.results.stage_results import StageResult
from dmt.runs.folder import Folder
from dmt.training.journal import Journal

ENVIRONMENT = ("dmt", "python", "torch", "numpy", "threads", "hardware")
AUDITED = ("error_kept", "error_kept_weighted", "error_kept_all", "weight_right", "weight_wrong", *CASES)
BY_CLASS = ("coverage", "error_kept", "error_kept_weighted", "weight_right", "weight_wrong", *CASES)


def provenance(path: Path) -> dict[str, Any]:
    """Return what was run and where: command and commit of every session, and the distinct environments."""
    manifest = Folder(path).manifest()
    sessions = list(Journal(path / run_files.SESSIONS).read())
    jobs = reading.read(Folder(path))
    places = [{key: each[key] for key in ENVIRONMENT if key in each} for each in sessions]
    return {
        "run": path.name,
        "data": manifest["data"],
        "changes": list(jobs[0].changes) if jobs else [],
        "starts": {line: provenances.public(start["name"]) for line, start in manifest.get("starts", {}).items()},
        "sessions": [
            {"time": each["time"], "git": each["git"], "command": provenances.command(each["command"])}
            for each in sessions
        ],
        "environments": [each for number, each in enumerate(places) if each not in places[:number]],
    }


def stage_row(stage: StageResult) -> dict[str, Any]:
    """Return the results of a stage, or how far it got."""
    row: dict[str, Any] = {"stage": stage.title, "place": stage.place, "finished": stage.outcome is not None}
    if stage.labels is not None:
        row["labels"] = {key: stage.labels[key] for key in ("kept", "of", "coverage", "labeled") if key in stage.labels}
    if stage.outcome is None:
        steps = max((line["step"] for line in stage.journal("interval")), default=0)
        return row | {"steps": steps, "of_steps": stage.outline.get("steps")}
    scores = {
        split: {copy: _score(score) for copy, score in each.items()} for split, each in stage.outcome["scores"].items()
    }
    row |= stage.outcome["cost"]
    return row | {"scores": scores, "audit": stage.outcome["audit"]}


def _score(score: dict[str, Any]) -> dict[str, Any]:
    """Return mean IoU or accuracy and, by class, IoU or recall; None for a class without ground truth."""
    by_class = [None if value != value else value for value in score.get("iou", score["per_class"])]
    return {"score": stage_results.headline(score), "by_class": by_class}


def job_row(recorded: Recorded, others: Sequence[Recorded]) -> dict[str, Any]:
    """Return a job with its stages, its gain, and the share of the gap to the Oracle that it closed."""
    job = recorded.job
    row: dict[str, Any] = {
        "run": recorded.run,
        "method": job.method,
        "seed": job.seed,
        "finished": recorded.finished,
        "reached": [stage.title for stage in job.kept()],
        "score": {copy: job.test_score(copy) for copy in ("raw", "shipped")},
        "by_class": class_scores(job),
    }
    peers = [each for each in others if each.labels == recorded.labels]
    if catalogue.get(job.method).compared:
        row |= voc_jobs.gain(job, peers)
    return row | {"stages": [stage_row(stage) for stage in recorded.begun]}


def class_scores(job: JobResult) -> list[float | None]:
    """Return the score of each class on the scored images, as the mean of the raw nets that are used."""
    found = []
    for stage in job.kept():
        assert stage.outcome is not None
        scores = stage.outcome["scores"].get(stage.shown, {})
        found += [_score(scores["raw"])["by_class"]] if "raw" in scores else []
    return [_mean(values) for values in zip(*found, strict=True)]


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def record(paths: Sequence[Path]) -> dict[str, Any]:
    """Return the whole record of some runs."""
    jobs = [each for path in paths for each in voc_jobs.jobs_of(path)]
    classes = next((list(each.job.classes) for each in jobs if each.job.classes), [])
    return {
        "runs": [provenance(path) for path in paths],
        "classes": classes,
        "judged": job_results.judged(each.job for each in jobs),
        "jobs": [job_row(each, jobs) for each in jobs],
        "between": voc_jobs.between(jobs),
    }


def markdown(found: dict[str, Any]) -> str:
    """Return the record as Markdown; pseudo labels by class are those of the last round only."""
    parts = ["# Record of " + ", ".join(run["run"] for run in found["runs"])]
    parts += [_told(run) for run in found["runs"]]
    parts += [_methods(found), *_between(found), _stages(found), _classes(found)]
    return "\n\n".join([*parts, *_labels(found)]) + "\n"


def _told(run: dict[str, Any]) -> str:
    lines = [f"**{run['run']}**: {run['data']}" + (f" with {', '.join(run['changes'])}" if run["changes"] else "")]
    lines += [f"- starts {line}: {start}" for line, start in run["starts"].items()]
    for each in run["sessions"]:
        git = each["git"] or {}
        commit = git.get("commit", "unknown")[:12] + (", with changes" if git.get("changed") else "")
        lines.append(f"- {each['time']}, commit {commit}: `{each['command']}`")
    for each in run["environments"]:
        hardware = ", ".join(f"{key} {value}" for key, value in each.get("hardware", {}).items())
        versions = ", ".join(f"{key} {each[key]}" for key in ENVIRONMENT[:-1] if key in each)
        lines.append(f"- {versions}; {hardware}")
    return "\n".join([lines[0], "", *lines[1:]])


def _methods(found: dict[str, Any]) -> str:
    rows = []
    for job in found["jobs"]:
        gain = _points(job.get("gain"), job.get("gain_range"))
        cost = [sum(stage.get(key, 0) for stage in _once(job["stages"])) for key in ("seconds", "images")]
        reached = " ".join(job["reached"]) + ("" if job["finished"] else ", not finished")
        rows.append([job["run"], catalogue.get(job["method"]).title, str(job["seed"]), reached,
                     _number(job["score"]["raw"]), _number(job["score"]["shipped"]), gain,
                     _number(job.get("gap_closed"), ".0%"), f"{cost[0]:,.0f}", f"{cost[1]:,.0f}"])  # fmt: skip
    title = (
        "Test scores, %: mean of the raw nets, and the final model (*shipped*). Gain: over the better Baseline with "
        "the same labels, in brackets its range in 90 % of draws of the images; gap: of Oracle over it, single nets."
    )
    return f"## Methods\n\n{title}\n\n" + _table(
        ["run", "method", "seed", "nets", "raw", "shipped", "gain", "gap closed", "seconds", "images trained"], rows
    )


def _points(value: float | None, reach: Sequence[float] | None) -> str:
    return _number(value, "+.2f") + ("" if reach is None else f" ({reach[0]:+.2f} to {reach[1]:+.2f})")


def _between(found: dict[str, Any]) -> list[str]:
    """Return the table of pairs of methods, if there are any."""
    rows = []
    for pair in found["between"]:
        sides = [f"{catalogue.get(each['method']).title} ({each['run']})" for each in (pair["method"], pair["over"])]
        nets = "single" if pair["single"] else "final"
        rows.append([*sides, str(pair["seed"]), _points(pair["points"], pair.get("range")), nets])
    title = (
        "All pairs of methods with the same labels and seed: the first over the second, in points, in brackets the "
        "range in 90 % of draws of the images, for each pair on its own. Final models, or single raw nets if only one "
        "of the two has an ensemble."
    )
    table = _table(["method", "over", "seed", "points", "nets"], rows)
    return [f"## Between methods\n\n{title}\n\n{table}"] if rows else []


def _once(stages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return stages without duplicates: lines that are trained together share a place."""
    return list({stage["place"]: stage for stage in stages}.values())


def _stages(found: dict[str, Any]) -> str:
    rows = []
    for job in found["jobs"]:
        for stage in job["stages"]:
            audit, labels = stage.get("audit") or {}, stage.get("labels")
            scores = stage.get("scores", {})
            marks = [_number(scores.get(split, {}).get("raw", {}).get("score")) for split in ("validation", "test")]
            kept = None if labels is None else labels["kept"] / max(labels["of"], 1)
            numbers = [_number(audit.get(key), _form(key)) for key in AUDITED]
            done = f"{stage['steps']:,}" + ("" if stage["finished"] else f" of {stage['of_steps'] or 0:,}")
            cost = [_number(stage.get(key), ",.0f") for key in ("images", "seconds")]
            rows.append([catalogue.get(job["method"]).title, str(job["seed"]), stage["stage"], *marks,
                         _number(kept, ".0%"), *numbers, done, *cost])  # fmt: skip
    judged = found["judged"]
    title = (
        "Error of kept labels, %: plain and weighted on the same images"
        + (f" ({judged})" if judged else "")
        + ", and plain on all unlabeled ones; weights of right and wrong labels; shares of the three cases of Eq. 6."
    )
    return f"## Stages\n\n{title}\n\n" + _table(
        ["method", "seed", "stage", "validation", "test", "kept", "error", "weighted", "all images", "right", "wrong",
         *CASES, "steps", "images", "seconds"], rows)  # fmt: skip


def _classes(found: dict[str, Any]) -> str:
    names = [f"{catalogue.get(job['method']).title}, seed {job['seed']} ({job['run']})" for job in found["jobs"]]
    columns = [job["by_class"] for job in found["jobs"]]
    rows = [[_name(found, label), *map(_number, row)] for label, row in enumerate(zip(*columns, strict=False))]
    return "## Classes\n\nIoU of pixels, recall of images, %, mean of the raw nets:\n\n" + _table(
        ["class", *names], rows
    )


def _labels(found: dict[str, Any]) -> list[str]:
    """Return a table of pseudo labels by class for the last audited stage of each line of each job."""
    tables = []
    for job in found["jobs"]:
        last = {stage["stage"][0]: stage for stage in job["stages"] if (stage.get("audit") or {}).get("by_class")}
        for stage in last.values():
            by_class = stage["audit"]["by_class"]
            rows = [
                [_name(found, label), f"{kept:,}"]
                + [_number(by_class[key][label] if key in by_class else None, _form(key)) for key in BY_CLASS]
                for label, kept in enumerate(by_class["kept"])
            ]
            method = f"{catalogue.get(job['method']).title}, seed {job['seed']},"
            title = f"## Labels that {method} learned from in {stage['stage']}"
            header = ["class", "kept", "coverage", "error", "weighted", "right", "wrong", *CASES]
            tables.append(f"{title}\n\n" + _table(header, rows))
    return tables


def _name(found: dict[str, Any], label: int) -> str:
    return found["classes"][label] if label < len(found["classes"]) else str(label)


def _form(key: str) -> str:
    """Return the number format of a column; errors are already in percent."""
    if key.startswith("error"):
        return ".2f"
    return ".3f" if key.startswith("weight") else ".1%"


def _number(value: float | None, form: str = ".2f") -> str:
    return "–" if value is None or value != value else format(value, form)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True, help="the files' name without .json and .md")
    options = parser.parse_args()
    found = record(options.runs)
    files.write_json(Path(f"{options.out}.json"), found)
    files.write(Path(f"{options.out}.md"), markdown(found).encode())
    print(f"{options.out}.md: {len(found['jobs'])} jobs of {len(options.runs)} runs")


if __name__ == "__main__":
    main()
