"""From 200 synthetic photos to predictions in two commands, for both tasks; and the gain from the unlabeled photos.

    python -m benchmarks.own_images --out benchmarks/results/own_images.json
    python -m benchmarks.own_images --task images --total 1000 --seeds 1 2
    python -m benchmarks.own_images --task images --long          a Baseline of as many steps as all of DMT besides

For every seed, a folder is made (`benchmarks.made_photos`), then `dmt fit FOLDER --out RUN` and `dmt predict RUN …` run
as a user would type them. Scores are those of the run's report on test/, which training does not see.
"""

import argparse
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from benchmarks import made_photos
from dmt.methods import catalogue
from dmt.own import choosing
from dmt.results.report import JobResult, Report
from dmt.version import VERSION


@dataclass(frozen=True)
class Outcome:
    """Result of one folder. Scores are accuracy or mean IoU in %, averaged over both nets unless shipped."""

    task: str
    seed: int
    total: int
    options: str  # additional arguments of dmt fit
    baseline: float
    dmt: float
    baseline_shipped: float
    dmt_shipped: float
    rounds: list[float]  # mean score of both nets by round
    longer: float | None  # score of a Baseline with as many steps as DMT in total
    fit_seconds: float
    predict_seconds: float
    predicted: int


def dmt(*words: str) -> float:
    """Run the command as a user would; return its seconds."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "dmt.cli", *words], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def write(photos: Path, task: str, seed: int, total: int) -> None:
    if task == "images":
        made_photos.write_images(photos, seed, replace(made_photos.IMAGES, total=total))
    else:
        made_photos.write_masks(photos, seed, replace(made_photos.MASKS, total=total))


def trial(place: Path, task: str, seed: int, total: int, extra: Sequence[str], long: bool) -> Outcome:
    """Fit the folder ``place/photos``, predict, and read the report."""
    photos, run, out = place / "photos", place / "run", place / "predicted"
    fitting = dmt("fit", str(photos), "--out", str(run), "--device", "cpu", *extra)
    predicting = dmt("predict", str(run), str(photos / "unlabeled"), "--out", str(out), "--device", "cpu")
    jobs = {job.method: job for job in Report.read([run]).jobs}
    baseline, ours = jobs["baseline"], jobs["dmt"]
    return Outcome(
        task=task,
        seed=seed,
        total=total,
        options=shlex.join(extra),
        baseline=baseline.test_score("raw"),
        dmt=ours.test_score("raw"),
        baseline_shipped=baseline.test_score("shipped"),
        dmt_shipped=ours.test_score("shipped"),
        rounds=_rounds(ours),
        longer=_longer(photos, place / "long", extra) if long else None,
        fit_seconds=fitting,
        predict_seconds=predicting,
        predicted=_count(out),
    )


def _rounds(job: JobResult) -> list[float]:
    numbers = sorted({stage.round for stage in job.stages})
    scores = [[stage.score("test", "raw") or 0.0 for stage in job.stages if stage.round == each] for each in numbers]
    return [statistics.fmean(each) for each in scores]


def _longer(photos: Path, run: Path, extra: Sequence[str]) -> float:
    """Return the score of a Baseline with as many steps as all stages of one line of DMT, otherwise by default."""
    config = choosing.choose(photos, torch.device("cpu")).preset.config
    stages = [stage for stage in catalogue.plan("dmt", config.recipe).stages if stage.lines == ("A",)]
    steps = sum(stage.steps(config.data.sizes) for stage in stages)
    epochs = round(config.recipe.epochs * steps / stages[0].steps(config.data.sizes))
    words = ["--method", "baseline", "--set", f"epochs={epochs}", "--device", "cpu", *extra]
    dmt("fit", str(photos), "--out", str(run), *words)
    return Report.read([run]).jobs[0].test_score("raw")


def _count(out: Path) -> int:
    """Count the written predictions: rows of the CSV file, or masks."""
    table = out / "pred.csv"
    return len(table.read_text().splitlines()) - 1 if table.is_file() else len(list((out / "masks").iterdir()))


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return a line for each task: mean ± standard deviation over folders."""
    lines = []
    for task in dict.fromkeys(each.task for each in outcomes):
        own = [each for each in outcomes if each.task == task]
        rows = {
            "Baseline": [each.baseline for each in own],
            "DMT": [each.dmt for each in own],
            "gain": [each.dmt - each.baseline for each in own],
            "gain, shipped nets": [each.dmt_shipped - each.baseline_shipped for each in own],
            "Baseline of all steps": [each.longer for each in own if each.longer is not None],
            "seconds to fit": [each.fit_seconds for each in own],
        }
        said = [f"{name} {_spread(values)}" for name, values in rows.items() if values]
        lines.append(f"{task}, {own[0].total} photos, n = {len(own)}: {'; '.join(said)}")
    return "\n".join(lines)


def _spread(values: Iterable[float]) -> str:
    values = list(values)
    return f"{statistics.fmean(values):.2f}" + (f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=["images", "masks"], nargs="+", default=["images", "masks"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5], help="of the folders")
    parser.add_argument("--total", type=int, default=200, help="labeled and unlabeled photos of a folder")
    parser.add_argument("--long", action="store_true", help="train a longer Baseline too")
    parser.add_argument("--fit", default="", help="more words for dmt fit")
    parser.add_argument("--out", type=Path, help="JSON; what is there stays")
    given = parser.parse_args()
    outcomes = []
    for task in given.task:
        for seed in given.seeds:
            with tempfile.TemporaryDirectory() as place:
                write(Path(place, "photos"), task, seed, given.total)
                outcomes.append(trial(Path(place), task, seed, given.total, shlex.split(given.fit), given.long))
            print(outcomes[-1], flush=True)
            if given.out is not None:
                add(given.out, outcomes[-1])
    print(summary(outcomes))


def add(path: Path, outcome: Outcome) -> None:
    """Append an outcome to a record."""
    about = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "dmt": VERSION,
        "threads": os.environ.get("OMP_NUM_THREADS", ""),
    }
    before = json.loads(path.read_text()) if path.is_file() else []
    path.write_text(json.dumps([*before, {"about": about, **asdict(outcome)}], indent=1) + "\n")


if __name__ == "__main__":
    main()
