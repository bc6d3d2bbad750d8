"""Folders of images as nobody should have them, drawn from a seed, through check, fit and predict."""

import hashlib
import os
import random
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from tests import command, damage
from tests.data.folders import photo_layout
from tests.torture import subjects
from tests.torture.mutations import alarm
from tests.torture.parts import Failure, Outcome, Part, Place, some

COUNT = 120
NAMES = ("-rf.jpg", " .jpg", "a\nb.jpg", "ü.jpg", "=1+1.jpg", "'quoted'.jpg", "%s{}.jpg", "$(x).jpg",
         "x" * 200 + ".jpg", "<b>.jpg", "a,b.jpg", "\x1b[31m.jpg", "CON.jpg", ".hidden.jpg", "UPPER.JPG",
         "no-ending", "two.jpg.png")  # fmt: skip
ROWS = ("", "missing.jpg,disk", "0000.jpg", "0000.jpg,disk,more", "0000.jpg,", ",disk", '"0000.jpg,disk',
        "0001.jpg,=1+1", "0000.jpg,square", "../outside/secret.jpg,disk", "/etc/passwd,disk", "\x00,disk",
        "0002.jpg," + "x" * 5000)  # fmt: skip

Spoil = Callable[[Path, random.Random], object]


def image_of(kind: str, rng: random.Random) -> bytes:
    """The content of a file that may be an image."""
    good = photo_layout.scene("disk", rng.randrange(1000))[0]
    path = Path(f"/proc/self/fd/{os.memfd_create('image')}")
    if kind in ("L", "1", "P", "CMYK", "RGBA", "LA", "I;16", "I", "F", "YCbCr"):
        made = good.convert("L").convert("I;16") if kind == "I;16" else _converted(good, kind)
        made.save(path, "TIFF" if kind in ("CMYK", "F", "I", "YCbCr") else "PNG")
    elif kind == "animated":
        good.save(path, "GIF", save_all=True, append_images=[good.rotate(90), good.rotate(180)])
    elif kind == "tiny":
        good.resize((1, 1)).save(path, "PNG")
    elif kind == "thin":
        good.resize((1, 3000)).save(path, "PNG")
    elif kind == "nan":
        Image.fromarray(np.full((20, 20), np.nan, np.float32)).save(path, "TIFF")
    else:
        good.save(path, "JPEG", exif=b"Exif\0\0" + rng.randbytes(40))
    content = path.read_bytes()
    os.close(int(path.name))
    if kind == "huge":  # a header that promises more than any memory holds
        header = struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 8, 2, 0, 0, 0)
        return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + header + b"\0\0\0\0"
    return {"empty": b"", "noise": rng.randbytes(300), "text": b"<html>", "cut": content[: len(content) // 2],
            "damaged": damage.of_bytes(content, rng)}.get(kind, content)  # fmt: skip


KINDS = ("L", "1", "P", "CMYK", "RGBA", "LA", "I;16", "I", "F", "YCbCr", "animated", "tiny", "thin", "nan", "exif",
         "huge", "empty", "noise", "text", "cut", "damaged")  # fmt: skip


def _converted(image: Image.Image, kind: str) -> Image.Image:
    return image.convert("L").convert(kind) if kind in ("I", "F") else image.convert(kind)


# --- what is done to a good folder ---


def _strange_image(root: Path, rng: random.Random) -> None:
    path = rng.choice(_files(root))
    path.write_bytes(image_of(rng.choice(KINDS), rng))


def _strange_name(root: Path, rng: random.Random) -> None:
    path = rng.choice(_files(root))
    target = path.with_name(rng.choice(NAMES))
    if rng.random() < 0.2:
        target = Path(os.fsdecode(os.fsencode(path.parent) + b"/\xff\xfe.jpg"))
    if not target.exists():
        path.rename(target)


def _extra(root: Path, rng: random.Random) -> None:
    """Something that is no image, or is too deep."""
    place = rng.choice([root, *(path for path in root.rglob("*") if path.is_dir())])
    deep = place.joinpath(*(["deep"] * rng.randint(0, 8)))
    deep.mkdir(parents=True, exist_ok=True)
    kind = rng.choice(("file", "folder", "fifo", "link", "broken", "loop", "outside"))
    target = deep / f"extra-{rng.randrange(100)}.jpg"
    if target.exists() or target.is_symlink():
        return
    if kind == "file":
        target.write_bytes(image_of(rng.choice(KINDS), rng))
    elif kind == "folder":
        target.mkdir()
    elif kind == "fifo":
        os.mkfifo(target)
    else:
        to = {"link": rng.choice(_files(root)), "broken": Path("nowhere"), "loop": Path(), "outside": Path("/etc")}
        target.symlink_to(to[kind])


def _table(root: Path, rng: random.Random) -> None:
    path = root / "labels.csv"
    if not path.exists():
        return
    lines = path.read_text().splitlines()
    for _ in range(rng.randint(1, 3)):
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(ROWS))
    text = rng.choice(("\n", "\r\n", "\r")).join(lines)
    path.write_bytes(text.encode(rng.choice(("utf-8", "utf-8-sig", "utf-16", "latin-1")), errors="replace"))


