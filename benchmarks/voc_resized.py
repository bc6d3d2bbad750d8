"""Make PASCAL VOC in the flat layout smaller, for training on a CPU.

python -m benchmarks.voc_resized VOC SMALLER --side 128
"""

import argparse
import os
import shutil
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from PIL import Image

PARTS = ("images", "masks")


def resize(side: int, target: Path, source: Path) -> None:
    """Write a photo or mask resized to a shorter side of ``side`` pixels, unless it exists."""
    mask, place = source.parent.name == "masks", target / source.parent.name / source.name
    if place.exists():
        return
    with Image.open(source) as opened:
        factor = side / min(opened.size)
        width, height = (max(side, round(length * factor)) for length in opened.size)
        smaller = opened.resize((width, height), Image.Resampling.NEAREST if mask else Image.Resampling.LANCZOS)
        unfinished = place.with_suffix(f".unfinished{place.suffix}")
        smaller.save(unfinished, quality=90)  # affects photos only; masks are PNG files
        unfinished.replace(place)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("voc", type=Path)
    parser.add_argument("smaller", type=Path)
    parser.add_argument("--side", type=int, default=128, help="shorter side in pixels")
    given = parser.parse_args()
    for part in PARTS:
        (given.smaller / part).mkdir(parents=True, exist_ok=True)
    shutil.copytree(given.voc / "splits", given.smaller / "splits", dirs_exist_ok=True)
    shutil.copy(given.voc / "classes.txt", given.smaller)
    sources = [path for part in PARTS for path in sorted((given.voc / part).iterdir())]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        done = pool.map(partial(resize, given.side, given.smaller), sources, chunksize=100)
        print(f"{sum(1 for _ in done):,} files in {given.smaller}")


if __name__ == "__main__":
    main()
