"""Can `dmt check` tell copies of a photo from different photos of one scene? On real folders and artificial copies.

    python -m benchmarks.look_alikes FOLDERS/* --out benchmarks/results/look_alikes.md

Found: the share of copies made of 300 photos of each folder whose hash is close to the original's and which are the
same photo by the detailed comparison. Pairs: the number of pairs of photos in different parts of the folder with close
hashes, and how many of them are reported. Parts were split so that near-duplicates are in one part, as far as the
sources identify them. Before decision 37, all pairs were reported whose hashes differ in at most 3 bits.
"""

import argparse
import io
import random
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from benchmarks import provenance
from dmt import files
from dmt.data.folders import copies, likeness, photo_files, photos, survey
from dmt.runs import environment

PHOTOS = 300
BEFORE = 3
KINDS = ("JPEG 60–90", "50–200 %", "brightness ±10 %", "crop 2 %", "crop, 60 %, +8 %, JPEG 70")


def saved(image: Image.Image, quality: int) -> Image.Image:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return Image.open(file).convert("RGB")


def scaled(image: Image.Image, factor: float) -> Image.Image:
    return image.resize([max(1, round(side * factor)) for side in image.size], Image.Resampling.LANCZOS)


def brightened(image: Image.Image, factor: float) -> Image.Image:
    return Image.fromarray((np.asarray(image, dtype=np.float32) * factor).clip(0, 255).astype(np.uint8))


def made(image: Image.Image) -> Iterator[tuple[str, Image.Image]]:
    """Yield altered copies of an image, each with its kind."""
    yield from ((KINDS[0], saved(image, quality)) for quality in (60, 75, 90))
    yield from ((KINDS[1], scaled(image, factor)) for factor in (0.5, 0.75, 1.5, 2.0))
    yield from ((KINDS[2], brightened(image, factor)) for factor in (0.9, 1.1))
    width, height = image.size
    edge, rim = round(width * 0.01), round(height * 0.01)
    middle = image.crop((edge, rim, width - edge, height - rim))
    yield KINDS[3], middle
    yield KINDS[3], image.crop((2 * edge, 2 * rim, width, height))
    yield KINDS[4], saved(brightened(scaled(middle, 0.6), 1.08), 70)


def described(image: np.ndarray) -> tuple[int, copies.Thumbnail]:
    return likeness.dhash(image), copies.thumbnail(image)


def found(original: np.ndarray, copy: np.ndarray) -> tuple[bool, bool]:
    """Whether a copy is reported: by its hash alone, as before decision 37, and now."""
    (first, small), (second, other) = described(original), described(copy)
    now = bool(likeness.near_pairs([first, second])) and copies.difference(small, other) <= copies.LIMIT
    return bool(likeness.near_pairs([first, second], BEFORE)), now


def across(parts: dict[str, str], hashes: dict[str, int], distance: int) -> int:
    """Count pairs of pictures in different parts whose hashes differ in at most ``distance`` bits."""
    names = list(parts)
    pairs = likeness.near_pairs([hashes[each] for each in names], distance)
    return sum(parts[names[left]] != parts[names[right]] for left, right in pairs)


def row(folder: Path) -> list[str]:
    contents = photos.open_folder(folder)
    start = time.process_time()
    looks = survey.survey(contents)
    seconds = time.process_time() - start
    every = [photo for _, each in contents.parts() for photo in each]
    hits: dict[str, list[tuple[bool, bool]]] = {kind: [] for kind in KINDS}
    for photo in random.Random(0).sample(every, min(PHOTOS, len(every))):
        original = photo_files.read_photo(photo.path)
        for kind, copy in made(Image.fromarray(original)):
            hits[kind].append(found(original, np.asarray(copy)))
    parts = {look.digest: look.part for look in looks.looks if look.digest}
    hashes = {look.digest: look.likeness for look in looks.looks if look.digest}
    reported = sum(parts[left] != parts[right] for left, right in looks.alike)
    rates = [[100 * sum(each) / len(hit) for each in zip(*hit, strict=True)] for hit in hits.values()]
    again = len({place for group in copies.candidates(list(hashes.values())) for place in group})
    return [
        folder.name,
        f"{len(every):,}",
        *(f"{now:.1f} ({before:.1f})" for before, now in rates),
        f"{across(parts, hashes, BEFORE)}",
        f"{across(parts, hashes, likeness.DISTANCE)}",
        f"{reported}",
        f"{again}",
        f"{seconds:.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True, help="a Markdown file")
    asked = parser.parse_args()
    about = environment.describe(torch.device("cpu"))
    head = ["folder", "photos", *KINDS, "pairs within 3 bits", "within 4", "reported", "decoded again", "CPU seconds"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for folder in asked.folders:
        lines.append(f"| {' | '.join(row(folder))} |")
        print(lines[-1], flush=True)
    text = (
        f"# Copies of a photo, and photos that look alike\n\n`{provenance.command(about['command'])}`; "
        f"{about['hardware']['cores']} cores, Python {about['python']}, torch {about['torch']}, dmt {about['dmt']}. "
        f"Copies that are found, % of those made of {PHOTOS} photos of each folder (seed 0), by kind; in brackets, by "
        "hashes within 3 bits alone, as before. Then pairs across the parts of the folder, with close hashes, and "
        "reported as possible copies. Then pictures that are decoded again, and CPU seconds of the survey, first "
        "decoding included.\n\n"
    )
    files.write(asked.out, (text + "\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    main()
