"""Folders of images on a GPU: last layers, all of the nets, and ways to teach nets that can learn labels by heart.

    python -m benchmarks.tuned_rounds papsmear trashnet --folders DIR --work RUNS --minutes 9 --out tuned_rounds.json

``DIR`` holds a folder of images by each name, with test images. Every way is one fit of Baseline and DMT without folds,
unless it is an online method; test scores are those of both nets together, and of single nets by stage. What is done
is in ``--out`` and not done again; ``--minutes`` begins no new fit after that time.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import dmt
from dmt import files
from dmt.own.known_nets import KNOWN, KNOWN_B
from dmt.runs import environment
from dmt.runs.progress import Silent

TUNED: dict[str, Any] = {"net": f"tuned:{KNOWN}", "net_b": f"tuned:{KNOWN_B}"}
FIVE = {"fractions": "0.2,0.4,0.6,0.8,1"}
WAYS: dict[str, dict[str, Any]] = {
    "last layers": {},
    "all, two rounds": TUNED,
    "all, five rounds": TUNED | FIVE,
    "…, strong views of pseudo-labeled photos": TUNED | FIVE | {"strong_pseudo": True},
    "…, labels by slow copies": TUNED | FIVE | {"ema": 0.99, "labeler": "ema"},
    "…, both": TUNED | FIVE | {"ema": 0.99, "labeler": "ema", "strong_pseudo": True},
    "…, γ 5": TUNED | FIVE | {"gamma": 5.0},
    "…, mixup 0.75": TUNED | FIVE | {"mixup": 0.75},
    "…, encoder 0.3": TUNED | FIVE | {"encoder": 0.3},
    "…, rounds at half the rate": TUNED | FIVE | {"rate_round": 2.5e-4},
    "…, shares of 0.8": TUNED | FIVE | {"share": 0.8},
    "…, encoders stay in rounds": TUNED | FIVE | {"encoder_round": 0.0},
    "FixMatch": TUNED | {"fixmatch.rate": 1e-3, "fixmatch.optimizer": "adamw", "fixmatch.encoder": 0.1},
}


def outcome(folder: Path, way: str, run: Path, device: str) -> dict[str, Any]:
    """Train, or resume, and read what came out."""
    settings, began = WAYS[way], time.monotonic()
    methods = ["fixmatch"] if way == "FixMatch" else ["baseline", "dmt"]
    start = "wheel" if "net" in settings else None
    report = dmt.fit(
        folder, out=run, method=methods, settings=settings, start=start, device=device, folds=False, watcher=Silent()
    )
    found: dict[str, Any] = {"folder": folder.name, "way": way, "seconds": round(time.monotonic() - began, 1)}
    for job in report.jobs:
        found[job.method] = job.test_score("shipped")
        found[f"{job.method} by stage"] = {each.name: each.score("test", "raw") for each in job.stages}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--folders", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--ways", type=int, nargs="+", metavar="N", help="these ways, in this order, counted from 0")
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes
    about = {
        **environment.describe(environment.pick_device(given.device)),
        "command": "python -m benchmarks.tuned_rounds",
    }
    rows = files.read_json(given.out)["rows"] if given.out.is_file() else []
    for way in [list(WAYS)[number] for number in given.ways] if given.ways else WAYS:
        for name in given.names:
            if time.monotonic() > end or any((row["folder"], row["way"]) == (name, way) for row in rows):
                continue
            run = given.work / f"{name}-{list(WAYS).index(way)}"
            rows.append(outcome(given.folders / name, way, run, given.device))
            print(rows[-1], flush=True)
            files.write_json(given.out, {"about": about, "rows": rows})


if __name__ == "__main__":
    main()
