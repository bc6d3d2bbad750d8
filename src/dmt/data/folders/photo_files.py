"""Find a user's image files of any kind below a folder, and read them upright, as RGB or as masks."""

import errno
import io
import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from dmt import run_files
from dmt.data.folders.contents import Color, Source
from dmt.data.pixels.masks import VOID
from dmt.errors import DataError, UnreachableError

EXTENSIONS = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff"})

PICTURES = frozenset({".heic", ".heif", ".avif", ".jxl", ".pdf", ".dng", ".cr2", ".cr3", ".nef", ".arw"})
"""Endings of image files that cannot be read."""

Plane = npt.NDArray[np.uint8]
_RUN = {run_files.MANIFEST, run_files.SESSIONS}  # marks the folder of a run, whose pictures are not data
_LOSSLESS = frozenset({"PNG", "BMP", "TIFF", "GIF"})
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


def shown(name: str | Source) -> str:
    """Return a name for display on one line: newlines and unprintable or invalid characters are escaped."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in str(name))


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
    for place, folders, names in os.walk(folder, onerror=_unlisted):
        if set(names) >= _RUN:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not hidden(name)]
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
        return np.array(_upright(_rgb(image), _orientation(image)))


def is_finite(path: Source) -> bool:
    """Return whether all values are finite: ``read_photo`` maps NaN and, next to infinity, all other values to 0."""
    with opened(path) as image:
        return image.mode != "F" or bool(np.isfinite(np.asarray(image)).all())


def photo_size(path: Source) -> tuple[int, int]:
    """Return the (H, W) that ``read_photo`` would return, from the header of the file alone."""
    with opened(path) as image:
        turned = _orientation(image) >= 5
        return (image.width, image.height) if turned else (image.height, image.width)


def require_size(mask: Path, found: tuple[int, ...], size: tuple[int, int]) -> None:
    """Refuse a mask whose size (H, W) is not that of its image."""
    if found != size:
        raise DataError(
            f"{shown(mask)} has {found[0]}×{found[1]} pixels but its image {size[0]}×{size[1]}; "
            "give every image a mask of its own size"
        )


def read_mask(path: Path, class_colors: Mapping[Color, int] | None, classes: int) -> Plane:
    """Read a mask as class numbers (H, W) uint8, 255 where a pixel has no label.

    Args:
        path: the file.
        class_colors: the class of each color; None if pixels hold class numbers. Indexed masks are read by the colors
            of their palette in the first case and by their stored values in the second.
        classes: number of classes; pixels may hold 0 … classes − 1 and 255.
    """
    with opened_mask(path) as image:
        pixels = np.asarray(_upright(numbers(image) if class_colors is None else colors(image), _orientation(image)))
    if class_colors is not None:
        return _by_color(path, pixels, class_colors)
    if pixels.ndim == 3:
        raise DataError(f"{shown(path)} is drawn in colors, not in class numbers; say in classes.txt: name r g b")
    wrong = pixels[(pixels < 0) | (pixels >= classes) & (pixels != VOID)]
    if wrong.size:
        raise DataError(
            f"{shown(path)} has the class {wrong[0]}, outside 0..{classes - 1} and 255 (no label); "
            "name all classes in classes.txt or fix the mask"
        )
    return pixels.astype(np.uint8)


def _by_color(path: Path, pixels: npt.NDArray[np.generic], class_colors: Mapping[Color, int]) -> Plane:
    """Map colors (H, W, 3) to classes (H, W)."""
    known = np.array(
        sorted((red << 16 | green << 8 | blue, label) for (red, green, blue), label in class_colors.items())
    )
    red_plane, green_plane, blue_plane = np.moveaxis(pixels.astype(np.int32), 2, 0)
    packed = red_plane << 16 | green_plane << 8 | blue_plane  # (H, W)
    places = np.searchsorted(known[:, 0], packed).clip(max=len(known) - 1)
    strange = packed[known[places, 0] != packed]
    if strange.size:
        raise DataError(
            f"{shown(path)} has the color #{strange[0]:06x}, which no class has ({strange.size:,} such pixels); "
            "add it to classes.txt, or save masks without smooth edges"
        )
    plane: Plane = known[places, 1].astype(np.uint8)
    return plane


def numbers(image: Image.Image) -> Image.Image:
    """Convert a mask so that its pixels are its stored numbers; a mask drawn in colors is returned as RGB."""
    if image.mode == "1":
        return Image.fromarray(np.asarray(image).astype(np.uint8))
    if image.mode in ("L", "P"):
        # Pillow scales 2- and 4-bit gray to 0..255, so that 1 becomes 85 or 17
        step = {"L;2": 85, "L;4": 17}.get(_stored(image), 1)
        return image.point(lambda value: value // step) if step > 1 else image
    if image.mode == "I" or image.mode.startswith("I;16"):
        return image
    if image.mode == "LA":
        return image.getchannel("L")
    rgb = image.convert("RGB")
    red, green, blue = rgb.split()
    # many tools save gray with three equal channels
    return red if red.tobytes() == green.tobytes() == blue.tobytes() else rgb


def colors(image: Image.Image) -> Image.Image:
    """Convert a mask to RGB: gray v becomes (v, v, v), and alpha is ignored."""
    if image.mode == "I" or image.mode.startswith("I;16"):
        values = np.asarray(image)
        if values.min(initial=0) < 0 or values.max(initial=0) > VOID:
            raise DataError(f"{shown(str(getattr(image, 'filename', 'a mask')))} has gray above 255; save it in 8 bits")
        image = Image.fromarray(values.astype(np.uint8))
    if image.mode == "P":  # convert by the palette alone: transparency would make Pillow warn
        image.info.pop("transparency", None)
    return (numbers(image) if image.mode == "L" else image).convert("RGB")


def _stored(image: Image.Image) -> str:
    """Return Pillow's name of the raw pixel format in the file, e.g. "L;4"; known only until pixels are decoded."""
    tile = getattr(image, "tile", None)
    kind = tile[0][3] if tile else ""
    return str(kind[0] if isinstance(kind, tuple) else kind)


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode == "I" or image.mode == "F" or image.mode.startswith("I;16"):
        return Image.fromarray(_eight_bits(np.asarray(image))).convert("RGB")
    if image.mode == "La":
        image = image.convert("LA")
    if image.mode in ("LA", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        front = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", front.size, "white"), front).convert("RGB")
    return image.convert("RGB")


def _eight_bits(values: npt.NDArray[np.generic]) -> Plane:
    """Convert to 8 bits: integers as v / 257, floats up to 1 as v · 255, up to 255 as v, all others by min and max."""
    wide = np.nan_to_num(values.astype(np.float64))
    low, high = wide.min(initial=0), wide.max(initial=0)
    if low < 0 or high > 65535 or (values.dtype.kind == "f" and high > 255):
        wide = (wide - wide.min()) * (255 / max(np.ptp(wide), 1e-12))
    elif values.dtype.kind != "f":
        wide = wide / 257
    elif high <= 1:
        wide = wide * 255
    return (wide + 0.5).astype(np.uint8)


def _orientation(image: Image.Image) -> int:
    """Return the EXIF orientation, 1 … 8; always 1 for TIFF files, which Pillow rotates itself."""
    if image.format == "TIFF":
        return 1
    try:
        # not image.getexif(): for PNG it decodes all pixels to search for a chunk behind them
        return int(Image.Image.getexif(image).get(_ORIENTATION, 1))
    except Exception:  # an intact image may have broken EXIF data, and decoders raise many kinds of errors
        return 1


def _upright(image: Image.Image, orientation: int) -> Image.Image:
    return image.transpose(_UPRIGHT[orientation]) if orientation in _UPRIGHT else image


@contextmanager
def opened_mask(path: Path) -> Iterator[Image.Image]:
    """Open a mask without decoding it; refuse formats with lossy compression."""
    with opened(path) as image:
        if image.format not in _LOSSLESS:
            raise DataError(f"{shown(path)} is a {image.format} file, which blurs class numbers; save masks as PNG")
        yield image


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
