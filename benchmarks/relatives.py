"""Methods related to DMT on digits: soft labels, CBST's selection, self-supervised starts, two nets, wrong labels.

Each row is to be compared with the one that it modifies; all have a small net and few, large steps, so that they take
minutes on a CPU. Seeds 1 to 3; repeating the command resumes.

    python -m benchmarks.relatives --runs RUNS --out benchmarks/results/relatives.json
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import torch

import dmt
from benchmarks.methods import SEEDS, row
from dmt import files, run_files
from dmt.results import reading
from dmt.runs import environment
from dmt.runs.folder import Folder

SETTINGS: dict[str, Any] = {
    "labels": 40, "net": "resnet8-8", "batch": 40, "batch_pseudo": 96, "batch_labeled": 32, "mixup": "none",
    "epochs": 150, "fractions": "0.5,1", "epochs_round": 24, "epochs_pretrain": 15,
}  # fmt: skip
ONLINE: dict[str, Any] = {"labeled": 32, "unlabeled": 96}
NOISY: dict[str, Any] = {"labels": 600, "batch": 64, "epochs": 30, "label_noise": 0.4}


class Row(NamedTuple):
    """A row of the table."""

    title: str
    method: str
    changes: dict[str, Any]


def _online(title: str, method: str, epochs: int) -> Row:
    group = method.replace("-", "_")
    return Row(title, method, {f"{group}.{key}": value for key, value in (ONLINE | {"epochs": epochs}).items()})


ROWS = (
    Row("Baseline", "baseline", {}),
    Row("Baseline, rotation first", "baseline", {"pretrain": "rotation"}),
    Row("Baseline, SimSiam first", "baseline", {"pretrain": "simsiam"}),
    Row("DMT", "dmt", {}),
    Row("DMT, rotation first", "dmt", {"pretrain": "rotation"}),
    Row("DMT, SimSiam first", "dmt", {"pretrain": "simsiam"}),
    Row("DMT, soft labels", "dmt", {"soft_labels": True}),
    Row("CL", "cl", {}),
    Row("CL, soft labels", "cl", {"soft_labels": True}),
    Row("CBST", "cbst", {}),
    Row("CBST, renormalized", "cbst", {"cbst.renormalized": True}),
    Row("Graph labels", "graph-labels", {"graph_labels.neighbors": 10}),
    Row("40 % of 600 labels wrong: Baseline", "baseline", NOISY),
    Row("40 % of 600 labels wrong: Co-Teaching", "co-teaching", NOISY | {"co_teaching.noise": 0.4}),
    Row(
        "40 % of 600 labels wrong: Co-Teaching, ramp 0.5",
        "co-teaching",
        NOISY | {"co_teaching.noise": 0.4, "co_teaching.ramp": 0.5},
    ),
    Row("40 % of 600 labels wrong: Co-Teaching+", "co-teaching-plus", NOISY | {"co_teaching_plus.noise": 0.4}),
    _online("Π-model", "pi-model", 36),
    _online("Temporal Ensembling", "temporal-ensembling", 42),
    _online("Dual Student", "dual-student", 18),
    _online("Deep Co-Training", "deep-co-training", 8),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", help="some of them, by a part of their titles; all if left out")
    options = parser.parse_args()
    rows: dict[str, Any] = {}
    for each in ROWS:
        if options.rows is not None and not any(part in each.title for part in options.rows.split(";")):
            continue
        out = options.runs / "relatives" / each.title.replace(" ", "-")
        donors = [path for path in out.parent.glob("*") if path != out and (path / run_files.MANIFEST).is_file()]
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
