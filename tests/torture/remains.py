"""What must be the same after a disturbance: every file of a folder, without clocks."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dmt import files, run_files
from tests.torture.parts import Failure

CLOCKS = frozenset({"seconds", "saved", "images_per_s", "waiting", "peak_memory_mb", "time", files.SEAL})
"""Entries of JSON that say how long something took, and checksums over them."""

LEFT_OUT = (run_files.LOCK, run_files.SESSIONS)
"""Files that every session changes."""

MADE = re.compile(rb"made \d{4}-\d\d-\d\d \d\d:\d\d")


def of(folder: Path) -> dict[str, Any]:
    """Content of all files by their path."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        ours = name.name not in LEFT_OUT and run_files.CACHE not in name.parts
        if ours and path.is_file():
            found[str(name)] = content(path, folder)
    return found


def content(path: Path, folder: Path) -> Any:
    """As it was written, wherever its folder is; of JSON, if it is any, without clocks."""
    written = path.read_bytes().replace(str(folder).encode(), b"OUT")
    try:
        if path.suffix == ".json":
            return _timeless(json.loads(written))
        if path.suffix == ".jsonl":
            return [_timeless(json.loads(line)) for line in written.splitlines()]
    except ValueError:
        return written
    return MADE.sub(b"", written)


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(each) for key, each in value.items() if key not in CLOCKS}
    return [_timeless(each) for each in value] if isinstance(value, list) else value


def differences(found: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
    """Names of what is missing, new or different."""
    return [
        f"{name} is {'new' if name not in known else 'missing' if name not in found else 'different'}"
        for name in sorted(found.keys() | known.keys())
        if found.get(name) != known.get(name)
    ]


def require_same(found: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    changed = differences(found, known)
    if changed:
        raise Failure(f"the result is another one: {'; '.join(changed[:5])}")


def json_of(path: Path) -> Any:
    return json.loads(path.read_text())
