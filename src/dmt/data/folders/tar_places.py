"""Access to tar files on this machine, or at a URL that fsspec or webdataset opens."""

import os
import re
import shutil
import tarfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from dmt.data.folders.photo_files import shown
from dmt.errors import ConfigError, DataError, DmtError, UnreachableError

INSTALL = "pip install 'dmt-vision[shards]'"

HTTP = ("http:", "https:")

ATTEMPTS, PAUSE = 3, 1.0
"""Attempts to read a part of a remote file, and seconds to wait after the first; the wait doubles every time."""

WITHIN = ("zip", "tar", "libarchive", "reference", "dir")
"""fsspec protocols that look inside other files; such a URL by itself would refer to a file on this machine."""


def is_url(place: str) -> bool:
    """Return whether a text is a URL or pipe rather than a file; a file of that name takes precedence."""
    return ("://" in place or place.startswith("pipe:")) and not Path(place).exists()


def named(places: str | Iterable[str]) -> tuple[str, ...]:
    """Return the shards that a user names, with absolute paths. In a single text they are separated by commas."""
    each_place = _separated(places) if isinstance(places, str) else places
    return tuple(place if is_url(place) else str(Path(place).absolute()) for place in each_place)


def _separated(text: str) -> list[str]:
    """Split a text at commas outside of braces, unless it is the name of one file that contains a comma."""
    if os.path.exists(text):  # noqa: PTH110 - unlike Path.exists, no error if the text is too long for a file name
        return [text]
    places = [each.strip() for each in re.split(r",(?![^{]*\})", text) if each.strip()]
    for each in places if len(places) > 1 else ():
        if "{" not in each and not is_url(each) and not Path(each).exists():
            raise ConfigError(
                f"there is no {shown(each)}; in shards=… commas separate files: "
                f"give one that has a comma in its name by --unlabeled, or in a list"
            )
    return places


def expanded(places: Iterable[str]) -> list[str]:
    """Expand ``{000..999}`` and ``{a,b}`` as WebDataset does."""
    found: list[str] = []
    for place in places:
        if "{" not in place or Path(place).exists():
            found.append(place)
            continue
        try:
            import braceexpand
        except ImportError:
            raise ConfigError(f"{shown(place)} needs webdataset, which is not installed here: {INSTALL}") from None
        try:
            found += braceexpand.braceexpand(place)
        except ValueError as error:
            raise ConfigError(f"the braces of {shown(place)} do not match; write {{000..999}} or {{a,b}}") from error
    return found


def webdataset(what: str) -> Any:
    """Import webdataset. If it is not installed, the error says that ``what`` needs it."""
    try:
        import webdataset as library
    except ImportError:
        raise ConfigError(f"{what} needs webdataset, which is not installed here: {INSTALL}") from None
    return library


def stamp(place: str) -> str:
    """Return a text that changes if a tar file does.

    It holds the name, the size and the modification time or, for URLs, the ETag or modification time if there is one.
    """
    if not is_url(place):
        try:
            about = Path(place).stat()
        except OSError as error:
            raise DataError(f"cannot read {shown(place)} ({error.strerror}); put it there or leave it out") from error
        return f"{place}\0{about.st_size}\0{about.st_mtime_ns}"
    system, path = _system(place)
    try:
        about = system.info(path)
    except Exception as error:  # fsspec's file systems raise many kinds of errors
        raise _unreached(place, error) from error
    return f"{place}\0{about.get('size')}\0{about.get('ETag') or about.get('mtime') or ''}"


def sends_parts(place: str) -> bool:
    """Return whether parts of a tar file can be read by themselves. Some HTTP servers send whole files only."""
    if not (is_url(place) and place.startswith(HTTP)):
        return True
    system, path = _system(place)
    try:
        with system.open(path, "rb", cache_type="none") as file:
            file.seek(1)
            return len(file.read(1)) == 1
    except ValueError:  # raised by fsspec if the server sends more than requested
        return False
    except Exception as error:
        raise _unreached(place, error) from error


@contextmanager
def reached(place: str) -> Iterator[None]:
    """Convert errors of the connection into a `DataError` while a tar file is read in this context."""
    try:
        yield
    except (DmtError, tarfile.TarError):
        raise
    except Exception as error:  # the underlying libraries raise many kinds of errors
        raise _unreached(place, error) from error


def opened(place: str) -> IO[bytes]:
    """Open a tar file for random access."""
    try:
        if not is_url(place):
            return Path(place).open("rb")
        system, path = _system(place)
        return cast(IO[bytes], system.open(path, "rb"))
    except ConfigError:
        raise
    except Exception as error:
        raise _unreached(place, error) from error


def read(place: str, offset: int, size: int) -> bytes:
    """Read ``size`` bytes of a file from ``offset`` on; a remote file is tried several times.

    Raises:
        UnreachableError: if a remote file cannot be read in any attempt.
    """
    if not is_url(place):
        with Path(place).open("rb", buffering=0) as file:
            file.seek(offset)
            return file.read(size) if size else b""
    system, path = _system(place)
    for attempt in range(ATTEMPTS):
        try:
            return cast(bytes, system.cat_file(path, start=offset, end=offset + size))
        except FileNotFoundError:
            raise
        except Exception as error:  # the underlying libraries raise many kinds of errors
            last = error
            time.sleep(PAUSE * 2**attempt)
    why = " ".join(str(last).split()) or type(last).__name__
    raise UnreachableError(f"{shown(place)} cannot be reached ({why}); repeat the command later") from last


def streamed(place: str) -> IO[bytes]:
    """Open a tar file for reading once from start to end."""
    if not is_url(place):
        return opened(place)
    try:
        return opened(place) if sends_parts(place) else _whole(place)
    except ConfigError:  # not readable by fsspec, but perhaps by curl or a pipe
        library = webdataset(f"reading {shown(place)}")
        if place.startswith(HTTP) and shutil.which("curl") is None:
            raise
        return cast(IO[bytes], library.gopen(place, "rb"))


def _whole(place: str) -> IO[bytes]:
    """Open a file of an HTTP server that sends it only as a whole."""
    import aiohttp  # which fsspec uses for HTTP

    # no time limit: images are processed while the rest is being downloaded
    system, path = _system(place, client_kwargs={"timeout": aiohttp.ClientTimeout(total=None)})
    return cast(IO[bytes], system.open(path, "rb", block_size=0))


def _system(place: str, **options: Any) -> tuple[Any, str]:
    """Return fsspec's file system for a URL, and the path within it."""
    if "://" not in place or "::" in place or place.partition("://")[0] in WITHIN:
        raise ConfigError(f"parts of {shown(place)} cannot be read; give files, or URLs that fsspec opens")
    try:
        import fsspec

        found: tuple[Any, str] = fsspec.core.url_to_fs(place, **options)
    except ImportError as error:
        raise ConfigError(
            f"parts of {shown(place)} cannot be read here: {error}; pip install {_package(place)}, or copy the shards"
        ) from error
    except Exception as error:  # the underlying libraries raise many kinds of errors
        why = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError(
            f"parts of {shown(place)} cannot be read here: {why}; install it, or copy the shards"
        ) from error
    return found


def _package(place: str) -> str:
    """Return what to install with pip so that fsspec can read this kind of URL."""
    return f"'fsspec[{'http' if place.startswith(HTTP) else place.partition('://')[0]}]'"


def _unreached(place: str, error: Exception) -> DataError:
    why = " ".join(str(error).split()) or type(error).__name__
    return DataError(f"cannot read {shown(place)} ({why}); check the name and that it is allowed")
