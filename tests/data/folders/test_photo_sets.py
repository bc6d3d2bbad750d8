"""A user's images in memory or in a file: the right pixels in the right order, once."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from dmt.data import buffers
from dmt.data.folders import photo_files, photo_pools, photo_sets, photos
from dmt.data.folders.contents import FolderContents
from dmt.data.folders.photo_sets import FolderSets
from dmt.data.ragged import Ragged
from dmt.errors import DataError
from tests.data.folders import photo_layout


def quiet(done: int, of: int) -> None: ...


@pytest.fixture
def classes(tmp_path: Path) -> Path:
    return photo_layout.write_classes(tmp_path / "photos", labeled=2, unlabeled=4, test=1)


@pytest.fixture
def masks(tmp_path: Path) -> Path:
    root = photo_layout.write_masks(tmp_path / "photos", labeled=3, unlabeled=4, test=1)
    photo_layout.write_names(root / "classes.txt")
    return root


@pytest.fixture
def cramped(monkeypatch: pytest.MonkeyPatch) -> None:
    """No image fits into memory."""
    monkeypatch.setattr(buffers, "MEMORY", 0)


def squares(root: Path, cache: Path | None = None, size: int = 24) -> photo_sets.SquareSets:
    return photo_sets.read_squares(photos.open_folder(root), size, cache, quiet)


def same(one: photo_sets.SquareSets, other: photo_sets.SquareSets) -> bool:
    sets = ("labeled", "unlabeled", "validation", "test")
    alike = all(getattr(one, name).fingerprint == getattr(other, name).fingerprint for name in sets)
    pixels = all(torch.equal(getattr(one, name).images, getattr(other, name).images) for name in sets)
    return alike and pixels and one.skipped == other.skipped


# --- squares ---


@pytest.mark.parametrize("size", [16, 48, 100])
def test_squares_are_the_middle_of_the_photos(classes: Path, size: int) -> None:
    contents = photos.open_folder(classes)
    parts = photo_sets.read_squares(contents, size, None, quiet)
    for name, part in contents.parts():
        held = getattr(parts, name)
        assert held.ids == tuple(photo.id for photo in part)
        assert held.images.shape == (len(part), 3, size, size)
        for photo, image in zip(part, held.images, strict=True):
            with photo_files.opened(photo.path) as picture:
                expected = ImageOps.fit(picture, (size, size), Image.Resampling.BILINEAR)
            assert np.array_equal(image.permute(1, 2, 0).numpy(), np.asarray(expected))
    assert parts.labeled.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert parts.test.labels.tolist() == [0, 1, 2]
    assert len(parts.validation) == 0
    assert parts.skipped == ()


def test_what_cannot_be_read_is_skipped_or_refused(classes: Path) -> None:
    (classes / "unlabeled/9000.jpg").write_bytes(b"")
    (classes / "unlabeled/9002.jpg").write_text("text")
    parts = squares(classes)
    assert parts.unlabeled.ids == ("unlabeled/9001.jpg", "unlabeled/9003.jpg")
    with Image.open(classes / "unlabeled/9003.jpg") as last:
        expected = np.asarray(photo_pools.square(last, 24))
    assert np.array_equal(parts.unlabeled.images[1].permute(1, 2, 0).numpy(), expected)
    assert len(parts.skipped) == 2
    assert "9000.jpg is empty" in parts.skipped[0]
    for place in ("labeled/disk/0001.jpg", "test/disk/0500.jpg"):
        kept = (classes / place).read_bytes()
        (classes / place).write_bytes(b"")
        with pytest.raises(DataError, match=f"{Path(place).name} is empty"):
            squares(classes)
        (classes / place).write_bytes(kept)


def test_digests_tell_pictures_apart(classes: Path) -> None:
    (classes / "unlabeled/9001.jpg").write_bytes((classes / "unlabeled/9000.jpg").read_bytes())
    before = squares(classes)
    assert before.unlabeled.digests is not None
    assert before.unlabeled.digests[0] == before.unlabeled.digests[1]
    assert len(set(before.unlabeled.digests)) == 3
    photo_layout.save(photo_layout.scene("disk", 77)[0], classes / "unlabeled/9001.jpg")
    after = squares(classes)
    assert before.unlabeled.fingerprint != after.unlabeled.fingerprint
    assert before.labeled.fingerprint == after.labeled.fingerprint


# --- in a file ---


def test_a_file_gives_the_same_as_memory(classes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (classes / "unlabeled/9001.jpg").write_bytes(b"")
    memory = squares(classes, tmp_path / "unused")
    assert not (tmp_path / "unused").exists()
    monkeypatch.setattr(buffers, "MEMORY", 0)
    assert same(memory, squares(classes, tmp_path / "cache"))

    monkeypatch.setattr(photo_files, "read_photo", lambda path: pytest.fail(f"{path} was decoded again"))
    assert same(memory, squares(classes, tmp_path / "cache"))


@pytest.mark.usefixtures("cramped")
@pytest.mark.parametrize(
    "change",
    [
        lambda root: photo_layout.save(photo_layout.scene("disk", 5)[0], root / "unlabeled/9000.jpg"),
        lambda root: (root / "unlabeled/9000.jpg").unlink(),
        lambda root: (root / "unlabeled/9000.jpg").rename(root / "unlabeled/new.jpg"),
        lambda root: (root / "labeled/disk/0000.jpg").write_bytes((root / "unlabeled/9000.jpg").read_bytes()),
    ],
)
def test_what_changed_is_decoded_again(classes: Path, tmp_path: Path, change: Callable[[Path], object]) -> None:
    squares(classes, tmp_path / "cache")
    change(classes)
    assert same(squares(classes, tmp_path / "cache"), squares(classes))


@pytest.mark.usefixtures("cramped")
def test_decoded_images_that_changed_are_decoded_again(classes: Path, tmp_path: Path) -> None:
    squares(classes, tmp_path / "cache")
    (file,) = tmp_path.glob("cache/squares-*.bin")
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.write_bytes(bytes(content))
    assert same(squares(classes, tmp_path / "cache"), squares(classes))


@pytest.mark.usefixtures("cramped")
def test_another_size_has_another_file(classes: Path, tmp_path: Path) -> None:
    squares(classes, tmp_path / "cache")
    assert same(squares(classes, tmp_path / "cache", 16), squares(classes, None, 16))


@pytest.mark.usefixtures("cramped")
def test_a_broken_photo_that_gets_a_label_is_refused(tmp_path: Path) -> None:
    """The order of all photos stays the same when a row of a table is filled in; what was skipped must not be."""
    root = tmp_path / "photos"
    photo_layout.write_images(root, ["disk", "square", "disk", "square"])
    (root / "0002.jpg").write_bytes(b"")
    rows = [("file", "label"), ("0000.jpg", "disk"), ("0001.jpg", "square")]
    photo_layout.write_table(root, rows)
    assert squares(root, tmp_path / "cache").unlabeled.ids == ("0003.jpg",)
    photo_layout.write_table(root, [*rows, ("0002.jpg", "disk")])
    with pytest.raises(DataError, match=r"0002\.jpg is empty"):
        squares(root, tmp_path / "cache")


# --- planes ---


def planes(root: Path, most: int = 512, cache: Path | None = None) -> tuple[FolderContents, FolderSets[Ragged, Ragged]]:
    contents = photos.open_folder(root)
    return contents, photo_sets.read_planes(contents, most, cache, quiet)


def test_planes_at_native_size(masks: Path) -> None:
    contents, parts = planes(masks)
    for name, part in contents.parts():
        held = getattr(parts, name)
        assert held.ids == tuple(photo.id for photo in part)
        for place, photo in enumerate(part):
            assert np.array_equal(held.images.image(place).numpy(), photo_files.read_photo(photo.path))
            if photo.mask is not None:
                with Image.open(photo.mask) as mask:
                    assert np.array_equal(held.labels.image(place).numpy(), np.asarray(mask))


def test_masks_become_smaller_without_mixing(masks: Path) -> None:
    with Image.open(masks / "labeled/masks/0002.png") as mask:
        wide = np.asarray(mask).copy()
    wide[:, :8] = 255  # no label
    Image.fromarray(wide).save(masks / "labeled/masks/0002.png")
    _, parts = planes(masks, 31)
    assert parts.labeled.images.sizes == [(23, 31)] * 3
    for place, allowed in enumerate(({0, 1}, {0, 2}, {0, 3, 255})):
        plane = parts.labeled.labels.image(place)
        assert set(plane.flatten().tolist()) == allowed
        expected = Image.open(masks / f"labeled/masks/{place:04d}.png").resize((31, 23), Image.Resampling.NEAREST)
        assert np.array_equal(plane.numpy(), np.asarray(expected))


@pytest.mark.parametrize(
    ("size", "most", "expected"),
    [
        ((48, 64), 64, (48, 64)),
        ((48, 64), 32, (24, 32)),
        ((64, 48), 32, (32, 24)),
        ((20, 20_000), 100, (1, 100)),
        ((1, 1), 16, (1, 1)),
    ],
)
def test_limited(size: tuple[int, int], most: int, expected: tuple[int, int]) -> None:
    assert photo_sets.limited(size, most) == expected


@pytest.mark.parametrize("most", [512, 32])
def test_a_mask_must_have_the_size_of_its_image(masks: Path, most: int) -> None:
    with Image.open(masks / "labeled/masks/0001.png") as mask:
        mask.resize((32, 24)).save(masks / "labeled/masks/0001.png")
    with pytest.raises(DataError, match=r"0001\.png has 24×32 pixels but its image 48×64"):
        planes(masks, most)


def test_planes_that_cannot_be_read(masks: Path) -> None:
    (masks / "unlabeled/9000.jpg").write_bytes(b"")  # seen in its header
    broken = masks / "unlabeled/9002.jpg"
    broken.write_bytes(broken.read_bytes()[:-300])  # seen when it is decoded
    contents, parts = planes(masks)
    assert parts.unlabeled.ids == ("unlabeled/9001.jpg", "unlabeled/9003.jpg")
    for place, photo in enumerate((contents.unlabeled[1], contents.unlabeled[3])):
        assert np.array_equal(parts.unlabeled.images.image(place).numpy(), photo_files.read_photo(photo.path))
    assert [line.split("/")[-1].split(";")[0] for line in parts.skipped] == [
        "9000.jpg is empty (0 bytes)",
        "9002.jpg is truncated: its end is missing",
    ]
    (masks / "labeled/images/0000.jpg").write_bytes(b"")
    with pytest.raises(DataError, match=r"0000\.jpg is empty"):
        planes(masks)


@pytest.mark.usefixtures("cramped")
def test_planes_in_a_file(masks: Path, tmp_path: Path) -> None:
    _, filed = planes(masks, cache=tmp_path / "cache")
    _, memory = planes(masks)
    assert (tmp_path / "cache/planes-unlabeled.bin").is_file()
    for name in ("labeled", "unlabeled", "test"):
        assert getattr(filed, name).fingerprint == getattr(memory, name).fingerprint
        assert torch.equal(getattr(filed, name).images.pixels, getattr(memory, name).images.pixels)
    again = planes(masks, cache=tmp_path / "cache")[1]  # while the first is still in use
    assert torch.equal(filed.unlabeled.images.pixels, again.unlabeled.images.pixels)


# --- memory ---

GROWTH = """
import sys
from pathlib import Path
from dmt.data.folders import photo_sets, photos
from dmt.data import buffers
buffers.MEMORY = 0
contents = photos.open_folder(Path(sys.argv[1]))
def private():
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    return int(lines["RssAnon"].split()[0])
peak = before = private()
def on_progress(done, of):
    global peak
    peak = max(peak, private()) if done % 50 == 0 else peak
photo_sets.read_squares(contents, 64, Path(sys.argv[2]), on_progress)
print(max(peak, private()) - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux for the memory in use")
def test_memory_does_not_grow_with_the_photos(tmp_path: Path) -> None:
    """3000 photos of 64×64 are 37 MB; none of that may be held, only names and digests."""
    grown = {}
    for count in (300, 3000):
        root = photo_layout.write_classes(tmp_path / f"photos{count}", labeled=1, unlabeled=1)
        content = (root / "unlabeled/9000.jpg").read_bytes()
        for number in range(count):
            (root / f"unlabeled/{number:05d}.jpg").write_bytes(content)
        words = [sys.executable, "-c", GROWTH, str(root), str(tmp_path / f"cache{count}")]
        done = subprocess.run(
            words, capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        grown[count] = int(done.stdout)  # kB
    assert grown[3000] - grown[300] < 12_000, grown
