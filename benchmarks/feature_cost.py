"""Cost of a fit on stored features, relative to the encoder's forward passes over its views.

    python -m benchmarks.feature_cost --voc DIR --photos 4800 --out benchmarks/results

PASCAL VOC as a user's folder, as in `benchmarks.real_photos`. `dmt.fit` runs with default settings, followed by an
audit; every call of an encoder is timed. The ratio is that of the fit's seconds to those inside the encoders; both are
from one process, so it holds on a busy machine, too. Photos in ``test/`` are encoded once each and counted.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import dmt
from benchmarks.real_photos import write_folder
from dmt import files
from dmt.auditing import auditor
from dmt.runs import environment
from dmt.runs.progress import Silent
from dmt.training import encoding


class Clock:
    """Seconds spent inside encoders, and number of images that they encoded."""

    def __init__(self) -> None:
        self.seconds, self.images = 0.0, 0

    def timed(self, encode: encoding.Encode) -> encoding.Encode:
        def call(batch: torch.Tensor) -> torch.Tensor:
            began = time.monotonic()
            found = encode(batch)
            self.seconds += time.monotonic() - began
            self.images += len(batch)
            return found

        return call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voc", type=Path, required=True, help="PASCAL VOC in the flat layout")
    parser.add_argument("--photos", type=int, default=4800, help="labeled and unlabeled ones together")
    parser.add_argument("--labels", type=int, default=10, help="of each class")
    parser.add_argument("--out", type=Path, required=True, help="folder for feature_cost.json")
    given = parser.parse_args()
    clock, made = Clock(), encoding.encoder
    encoding.encoder = lambda *args: clock.timed(made(*args))
    with tempfile.TemporaryDirectory() as place:
        photos, run = Path(place, "photos"), Path(place, "run")
        total = write_folder(given.voc, photos, 1, given.labels, given.photos - 20 * given.labels)
        began = time.monotonic()
        report = dmt.fit(photos, out=run, watcher=Silent())
        fitted, inside, looks = time.monotonic() - began, clock.seconds, clock.images
        began = time.monotonic()
        auditor.audit(run, None, auditor.AuditOptions())
        audited = time.monotonic() - began
    record: dict[str, Any] = {
        **environment.describe(environment.pick_device("auto")),
        "command": f"python -m benchmarks.feature_cost --photos {given.photos} --labels {given.labels}",
        "photos": total,
        "looks": looks,
        "fit_seconds": round(fitted, 1),
        "encoder_seconds": round(inside, 1),
        "ratio": round(fitted / inside, 3),
        "rest_seconds": round(fitted - inside, 1),
        "audit_seconds": round(audited, 1),
        "scores": {job.method: job.test_score("shipped") for job in report.jobs},
    }
    print(record)
    files.write_json(given.out / "feature_cost.json", record)


if __name__ == "__main__":
    main()
