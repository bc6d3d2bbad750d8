"""Cost of digests: the share of a run's time in which files are hashed, when they are written and when they are read.

python -m benchmarks.digests [PRESET …] [--set KEY=VALUE …] [--checkpoint-every SECONDS]

Hashing overlaps with disk access, so the share is an upper bound of its cost.
"""

import argparse
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import torch

import dmt
from dmt import files
from dmt.pseudo import pixel_store, pixel_writer
from dmt.runs.progress import Silent

HASHING = ((files, "digest"), (files, "require_digest"), (pixel_store, "checksum"), (pixel_writer, "checksum"))


class Clock:
    """Total seconds spent in wrapped functions."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return work(*args, **options)
            finally:
                self.seconds += time.perf_counter() - start

        return timed


def share(preset: str, settings: dict[str, str], every: float) -> str:
    """Run a preset and return a line about the share of hashing."""
    clock = Clock()
    patches = [mock.patch.object(module, name, clock.around(getattr(module, name))) for module, name in HASHING]
    with tempfile.TemporaryDirectory() as folder:
        for patch in patches:
            patch.start()
        start = time.perf_counter()
        dmt.fit(preset, out=Path(folder, "run"), settings=settings, checkpoint_every=every, watcher=Silent())
        total = time.perf_counter() - start
        for patch in patches:
            patch.stop()
    return f"{preset}: {clock.seconds:.3f} of {total:.1f} s, {clock.seconds / total:.2%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("preset", nargs="*", default=["digits", "scenes"])
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="KEY=VALUE")
    parser.add_argument("--checkpoint-every", type=float, default=30.0)
    options = parser.parse_args()
    settings = dict(text.split("=", 1) for text in options.settings)
    for preset in options.preset:
        print(share(preset, settings, options.checkpoint_every), flush=True)
    print(f"{platform.machine()}, torch {torch.__version__}, Python {platform.python_version()}")


if __name__ == "__main__":
    main()
