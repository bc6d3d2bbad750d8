"""From a folder of real photos to a classifier in one command, and the gain from the unlabeled photos.

    python -m benchmarks.real_photos --voc DIR --out benchmarks/results/real_photos.json

PASCAL VOC as a user's folder: a photo's class is the most frequent one in its mask. For every seed, a few training
photos of each class are labeled, some others are unlabeled, and those of ``val`` are in ``test/``. Then
`dmt fit FOLDER --out RUN` runs with default settings. ``DIR`` has the flat layout: images, masks, splits, classes.txt.
"""

import argparse
import random
import shlex
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks import own_images
from dmt.data.pixels import flat


def main_class(mask: Path) -> int:
    """Return the class with the most pixels, ignoring background and unlabeled pixels."""
    with Image.open(mask) as opened:
        objects = np.bincount(np.asarray(opened).ravel(), minlength=256)[1:255]
    if not objects.any():
        raise ValueError(f"{mask} shows nothing")
    return 1 + int(objects.argmax())


def write_folder(voc: Path, root: Path, seed: int, labels: int, unlabeled: int) -> int:
    """Link photos into ``labeled``, ``unlabeled`` and ``test``; return how many are in the first two."""
    known = flat.open_folder(voc)
    train, test = (list(known.splits[part]) for part in ("train_aug", "val"))
    random.Random(seed).shuffle(train)
    files = {path.stem: path.resolve() for path in (voc / "images").iterdir()}

    def link(identity: str, *where: str) -> None:
        folder = root.joinpath(*where)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / files[identity].name).symlink_to(files[identity])

    seen: Counter[int] = Counter()
    left = 0
    for identity, label in _classes(voc, train):
        if seen[label] < labels:
            seen[label] += 1
            link(identity, "labeled", known.classes[label])
        elif left < unlabeled:
            left += 1
            link(identity, "unlabeled")
    for identity, label in _classes(voc, test):
        link(identity, "test", known.classes[label])
    return sum(seen.values()) + left


def _classes(voc: Path, ids: Sequence[str]) -> Iterator[tuple[str, int]]:
    with ThreadPoolExecutor() as pool:
        yield from zip(ids, pool.map(lambda identity: main_class(voc / f"masks/{identity}.png"), ids), strict=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voc", type=Path, required=True, help="PASCAL VOC in the flat layout")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="of the folders")
    parser.add_argument("--labels", type=int, default=10, help="of each class")
    parser.add_argument("--unlabeled", type=int, default=3000)
    parser.add_argument("--long", action="store_true", help="train a longer Baseline too")
    parser.add_argument("--fit", default="", help="more words for dmt fit")
    parser.add_argument("--out", type=Path, help="JSON; what is there stays")
    given = parser.parse_args()
    outcomes = []
    for seed in given.seeds:
        with tempfile.TemporaryDirectory() as place:
            total = write_folder(given.voc, Path(place, "photos"), seed, given.labels, given.unlabeled)
            outcomes.append(own_images.trial(Path(place), "images", seed, total, shlex.split(given.fit), given.long))
        print(outcomes[-1], flush=True)
        if given.out is not None:
            own_images.add(given.out, outcomes[-1])
    print(own_images.summary(outcomes))


if __name__ == "__main__":
    main()
