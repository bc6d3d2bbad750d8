"""How long must nets train on folders of masks? Baselines of several lengths, and DMT after them.

    python -m benchmarks.mask_lengths voc200 voc500 --voc DIR --runs RUNS --steps 400 1600 --dmt --at-once 2 --out OUT
    python -m benchmarks.mask_lengths polyps --folders DIR --runs RUNS --steps 400 1600 --dmt --out OUT
    python -m benchmarks.mask_lengths voc500 --voc DIR --runs RUNS --device cuda --steps 1000 3000 --one-net --out OUT

``vocN`` is PASCAL VOC as somebody's folder: of the images of ``train_aug``, shuffled with seed 1, the first N are
labeled, the next ones are unlabeled, and the last 400 are ``test/``; images of ``val`` are not used. ``--voc`` has the
flat layout: images, masks, splits, classes.txt. Other names are those of archives in ``--folders``. Every fit is `dmt
fit FOLDER --no-folds --set epochs=N` with the defaults of the device; finished stages of other fits of the folder are
taken over. Fits that are in the record,
``--out``/mask_lengths_cpu.json or mask_lengths_cuda.json, are not repeated. Those that run at the same time share the
machine: their scores are valid, but their seconds are not.
"""

import argparse
import json
import math
import os
import random
import re
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import provenance
from dmt import files, run_files
from dmt.data.folders import photos
from dmt.results import reading
from dmt.runs import environment
from dmt.runs.folder import Folder

TEST = 400
CODE = "import json, pathlib, sys, dmt; a = json.loads(sys.argv[1]); "
CODE += "dmt.fit(**a | {'donors': list(map(pathlib.Path, a['donors']))})"
BATCH = {"cpu": 8, "cuda": 16}
"""Images per step of first nets, as chosen by `dmt.own.schedules`."""


@dataclass(frozen=True)
class Fit:
    """One fit: a folder, the length of its first nets, and other options that are not the defaults."""

    folder: str
    steps: int
    method: str
    one_net: bool = False
    changes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return "-".join((self.folder, str(self.steps), self.method, *("one",) * self.one_net, *self.changes))

    def arguments(self, folder: Path, run: Path, device: str) -> dict[str, Any]:
        """Return the arguments of `dmt.fit`, but for its donors."""
        epochs = max(1, round(self.steps / math.ceil(len(photos.open_folder(folder).labeled) / BATCH[device])))
        only = ("shape=chain", "net_b=none", "share=none") if self.one_net else ()
        settings = dict(each.split("=", 1) for each in (f"epochs={epochs}", *only, *self.changes))
        where = {"data": str(folder), "out": str(run), "device": device}
        return where | {"method": self.method, "folds": False, "start": "wheel", "settings": settings}


def folder_of(given: argparse.Namespace, name: str) -> Path:
    """Return a folder of images with masks, made if it is not there."""
    found = re.fullmatch(r"voc(\d+)", name)
    if found is not None:
        return write_folder(given.voc, given.runs / f"{name}-{given.unlabeled}", int(found[1]), given.unlabeled)
    if not (given.runs / name).exists():
        with tarfile.open(given.folders / f"{name}.tar.gz") as archive:
            archive.extractall(given.runs, filter="data")
    return given.runs / name  # type: ignore[no-any-return]


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
    waiting = [fit for fit in waiting if fit.name not in {row["name"] for row in rows}]
    described = environment.describe(environment.pick_device(given.device))
    kept = {key: described[key] for key in ("dmt", "python", "torch", "hardware", "git") if key in described}
    about = kept | {"command": provenance.command(described["command"])}
    running: dict[Fit, subprocess.Popen[bytes]] = {}
    while running or waiting:
        while waiting and len(running) < given.at_once:
            fit = waiting.pop(0)
            running[fit] = begin(given, fit)
        time.sleep(0.5)
        for fit, process in list(running.items()):
            if process.poll() is None:
                continue
            del running[fit]
            if process.returncode:
                tail = log_of(given, fit).read_text(errors="replace").splitlines()[-1:]
                print(f"{fit.name}: exit {process.returncode}: {' '.join(tail)}", flush=True)
                continue
            rows.append({"name": fit.name, "fit": asdict(fit), "at_once": given.at_once} | outcome(run_of(given, fit)))
            print(rows[-1], flush=True)
            files.write_json(record, {"environment": about, "rows": rows})


def begin(given: argparse.Namespace, fit: Fit) -> subprocess.Popen[bytes]:
    """Start a fit in a process of its own, with its share of the cores."""
    run = run_of(given, fit)
    arguments = fit.arguments(folder_of(given, fit.folder), run, given.device)
    others = (each for each in given.runs.glob(f"run-{fit.folder}-*/") if each != run)
    arguments["donors"] = [str(each) for each in others if (each / run_files.MANIFEST).is_file()]
    threads = str(max(1, (os.cpu_count() or 1) // given.at_once))
    with log_of(given, fit).open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-c", CODE, json.dumps(arguments)],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | {"OMP_NUM_THREADS": threads},
        )


def run_of(given: argparse.Namespace, fit: Fit) -> Path:
    return given.runs / f"run-{fit.name}"  # type: ignore[no-any-return]


def log_of(given: argparse.Namespace, fit: Fit) -> Path:
    return given.runs / f"run-{fit.name}.log"  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", help="voc200, voc500 and so on, or names of archives")
    parser.add_argument("--voc", type=Path, help="PASCAL VOC in the flat layout")
    parser.add_argument("--folders", type=Path, help="archives of folders")
    parser.add_argument("--runs", type=Path, required=True, help="for folders and runs; kept between calls")
    parser.add_argument("--unlabeled", type=int, default=1000, help="unlabeled images of a folder of VOC")
    parser.add_argument("--steps", type=int, nargs="+", required=True, help="steps of the first nets")
    parser.add_argument("--dmt", action="store_true", help="train DMT after each of them, too")
    parser.add_argument("--one-net", action="store_true", help="first nets of line A only")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="another option of the fits")
    parser.add_argument("--at-once", type=int, default=1, help="fits that run beside each other")
    parser.add_argument("--device", choices=BATCH, default="cpu")
    parser.add_argument("--out", type=Path, required=True, help="for the record")
    given = parser.parse_args()
    given.runs.mkdir(parents=True, exist_ok=True)
    method, changes = "dmt" if given.dmt else "baseline", tuple(given.set)
    measure(given, [Fit(name, steps, method, given.one_net, changes) for steps in given.steps for name in given.names])


if __name__ == "__main__":
    main()
