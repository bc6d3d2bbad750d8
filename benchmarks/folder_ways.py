"""Folders of photos on a GPU: ways to train whole nets, each in one fit with nothing else changed.

    python -m benchmarks.folder_ways papsmear trashnet --folders DIR --work RUNS --minutes 9 --out OUT.json
    python -m benchmarks.folder_ways polyps magtile --folders DIR --work RUNS --at-once 6 --out OUT.json

``DIR`` holds a folder of photos of each name, with test images; folders with masks have ways of their own. There is no
cross-validation. Test scores are those of the final model (the ensemble if there are two nets), and of single nets by
stage. Finished fits are in ``--out`` and not repeated; after ``--minutes``, no new fit begins. Fits that run at the
same time share the GPU: their scores are valid, but their seconds are not.
"""

import argparse
import math
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dmt import files
from dmt.data.folders import photos
from dmt.own.known_nets import KNOWN, KNOWN_B
from dmt.runs import environment

TUNED: dict[str, Any] = {"net": f"tuned:{KNOWN}", "net_b": f"tuned:{KNOWN_B}"}
FIVE = {"fractions": "0.2,0.4,0.6,0.8,1"}
UNLABELED = 24
"""Unlabeled images per step in classification."""


def online(method: str, steps: int, **more: Any) -> dict[str, Any]:
    """Return the way of an online method; ``steps`` are converted to epochs for each folder."""
    return {"method": method, "steps": steps} | {f"{method.replace('-', '_')}.{key}": more[key] for key in more}


IMAGES: dict[str, dict[str, Any]] = {
    "last layers": {},
    "all, as by default": TUNED,
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
    "FixMatch, 5,000 steps": TUNED | online("fixmatch", 5000),
    "FixMatch, 1,000 steps": TUNED | online("fixmatch", 1000),
    "FreeMatch, 1,000 steps": TUNED | online("freematch", 1000),
    "SoftMatch, 1,000 steps": TUNED | online("softmatch", 1000),
    "FlexMatch, 1,000 steps": TUNED | online("flexmatch", 1000),
    "CPS, 1,000 steps": TUNED | online("cps", 1000),
    "FixMatch, 1,000 steps, slow copy 0.99": TUNED | online("fixmatch", 1000, ema=0.99),
    "SoftMatch, 3,000 steps, slow copy 0.99": TUNED | online("softmatch", 3000, ema=0.99),
    "Mean Teacher, 1,000 steps": TUNED | online("mean-teacher", 1000, ema=0.99),
    "all, five rounds, strong views weighted by weak ones": TUNED
    | FIVE
    | {"strong_pseudo": True, "weight_view": "weak"},
}
COLORS, TWO = {"strong_pseudo": True}, {"fractions": "0.5,0.9", "round_steps": 450}
MASKS: dict[str, dict[str, Any]] = {
    "as by default": {},
    "rounds in changed colors": COLORS,
    "two rounds of 450 steps": TWO,
    "both": COLORS | TWO,
    "both, γ 0.5": COLORS | TWO | {"gamma": 0.5},
    "only decoders learn, two rounds of 450 steps in changed colors": COLORS
    | TWO
    | {"net": f"frozen-fpn:{KNOWN}", "net_b": f"frozen-fpn:{KNOWN_B}"},
    "Baseline of 1,400 steps": {"method": "baseline", "first_steps": 1400},
    "FixMatch-Seg, 1,400 steps": online("fixmatch-seg", 1400),
    "UniMatch, 1,400 steps": online("unimatch", 1400),
    "CutMix-Seg, 1,400 steps": online("cutmix-seg", 1400),
    "AugSeg, 1,400 steps": online("augseg", 1400),
    "CPS with CutMix, 1,400 steps": online("cps-cutmix", 1400),
    "both, a Baseline of 1,000 steps": COLORS | TWO | {"first_steps": 1000},
    "ClassMix, 1,400 steps": online("classmix", 1400),
}
BATCH_MASKS, PSEUDO_MASKS = 16, 12
"""Images per step with masks on a GPU: in first nets, and pseudo-labeled ones in rounds."""


