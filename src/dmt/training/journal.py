"""The journal of a stage: one JSON line for each interval of steps and for each event, such as scores."""

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from dmt import files, json_checks, schemas
from dmt.errors import RunError

_TORN = "the last line of %s is damaged and left out"


class Journal:
    """An append-only file of lines with checksums. A last line that was truncated by a crash is dropped."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, kind: str, **values: Any) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = _line({"kind": kind, **without_nan(values)})
        with files.named(self.path), self.path.open("ab+") as file:
            _drop_torn_line(file)
            file.write(line + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def read(self) -> Iterator[dict[str, Any]]:
        if not self.path.exists():
            return
        files.require_plain(self.path)
        *lines, torn = self.path.read_bytes().split(b"\n")
        for number, line in enumerate(lines, start=1):
            try:
                found = files.require_sealed(json.loads(line))
            except (ValueError, RecursionError) as error:
                if number == len(lines):  # the line had not fully reached the disk when the power failed
                    files.warn_once(_TORN, self.path)
                    return
                raise self._damaged(number, error) from error
            try:
                json_checks.require(found, schemas.line)
            except json_checks.Mismatch as error:
                raise self._damaged(number, error) from error
            yield found
        if torn:  # the last line was truncated
            files.warn_once(_TORN, self.path)

    def _damaged(self, number: int, error: Exception) -> RunError:
        return RunError(
            f"{self.path} is damaged (line {number}: {error}); restore it from a copy, or delete its folder and repeat "
            "the command"
        )

    def rewind(self, step: int) -> None:
        """Remove the intervals after ``step``, which will be trained again, and all scores and guard findings."""
        kept = [line for line in self.read() if line["kind"] != "interval" or line["step"] <= step]
        kept = [line for line in kept if line["kind"] not in ("round", "guard")]
        files.write(self.path, b"".join(_line(line) + b"\n" for line in kept))


def _line(values: Mapping[str, Any]) -> bytes:
    return files.json_bytes(files.sealed(values))


def _drop_torn_line(file: IO[bytes]) -> None:
    """Truncate what a crash left after the last newline, so that the next line does not merge with it."""
    size = file.seek(0, os.SEEK_END)
    tail = b""
    while size and b"\n" not in tail:
        start = max(0, size - 65536)
        file.seek(start)
        tail = file.read(size - start)
        keep = tail.rfind(b"\n") + 1
        if keep == len(tail):
            return
        file.truncate(start + keep)
        size = start


def without_nan(value: Any) -> Any:
    """Replace floats that are not finite, which JSON cannot represent, by None; recursively."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: without_nan(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(each) for each in value]
    return value
