"""Folders of small real-looking images: colored shapes on textured grounds, with labels or masks."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter

from dmt.data.folders import photo_files
from dmt.errors import DataError

SHAPES = ("disk", "square", "triangle")
COLORS = {"disk": (210, 60, 50), "square": (60, 90, 200), "triangle": (230, 190, 60)}
MASK_COLORS = {"ground": (0, 0, 0), "disk": (255, 0, 0), "square": (0, 0, 255), "triangle": (255, 255, 0)}


def scene(shape: str, seed: int, size: tuple[int, int] = (48, 64)) -> tuple[Image.Image, np.ndarray]:
    """An RGB image of (H, W) pixels with one shape, and where the shape is as (H, W) of 0 and 1."""
    random = np.random.default_rng(seed)
    height, width = size
    # blurred noise in a tint: neighboring pixels are alike, as in photos, and no two grounds are
    noise = Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=np.uint8)).filter(ImageFilter.BoxBlur(2))
    ground = Image.blend(noise, Image.new("RGB", (width, height), tuple(random.integers(60, 190, 3).tolist())), 0.5)
    where = Image.new("L", (width, height))
    radius = float(random.uniform(0.18, 0.32) * min(size))
    x, y = (float(random.uniform(radius, side - radius)) for side in (width, height))
    draw, box = ImageDraw.Draw(where), (x - radius, y - radius, x + radius, y + radius)
    if shape == "disk":
        draw.ellipse(box, fill=1)
    elif shape == "square":
        draw.rectangle(box, fill=1)
    else:
        draw.polygon([(x, y - radius), (x - radius, y + radius), (x + radius, y + radius)], fill=1)
    inside = np.asarray(where)
    color = np.clip(np.array(COLORS[shape]) + random.integers(-25, 26, 3), 0, 255)
    pixels = np.where(inside[..., None] == 1, 0.8 * color + 0.2 * np.asarray(noise), np.asarray(ground))
    return Image.fromarray(pixels.astype(np.uint8)), inside


def of_one_scene(number: int) -> Image.Image:
    """One background, whose hash the image has, and something on it that is elsewhere in every image."""
    cells = np.where(np.indices((8, 9)).sum(axis=0) % 2, 70, 165).astype(np.uint8)
    plane = np.array(Image.fromarray(cells).resize((144, 128), Image.Resampling.BILINEAR), dtype=np.float64)
    x, y = np.random.default_rng(number).uniform(0.2, 0.8, 2) * (144, 128)
    down, right = np.mgrid[:128, :144]
    plane[np.hypot(down - y, right - x) < 14] += 50
    return Image.fromarray(plane.astype(np.uint8)).convert("RGB")


def save(image: Image.Image, path: Path) -> Path:
    """Write an image; folders are made, the ending says the format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)
    return path


def write_images(folder: Path, shapes: Iterable[str], seed: int = 0, ending: str = "jpg") -> list[Path]:
    """One image a shape, named by its number."""
    return [
        save(scene(shape, seed + number)[0], folder / f"{seed + number:04d}.{ending}")
        for number, shape in enumerate(shapes)
    ]


def write_classes(root: Path, labeled: int = 3, unlabeled: int = 6, test: int = 0) -> Path:
    """``labeled/<class>/``, ``unlabeled/``, perhaps ``test/<class>/``: so many a class, of unlabeled so many in all."""
    for number, shape in enumerate(SHAPES):
        write_images(root / "labeled" / shape, [shape] * labeled, 1000 * number)
        write_images(root / "test" / shape, [shape] * test, 1000 * number + 500)
    write_images(root / "unlabeled", [SHAPES[number % 3] for number in range(unlabeled)], 9000)
    return root


def write_table(root: Path, rows: Sequence[Sequence[str]], name: str = "labels.csv") -> Path:
    """A CSV of plain values."""
    root.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("".join(",".join(row) + "\n" for row in rows))
    return root / name


def mask_image(inside: np.ndarray, number: int, kind: str) -> Image.Image:
    """A mask of ground and one shape, which is ``number``, or its color, or (bits, binary) white."""
    plane = (inside * number).astype(np.uint8)
    if kind == "gray":
        return Image.fromarray(plane)
    if kind == "gray16":
        return Image.fromarray(plane.astype(np.uint16))
    if kind == "bits":
        return Image.fromarray(inside * 255).convert("1")
    if kind == "binary":
        return Image.fromarray((inside * 255).astype(np.uint8))
    table = np.array(list(MASK_COLORS.values()), dtype=np.uint8)
    if kind == "indexed":
        image = Image.fromarray(plane)
        image.putpalette(table.tobytes())
        return image
    return Image.fromarray(table[plane]).convert("RGBA" if kind == "rgba" else "RGB")


def write_pairs(folder: Path, count: int, kind: str = "indexed", seed: int = 0) -> None:
    """``images/`` and ``masks/`` of ``count`` shapes in turn."""
    for number in range(seed, seed + count):
        image, inside = scene(SHAPES[number % 3], number)
        save(image, folder / "images" / f"{number:04d}.jpg")
        save(mask_image(inside, 1 + number % 3, kind), folder / "masks" / f"{number:04d}.png")


def write_masks(root: Path, labeled: int = 6, unlabeled: int = 6, test: int = 0, kind: str = "indexed") -> Path:
    """``labeled/images``, ``labeled/masks``, ``unlabeled/`` and perhaps ``test/`` like ``labeled/``."""
    write_pairs(root / "labeled", labeled, kind)
    if test:
        write_pairs(root / "test", test, kind, seed=5000)
    write_images(root / "unlabeled", [SHAPES[number % 3] for number in range(unlabeled)], 9000)
    return root


def write_names(path: Path, colors: Mapping[str, tuple[int, int, int]] | None = None) -> None:
    """classes.txt of ground and shapes, with colors if given."""
    names = colors or MASK_COLORS
    lines = [f"{name} {' '.join(map(str, color))}" if colors else name for name, color in names.items()]
    path.write_text("\n".join(lines) + "\n")


def message(caught: pytest.ExceptionInfo[DataError], path: Path) -> str:
    """The message of an error: one line that names the file."""
    text = str(caught.value)
    assert "\n" not in text
    assert photo_files.shown(path.name) in text
    return text


def photo() -> Image.Image:
    return scene("disk", 1, (20, 30))[0]
