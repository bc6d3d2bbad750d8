"""Find a user's image files of any kind below a folder, and read them upright, as RGB."""

import errno
import io
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from dmt import run_files
from dmt.data.folders.contents import Source
from dmt.errors import DataError, UnreachableError
from dmt.errors import shown as shown  # messages about files are where it is mostly used

EXTENSIONS = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff"})

PICTURES = frozenset({".heic", ".heif", ".avif", ".jxl", ".pdf", ".dng", ".cr2", ".cr3", ".nef", ".arw"})
"""Endings of image files that cannot be read."""

Plane = npt.NDArray[np.uint8]
_RUN = {run_files.MANIFEST, run_files.SESSIONS}  # marks the folder of a run, whose pictures are not data
_ORIENTATION = 0x0112  # the EXIF tag
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def hidden(name: str) -> bool:
    """Return whether a file or folder belongs to the operating system rather than to the user, by its name."""
    return name.startswith(".") or name in ("__MACOSX", "Thumbs.db", "desktop.ini")


@dataclass
class Leftovers:
    """The links to folders that ``find`` left out, and its counts of files that are not images, by their endings."""

    links: list[Path] = field(default_factory=list)
    endings: Counter[str] = field(default_factory=Counter)

    def notes(self) -> list[str]:
        """Return one line about links and one about files, if any were left out."""
        lines = []
        if self.links:
            first = shown(min(self.links))
            lines.append(f"links to folders were not entered ({len(self.links)}), the first is {first}")
        counts = +self.endings  # without zeros
        if counts:
            kinds = ", ".join(f"{count} {shown(kind)}" for kind, count in sorted(counts.items()))
            lines.append(f"files that are not images of a known kind were left out: {kinds}{self.remedy}")
        return lines

    @property
    def remedy(self) -> str:
        """The end of a sentence that says how to convert image files that cannot be read; empty if there are none."""
        kinds = sorted(kind for kind, count in self.endings.items() if count and kind in PICTURES)
        return f"; convert {', '.join(kinds)} to JPEG or PNG" if kinds else ""


def find(folder: Path, root: Path, leftovers: Leftovers) -> dict[str, Path]:
    """Find images anywhere below ``folder``, as a sorted mapping from their path relative to ``root`` to the file.

    ``folder`` may be a link, and links to files count as files wherever they lead. Links to folders further down are
    not entered, so link loops do no harm. Names that begin with a dot are silently left out.
    """
    found: dict[str, Path] = {}
    for place, folders, names in _walked(folder, _unlisted):
        leftovers.links += [Path(place, name) for name in folders if Path(place, name).is_symlink()]
        below = Path(place).relative_to(root).as_posix()
        for name in names:
            ending = os.path.splitext(name)[1].lower()  # noqa: PTH122 - a Path for each of 100,000 names is slow
            if hidden(name):
                continue
            if ending in EXTENSIONS:
                path = Path(place, name)
                require_utf8(path.relative_to(root))
                found[name if below == "." else f"{below}/{name}"] = path
            else:
                leftovers.endings[ending or "without ending"] += 1
    return dict(sorted(found.items()))


def ending_in(folder: Path, endings: tuple[str, ...]) -> Iterator[Path]:
    """Yield the files with one of these endings that ``find`` would come by. What cannot be listed is skipped."""
    for place, _, names in _walked(folder):
        yield from (Path(place, name) for name in names if name.lower().endswith(endings) and not hidden(name))


