"""Real folders with other labels: random draws of the labeled images, and pools with foreign images or skewed classes.

An archive ``NAME.tar.gz`` holds the folder ``NAME``. For images, ``NAME.truth.csv`` (file,class) has the classes of
those in ``unlabeled/``, so that other labeled sets can be drawn. Images are linked, not copied.
"""

import csv
import random
import shutil
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

FOREIGN = 1 / 3
"""Share of foreign images among the unlabeled ones of a dirty pool."""

SKEW = 10
"""Ratio of the most frequent to the rarest class in a skewed pool."""

Classes = Mapping[Path, str]
"""Class names by image."""


def unpack(archives: Path, name: str, place: Path) -> Path:
    """Return the folder of an archive; it is unpacked once."""
    folder = place / name
    if not folder.is_dir():
        unfinished = place / f"{name}-unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        with tarfile.open(archives / f"{name}.tar.gz") as archive:
            archive.extractall(unfinished, filter="data")
        (unfinished / name).rename(folder)
        unfinished.rmdir()
    return folder


def classes_of(archives: Path, source: Path) -> tuple[dict[Path, str], dict[Path, str]]:
    """Return the classes of the labeled and of the unlabeled images of a folder."""
    labeled = {path: path.parent.name for path in sorted((source / "labeled").glob("*/*"))}
    with (archives / f"{source.name}.truth.csv").open(newline="") as file:
        rows = {source / "unlabeled" / row["file"]: row["class"] for row in csv.DictReader(file)}
    return labeled, dict(sorted(rows.items()))


def images(labeled: Classes, unlabeled: Classes, seed: int) -> tuple[dict[Path, str], dict[Path, str]]:
    """Draw another labeled set with as many images of each class from all images; the others are unlabeled."""
    every = _shuffled({**labeled, **unlabeled}, seed)
    left = {name: list(labeled.values()).count(name) for name in dict.fromkeys(labeled.values())}
    drawn: dict[Path, str] = {}
    for path, name in every.items():
        if left[name]:
            left[name] -= 1
            drawn[path] = name
    return drawn, {path: name for path, name in every.items() if path not in drawn}


def skewed(unlabeled: Classes, seed: int) -> dict[Path, str]:
    """Return a subset whose class counts decrease geometrically, by a factor of `SKEW` from first to last class."""
    every = _shuffled(unlabeled, seed)
    counts = {name: list(every.values()).count(name) for name in sorted(set(every.values()))}
    order = sorted(counts, key=lambda name: -counts[name])
    shares = [SKEW ** (-place / max(1, len(order) - 1)) for place in range(len(order))]
    most = min(counts[name] / share for name, share in zip(order, shares, strict=True))
    left = {name: max(1, int(most * share)) for name, share in zip(order, shares, strict=True)}
    kept: dict[Path, str] = {}
    for path, name in every.items():
        if left[name]:
            left[name] -= 1
            kept[path] = name
    return kept


def foreign(count: int, folders: Iterable[Path], seed: int) -> list[Path]:
    """Return images of other folders, if possible as many as make up `FOREIGN` of a pool with ``count`` of its own."""
    others = [path for folder in folders for path in sorted((folder / "unlabeled").iterdir())]
    random.Random(seed).shuffle(others)
    return others[: round(count * FOREIGN / (1 - FOREIGN))]


def write_images(root: Path, source: Path, labeled: Classes, unlabeled: Sequence[Path]) -> None:
    """Write a folder of images: ``labeled/<class>/``, ``unlabeled/`` and the source's test images."""
    for number, (path, name) in enumerate(labeled.items()):
        _link(path, root / "labeled" / name / f"{number:05d}{path.suffix}")
    _write_unlabeled(root, unlabeled)
    _link(source / "test", root / "test")


def write_masks(root: Path, source: Path, seed: int) -> None:
    """Write a folder with two thirds of the given masks; the images of the others are unlabeled."""
    every = sorted((source / "labeled" / "images").iterdir())
    random.Random(seed).shuffle(every)
    count = round(2 * len(every) / 3)
    masks = {path.stem: path for path in (source / "labeled" / "masks").iterdir()}
    for path in every[:count]:
        _link(path, root / "labeled" / "images" / path.name)
        _link(masks[path.stem], root / "labeled" / "masks" / masks[path.stem].name)
    _write_unlabeled(root, [*every[count:], *sorted((source / "unlabeled").iterdir())])
    for name in ("test", "classes.txt"):
        if (source / name).exists():
            _link(source / name, root / name)


def _write_unlabeled(root: Path, paths: Sequence[Path]) -> None:
    for number, path in enumerate(paths):
        _link(path, root / "unlabeled" / f"{number:05d}{path.suffix}")


def _shuffled(classes: Classes, seed: int) -> dict[Path, str]:
    every = list(classes.items())
    random.Random(seed).shuffle(every)
    return dict(every)


def _link(path: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(path.resolve())
