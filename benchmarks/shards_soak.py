"""Labeling and one round on very many unlabeled images in shards, on a CPU: memory, images per second, hours.

Synthetic images of 8×8 pixels in ten classes are written into tar files; then a tiny net is trained on a few labels,
labels all images and is trained on its labels. No unlabeled images are kept in memory: the size limit for keeping pools
in memory is set to 0, as if the pool were larger. Each number of images runs in its own process.

    python -m benchmarks.shards_soak --images 100000 1000000 --out benchmarks/results
"""

import argparse
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from PIL import Image

from benchmarks.process_memory import Watched
from dmt import files
from dmt.data import buffers
from dmt.data.folders import photo_pools, shards
from dmt.fitting import run
from dmt.pseudo import labeler
from dmt.runs import environment
from dmt.runs.progress import Silent
from dmt.training import loop

SIDE, CLASSES, LABELED, IN_SHARD = 8, 10, 20, 10_000
SETTINGS = {
    "net": "resnet8-4",
    "size": SIDE,
    "epochs": 40,
    "epochs_round": 1,
    "fractions": "1",
    "batch": 64,
    "batch_pseudo": 224,
    "batch_labeled": 32,
    "augment": "crop-flip",
}
PHASES: dict[str, tuple[Any, str]] = {
    "finding the images": (shards, "_read"),
    "reading all once": (photo_pools, "_check"),
    "labeling": (labeler, "make"),
    "training": (loop, "fit"),
}
"""Phases that take long, with module and name of the function that is timed."""


def picture(label: int, random: np.random.Generator) -> bytes:
    """Return an image of a class as PNG: the color of the class with noise."""
    color = np.random.default_rng(label).integers(60, 196, 3)
    noisy = np.clip(color + random.normal(0, 60, (SIDE, SIDE, 3)), 0, 255).astype(np.uint8)
    held = io.BytesIO()
    Image.fromarray(noisy).save(held, "png", compress_level=1)
    return held.getvalue()


def write(folder: Path, images: int, seed: int) -> None:
    """Write a folder with labeled and test images as files and unlabeled ones in shards."""
    random = np.random.default_rng(seed)
    for part, count in (("labeled", LABELED), ("test", 5 * LABELED)):
        for label in range(CLASSES):
            place = folder / part / f"class {label}"
            place.mkdir(parents=True)
            for number in range(count):
                (place / f"{number}.png").write_bytes(picture(label, random))
    (folder / "unlabeled").mkdir()
    for start in range(0, images, IN_SHARD):
        with tarfile.open(folder / "unlabeled" / f"{start // IN_SHARD:06d}.tar", "w") as archive:
            for number in range(start, min(start + IN_SHARD, images)):
                content = picture(int(random.integers(CLASSES)), random)
                about = tarfile.TarInfo(f"{number:08d}.png")
                about.size = len(content)
                archive.addfile(about, io.BytesIO(content))


def timed(spent: dict[str, list[float]], name: str, work: Callable[..., Any]) -> Callable[..., Any]:
    def measured(*words: Any, **named: Any) -> Any:
        clock, processor = time.perf_counter(), time.process_time()
        try:
            return work(*words, **named)
        finally:
            spent[name][0] += time.perf_counter() - clock
            spent[name][1] += time.process_time() - processor

    return measured


def soak(folder: Path, images: int, seed: int) -> dict[str, Any]:
    """Run `fit` on a folder in this process, and return its measurements."""
    spent = {name: [0.0, 0.0] for name in (*PHASES, "all")}
    with mock.patch.object(buffers, "MEMORY", 0), Watched() as memory:
        patches = [
            mock.patch.object(place, name, timed(spent, phase, getattr(place, name)))
            for phase, (place, name) in PHASES.items()
        ]
        for patch in patches:
            patch.start()
        words: dict[str, Any] = {"method": "cbst", "baseline": False, "folds": False, "device": "cpu", "seed": seed}
        fit = timed(spent, "all", run.fit)
        report = fit(folder, out=folder / "run", settings=SETTINGS, watcher=Silent(), **words)
    return {
        "images": images,
        "seed": seed,
        "accuracy of the Baseline and of the round": [
            stage.outcome["scores"]["test"]["raw"]["accuracy"] for stage in report.jobs[0].stages if stage.outcome
        ],
        "highest anonymous memory in MB": round(memory.anonymous),
        "highest resident memory in MB": round(loop.peak_memory(torch.device("cpu")) / 1e6),
        "seconds on the clock": {name: round(clock, 1) for name, (clock, _) in spent.items()},
        "seconds of processor time": {name: round(processor, 1) for name, (_, processor) in spent.items()},
        "images a second of processor time": {
            name: round(images / max(processor, 1e-9)) for name, (_, processor) in spent.items()
        },
        "hours of processor time for 1,000,000 images": round(spent["all"][1] / images * 1e6 / 3600, 2),
        "MB in the run's folder": round(
            sum(each.stat().st_size for each in (folder / "run").rglob("*") if each.is_file()) / 1e6, 1
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--in-folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.in_folder is not None:
        print(json.dumps(soak(asked.in_folder, asked.images[0], asked.seed)))
        return
    found = []
    for images in asked.images:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), images, asked.seed)
            words = ["--images", str(images), "--seed", str(asked.seed), "--in-folder", folder]
            command = [sys.executable, "-m", "benchmarks.shards_soak", *words]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found.append(json.loads(done.stdout.splitlines()[-1]))
            print(json.dumps(found[-1], indent=1), flush=True)
    if asked.out is not None:
        described = environment.describe(torch.device("cpu"))
        about = {
            key: described[key]
            for key in ("dmt", "python", "torch", "numpy", "hardware", "command")
            if key in described
        }
        files.write(
            asked.out / "shards_soak.json", files.json_bytes({"about": about, "found": found}, indent=1) + b"\n"
        )


if __name__ == "__main__":
    main()
