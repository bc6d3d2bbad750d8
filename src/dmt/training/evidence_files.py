"""What the nets of a stage said of every image, in files beside its journal."""

import functools
import io
import logging
from pathlib import Path

import numpy as np

from dmt import files
from dmt.core.evidence import Evidence


def write(place: Path, split: str, line: str, copy: str, evidence: Evidence) -> None:
    """``place`` is the stage's folder."""
    content = io.BytesIO()
    np.savez_compressed(content, **evidence.arrays())  # type: ignore[arg-type]
    files.write(place / _name(split, line, copy), content.getvalue())


def read(place: Path, split: str, line: str, copy: str) -> Evidence | None:
    """None where there is none: of a stage that is not finished, or was made before evidence was kept.

    A damaged file is as good as none, but that is said.
    """
    # release 0.1 knew one net a stage, and left the line out
    for path in (place / _name(split, line, copy), place / f"evidence-{split}-{copy}.npz"):
        if not path.exists():
            continue
        try:
            files.require_plain(path)
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
                return Evidence.of(arrays)
        except Exception:  # zip, zlib and NumPy have errors of their own
            _tell(path)
    return None


@functools.cache
def _tell(path: Path) -> None:
    """Once for every file."""
    logging.getLogger(__name__).warning(
        "%s is damaged and left out, with all that it would tell; restore it from a copy of the run", path
    )


def _name(split: str, line: str, copy: str) -> str:
    return f"evidence-{split}-{line}-{copy}.npz"
