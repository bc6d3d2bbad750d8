import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from dmt.core import codes, selection
from dmt.data import ragged
from dmt.errors import RunError
from dmt.training.pixel_store import UNSELECTED, PixelStore, name_of
from dmt.training.pixel_writer import PixelWriter

CLASSES = 6  # class 4 is never predicted
SIZES = [(9, 14), (30, 21), (1, 1), (25, 25), (17, 40), (30, 21)]
IDS = ["a/x 1", "b", "../c", "d" * 90, "ß", "a/x 1"]
Planes = list[tuple[np.ndarray, np.ndarray]]


def predictions(sizes: list[tuple[int, int]] = SIZES, levels: int = 9) -> Planes:
    """Labels and codes, many of them equal; the last image is the least sure of all."""
    rng = np.random.default_rng(0)
    found = []
    for size in sizes:
        labels = rng.choice([0, 0, 1, 2, 3, 5], size).astype(np.uint8)
        found.append((labels, (1000 + 5000 * rng.integers(0, levels, size)).astype(np.uint16)))
    found[-1] = (found[-1][0], (found[-1][1] % 1000).astype(np.uint16))
    return found


def written(folder: Path, planes: Planes, fraction: float, noise: float = 0.0, seed: int = 0) -> PixelStore:
    writer = PixelWriter(folder, [f"image {i}" for i in range(len(planes))], CLASSES)
    for position in np.random.default_rng(1).permutation(len(planes)).tolist():
        writer.add(position, *planes[position])
    writer.finish(fraction, {"teacher": "A0"}, noise, seed)
    return PixelStore.load(folder)


def flat(planes: Planes) -> tuple[np.ndarray, np.ndarray]:
    labels, code = (np.concatenate([each[part].reshape(-1) for each in planes]) for part in (0, 1))
    return labels, code


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_planes_are_filled_with_what_would_be_read(noise: float, tmp_path: Path) -> None:
    planes, folder = predictions(), tmp_path / "with planes"
    filled = ragged.blank(SIZES, None, torch.uint8), ragged.blank(SIZES, None, torch.int16)
    writer = PixelWriter(folder, [f"image {i}" for i in range(len(planes))], CLASSES, planes=filled)
    for position, plane in enumerate(planes):
        writer.add(position, *plane)
    writer.finish(0.5, {"teacher": "A0"}, noise, 3)
    for made, read in zip(filled, PixelStore.load(folder).planes(SIZES), strict=True):
        assert torch.equal(made.pixels, read.pixels)
    written(tmp_path / "without", planes, 0.5, noise, 3)
    with_planes, without = (
        {path.relative_to(room): path.read_bytes() for path in room.rglob("*") if path.is_file()}
        for room in (folder, tmp_path / "without")
    )
    assert with_planes == without
    assert {path.suffix for path in without} == {".code", ".json", ".png"}


@pytest.mark.parametrize("fraction", [0.0, 0.2, 0.5, 0.77, 1.0])
def test_same_as_a_full_sort_in_order_of_images(fraction: float, tmp_path: Path) -> None:
    planes = predictions()
    store = written(tmp_path, planes, fraction)
    labels, code = flat(planes)
    mask = selection.top_per_class(
        torch.from_numpy(code.astype(np.int64)), torch.from_numpy(labels).long(), fraction, CLASSES
    ).numpy()
    found, found_codes = flat([store.read(position) for position in range(len(planes))])
    np.testing.assert_array_equal(found, np.where(mask, labels, UNSELECTED))
    np.testing.assert_array_equal(found_codes, code)  # of all pixels
    predicted = np.bincount(labels, minlength=CLASSES).tolist()
    kept = np.bincount(labels[mask], minlength=CLASSES).tolist()
    assert predicted[4] == kept[4] == 0
    assert store.coverage(CLASSES) == {"predicted": predicted, "kept": kept}
    assert (store.images, store.kept, store.of) == (len(planes), mask.sum(), len(mask))
    assert store.provenance == {"teacher": "A0"}


