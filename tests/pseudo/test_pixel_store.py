import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from dmt.core import codes, selection
from dmt.data import buffers
from dmt.errors import RunError
from dmt.pseudo import pixel_writer
from dmt.pseudo.pixel_store import UNSELECTED, PixelStore, name_of
from dmt.pseudo.pixel_writer import PixelWriter
from tests.fixtures import before_digests

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


def taken(folder: Path, planes: Planes, ids: list[str] | None = None, classes: int = CLASSES) -> PixelWriter:
    """A writer that took these predictions, out of order and padded."""
    sizes = [(labels.shape[0], labels.shape[1]) for labels, _ in planes]
    writer = PixelWriter(folder, ids or [f"image {i}" for i in range(len(planes))], sizes, classes)
    for position in np.random.default_rng(1).permutation(len(planes)).tolist():
        take(writer, position, *planes[position])
    return writer


def take(writer: PixelWriter, position: int, labels: np.ndarray, code: np.ndarray) -> None:
    found = (np.pad(each, ((0, 3), (0, 2)))[None].astype(np.int32) for each in (labels, code))
    writer.take(torch.tensor([position]), *(torch.from_numpy(each) for each in found))


def written(folder: Path, planes: Planes, fraction: float, noise: float = 0.0, seed: int = 0) -> PixelStore:
    writer = taken(folder, planes)
    writer.select(fraction, noise, seed)
    writer.write({"teacher": "A0"})
    return PixelStore.load(folder)


