"""How long must first nets train on a folder of many masks? Baselines of several lengths, and DMT after them.

    python -m benchmarks.mask_lengths --voc DIR --runs RUNS --masks 200 500 --steps 400 1600 --dmt --at-once 2 --out OUT
    python -m benchmarks.mask_lengths --voc DIR --runs RUNS --device cuda --steps 1000 3000 --one-net --out OUT

PASCAL VOC as somebody's folder: of the images of ``train_aug``, shuffled with seed 1, the first ones are labeled, the
next ones are unlabeled, and the last 400 are ``test/``; images of ``val`` are not used. Every fit is `dmt fit FOLDER
--no-folds --set epochs=N` with the defaults of the device. ``DIR`` has the flat layout: images, masks, splits,
classes.txt. Fits that are in the record, ``--out``/mask_lengths_cpu.json or mask_lengths_cuda.json, are not repeated.
Those that run at the same time share the machine: their scores are valid, but their seconds are not.
"""

import argparse
import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import provenance
from dmt import files
from dmt.results import reading
from dmt.runs import environment
from dmt.runs.folder import Folder

TEST = 400
BATCH = {"cpu": 8, "cuda": 16}
"""Images per step of first nets, as chosen by `dmt.own.schedules`."""


@dataclass(frozen=True)
class Fit:
    """One fit: a folder with this many masks, and the length of its first nets."""

    masks: int
    unlabeled: int
    steps: int
    method: str
    one_net: bool

    @property
    def name(self) -> str:
        return f"voc{self.masks}-{self.steps}-{self.method}{'-one' if self.one_net else ''}"

    def words(self, folder: Path, run: Path, device: str) -> list[str]:
        """Return the arguments of `dmt`."""
        epochs = max(1, round(self.steps / math.ceil(self.masks / BATCH[device])))
        only = {"shape": "chain", "net_b": "none", "share": "none"} if self.one_net else {}
        chosen = [word for key, value in ({"epochs": epochs} | only).items() for word in ("--set", f"{key}={value}")]
        words = ["--method", self.method, "--no-folds", "--start", "wheel", "--device", device, "--out", str(run)]
        return ["fit", str(folder), *words, *chosen]


def write_folder(voc: Path, root: Path, masks: int, unlabeled: int) -> Path:
    """Link images and masks into ``labeled``, ``unlabeled`` and ``test``, unless they are there."""
    if root.exists():
        return root
    unfinished = root.with_name(f"{root.name}-unfinished")
    ids = (voc / "splits" / "train_aug.txt").read_text().split()
    random.Random(1).shuffle(ids)
    for part, names in (("labeled", ids[:masks]), ("test", ids[-TEST:])):
        for kind, ending in (("images", "webp"), ("masks", "png")):
            _link(voc, kind, [f"{name}.{ending}" for name in names], unfinished / part / kind)
    _link(voc, "images", [f"{name}.webp" for name in ids[masks : masks + unlabeled]], unfinished / "unlabeled")
    names = (voc / "classes.txt").read_text().splitlines()
    (unfinished / "classes.txt").write_text("\n".join(name for name in names if not name.startswith("255")) + "\n")
    return unfinished.rename(root)


def _link(voc: Path, kind: str, names: Sequence[str], place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    for name in names:
        (place / name).symlink_to((voc / kind / name).resolve())


def outcome(run: Path) -> dict[str, Any]:
    """Return mean IoU on test/ of every net and of the final models, and what the run cost."""
    jobs = reading.read(Folder(run))
    stages = {stage.name: stage for job in jobs for stage in job.stages}
    costs = [stage.outcome["cost"] for stage in stages.values() if stage.outcome is not None]
    return {
        "final": {job.method: round(job.test_score("shipped"), 2) for job in jobs},
        "nets": {name: round(stage.score("test", "raw") or math.nan, 2) for name, stage in stages.items()},
        "steps_of_all": sum(cost["steps"] for cost in costs),
        "training_seconds": round(sum(cost["seconds"] for cost in costs)),
    }


def measure(given: argparse.Namespace, waiting: list[Fit]) -> None:
    """Run the fits that are not in the record, several at once if asked to, and record each when it ends."""
    record = given.out / f"mask_lengths_{given.device}.json"
    rows: list[dict[str, Any]] = files.read_json(record)["rows"] if record.exists() else []
    waiting = [fit for fit in waiting if asdict(fit) not in [row["fit"] for row in rows]]
    described = environment.describe(environment.pick_device(given.device))
    kept = {key: described[key] for key in ("dmt", "python", "torch", "hardware", "git") if key in described}
    about = kept | {"command": provenance.command(described["command"])}
    threads = {} if given.at_once == 1 else {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // given.at_once))}
    running: dict[Fit, tuple[subprocess.Popen[bytes], Path]] = {}
    while running or waiting:
        while waiting and len(running) < given.at_once:
            fit = waiting.pop(0)
            folder = write_folder(given.voc, given.runs / f"voc{fit.masks}-{fit.unlabeled}", fit.masks, fit.unlabeled)
            run = given.runs / fit.name
            command = [sys.executable, "-m", "dmt", *fit.words(folder, run, given.device)]
            with run.with_suffix(".log").open("wb") as log:
                running[fit] = (
                    subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=os.environ | threads),
                    run,
                )
        time.sleep(0.5)
        for fit, (process, run) in list(running.items()):
            if process.poll() is None:
                continue
            del running[fit]
            if process.returncode:
                tail = run.with_suffix(".log").read_text(errors="replace").splitlines()[-1:]
                print(f"{fit.name}: exit {process.returncode}: {' '.join(tail)}", flush=True)
                continue
            rows.append({"fit": asdict(fit), "at_once": given.at_once} | outcome(run))
            print(rows[-1], flush=True)
            files.write_json(record, {"environment": about, "rows": rows})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voc", type=Path, required=True, help="PASCAL VOC in the flat layout")
    parser.add_argument("--runs", type=Path, required=True, help="for folders and runs; kept between calls")
    parser.add_argument("--masks", type=int, nargs="+", default=[200, 500], help="labeled images of a folder")
    parser.add_argument("--unlabeled", type=int, default=1000, help="unlabeled images of a folder")
    parser.add_argument("--steps", type=int, nargs="+", required=True, help="steps of the first nets")
    parser.add_argument("--dmt", action="store_true", help="train DMT after each of them, too")
    parser.add_argument("--one-net", action="store_true", help="first nets of line A only")
    parser.add_argument("--at-once", type=int, default=1, help="fits that run beside each other")
    parser.add_argument("--device", choices=BATCH, default="cpu")
    parser.add_argument("--out", type=Path, required=True, help="for the record")
    given = parser.parse_args()
    given.runs.mkdir(parents=True, exist_ok=True)
    method = "dmt" if given.dmt else "baseline"
    measure(
        given,
        [Fit(masks, given.unlabeled, steps, method, given.one_net) for steps in given.steps for masks in given.masks],
    )


if __name__ == "__main__":
    main()
