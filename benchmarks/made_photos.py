"""Folders of synthetic photos for both tasks: handwritten digits, painted on crops of two real photos.

    python -m benchmarks.made_photos images FOLDER --seed 1      labeled/<class>/, unlabeled/, test/<class>/
    python -m benchmarks.made_photos masks FOLDER --seed 1       labeled/images, labeled/masks, unlabeled/, test/

Digits and photos come with scikit-learn. Every picture has its own background, light, pose, colors and noise. Each
class has a range of hues that overlaps with those of its neighbors: a hint, as with fruit or flowers. The digits in
test/ occur in no other part, and backgrounds there are cut from the right half of the photos, all others from the left.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from numpy.random import Generator
from PIL import Image, ImageFilter

from dmt.data.images import embedded

NAMES = {0: "zero", 1: "one", 3: "three", 4: "four", 7: "seven"}
"""Classes by digit: digits that remain recognizable when mirrored or tilted."""

HUES = 0.16
"""Maximum deviation of a hue from that of its class, as a fraction of the circle; neighboring classes are 0.2 apart."""

INDEX = (0, 0, 0, 230, 60, 60, 60, 110, 230, 240, 200, 60, 70, 190, 90, 180, 90, 200)  # color palette of masks

Floats = npt.NDArray[np.floating]
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Made:
    """Numbers of pictures in a folder.

    Attributes:
        labeled: number of labeled pictures; for images, per class.
        total: number of labeled and unlabeled pictures together.
        test: number of test pictures.
    """

    labeled: int
    total: int = 200
    test: int = 300


IMAGES = Made(labeled=8)
MASKS = Made(labeled=20, test=100)


class Painter:
    """Paints pictures of one part, "train" or "test"."""

    def __init__(self, part: str, draw: Generator) -> None:
        from sklearn.datasets import load_sample_images  # slow to import

        self._draw = draw
        digits = embedded.digits()[part == "test"]
        self._inks = {
            label: digits.images[digits.labels == label].squeeze(1).numpy() for label in NAMES
        }  # digit -> (N, 8, 8)
        halves = [np.split(photo, [photo.shape[1] // 2], axis=1) for photo in load_sample_images().images]
        self._photos = [Image.fromarray(half[part == "test"]) for half in halves]

    def one(self, digit: int) -> Image.Image:
        """Paint a picture of one digit, which fills most of it."""
        height, width = self._size()
        picture = self._ground(height, width)
        picture, _ = self._paint(picture, digit, self._between(0.65, 0.9) * min(height, width))
        return self._lit(picture)

    def several(self) -> tuple[Image.Image, Bytes]:
        """Paint a picture of one to three digits; return it with its mask, 0 for background or 1 + the class index."""
        height, width = self._size()
        picture, mask = self._ground(height, width), np.zeros((height, width), np.uint8)
        classes = list(NAMES)
        for _ in range(self._draw.integers(1, 4)):
            label = int(self._draw.integers(len(classes)))
            picture, inside = self._paint(picture, classes[label], self._between(0.4, 0.6) * min(height, width))
            mask[inside] = label + 1
        return self._lit(picture), mask

    def _size(self) -> tuple[int, int]:
        sizes = ((72, 72), (72, 96), (96, 72), (80, 80))
        return sizes[self._draw.integers(len(sizes))]

    def _ground(self, height: int, width: int) -> Floats:
        """Return a background, (H, W, 3) in 0..1: a crop of a photo, toned down, with clouds of color over it."""
        photo = self._photos[self._draw.integers(len(self._photos))]
        tall = int(self._draw.integers(height, photo.height + 1))  # near or far
        wide = min(photo.width, tall * width // height)
        left, top = (int(self._draw.integers(room + 1)) for room in (photo.width - wide, photo.height - tall))
        piece = photo.crop((left, top, left + wide, top + tall)).resize((width, height), Image.Resampling.BILINEAR)
        soft = piece.filter(ImageFilter.GaussianBlur(self._between(0, 3)))  # as if the camera focused on the foreground
        clouds = self._smooth((3, 3, 3), height, width)
        share = self._between(0.2, 0.6)
        mixed = (1 - share) * np.asarray(soft, np.float32) / 255 + share * clouds
        gray = mixed.mean(axis=2, keepdims=True)
        dull: Floats = 0.75 * (gray + self._between(0.2, 0.7) * (mixed - gray))  # also darker than the foreground
        return dull

    def _paint(self, picture: Floats, digit: int, size: float) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return the picture with a digit of about this height painted in it, and (H, W) where the digit is."""
        height, width = picture.shape[:2]
        where = self._stroke(digit, int(size), height, width)  # (H, W) 0..1
        shadow = Image.fromarray((np.roll(where, (2, 2), (0, 1)) * 255).astype(np.uint8))
        shade = np.asarray(shadow.filter(ImageFilter.GaussianBlur(2)), np.float32) / 255
        picture = picture * (1 - 0.5 * shade[..., None])
        paint = self._color(digit) + 0.2 * (self._smooth((6, 6, 1), height, width) - 0.5)  # slightly uneven
        return picture + where[..., None] * (paint - picture), where > 0.5

    def _stroke(self, digit: int, size: int, height: int, width: int) -> Floats:
        inks = self._inks[digit]
        small = Image.fromarray(inks[self._draw.integers(len(inks))])
        ink = small.resize((max(8, int(size * self._between(0.75, 1.0))), size), Image.Resampling.BICUBIC)
        ink = ink.rotate(self._between(-15, 15), Image.Resampling.BICUBIC, expand=True)
        plane = Image.new("L", (width, height))
        left = self._draw.integers(min(0, width - ink.width), max(0, width - ink.width) + 1)
        top = self._draw.integers(min(0, height - ink.height), max(0, height - ink.height) + 1)
        plane.paste(ink, (int(left), int(top)))
        return np.clip(np.asarray(plane, np.float32) / 255 * 2 - 0.4, 0, 1)  # a sharper edge than resizing leaves

    def _color(self, digit: int) -> Floats:
        """Return (3,) a color whose hue is near that of the class, with random saturation and brightness."""
        hue = list(NAMES).index(digit) / len(NAMES) + self._between(-HUES, HUES)
        strength, light = int(self._draw.integers(90, 220)), int(self._draw.integers(170, 256))
        color = Image.new("HSV", (1, 1), (int(hue * 256) % 256, strength, light)).convert("RGB")
        return np.asarray(color, np.float32).reshape(3) / 255

    def _lit(self, picture: Floats) -> Image.Image:
        """Return the picture with uneven lighting and noise."""
        height, width = picture.shape[:2]
        light = 0.7 + 0.6 * self._smooth((2, 2, 1), height, width)
        grain = self._draw.normal(0, 0.03, picture.shape).astype(np.float32)
        return Image.fromarray((np.clip(picture * light + grain, 0, 1) * 255).astype(np.uint8))

    def _smooth(self, shape: tuple[int, int, int], height: int, width: int) -> Floats:
        """Return (H, W, C) in 0..1, interpolated between random values on a coarse grid."""
        grid = (self._draw.random(shape) * 255).astype(np.uint8)
        planes = [
            Image.fromarray(grid[..., channel]).resize((width, height), Image.Resampling.BICUBIC)
            for channel in range(shape[2])
        ]
        return np.stack([np.asarray(plane, np.float32) / 255 for plane in planes], axis=2)

    def _between(self, low: float, high: float) -> float:
        return float(self._draw.uniform(low, high))


