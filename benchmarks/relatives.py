"""DMT's relatives on digits: soft labels, CBST's own choice of labels, self-supervised starts, methods of two nets, wrong labels.

Each row stands beside the one that it changes; all have one small net and few, large steps, so that a CPU takes
minutes. Seeds 1 to 3; repeating the command resumes.

    python -m benchmarks.relatives --runs RUNS --out benchmarks/results/relatives.json
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import torch

import dmt
from benchmarks.methods import SEEDS, row
from dmt import files
from dmt.results import reading
from dmt.runs import environment
from dmt.runs.folder import Folder

SETTINGS: dict[str, Any] = {
    "labels": 40, "net": "resnet8-8", "batch": 40, "batch_pseudo": 96, "batch_labeled": 32, "fractions": "0.3,0.6,1",
    "epochs": 60,
}  # fmt: skip
ONLINE: dict[str, Any] = {"labeled": 32, "unlabeled": 96}
NOISY: dict[str, Any] = {"labels": 600, "batch": 64, "epochs": 30, "label_noise": 0.4}


class Row(NamedTuple):
    """A line of the table."""

    title: str
    method: str
    changes: dict[str, Any]


def _online(title: str, method: str, epochs: int) -> Row:
    group = method.replace("-", "_")
    return Row(title, method, {f"{group}.{key}": value for key, value in (ONLINE | {"epochs": epochs}).items()})


ROWS = (
    Row("Baseline", "baseline", {}),
    Row("DMT", "dmt", {}),
    Row("DMT, soft labels", "dmt", {"soft_labels": True}),
    Row("CL", "cl", {}),
    Row("CL, soft labels", "cl", {"soft_labels": True}),
    Row("CBST", "cbst", {}),
    Row("CBST, renormalized", "cbst", {"cbst.renormalized": True}),
    _online("Π-model", "pi-model", 30),
    _online("Temporal Ensembling", "temporal-ensembling", 36),
    _online("Dual Student", "dual-student", 15),
    _online("Deep Co-Training", "deep-co-training", 7),
    Row("Baseline, rotation first", "baseline", {"pretrain": "rotation", "epochs_pretrain": 30}),
    Row("DMT, rotation first", "dmt", {"pretrain": "rotation", "epochs_pretrain": 30}),
    Row("Baseline, SimSiam first", "baseline", {"pretrain": "simsiam", "epochs_pretrain": 30}),
    Row("DMT, SimSiam first", "dmt", {"pretrain": "simsiam", "epochs_pretrain": 30}),
    Row("40 % of 600 labels wrong: Baseline", "baseline", NOISY),
    Row("40 % of 600 labels wrong: Co-Teaching", "co-teaching", NOISY | {"co_teaching.noise": 0.4}),
    Row("40 % of 600 labels wrong: Co-Teaching+", "co-teaching-plus", NOISY | {"co_teaching_plus.noise": 0.4}),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", help="some of them, by a part of their titles; all if left out")
    options = parser.parse_args()
    rows: dict[str, Any] = {}
    for at, each in enumerate(ROWS):
        if options.rows is not None and not any(part in each.title for part in options.rows.split(";")):
            continue
        out = options.runs / f"relatives-{at}"
        donors = [path for path in options.runs.glob("relatives-*") if path != out]
        settings = SETTINGS | each.changes
        dmt.fit("digits", method=each.method, baseline=False, seed=SEEDS, settings=settings, out=out, donors=donors)
        rows[each.title] = row([job for job in reading.read(Folder(out)) if job.method == each.method])
        found = rows[each.title]
        print(f"{each.title}: {found['mean']['shipped']:.2f} ± {found['deviation']['shipped']:.2f}", flush=True)
        described = environment.describe(torch.device("cpu"))
        kept = {key: described[key] for key in ("dmt", "python", "torch", "hardware") if key in described}
        files.write_json(options.out, {"environment": kept, "settings": SETTINGS, "rows": rows})


if __name__ == "__main__":
    main()
