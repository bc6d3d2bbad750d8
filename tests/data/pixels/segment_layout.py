"""Tiny segmentation data sets, laid out as the original ones are, written without the code that reads them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

VOC_TRAIN = ("2007_000032", "2007_000039")
VOC_EXTRA = ("2008_000008",)  # has a mask of SBD only
VOC_VAL = ("2007_000033",)
VOC_SIZES = {"2007_000032": (20, 30), "2007_000039": (24, 24), "2008_000008": (18, 26), "2007_000033": (22, 16)}

CITY_TRAIN = ("aachen/aachen_000000_000019", "bochum/bochum_000000_000313", "bochum/bochum_000000_000600")
CITY_VAL = ("lindau/lindau_000000_000019",)
CITY_SIZE = (16, 32)


def random_image(size: tuple[int, int], seed: int) -> np.ndarray:
    """(H, W, 3)."""
    return np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)


def random_mask(size: tuple[int, int], numbers: Sequence[int], seed: int) -> np.ndarray:
    """(H, W) of the given numbers."""
    return np.random.default_rng(seed).choice(np.array(numbers, dtype=np.uint8), size)


def save(path: Path, pixels: np.ndarray, palette: bool = False) -> None:
    """Any array as an image file; a mask may get a palette, as VOC's own masks have one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(pixels)
    if palette:
        image.putpalette(random_image((1, 256), seed=9).tobytes())
    image.save(path)


def save_list(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def write_voc(folder: Path, extra: bool = True, more: int = 0) -> dict[str, np.ndarray]:
    """VOCdevkit in ``folder``, with SBD's masks if ``extra`` and ``more`` images in train; returns the masks."""
    root = folder / "VOCdevkit" / "VOC2012"
    planes = {}
    train = VOC_TRAIN + tuple(f"2009_{number:06d}" for number in range(more))
    sizes = VOC_SIZES | dict.fromkeys(train[len(VOC_TRAIN) :], (23, 35))
    for number, (name, size) in enumerate(sizes.items()):
        save(root / "JPEGImages" / f"{name}.jpg", random_image(size, number))
        planes[name] = random_mask(size, [*range(21), 255], number)
        if name not in VOC_EXTRA:
            save(root / "SegmentationClass" / f"{name}.png", planes[name], palette=True)
        if extra and name not in VOC_VAL:
            save(root / "SegmentationClassAug" / f"{name}.png", planes[name])
    lists = root / "ImageSets" / "Segmentation"
    save_list(lists / "train.txt", train)
    save_list(lists / "val.txt", VOC_VAL)
    if extra:
        save_list(lists / "trainaug.txt", train + VOC_EXTRA)
    return planes


def write_cityscapes(folder: Path, more: int = 0) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """leftImg8bit and gtFine in ``folder``, ``more`` images in train; returns images and masks as in the files."""
    images, planes = {}, {}
    train = CITY_TRAIN + tuple(f"ulm/ulm_{number:06d}_000019" for number in range(more))
    for part, names in (("train", train), ("val", CITY_VAL)):
        for number, name in enumerate(names):
            images[name] = random_image(CITY_SIZE, number + (50 if part == "val" else 0))
            planes[name] = random_mask(CITY_SIZE, range(34), number)
            save(folder / "leftImg8bit" / part / f"{name}_leftImg8bit.png", images[name])
            save(folder / "gtFine" / part / f"{name}_gtFine_labelIds.png", planes[name])
            save(folder / "gtFine" / part / f"{name}_gtFine_color.png", images[name])  # comes along, is not read
    return images, planes


def write_flat(folder: Path, classes: Sequence[str] = ("ground", "thing")) -> dict[str, np.ndarray]:
    """images, masks, splits and classes.txt in ``folder``; returns the masks."""
    planes = {}
    for number, (name, size) in enumerate({"a": (10, 12), "b": (9, 7), "c": (8, 8)}.items()):
        save(folder / "images" / f"{name}.{('jpg', 'webp', 'png')[number]}", random_image(size, number))
        planes[name] = random_mask(size, [0, 1, 255], number)
        save(folder / "masks" / f"{name}.png", planes[name])
    save_list(folder / "splits" / "train.txt", ("a", "b"))
    save_list(folder / "splits" / "val.txt", ("c",))
    save_list(folder / "classes.txt", classes)
    return planes
