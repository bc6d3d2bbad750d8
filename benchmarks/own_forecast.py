"""How well `dmt plan FOLDER` predicts the duration of `dmt fit FOLDER`, for both tasks and two sizes of folders.

    python -m benchmarks.own_forecast --repeats 3 --out benchmarks/results/own_forecast.json
    python -m benchmarks.own_forecast --share 0.2                 schedules of a fifth of the length

Each forecast is immediately followed by its fit, so that both run under the same load. A second forecast follows the
fit: the mean of both shows how much of an error is due to the load. Seconds are those of the whole command, as a user
waits for it.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from benchmarks import made_photos
from dmt.own import choosing

_SAID = re.compile(r"will take about ([\d.]+) (s|minutes) on this")


@dataclass(frozen=True)
class Pair:
    """Forecast, actual duration, and forecast after the fit, in seconds."""

    task: str
    total: int
    share: float
    forecast: float
    seconds: float
    forecast_after: float

    @property
    def ratio(self) -> float:
        """Forecast by duration: above 1 if the fit was shorter than predicted."""
        return self.forecast / self.seconds


def foretold(photos: Path, options: Sequence[str]) -> float:
    """Return the forecast of `dmt plan` in seconds."""
    words = [sys.executable, "-m", "dmt.cli", "plan", str(photos), "--device", "cpu", *options]
    printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    found = _SAID.search(printed)
    if found is None:
        raise ValueError(f"no forecast in: {printed}")
    return float(found[1]) * (60 if found[2] == "minutes" else 1)


def shortened(photos: Path, share: float) -> list[str]:
    """Return options for schedules of this share of the usual length."""
    recipe = choosing.choose(photos, torch.device("cpu")).preset.config.recipe
    epochs, rounds = (max(1, round(share * each)) for each in (recipe.epochs, recipe.rounds()[0].epochs))
    return [] if share == 1 else ["--set", f"epochs={epochs}", "--set", f"epochs_round={rounds}"]


def trial(place: Path, task: str, total: int, seed: int, share: float) -> Pair:
    """Make a folder, then forecast, fit, and forecast again."""
    photos = place / "photos"
    if task == "images":
        made_photos.write_images(photos, seed, replace(made_photos.IMAGES, total=total, test=100))
    else:
        made_photos.write_masks(photos, seed, replace(made_photos.MASKS, total=total, test=30))
    options = shortened(photos, share)
    forecast = foretold(photos, options)
    began = time.perf_counter()
    words = [sys.executable, "-m", "dmt.cli", "fit", str(photos), "--out", str(place / "run"), "--device", "cpu"]
    subprocess.run([*words, *options], check=True, stdout=subprocess.DEVNULL)
    return Pair(task, total, share, forecast, time.perf_counter() - began, foretold(photos, options))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=["images", "masks"], nargs="+", default=["images", "masks"])
    parser.add_argument("--total", type=int, nargs="+", default=[100, 400], help="labeled and unlabeled photos")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="of the usual length of a schedule")
    parser.add_argument("--out", type=Path, help="JSON")
    given = parser.parse_args()
    pairs = []
    for repeat in range(given.repeats):
        for task in given.task:
            for total in given.total:
                with tempfile.TemporaryDirectory() as place:
                    pairs.append(trial(Path(place), task, total, 1 + repeat, given.share))
                print(pairs[-1], f"ratio {pairs[-1].ratio:.2f}", flush=True)
                if given.out is not None:
                    given.out.write_text(json.dumps([asdict(each) for each in pairs], indent=1) + "\n")
    for task in given.task:
        for total in given.total:
            ratios = [each.ratio for each in pairs if (each.task, each.total) == (task, total)]
            print(
                f"{task}, {total} photos: forecast / seconds {statistics.median(ratios):.2f} (median of {len(ratios)})"
            )


if __name__ == "__main__":
    main()
