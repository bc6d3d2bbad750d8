"""Methods on CIFAR-10 at equal wall-clock time on one GPU, each as a user would run it.

    python -m benchmarks.equal_minutes cifar10-4k --data DIR --runs RUNS --minutes 5 --budget 16m --out OUT
    python -m benchmarks.equal_minutes digits --runs RUNS --minutes 0.3 --out OUT           a rehearsal on a CPU

Every method is a separate ``dmt fit``, timed from its start to its score, including reading and compiling. It keeps its
published options; only its length is fitted to the minutes, with steps per second that were measured before. CL and DMT
have the rounds of ``cifar10-4k-fast``, scaled, but start from the Baseline instead of FixMatch's net. A method whose
fit was interrupted must be run again from scratch, since its time would be unknown. Finished methods are not run again,
and none is begun that would not end in time.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import provenance
from dmt import config as configuration
from dmt import files, presets
from dmt.config import Config
from dmt.methods import catalogue
from dmt.methods.online import StageOptions
from dmt.methods.plan import Stage
from dmt.results import reading
from dmt.results.job_results import JobResult
from dmt.runs import environment, stopping
from dmt.runs.folder import Folder

FIRST = ("baseline", "cl", "dmt", "fixmatch", "freematch", "cps", "mean-teacher", "mixmatch")
"""Methods that are run by default; others can be given by --methods."""

RATES = {
    "baseline": 164.0, "cl": 163.0, "dmt": 134.0, "fixmatch": 101.0, "uda": 100.0, "flexmatch": 98.0, "freematch": 98.0,
    "softmatch": 98.0, "cps": 81.0, "mean-teacher": 218.0, "pi-model": 210.0, "pseudo-label": 324.0, "mixmatch": 150.0,
}  # fmt: skip
"""Steps per second of WRN-28-2 on one H200 (results/cifar10.md); those of FlexMatch, FreeMatch, SoftMatch and MixMatch
are estimated from FixMatch and Mean Teacher."""

START, COMPILE = 45.0, 12.0
"""Seconds before the first step of a run, and before that of each further stage."""

MIXED = ("online_stage", "epochs_online_stage", "start_round")
"""Options by which `cifar10-4k-fast` combines methods, and one that is only useful with them: rounds that continue."""

STORED = ("cl", "dmt", "dmt-naive", "dmt-flip")


def ours(preset: str) -> dict[str, Any]:
    """Return what `cifar10-4k-fast` changes in the paper's preset, except `MIXED`; for methods with stored labels."""
    if not preset.startswith("cifar10"):
        return {}
    fast, paper = (configuration.flat(presets.get(name).config) for name in ("cifar10-4k-fast", "cifar10-4k"))
    return {key: value for key, value in fast.items() if value != paper[key] and key not in MIXED}


def settings_of(preset: str, method: str, minutes: float, rates: Mapping[str, float]) -> dict[str, Any]:
    """Return the changes to the preset with which a method takes this many minutes."""
    changes = ours(preset) if method in STORED else {}
    config = configuration.override(presets.get(preset).config, changes)
    stages, sizes = catalogue.plan(method, config.recipe).stages, config.data.sizes
    planned = sum(stage.steps(sizes) / _rate(stage, method, rates) for stage in stages)
    factor = max(0.0, 60 * minutes - START - COMPILE * (len(stages) - 1)) / planned
    return changes | scaled(config, method, factor)


def _rate(stage: Stage, method: str, rates: Mapping[str, float]) -> float:
    """Return a stage's steps per second; a stage without unlabeled images is as fast as the Baseline."""
    name = method if stage.objective.views else "baseline"
    if name not in rates:
        raise SystemExit(f"how many steps {name} takes a second is not known; give --rate {name}=NUMBER")
    return rates[name]


def scaled(config: Config, method: str, factor: float) -> dict[str, Any]:
    """Return options that scale the lengths of all stages of a method."""

    def times(epochs: int) -> int:
        return max(1, round(epochs * factor))

    own = catalogue.get(method).options
    if own is not None and issubclass(own, StageOptions):
        return {f"{own.group}.epochs": times(config.recipe.groups[own].epochs)}
    found: dict[str, Any] = {"epochs": times(config.recipe.epochs)}
    if method != catalogue.baseline().name:
        found["epochs_round"] = tuple(times(each.epochs) for each in config.recipe.rounds())
    return found


def command(preset: str, method: str, settings: Mapping[str, Any], out: Path, asked: argparse.Namespace) -> list[str]:
    words = [sys.executable, "-m", "dmt", "fit", preset, "--method", method, "--no-baseline", "--seed", str(asked.seed)]
    words += ["--out", str(out), "--data", str(asked.data)]
    return words + [f"--set={key}={configuration.shown(value)}" for key, value in settings.items()]