def flat(planes: Planes) -> tuple[np.ndarray, np.ndarray]:
    labels, code = (np.concatenate([each[part].reshape(-1) for each in planes]) for part in (0, 1))
    return labels, code


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_planes_hold_what_would_be_read(noise: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = written(tmp_path / "whole", predictions(), 0.5, noise, 3).planes(SIZES)
    monkeypatch.setattr(pixel_writer, "AT_ONCE", 100)  # parts that end within images
    writer = taken(tmp_path / "parts", predictions())
    writer.select(0.5, noise, 3)
    for made, read in zip(writer.planes, whole, strict=True):
        assert torch.equal(made.pixels, read.pixels)


def test_large_planes_lie_in_a_file_that_is_gone_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planes = predictions()
    expected = written(tmp_path / "in memory", planes, 0.5).planes(SIZES)
    mapped: list[Any] = []
    real = np.memmap

    def memmap(*args: Any, **options: Any) -> Any:
        mapped.append(args)
        return real(*args, **options)

    monkeypatch.setattr(buffers, "MEMORY", 0)
    monkeypatch.setattr(np, "memmap", memmap)
    writer = PixelWriter(tmp_path / "stage", IDS, SIZES, CLASSES, cache=tmp_path / "cache")
    for position, each in enumerate(planes):
        take(writer, position, *each)
    writer.select(0.5)
    writer.write({})
    read_again = PixelStore.load(tmp_path / "stage").planes(SIZES, cache=tmp_path / "cache")
    assert len(mapped) == 4
    assert not list((tmp_path / "cache").iterdir())  # which was made for the files
    for made, again, read in zip(writer.planes, read_again, expected, strict=True):
        assert torch.equal(made.pixels, read.pixels)
        assert torch.equal(again.pixels, read.pixels)


def test_planes_go_with_their_writer(tmp_path: Path) -> None:
    writer = taken(tmp_path, predictions())
    plane = weakref.ref(writer.planes[0].pixels)
    gc.disable()
    try:
        del writer
        assert plane() is None  # without waiting for the garbage collector: they are large
    finally:
        gc.enable()


def test_writing_can_be_canceled(tmp_path: Path) -> None:
    writer = taken(tmp_path, predictions())
    writer.select(0.5)
    writer.write({}, canceled=iter([False, False, True]).__next__)
    assert not PixelStore.exists(tmp_path)
    assert len(list((tmp_path / "pseudo-unfinished").iterdir())) == 4


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
    writer = PixelWriter(tmp_path, IDS, SIZES, CLASSES, palette)
    for position, planes in enumerate(predictions()):
        take(writer, position, *planes)
    writer.select(0.5)
    writer.write({})
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
    planes = predictions(SIZES[:2])
    writer = taken(tmp_path, planes, ["x.v1", "x.v2"])
    writer.select(1.0)
    writer.write({})
    np.testing.assert_array_equal(PixelStore.load(tmp_path).read(1)[1], planes[1][1])


def test_killed_before_the_end_leaves_nothing_to_trust(tmp_path: Path) -> None:
    planes = predictions()
    lost = PixelWriter(tmp_path, IDS, SIZES, CLASSES)
    for position in (3, 0):
        take(lost, position, *planes[position])
    with pytest.raises(ValueError, match="4 images"):
        lost.select(0.5)
    (tmp_path / "pseudo").mkdir()  # as if killed between the rename and the summary
    assert not PixelStore.exists(tmp_path)
    store = written(tmp_path, planes[:2], 1.0)
    assert PixelStore.exists(tmp_path)
    assert store.images == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pseudo", "pseudo.json"]
    assert len(list((tmp_path / "pseudo").iterdir())) == 4
    with pytest.raises(FileExistsError):
        PixelWriter(tmp_path, IDS, SIZES, CLASSES)


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


@pytest.mark.parametrize("harm", ["a bit", "a block"])
def test_damage_within_a_large_plane_is_noticed(harm: str, tmp_path: Path) -> None:
    sizes = [(200, 150)] * 2
    written(tmp_path, predictions(sizes), 0.5)
    path = tmp_path / "pseudo" / "000000-image_0.code"
    content = bytearray(path.read_bytes())
    content[5000 : 5001 if harm == "a bit" else 9000] = b"\xff" if harm == "a bit" else bytes(4000)
    path.write_bytes(bytes(content))
    with pytest.raises(RunError, match="delete"):
        PixelStore.load(tmp_path).planes(sizes)


def test_wrong_predictions_are_refused(tmp_path: Path) -> None:
    writer = PixelWriter(tmp_path, ["a", "b"], [(2, 2), (2, 2)], CLASSES)
    labels, first = torch.zeros(1, 2, 2, dtype=torch.int64), torch.tensor([0])
    code = labels.int()
    with pytest.raises(ValueError, match="do not cover"):
        writer.take(first, labels, code[:, :1])
    with pytest.raises(ValueError, match="do not cover"):
        writer.take(first, labels[:, :1], code[:, :1])
    with pytest.raises(IndexError):
        writer.take(first + 2, labels, code)
    writer.take(first, labels, code)
    with pytest.raises(ValueError, match="taken before"):
        writer.take(first, labels, code)
    writer.take(first + 1, labels + CLASSES, code)
    with pytest.raises(ValueError, match="none of the 6 classes"):
        writer.select(1.0)


def test_noise_corrupts_about_its_share_of_the_kept(tmp_path: Path) -> None:
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
    writer = taken(tmp_path, upsampled(3, generator), classes=21)
    writer.select(0.6)
    writer.write({})
    store = PixelStore.load(tmp_path)
    assert store.bytes == sum(path.stat().st_size for path in (tmp_path / "pseudo").iterdir())
    assert store.bytes / store.of < 2


@pytest.mark.parametrize("vouched", [True, False])
def test_labels_that_somebody_changed_are_refused(vouched: bool, tmp_path: Path) -> None:
    """A good PNG with other classes: its checksum tells or, in an older store, a class that is none."""
    written(tmp_path, predictions(), 0.5)
    if not vouched:
        before_digests.forget(tmp_path)
    path = tmp_path / "pseudo" / "000001-image_1.png"
    with Image.open(path) as image:
        labels, palette = np.array(image), image.getpalette()
    labels[labels != UNSELECTED] += 1
    shifted = Image.fromarray(labels)
    shifted.putpalette(palette or [])
    shifted.save(path)
    with pytest.raises(RunError, match=r"000001-image_1\.png .*delete .* to make that stage again"):
        PixelStore.load(tmp_path).planes(SIZES)


def test_an_older_store_without_checksums_is_read(tmp_path: Path) -> None:
    before = written(tmp_path, predictions(), 0.5).planes(SIZES)
    before_digests.forget(tmp_path)
    for one, other in zip(before, PixelStore.load(tmp_path).planes(SIZES), strict=True):
        assert torch.equal(one.pixels, other.pixels)
