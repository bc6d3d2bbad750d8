"""Peak memory of `dmt check` and `dmt fit` on a folder of images, as the number of unlabeled files grows.

    python -m benchmarks.own_memory --out benchmarks/results/own_memory.json

Makes folders of distinct 48×48 JPEG files, runs the commands as child processes, and samples their status. What counts
is anonymous memory, which the system cannot reclaim: the decoded images of large folders are in a file of the run,
whose pages it can reclaim. The runs have few steps, but both nets label every unlabeled image.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks import process_memory
from benchmarks.made_photos import NAMES, Painter
from dmt.version import VERSION

SIDE = 48
DISTINCT = 300
SHORT = ("epochs=10", "batch_pseudo=256", "batch_labeled=8", "epochs_round=1", "fractions=0.1", "net=resnet8-4")


@dataclass(frozen=True)
class Peak:
    """Peak memory of a command in MB of 1,000,000 bytes, and its seconds.

    Attributes:
        command: name of the command.
        files: number of unlabeled files.
        anonymous: highest sampled RssAnon.
        resident: VmHWM, the peak of resident memory, including pages of files.
        seconds: duration of the command.
    """

    command: str
    files: int
    anonymous: float
    resident: float
    seconds: float


def write_files(root: Path, count: int) -> None:
    """Write 8 labeled images of each class and ``count`` unlabeled ones: copies of some pictures with added noise."""
    painter = Painter("train", np.random.default_rng(count))
    some = {digit: [painter.one(digit).resize((SIDE, SIDE)) for _ in range(DISTINCT // 5)] for digit in NAMES}
    random = np.random.default_rng(1)
    for number in range(8 * len(NAMES) + count):
        digit = list(NAMES)[number % len(NAMES)]
        picture = np.asarray(some[digit][number % (DISTINCT // 5)], np.int16)
        changed = picture + random.integers(-6, 7, (1, SIDE, 3)) + random.integers(-6, 7, (SIDE, 1, 3))
        folder = root / (f"labeled/{NAMES[digit]}" if number < 8 * len(NAMES) else f"unlabeled/{number // 1000:03d}")
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(changed.clip(0, 255).astype(np.uint8)).save(folder / f"{number:06d}.jpg")


def measure(words: Sequence[str], files: int) -> Peak:
    """Run a command of dmt and sample its memory."""
    began = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", "dmt.cli", *words], stdout=subprocess.DEVNULL, stderr=None, text=True
    )
    anonymous = resident = 0.0
    while child.poll() is None:
        for key, size in process_memory.status(child.pid):
            if key == "RssAnon":
                anonymous = max(anonymous, size)
            elif key == "VmHWM":
                resident = max(resident, size)
        time.sleep(0.02)
    if child.returncode:
        raise RuntimeError(f"dmt {' '.join(words)} ended with {child.returncode}")
    return Peak(words[0], files, anonymous, resident, time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    peaks = []
    for count in given.files:
        with tempfile.TemporaryDirectory() as place:
            photos, run = Path(place, "photos"), Path(place, "run")
            write_files(photos, count)
            options = [word for each in SHORT for word in ("--set", each)]
            for words in (["check", str(photos)], ["fit", str(photos), "--out", str(run), *options]):
                peaks.append(measure([*words, "--device", "cpu"], count))
                print(peaks[-1], flush=True)
    about = {"python": platform.python_version(), "dmt": VERSION, "threads": os.environ.get("OMP_NUM_THREADS")}
    if given.out is not None:
        record = {"about": about, "options": SHORT, "peaks": [asdict(peak) for peak in peaks]}
        given.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
