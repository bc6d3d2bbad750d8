"""What the nets of a stage said of every image, in files beside its journal."""

import functools
import io
import logging
from pathlib import Path

import numpy as np

from dmt import files
from dmt.core.evidence import Evidence

DIGEST = "evidence"
"""The entry of a net's scores that vouches for its evidence."""


def write(place: Path, split: str, line: str, copy: str, evidence: Evidence) -> str:
    """``place`` is the stage's folder. Returns the digest of what was written."""
    content = io.BytesIO()
    np.savez_compressed(content, **evidence.arrays())  # type: ignore[arg-type]
    files.write(place / _name(split, line, copy), content.getvalue())
    return files.digest(content.getvalue())


def read(place: Path, split: str, line: str, copy: str, digest: str | None = None) -> Evidence | None:
    """None where there is none: of a stage that is not finished, or was made before evidence was kept.

    A damaged file is as good as none, but that is said.

    Args:
        digest: that of the file when it was written, if it is known; another file is no evidence.
    """
    # release 0.1 knew one net a stage, and left the line out
    for path in (place / _name(split, line, copy), place / f"evidence-{split}-{copy}.npz"):
        if not path.exists():
            continue
        try:
            files.require_plain(path)
            content = path.read_bytes()
            if digest in (None, files.digest(content)):
                with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                    return Evidence.of(arrays)
        except Exception:  # zip, zlib and NumPy have errors of their own
            pass
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
