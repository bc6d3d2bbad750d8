"""Do several passes over an image give better labels? Error of one net's labels by way of labeling, for both tasks.

    python -m benchmarks.labeling_passes --runs RUNS --out benchmarks/results

For each case and seed, a Baseline is trained. It then labels all unlabeled images in every way that its training
allows: in one pass, also at other scales, with active dropout, by its EMA copy. The error is measured among the most
confident 20, 40 … 100 % of the labels. No student is trained: whether rounds gain from fewer errors is a separate
question.
"""

import argparse
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

import dmt
from benchmarks import cifar_screening, provenance
from dmt import config as configuration
from dmt import files, presets
from dmt.data.audits import Audit
from dmt.methods.plan import Labels
from dmt.pseudo import labeler
from dmt.pseudo.labeler import LabelFolder, Teacher, Wish
from dmt.results import reading
from dmt.runs import environment
from dmt.runs.folder import Folder
from dmt.tasks import opening
from dmt.tasks.base import Task
from dmt.training.checkpoint import finished_net

SEEDS = (1, 2, 3)
CPU = torch.device("cpu")
PLAIN = Labels("A0", "A", 1.0)
SCALES = replace(PLAIN, views=("0.75", "1.25"))


@dataclass(frozen=True)
class Case:
    """Some images, a net for them, and ways to label them, the first of them one pass."""

    title: str
    data: str
    settings: Mapping[str, Any]
    ways: Mapping[str, Labels]


CASES = (
    Case(
        "digits, 40 labels, `resnet8-12`",
        "digits",
        {"labels": 40},
        {"one pass": PLAIN, "EMA copy": replace(PLAIN, copy="ema"), "mean of both": replace(PLAIN, copy="mean")},
    ),
    Case(
        "digits enlarged to 32 pixels in color, 40 labels, `cnn13` (dropout 0.5)",
        "cifar10-40",
        {
            "labels": 40,
            "validation": 200,
            "net": "cnn13",
            "epochs": 100,
            "batch": 40,
            "rate": 0.05,
            "augment": "shift",
            "mixup": None,
            "ema": 0.9,
        },
        {"one pass": PLAIN, "dropout": replace(PLAIN, views=("dropout",))},
    ),
    Case(
        "scenes, 40 masks, `fcn-16`",
        "scenes",
        {"epochs": 300},
        {
            "one pass": PLAIN,
            "0.75": replace(PLAIN, views=("0.75",)),
            "1.25": replace(PLAIN, views=("1.25",)),
            "0.75, 1.25": SCALES,
        },
    ),
    Case(
        "scenes, 40 masks, `smp:fpn/resnet18` (dropout 0.2)",
        "scenes",
        {"net": "smp:fpn/resnet18", "rate": 0.02, "epochs": 100},
        {
            "one pass": PLAIN,
            "dropout": replace(PLAIN, views=("dropout",)),
            "0.75, 1.25": SCALES,
            "0.75, 1.25, dropout": replace(SCALES, views=("0.75", "1.25", "dropout")),
        },
    ),
)


def errors(task: Task, audit: Audit[Any], teacher: Teacher) -> dict[str, float]:
    """Return the error of the most confident labels in % by their share."""
    if not task.pixels:
        labels = labeler.label(teacher, Wish(1.0)).open(task.unlabeled)
        return dict(audit.pseudo_labels(labels, None, CPU, {})["error_top"])
    with tempfile.TemporaryDirectory() as unused:
        folder = LabelFolder(Path(unused))
        labeler.make(teacher, Wish(1.0), folder, audit)
        return dict(labeler.observed(folder.path)["error_top"])


def measure(case: Case, seed: int, runs: Path) -> dict[str, Any]:
    """Train one Baseline, and measure the errors of its labels."""
    config = configuration.override(presets.get(case.data).config, case.settings)
    dmt.fit(case.data, method="baseline", seed=seed, settings=dict(case.settings), out=runs)
    (job,) = (job for job in reading.read(Folder(runs)) if job.seed == seed)
    stage = next(stage for stage in job.stages if stage.name == "A0")
    opened = opening.read(config.data, Path(), print, lambda done, of: None)
    task, audit = opened.split(seed)
    spec, found = task.net_spec(config.net), {}
    for name, way in case.ways.items():
        nets = tuple(finished_net(stage.path, spec, "A", copy) for copy in way.copies)
        found[name] = errors(task, audit, Teacher(nets, task, CPU, way.seen))
    assert stage.outcome is not None
    return {"seed": seed, "score": stage.score("test", "raw"), "errors": found}


def page(found: Mapping[str, Any]) -> str:
    """Return the record as Markdown: means over seeds, and paired differences from one pass."""
    last = found["sessions"][-1]
    parts = [
        "# Labels from several passes",
        f"`{last['command']}`; {last['hardware']['cores']} cores, Python {last['python']}, torch {last['torch']}, dmt "
        f"{last['dmt']}, seeds {', '.join(map(str, SEEDS))}. Error of a Baseline's labels among its most confident "
        "20 to 100 %, %: means over seeds; in brackets, the mean difference from one pass, with its standard deviation "
        "over seeds. Dropout: four passes with it and one without. No student is trained. On CIFAR-10, where training "
        "includes mirror images, flips lower the error at every fraction ([record](cifar_screening.md#who-labels)).",
    ]
    for title, rows in found["cases"].items():
        shares = list(rows[0]["errors"]["one pass"])
        lines = [f"| {title} | " + " | ".join(shares) + " |", "|---" * (1 + len(shares)) + "|"]
        for way in rows[0]["errors"]:
            cells = []
            for share in shares:
                values = [row["errors"][way][share] for row in rows]
                apart = [row["errors"][way][share] - row["errors"]["one pass"][share] for row in rows]
                text = f"{statistics.fmean(values):.2f}"
                if way != "one pass":
                    spread = statistics.stdev(apart) if len(apart) > 1 else 0.0
                    text += f" ({statistics.fmean(apart):+.2f} ± {spread:.2f})"
                cells.append(text)
            lines.append(f"| {way} | " + " | ".join(cells) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="a folder for the record")
    asked = parser.parse_args()
    cifar_screening.digits_for_images()
    path = asked.out / "labeling_passes.json"
    described = environment.describe(CPU)
    described |= {"command": provenance.command(described["command"])}
    found: dict[str, Any] = {"sessions": [described], "cases": {}}
    for number, case in enumerate(CASES):
        rows = found["cases"].setdefault(case.title, [])
        for seed in SEEDS:
            rows.append(measure(case, seed, asked.runs / f"{number}-{seed}"))
            print(case.title, rows[-1], flush=True)
        files.write_json(path, found)
        files.write(path.with_suffix(".md"), page(found).encode())


if __name__ == "__main__":
    main()