def result(job: JobResult, seconds: float) -> dict[str, Any]:
    """Return scores and costs of a finished method."""
    outcomes = [stage.outcome for stage in job.stages if stage.outcome is not None]
    return {
        "score": {copy: job.test_score(copy) for copy in ("raw", "shipped")},
        "seconds": round(seconds, 1),
        "steps": sum(outcome["cost"]["steps"] for outcome in outcomes),
        "learned": sum(outcome["cost"]["learned"] for outcome in outcomes),
        "looked": sum(outcome["cost"]["looked"] for outcome in outcomes),
        "changes": list(job.changes),
    }


def page(found: Mapping[str, Any]) -> str:
    """Return the record as Markdown, the best method first."""
    last = found["sessions"][-1]
    lines = [
        f"# {found['preset']}: methods at {found['minutes']:g} minutes each",
        "",
        f"`{last['command']}`; {last['hardware']['device']}, Python {last['python']}, torch {last['torch']}, "
        f"dmt {last['dmt']}; seed {found['seed']}, n = 1. Seconds by the clock, from the start of a method to its "
        "score, compiling included. Options as published but for the length, though most were published for far "
        "longer trainings; rounds of CL and DMT as in `cifar10-4k-fast`, scaled, a preset made for this data set and "
        "for few minutes, but from the Baseline's labels instead of FixMatch's, by fresh nets. "
        "Test accuracy, %: of the raw net, and of what ships.",
        "",
        "| method | raw | shipped | seconds | steps | images learned from, millions | looked at |",
        "|---|---|---|---|---|---|---|",
    ]
    rows = sorted(found["rows"].items(), key=lambda each: -each[1]["score"]["shipped"])
    for name, row in rows:
        cells = [catalogue.get(name).title, f"{row['score']['raw']:.2f}", f"{row['score']['shipped']:.2f}"]
        cells += [f"{row['seconds']:.0f}", f"{row['steps']:,}"]
        cells += [f"{row[key] / 1e6:.1f}" for key in ("learned", "looked")]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset", help="cifar10-4k, cifar10-40 or digits")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--runs", type=Path, required=True, help="one run a method")
    parser.add_argument("--out", type=Path, required=True, help="a folder for the record, which is added to")
    parser.add_argument("--minutes", type=float, default=5.0, help="of each method")
    parser.add_argument("--methods", default=",".join(FIRST))
    parser.add_argument("--rate", action="append", default=[], metavar="METHOD=STEPS", help="steps a second")
    parser.add_argument("--budget", default="600m", metavar="9m", help="of all of them")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    began, budget = time.monotonic(), stopping.seconds(asked.budget)
    rates = RATES | {name: float(rate) for name, _, rate in (each.partition("=") for each in asked.rate)}
    path = asked.out / f"equal_minutes_{asked.preset}.json"
    same = {"preset": asked.preset, "minutes": asked.minutes, "seed": asked.seed}
    found: dict[str, Any] = files.read_json(path) if path.exists() else same | {"sessions": [], "rows": {}}
    if any(found[key] != value for key, value in same.items()):
        parser.error(f"{path} is of {found['minutes']:g} minutes and seed {found['seed']}; give another --out")
    described = environment.describe(environment.pick_execution("auto").device)
    described |= {"command": provenance.command(described["command"])}
    found["sessions"].append(described)
    for method in asked.methods.split(","):
        if method in found["rows"]:
            continue
        if time.monotonic() - began + 60 * asked.minutes > budget:
            print(f"{method}: no time left", flush=True)
            break
        settings = settings_of(asked.preset, method, asked.minutes, rates)
        out, start = asked.runs / f"{asked.preset}-{method}", time.monotonic()
        if out.exists():
            parser.error(f"{out} was interrupted, so its seconds are not known; remove it to run {method} anew")
        subprocess.run(command(asked.preset, method, settings, out, asked), check=True, stdout=subprocess.DEVNULL)
        (job,) = (job for job in reading.read(Folder(out)) if job.method == method)
        row = result(job, time.monotonic() - start) | {"session": len(found["sessions"])}
        found["rows"][method] = row
        print(f"{method}: {row['score']['shipped']:.2f} in {row['seconds']:.0f} s, {row['steps']:,} steps", flush=True)
        files.write_json(path, found)
        files.write(path.with_suffix(".md"), page(found).encode())


if __name__ == "__main__":
    main()
