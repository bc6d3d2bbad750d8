"""Files with the predictions of a stage's nets for every image, stored next to its journal."""

import io
from pathlib import Path

import numpy as np

from dmt import files
from dmt.core.evidence import Evidence

DIGEST = "evidence"
"""The key in a net's scores under which the digest of its evidence file is stored."""


def write(place: Path, split: str, line: str, copy: str, evidence: Evidence) -> str:
    """Write the evidence of one net to ``place``, the stage's folder, and return the digest of the file."""
    content = io.BytesIO()
    np.savez_compressed(content, **evidence.arrays())  # type: ignore[arg-type]
    files.write(place / _name(split, line, copy), content.getvalue())
    return files.digest(content.getvalue())


def read(place: Path, split: str, line: str, copy: str, digest: str | None = None) -> Evidence | None:
    """Read the evidence of one net.

    Args:
        digest: the digest of the file when it was written, if known; a file with another digest counts as damaged.

    Returns:
        None if there is no file, because the stage is not finished or is from a release that kept no evidence, or if
        the file is damaged, which is logged.
    """
    # release 0.1 had one net per stage, and file names without the line
    for path in (place / _name(split, line, copy), place / f"evidence-{split}-{copy}.npz"):
        if not path.exists():
            continue
        try:
            files.require_plain(path)
            content = path.read_bytes()
            if digest in (None, files.digest(content)):
                with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                    return Evidence.of(arrays)
        except Exception:  # a damaged file can raise errors of zipfile, zlib or NumPy
            pass
        files.warn_once(
            "%s is damaged and left out, with all that it would tell; restore it from a copy of the run", path
        )
    return None


def _name(split: str, line: str, copy: str) -> str:
    return f"evidence-{split}-{line}-{copy}.npz"