def words(way: Mapping[str, Any], folder: Path, run: Path, device: str) -> list[str]:
    """Return the arguments of `dmt` that fit a folder in one way."""
    contents, own = photos.open_folder(folder), dict(way)
    labeled, unlabeled = len(contents.labeled), len(contents.unlabeled)
    method = own.pop("method", None)
    settings = {key: value for key, value in own.items() if not key.endswith("steps")}
    if steps := own.get("steps"):
        a_step = PSEUDO_MASKS if contents.pixels else UNLABELED
        settings[f"{method.replace('-', '_')}.epochs"] = _epochs(steps, unlabeled, a_step)
    if steps := own.get("first_steps"):
        settings["epochs"] = _epochs(steps, labeled, BATCH_MASKS)
    if steps := own.get("round_steps"):
        settings["epochs_round"] = _epochs(steps, unlabeled, PSEUDO_MASKS)
    methods = ["--method", method, "--no-baseline"] if method else []
    start = ["--start", "wheel"] if "net" in settings else []
    chosen = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    return ["fit", str(folder), "--out", str(run), "--device", device, "--no-folds", *methods, *start, *chosen]


def _epochs(steps: int, images: int, batch: int) -> int:
    return max(1, round(steps / math.ceil(images / batch)))


def outcome(run: Path, seconds: float) -> dict[str, Any]:
    """Return the test scores of a finished fit by method and stage, and its seconds."""
    from dmt.results.report import Report

    found: dict[str, Any] = {"seconds": round(seconds, 1)}
    for job in Report.read([run]).jobs:
        found[job.method] = job.test_score("shipped")
        found[f"{job.method} by stage"] = {each.name: each.score("test", "raw") for each in job.stages}
    return found


def record(given: argparse.Namespace) -> None:
    """Run the fits that are not in the record yet, several at once if asked to, and record each when it ends."""
    waiting = [
        (name, way) for way in chosen_ways(given) for name in given.names if way in ways_of(given.folders / name)
    ]
    rows: list[dict[str, Any]] = files.read_json(given.out)["rows"] if given.out.is_file() else []
    waiting = [each for each in waiting if each not in {(row["folder"], row["way"]) for row in rows}]
    about = environment.describe(environment.pick_device(given.device)) | {
        "command": "python -m benchmarks.folder_ways"
    }
    end = time.monotonic() + 60 * given.minutes
    running: dict[tuple[str, str], tuple[subprocess.Popen[bytes], Path, float]] = {}
    while running or (waiting and time.monotonic() < end):
        while waiting and len(running) < given.at_once and time.monotonic() < end:
            name, way = waiting.pop(0)
            ways = ways_of(given.folders / name)
            run = given.work / f"{name}-{list(ways).index(way)}"
            run.parent.mkdir(parents=True, exist_ok=True)
            command = [sys.executable, "-m", "dmt", *words(ways[way], given.folders / name, run, given.device)]
            with run.with_suffix(".log").open("wb") as log:
                process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
            running[name, way] = process, run, time.monotonic()
        time.sleep(0.5)
        for (name, way), (process, run, began) in list(running.items()):
            if process.poll() is None:
                continue
            del running[name, way]
            if process.returncode:
                tail = run.with_suffix(".log").read_text(errors="replace").splitlines()[-1:]
                print(f"{name}, {way}: exit {process.returncode}: {' '.join(tail)}", flush=True)
                continue
            row = {"folder": name, "way": way, "at_once": given.at_once} | outcome(run, time.monotonic() - began)
            print(row, flush=True)
            rows.append(row)
            files.write_json(given.out, {"about": about, "rows": rows})


def ways_of(folder: Path) -> dict[str, dict[str, Any]]:
    return MASKS if photos.open_folder(folder).pixels else IMAGES


def chosen_ways(given: argparse.Namespace) -> Sequence[str]:
    every = list(ways_of(given.folders / given.names[0]))
    return [every[number] for number in given.ways] if given.ways else every


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", help="folders, all with masks or all without")
    parser.add_argument("--folders", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--ways", type=int, nargs="+", metavar="N", help="these ways, in this order, counted from 0")
    parser.add_argument("--at-once", type=int, default=1, help="fits that run beside each other")
    parser.add_argument("--device", default="auto")
    record(parser.parse_args())


if __name__ == "__main__":
    main()
