"""Does the dynamic weight help if pseudo labels are wrong? DMT against CL on digits with corrupted pseudo labels.

A share of the *kept* pseudo labels of every round is changed to another class; their confidence stays the same. CL and
DMT share the Baseline, the initialization and the order of batches, so that only the weighting differs.

    python benchmarks/noisy_labels.py --noise 0.3 --seeds 1-5 --out runs/noise
"""

import argparse
import json
from pathlib import Path

import torch

import dmt
from dmt import config
from dmt.results.report import Report
from dmt.results.tables import spread
from dmt.runs import environment


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--noise", type=float, default=0.3, help="share of kept labels to corrupt")
    parser.add_argument("--seeds", default="1-5")
    parser.add_argument("--out", type=Path, default=Path("runs/noise"))
    options = parser.parse_args()
    seeds = config.seeds(options.seeds)
    report = dmt.fit(
        "digits",
        method=["baseline", "cl", "dmt"],
        seed=seeds,
        out=options.out,
        settings={"pseudo_noise": options.noise},
    )
    described = environment.describe(torch.device("cpu"))
    print(json.dumps({key: described[key] for key in ("dmt", "python", "torch", "hardware", "command")}))
    print(f"noise {options.noise:g}, n = {len(seeds)} seeds\n")
    print(report)
    print("DMT − CL, raw net, paired by seed:", spread(_paired(report)))


def _paired(report: Report) -> list[float]:
    accuracy = {(job.method, job.seed): job.test_score("raw") for job in report.jobs}
    return [accuracy["dmt", seed] - accuracy["cl", seed] for method, seed in accuracy if method == "dmt"]


if __name__ == "__main__":
    main()
