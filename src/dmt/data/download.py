"""Download a file completely and with the right checksum, or not at all."""

import contextlib
import hashlib
import http.client
import os
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from dmt.errors import DataError

CHUNK = 1 << 18
NOTE_EVERY = 5.0  # seconds between two progress messages


def fetch(url: str, to: Path, md5: str, notify: Callable[[str], None], timeout: float = 30.0) -> None:
    """Download `url` to the file `to`, creating its folder if missing.

    The bytes are written to a temporary file beside `to`, which is renamed only if the checksum matches. So an
    incomplete file never appears under this name, and a failed download leaves no file behind.

    Args:
        url: address of the file.
        to: where to put it.
        md5: expected checksum.
        notify: called with progress messages.
        timeout: seconds without any data after which the download fails.

    Raises:
        DataError: if the download fails or the checksum differs.
    """
    partial = to.with_name(f".{to.name}.{uuid.uuid4().hex}.part")
    try:
        # Connect first: without a network not even the folder is created.
        with urllib.request.urlopen(url, timeout=timeout) as response:
            to.parent.mkdir(parents=True, exist_ok=True)
            found = _save(response, partial, to.name, notify)
        if found != md5:
            raise DataError(f"{url} has MD5 {found} instead of {md5}; nothing was kept, try again later")
        partial.replace(to)
    except urllib.error.HTTPError as error:
        error.close()  # the error is also the open response
        raise DataError(f"{url} answers {error.code} {error.reason}; check the address") from error
    except urllib.error.URLError as error:
        raise DataError(f"{url} cannot be reached: {_line(error.reason)}; check the network") from error
    except (OSError, http.client.HTTPException) as error:
        raise DataError(f"download of {url} to {to} broke off: {_line(error)}; try again") from error
    finally:
        with contextlib.suppress(OSError):  # it may not exist, and must not hide the error above
            partial.unlink()


def _save(response: http.client.HTTPResponse, partial: Path, name: str, notify: Callable[[str], None]) -> str:
    """Write the body to `partial` and return its MD5."""
    total = response.length  # the announced size, read before the response counts it down
    size = "" if total is None else f" of {total / 1e6:.0f}"
    notify(f"downloading {response.url}")
    with partial.open("xb") as file:
        done, found = _copy(response, file, lambda done: notify(f"{name}: {done / 1e6:.0f}{size} MB"))
        file.flush()
        os.fsync(file.fileno())
    if total is not None and done != total:  # a connection that closes early looks like the end of the file
        raise http.client.HTTPException(f"{done} of {total} bytes came")
    return found


def _copy(response: http.client.HTTPResponse, file: BinaryIO, note: Callable[[int], None]) -> tuple[int, str]:
    digest = hashlib.md5(usedforsecurity=False)
    done = 0
    noted = time.monotonic()
    while chunk := response.read(CHUNK):
        file.write(chunk)
        digest.update(chunk)
        done += len(chunk)
        if time.monotonic() - noted >= NOTE_EVERY:
            note(done)
            noted = time.monotonic()
    return done, digest.hexdigest()


def _line(reason: object) -> str:
    """Return an error's text as one line, or the name of its type if it has no text."""
    return " ".join(str(reason).split()) or type(reason).__name__
