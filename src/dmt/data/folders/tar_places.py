"""Where tar files are: on this machine, or at a URL that fsspec or webdataset opens."""

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
"""How often a part of something elsewhere is asked for, and seconds to wait before the second time."""

WITHIN = ("zip", "tar", "libarchive", "reference", "dir")
"""Kinds of URL by which fsspec looks into other files: those would name a place on this machine by themselves."""


def is_url(place: str) -> bool:
    """Whether a word names something elsewhere. A file of that name comes first."""
    return ("://" in place or place.startswith("pipe:")) and not Path(place).exists()


def named(places: str | Iterable[str]) -> tuple[str, ...]:
    """Shards that a user names, as they are found from any folder. In a text they are separated by commas."""
    each_place = _separated(places) if isinstance(places, str) else places
    return tuple(place if is_url(place) else str(Path(place).absolute()) for place in each_place)


def _separated(text: str) -> list[str]:
    """At commas outside of braces. A file with a comma in its name cannot be told among several."""
    if os.path.exists(text):  # noqa: PTH110 - a text longer than any name is no error to it
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
    """With ``{000..999}`` and ``{a,b}`` written out, as WebDataset does."""
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
    """The library; a line says what needs it if it is not there."""
    try:
        import webdataset as library
    except ImportError:
        raise ConfigError(f"{what} needs webdataset, which is not installed here: {INSTALL}") from None
    return library


def stamp(place: str) -> str:
    """What changes if a tar file does: of files name, size and time; of URLs name and size."""
    if not is_url(place):
        try:
            about = Path(place).stat()
        except OSError as error:
            raise DataError(f"cannot read {shown(place)} ({error.strerror}); put it there or leave it out") from error
        return f"{place}\0{about.st_size}\0{about.st_mtime_ns}"
    system, path = _system(place)
    try:
        about = system.info(path)
    except Exception as error:  # every file system has errors of its own
        raise _unreached(place, error) from error
    return f"{place}\0{about.get('size')}\0{about.get('ETag') or about.get('mtime') or ''}"


def sends_parts(place: str) -> bool:
    """Whether any part of a tar file can be had by itself. Some HTTP servers send whole files only."""
    if not (is_url(place) and place.startswith(HTTP)):
        return True
    system, path = _system(place)
    try:
        with system.open(path, "rb", cache_type="none") as file:
            file.seek(1)
            return len(file.read(1)) == 1
    except ValueError:  # fsspec's, when more comes than it asked for
        return False
    except Exception as error:
        raise _unreached(place, error) from error


@contextmanager
def reached(place: str) -> Iterator[None]:
    """Within a tar file is read; a connection that breaks off is told."""
    try:
        yield
    except (DmtError, tarfile.TarError):
        raise
    except Exception as error:  # of many libraries
        raise _unreached(place, error) from error


def opened(place: str) -> IO[bytes]:
    """A tar file in which any place can be read."""
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
    """Some bytes of a file."""
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
        except Exception as error:  # of many libraries
            last = error
            time.sleep(PAUSE * 2**attempt)
    why = " ".join(str(last).split()) or type(last).__name__
    raise UnreachableError(f"{shown(place)} cannot be reached ({why}); repeat the command later") from last


def streamed(place: str) -> IO[bytes]:
    """A tar file from its begin to its end, once."""
    if not is_url(place):
        return opened(place)
    try:
        return opened(place) if sends_parts(place) else _whole(place)
    except ConfigError:  # nothing that fsspec reads here, but curl or a pipe may
        library = webdataset(f"reading {shown(place)}")
        if place.startswith(HTTP) and shutil.which("curl") is None:
            raise
        return cast(IO[bytes], library.gopen(place, "rb"))


def _whole(place: str) -> IO[bytes]:
    """A file of an HTTP server, in one piece."""
    import aiohttp  # by which fsspec reads from such servers

    # however long that takes: nets work on what came so far
    system, path = _system(place, client_kwargs={"timeout": aiohttp.ClientTimeout(total=None)})
    return cast(IO[bytes], system.open(path, "rb", block_size=0))


def _system(place: str, **options: Any) -> tuple[Any, str]:
    """The file system of fsspec that reads parts of a URL."""
    if "://" not in place or "::" in place or place.partition("://")[0] in WITHIN:
        raise ConfigError(f"parts of {shown(place)} cannot be read; give files, or URLs that fsspec opens")
    try:
        import fsspec

        found: tuple[Any, str] = fsspec.core.url_to_fs(place, **options)
    except ImportError as error:
        raise ConfigError(
            f"parts of {shown(place)} cannot be read here: {error}; pip install {_package(place)}, or copy the shards"
        ) from error
    except Exception as error:  # of many libraries
        why = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError(
            f"parts of {shown(place)} cannot be read here: {why}; install it, or copy the shards"
        ) from error
    return found


def _package(place: str) -> str:
    """What fsspec needs for a kind of URL."""
    return f"'fsspec[{'http' if place.startswith(HTTP) else place.partition('://')[0]}]'"


def _unreached(place: str, error: Exception) -> DataError:
    why = " ".join(str(error).split()) or type(error).__name__
    return DataError(f"cannot read {shown(place)} ({why}); check the name and that it is allowed")