def write_images(root: Path, seed: int, made: Made = IMAGES) -> Path:
    """Write a folder for classification."""
    for part in ("train", "test"):
        painter = Painter(part, np.random.default_rng([seed, part == "test", 0]))
        count = made.test if part == "test" else made.total
        for number in range(count):
            digit = list(NAMES)[number % len(NAMES)]
            folder = f"{'test' if part == 'test' else 'labeled'}/{NAMES[digit]}"
            if part == "train" and number >= made.labeled * len(NAMES):
                folder = "unlabeled"
            _save(painter.one(digit), root / folder / f"{number:05d}.jpg")
    return root


def write_masks(root: Path, seed: int, made: Made = MASKS) -> Path:
    """Write a folder for segmentation."""
    for part in ("train", "test"):
        painter = Painter(part, np.random.default_rng([seed, part == "test", 1]))
        for number in range(made.test if part == "test" else made.total):
            picture, mask = painter.several()
            folder = "test" if part == "test" else "labeled"
            if part == "train" and number >= made.labeled:
                _save(picture, root / "unlabeled" / f"{number:05d}.jpg")
                continue
            _save(picture, root / folder / "images" / f"{number:05d}.jpg")
            indexed = Image.fromarray(mask)
            indexed.putpalette(INDEX)
            _save(indexed, root / folder / "masks" / f"{number:05d}.png")
    (root / "classes.txt").write_text("\n".join(["ground", *NAMES.values()]) + "\n")
    return root


def _save(image: Image.Image, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jpg":
        image.save(path, quality=88)
    else:
        image.save(path)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["images", "masks"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--labeled", type=int, help="of images so many of each class")
    parser.add_argument("--total", type=int, default=200, help="labeled and unlabeled together")
    parser.add_argument("--test", type=int)
    given = parser.parse_args(words)
    write, usual = (write_images, IMAGES) if given.task == "images" else (write_masks, MASKS)
    made = Made(given.labeled or usual.labeled, given.total, usual.test if given.test is None else given.test)
    print(write(given.folder, given.seed, made))


if __name__ == "__main__":
    main()