def _mask(root: Path, rng: random.Random) -> None:
    found = sorted(root.rglob("masks/*.png"))
    if not found:
        return
    size = rng.choice(((48, 64), (47, 64), (1, 1), (300, 2)))
    values = np.array(rng.choices(range(256), k=size[0] * size[1]), np.uint8).reshape(size)
    Image.fromarray(values).save(rng.choice(found))


def _missing(root: Path, rng: random.Random) -> None:
    rng.choice(_files(root)).unlink()


SPOILS: tuple[Spoil, ...] = (_strange_image, _strange_image, _strange_name, _extra, _table, _mask, _missing)


class FuzzedFolders(Part):
    name = "folders"
    about = (
        "Good folders (classes, a table, masks) with one to five things wrong, drawn from the seed: images of every "
        "mode, empty, cut, huge, animated or noise; strange names, tables and masks; pipes, links, folders in folders. "
        "`check`, `fit` and `predict` end with exit code 0 (`check` also 1) or one line and 2; no input and nothing "
        "outside changes."
    )
    seconds = 1.5

    def cases(self, scale: float) -> Sequence[str]:
        return [f"{('classes', 'table', 'masks')[number % 3]}-{number}" for number in range(some(COUNT, scale))]

    def run(self, case: str, at: Place) -> Outcome:
        kind, root, outside = case.split("-")[0], at.room / "folder", at.room / "outside"
        make(kind, root)
        photo_layout.write_images(outside, ["disk"])
        for _ in range(at.rng.randint(1, 5)):
            at.rng.choice(SPOILS)(root, at.rng)
        before = held(root), held(outside)
        out, lines = at.room / "out", (subjects.OWN, subjects.MASKS if kind == "masks" else subjects.PHOTOS)
        with alarm():
            checked = command.run("check", root, "--no-time", "--device", "cpu", codes=(0, 1, 2))[0]
            fitted = command.run(*subjects.fit(root, out, *lines))[0]
            if fitted == 0:
                command.run("predict", out, root, "--out", at.room / ("pred" if kind == "masks" else "pred.csv"))
        if (held(root), held(outside)) != before:
            raise Failure("inputs were changed")
        if checked and not fitted:
            raise Failure("check objects to what fit trains on")
        if known := {path.name for path in at.room.iterdir()} - {"folder", "outside", "out", "pred", "pred.csv"}:
            raise Failure(f"something was written elsewhere: {known}")
        return Outcome(f"{kind}, {'refused' if fitted else 'trained and used'}")


def make(kind: str, root: Path) -> None:
    """A folder with which nothing is wrong."""
    if kind == "classes":
        photo_layout.write_classes(root, labeled=4, unlabeled=4, test=1)
    elif kind == "masks":
        photo_layout.write_masks(root, labeled=6, unlabeled=3, test=1)
    else:
        shapes = [photo_layout.SHAPES[number % 3] for number in range(16)]
        photo_layout.write_images(root, shapes)
        rows = [(f"{number:04d}.jpg", shapes[number]) for number in range(12)]
        photo_layout.write_table(root, [("file", "label"), *rows])


def held(root: Path) -> dict[str, str]:
    """A digest of all files by their path; of links, where they lead."""
    found = {}
    for place, folders, names in os.walk(root):
        for name in (*folders, *names):
            path = Path(place, name)
            if path.is_symlink():
                found[str(path)] = str(path.readlink())
            elif path.is_file():
                found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
            else:
                found[str(path)] = ""
    return found


def _files(root: Path) -> list[Path]:
    """Photos and masks."""
    return sorted(path for path in root.rglob("*") if path.is_file() and path.suffix != ".csv")