def test_an_image_may_have_nothing_selected(tmp_path: Path) -> None:
    store = written(tmp_path, predictions(), 0.3)
    labels, code = store.read(5)
    assert (labels == UNSELECTED).all()
    assert code.max() == 0


def test_planes_are_ready_for_a_device(tmp_path: Path) -> None:
    planes = predictions()
    store = written(tmp_path, planes, 0.5)
    told: list[tuple[int, int]] = []
    labels, packed = store.planes(SIZES, lambda done, of: told.append((done, of)))
    assert told == [(done, 12) for done in range(1, 13)]
    assert (labels.pixels.dtype, packed.pixels.dtype) == (torch.uint8, torch.int16)
    for position, (_, code) in enumerate(planes):
        assert torch.equal(packed.image(position), codes.pack(torch.from_numpy(code.astype(np.int32))))
        np.testing.assert_array_equal(labels.image(position).numpy(), store.read(position)[0])


def test_anyone_can_look_at_the_labels(tmp_path: Path) -> None:
    palette = [(7 * value + 3) % 256 for value in range(768)]
    writer = PixelWriter(tmp_path, IDS, CLASSES, palette)
    for position, planes in enumerate(predictions()):
        writer.add(position, *planes)
    writer.finish(0.5, {})
    names = sorted(path.name for path in (tmp_path / "pseudo").iterdir())
    assert len(names) == 12
    assert names[0] == "000000-a_x_1.code"
    assert names[5] == "000002-.._c.png"
    assert names[7] == f"000003-{'d' * 60}.png"
    with Image.open(tmp_path / "pseudo" / "000001-b.png") as image:
        assert image.mode == "P"
        assert image.getpalette() == palette
        assert image.size == (21, 30)


def test_names_are_safe_everywhere() -> None:
    assert name_of(7, "aachen/aachen_000000:1?.png") == "000007-aachen_aachen_000000_1_.png"


def test_an_id_with_dots_keeps_its_codes(tmp_path: Path) -> None:
    writer = PixelWriter(tmp_path, ["x.v1", "x.v2"], CLASSES)
    planes = predictions(SIZES[:2])
    for position in (1, 0):
        writer.add(position, *planes[position])
    writer.finish(1.0, {})
    np.testing.assert_array_equal(PixelStore.load(tmp_path).read(1)[1], planes[1][1])


def test_killed_before_the_end_leaves_nothing_to_trust(tmp_path: Path) -> None:
    planes = predictions()
    lost = PixelWriter(tmp_path, IDS, CLASSES)
    for position in (3, 0):
        lost.add(position, *planes[position])
    with pytest.raises(ValueError, match="4 images"):  # which also waits for the files of the two
        lost.finish(0.5, {})
    (tmp_path / "pseudo").mkdir()  # as if killed between the rename and the summary
    assert not PixelStore.exists(tmp_path)
    store = written(tmp_path, planes[:2], 1.0)
    assert PixelStore.exists(tmp_path)
    assert store.images == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pseudo", "pseudo.json"]
    assert len(list((tmp_path / "pseudo").iterdir())) == 4
    with pytest.raises(FileExistsError):
        PixelWriter(tmp_path, IDS, CLASSES)


def test_codes_go_when_a_stage_is_trained(tmp_path: Path) -> None:
    store = written(tmp_path, predictions(), 0.5)
    store.drop_codes()
    assert {path.suffix for path in (tmp_path / "pseudo").iterdir()} == {".png"}
    with pytest.raises(RunError, match="missing or damaged"):
        store.read(0)


@pytest.mark.parametrize("ending", ["png", "code"])
def test_a_damaged_file_says_what_to_do(ending: str, tmp_path: Path) -> None:
    written(tmp_path, predictions(), 0.5)
    path = tmp_path / "pseudo" / f"000001-image_1.{ending}"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(RunError, match="delete"):
        PixelStore.load(tmp_path).planes(SIZES)
    path.unlink()
    with pytest.raises(RunError, match="delete"):
        PixelStore.load(tmp_path).planes(SIZES)


