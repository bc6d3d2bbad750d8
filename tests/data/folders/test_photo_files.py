"""Every kind of image file, whole or broken."""

import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dmt.data.folders import photo_files
from dmt.data.folders.photo_files import Leftovers
from dmt.errors import DataError
from tests.data.folders import photo_layout


@pytest.mark.parametrize(
    ("mode", "ending"),
    [
        ("1", "png"), ("L", "jpg"), ("LA", "png"), ("P", "png"), ("P", "gif"), ("RGB", "webp"), ("RGB", "bmp"),
        ("RGBA", "png"), ("CMYK", "jpg"), ("CMYK", "tif"), ("I", "tif"), ("F", "tiff"), ("YCbCr", "jpg"),
        ("RGB", "JPEG"), ("RGB", "PNG"), ("LAB", "tif"),
    ],
)  # fmt: skip
def test_every_mode_and_format(tmp_path: Path, mode: str, ending: str) -> None:
    image = (
        Image.new("LAB", (30, 20))
        if mode == "LAB"
        else photo_layout.photo().convert("L" if mode in "IF" else "RGB").convert(mode)
    )
    path = photo_layout.save(image, tmp_path / f"x.{ending}")
    pixels = photo_files.read_photo(path)
    assert pixels.shape == (20, 30, 3)
    assert pixels.dtype == np.uint8
    assert photo_files.photo_size(path) == (20, 30)


def test_colors_survive(tmp_path: Path) -> None:
    path = photo_layout.save(photo_layout.photo(), tmp_path / "x.png")
    assert np.array_equal(photo_files.read_photo(path), np.asarray(photo_layout.photo()))
    path = photo_layout.save(photo_layout.photo().convert("CMYK"), tmp_path / "x.jpg")
    assert np.abs(photo_files.read_photo(path).astype(int) - np.asarray(photo_layout.photo())).mean() < 12


@pytest.mark.parametrize("ending", ["png", "tif"])
def test_16_bit_gray_is_scaled_not_clipped(tmp_path: Path, ending: str) -> None:
    values = np.array([[0, 257, 32896, 65535]], dtype=np.uint16)
    path = photo_layout.save(Image.fromarray(values), tmp_path / f"x.{ending}")
    assert photo_files.read_photo(path)[0, :, 0].tolist() == [0, 1, 128, 255]


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0.0, 0.5, 1.0], [0, 128, 255]), ([0.0, 7.0, 255.0], [0, 7, 255]), ([-1.0, 0.0, 1.0], [0, 128, 255])],
)
def test_floats_are_scaled_by_their_range(tmp_path: Path, values: list[float], expected: list[int]) -> None:
    path = photo_layout.save(Image.fromarray(np.array([values], dtype=np.float32)), tmp_path / "x.tif")
    assert photo_files.read_photo(path)[0, :, 1].tolist() == expected


def test_transparent_parts_are_white(tmp_path: Path) -> None:
    pixels = np.array([[[9, 9, 9, 0], [9, 9, 9, 255], [0, 0, 0, 51]]], dtype=np.uint8)
    path = photo_layout.save(Image.fromarray(pixels), tmp_path / "x.png")
    assert photo_files.read_photo(path)[0, :, 0].tolist() == [255, 9, 204]
    palette = Image.fromarray(np.array([[0, 1]], dtype=np.uint8))
    palette.putpalette([1, 2, 3, 4, 5, 6])
    palette.save(tmp_path / "p.png", transparency=bytes([0, 255]))
    assert photo_files.read_photo(tmp_path / "p.png").tolist() == [[[255, 255, 255], [4, 5, 6]]]


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("ending", ["jpg", "png", "tif", "webp"])
def test_photos_stand_upright(tmp_path: Path, orientation: int, ending: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = Image.new("RGB", (40, 20), "blue")
    stored.paste("red", (0, 0, 8, 8))
    stored.save(tmp_path / f"x.{ending}", exif=exif)
    pixels = photo_files.read_photo(tmp_path / f"x.{ending}")
    assert (
        pixels.shape[:2]
        == photo_files.photo_size(tmp_path / f"x.{ending}")
        == ((20, 40) if orientation < 5 else (40, 20))
    )
    corner = [(0, 0), (0, 0), (0, -1), (-1, -1), (-1, 0), (0, 0), (0, -1), (-1, -1), (-1, 0)][orientation]
    assert pixels[corner][0] > 150


def test_a_broken_orientation_does_no_harm(tmp_path: Path) -> None:
    photo_layout.photo().save(tmp_path / "x.jpg", exif=b"Exif\x00\x00MM\x00*\xff\xff")
    assert photo_files.read_photo(tmp_path / "x.jpg").shape == (20, 30, 3)


def test_of_an_animation_the_first_frame(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "blue")]
    for ending in ("gif", "webp", "png"):
        frames[0].save(tmp_path / f"x.{ending}", save_all=True, append_images=frames[1:])
        assert photo_files.read_photo(tmp_path / f"x.{ending}")[4, 4, 0] > 200