def _walked(
    folder: Path, onerror: Callable[[OSError], None] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk through a folder, except for hidden folders and those of runs."""
    for place, folders, names in os.walk(folder, onerror=onerror):
        if set(names) >= _RUN:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not hidden(name)]
        yield place, folders, names


def _unlisted(error: OSError) -> None:
    raise DataError(f"cannot list the folder {shown(str(error.filename))} ({error.strerror}); allow reading it")


def require_utf8(path: Path) -> None:
    """Refuse a name that cannot be written to the files of a run, which are UTF-8."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise DataError(f"the name of {shown(path)} is not UTF-8 text; rename the file") from error


def read_photo(path: Source) -> Plane:
    """Read a photo as RGB (H, W, 3), rotated upright by its EXIF data; of an animation the first frame.

    Transparent parts become white: such images are made for white pages, and the colors stored in fully transparent
    pixels are arbitrary. 16-bit gray is converted to 8 bits by its full range, v / 257.
    """
    with opened(path) as image:
        image.load()
        return np.array(upright(_rgb(image), orientation(image)))


def photo_size(path: Source) -> tuple[int, int]:
    """Return the (H, W) that ``read_photo`` would return, from the header of the file alone."""
    with opened(path) as image:
        turned = orientation(image) >= 5
        return (image.width, image.height) if turned else (image.height, image.width)


def pages(path: Source) -> int:
    """Return the number of pages of a TIFF file, such as the planes of a stack; 1 if others are only thumbnails."""
    with opened(path) as image:
        if image.format != "TIFF":  # the frames of an animation are no photos of their own
            return 1
        count, size = int(getattr(image, "n_frames", 1)), image.size
        if count > 1:
            image.seek(1)
        return count if image.size == size else 1


def is_rotated(path: Source) -> bool:
    """Return whether a photo is rotated or flipped by its EXIF data: programs that ignore these show it differently."""
    with opened(path) as image:
        return _tagged(image) in _UPRIGHT


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode == "I" or image.mode == "F" or image.mode.startswith("I;16"):
        return Image.fromarray(_eight_bits(np.asarray(image))).convert("RGB")
    if image.mode == "La":
        image = image.convert("LA")
    if image.mode in ("LA", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        front = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", front.size, "white"), front).convert("RGB")
    return image.convert("RGB")


def is_stretched(values: npt.NDArray[np.generic]) -> bool:
    """Return whether an image is converted to 8 bits by its own minimum and maximum, since no usual range fits."""
    low, high = values.min(initial=0), values.max(initial=0)
    return bool(low < 0 or high > 65535 or (values.dtype.kind == "f" and high > 255))


def _eight_bits(values: npt.NDArray[np.generic]) -> Plane:
    """Convert to 8 bits: integers as v / 257, floats up to 1 as v · 255, up to 255 as v, all others by min and max."""
    wide = np.nan_to_num(values.astype(np.float64))
    if is_stretched(np.nan_to_num(values)):
        wide = (wide - wide.min()) * (255 / max(np.ptp(wide), 1e-12))
    elif values.dtype.kind != "f":
        wide = wide / 257
    elif wide.max(initial=0) <= 1:
        wide = wide * 255
    return (wide + 0.5).astype(np.uint8)


def stored(image: Image.Image) -> str:
    """Return Pillow's name of the raw pixel format in the file, e.g. "L;4"; known only until pixels are decoded."""
    tile = getattr(image, "tile", None)
    kind = tile[0][3] if tile else ""
    return str(kind[0] if isinstance(kind, tuple) else kind)


def orientation(image: Image.Image) -> int:
    """Return the EXIF orientation, 1 … 8; always 1 for TIFF files, which Pillow rotates itself."""
    return 1 if image.format == "TIFF" else _tagged(image)


def _tagged(image: Image.Image) -> int:
    """Return the EXIF orientation in the file of an image that was not decoded yet."""
    try:
        # not image.getexif(): for PNG it decodes all pixels to search for a chunk behind them
        return int(Image.Image.getexif(image).get(_ORIENTATION, 1))
    except Exception:  # an intact image may have broken EXIF data, and decoders raise many kinds of errors
        return 1


def upright(image: Image.Image, turned: int) -> Image.Image:
    """Undo an EXIF orientation."""
    return image.transpose(_UPRIGHT[turned]) if turned in _UPRIGHT else image


@contextmanager
def opened(path: Source) -> Iterator[Image.Image]:
    """Open an image without decoding it; any error, here or while it is decoded in this context, is a DataError."""
    try:
        with Image.open(_file(path) if isinstance(path, Path) else io.BytesIO(path.read())) as image:
            yield image
    except (DataError, UnreachableError):
        raise
    except Exception as error:  # Pillow's decoders raise many kinds of errors
        raise DataError(f"{shown(path)} {_reason(path, error)}") from error


def _file(path: Path) -> Path:
    """Return the path if it is a regular file that is not empty; otherwise raise a DataError."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait forever
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "no regular file"
        raise DataError(f"{shown(path)} is {kind}, not an image; rename it or leave it out")
    if status.st_size == 0:
        raise DataError(f"{shown(path)} is empty (0 bytes); put the original file there or leave it out")
    return path


def _reason(path: Source, error: Exception) -> str:
    """Say in plain words what is wrong with a file, and what to do about it."""
    if isinstance(error, FileNotFoundError):
        linked = isinstance(path, Path) and path.is_symlink()
        return "is a broken link; fix or remove it" if linked else "is missing; put it there"
    if isinstance(error, PermissionError):
        return "may not be read (permission denied); allow it or leave it out"
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return "is a link to itself; remove it"
    if isinstance(error, (Image.DecompressionBombError, Image.DecompressionBombWarning)):
        return f"is too large (more than {Image.MAX_IMAGE_PIXELS or 0:,} pixels); make it smaller or leave it out"
    if isinstance(error, UnidentifiedImageError):
        return "is not an image, or its beginning is damaged; put the original file there or leave it out"
    if "truncated" in str(error).lower():
        return "is truncated: its end is missing; put the original file there or leave it out"
    words = " ".join(shown(str(error)).split()) or type(error).__name__
    return f"cannot be decoded ({words}); put the original file there or leave it out"