def test_wrong_planes_are_refused(tmp_path: Path) -> None:
    writer = PixelWriter(tmp_path, ["a"], CLASSES)
    labels, code = np.zeros((2, 2), np.uint8), np.zeros((2, 2), np.uint16)
    with pytest.raises(ValueError, match="same size"):
        writer.add(0, labels, code[:1])
    with pytest.raises(ValueError, match="uint16"):
        writer.add(0, labels, code.astype(np.int32))
    with pytest.raises(ValueError, match="none of them"):
        writer.add(1, labels, code)
    with pytest.raises(ValueError, match="label 6, but there are 6 classes"):
        writer.add(0, labels + np.uint8(CLASSES), code)


@pytest.mark.parametrize("counted", [True, False])
def test_pixels_must_be_counted_once(counted: bool, tmp_path: Path) -> None:
    labels, code = np.zeros((2, 2), np.uint8), np.zeros((2, 2), np.uint16)
    writer = PixelWriter(tmp_path, ["a"], CLASSES)
    if not counted:
        writer.ranks.add(torch.from_numpy(labels), torch.from_numpy(code))
    writer.add(0, labels, code, counted)
    with pytest.raises(ValueError, match="counted twice, or not at all"):
        writer.finish(1.0, {})


def test_noise_falsifies_about_its_share_of_the_kept(tmp_path: Path) -> None:
    planes = predictions([(60, 50)] * 4)
    clean, noisy, again, other = (
        flat([store.read(position) for position in range(4)])[0]
        for store in (
            written(tmp_path / name, planes, 0.5, noise, seed)
            for name, noise, seed in [("clean", 0.0, 1), ("noisy", 0.3, 1), ("again", 0.3, 1), ("other", 0.3, 2)]
        )
    )
    np.testing.assert_array_equal(noisy, again)
    assert (noisy != other).any()
    np.testing.assert_array_equal(clean == UNSELECTED, noisy == UNSELECTED)
    changed = (noisy != clean)[clean != UNSELECTED].mean()
    assert 0.27 < changed < 0.33
    drawn = np.bincount(noisy[(noisy != clean) & (clean == 0)], minlength=CLASSES)
    assert drawn[0] == 0
    assert drawn[1:CLASSES].min() > 0.7 * drawn[1:CLASSES].max()


def upsampled(count: int, generator: torch.Generator) -> Planes:
    """As from a net at stride 8: smooth logits of 21 classes, most of them far from a border, with float noise."""
    coarse = 6 * nn.functional.avg_pool2d(torch.randn(count, 21, 32, 32, generator=generator), 5, 1, 2) * 5
    logits = nn.functional.interpolate(coarse, size=(200, 240), mode="bilinear", align_corners=True)
    logits += 0.01 * torch.randn(logits.shape, generator=generator)
    labels, code = (each.numpy() for each in codes.confident(logits))
    return list(zip(labels.astype(np.uint8), code.astype(np.uint16), strict=True))


def test_two_bytes_a_pixel_are_enough(tmp_path: Path, generator: torch.Generator) -> None:
    writer = PixelWriter(tmp_path, ["a", "b", "c"], 21)
    for position, planes in enumerate(upsampled(3, generator)):
        writer.add(position, *planes)
    writer.finish(0.6, {})
    store = PixelStore.load(tmp_path)
    assert store.bytes == sum(path.stat().st_size for path in (tmp_path / "pseudo").iterdir())
    assert store.bytes / store.of < 2


def test_memory_does_not_grow_with_the_images(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        planes = predictions([(32, 32)] * 4)
        writer = PixelWriter(tmp_path / str(count), ["same"] * count, CLASSES)
        for position in range(count):
            writer.add(position, *planes[position % 4])
        tracemalloc.start()
        writer.finish(0.5, {})
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    few, many = peak(400), peak(2000)  # the threads have fewer than 400 under way, and 2000 would be five times those
    assert many < 2 * few