@pytest.mark.parametrize("size", [(1, 1), (20, 5000)])
def test_extreme_shapes(tmp_path: Path, size: tuple[int, int]) -> None:
    path = photo_layout.save(Image.new("RGB", size[::-1]), tmp_path / "x.png")
    assert photo_files.read_photo(path).shape[:2] == size


def encoded(kind: str) -> bytes:
    content = io.BytesIO()
    photo_layout.scene("square", 2, (64, 64))[0].save(content, kind)
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty (0 bytes)"),
        (b"just a letter to you\n" * 9, "is not an image"),
        (encoded("JPEG")[:600], "truncated"),
        (encoded("PNG")[:2000], "truncated"),
        (encoded("JPEG")[:12], "truncated"),
        (encoded("PNG")[:12], "is not an image"),
    ],
)
def test_broken_files_in_plain_words(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "new\nline.jpg"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        photo_files.read_photo(path)
    assert words in photo_layout.message(caught, path)


def test_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder.jpg").mkdir()
    (tmp_path / "dangling.jpg").symlink_to("nowhere.jpg")
    (tmp_path / "itself.jpg").symlink_to("itself.jpg")
    os.mkfifo(tmp_path / "pipe.jpg")
    for name, words in {
        "folder": "is a folder", "dangling": "broken link", "itself": "link to itself", "pipe": "no regular file",
        "missing": "is missing",
    }.items():  # fmt: skip
        with pytest.raises(DataError) as caught:
            photo_files.read_photo(tmp_path / f"{name}.jpg")
        assert words in photo_layout.message(caught, tmp_path / f"{name}.jpg")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read(tmp_path: Path) -> None:
    path = photo_layout.save(photo_layout.photo(), tmp_path / "x.png")
    path.chmod(0)
    with pytest.raises(DataError, match="may not be read"):
        photo_files.read_photo(path)


@pytest.mark.parametrize("limit", [100, 400])  # beyond twice the limit Pillow raises, below it warns
def test_decompression_bombs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    path = photo_layout.save(photo_layout.photo(), tmp_path / "x.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    with pytest.raises(DataError) as caught:
        photo_files.photo_size(path)
    assert "too large" in photo_layout.message(caught, path)


def test_finding_ends_and_sorts(tmp_path: Path) -> None:
    for name in ("b/2.JPG", "b/1.png", "a b/ü\n.webp", "._b.jpg", "b/.hidden/x.jpg", "__MACOSX/x.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "b" / "loop").symlink_to(tmp_path)
    (tmp_path / "b" / "link.jpg").symlink_to("2.JPG")
    (tmp_path / "b" / "Thumbs.db").touch()
    (tmp_path / "b" / "raw.HEIC").touch()
    leftovers = Leftovers()
    found = photo_files.find(tmp_path, tmp_path, leftovers)
    assert list(found) == ["a b/ü\n.webp", "b/1.png", "b/2.JPG", "b/link.jpg"]
    assert all(path == tmp_path / id for id, path in found.items())
    notes = leftovers.notes()
    assert "links to folders were not entered (1)" in notes[0]
    assert notes[1].endswith("were left out: 1 .heic; convert .heic to JPEG or PNG")


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_names_that_are_no_text(tmp_path: Path) -> None:
    try:
        (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jpg"))).touch()
    except OSError:
        pytest.skip("this disk refuses such names")
    with pytest.raises(DataError, match="is not UTF-8"):
        photo_files.find(tmp_path, tmp_path, Leftovers())
