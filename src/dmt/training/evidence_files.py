"""What the nets of a stage said of every image, in files beside its journal."""

import io
import zipfile
from pathlib import Path

import numpy as np

from dmt import files
from dmt.core.evidence import Evidence


def write(place: Path, split: str, copy: str, evidence: Evidence) -> None:
    """``place`` is the stage's folder."""
    content = io.BytesIO()
    np.savez_compressed(content, **evidence.arrays())  # type: ignore[arg-type]
    files.write(_path(place, split, copy), content.getvalue())


def read(place: Path, split: str, copy: str) -> Evidence | None:
    """None where there is none: of a stage that is not finished, or was made before evidence was kept."""
    try:
        with np.load(_path(place, split, copy), allow_pickle=False) as arrays:
            return Evidence.of(arrays)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None


def _path(place: Path, split: str, copy: str) -> Path:
    return place / f"evidence-{split}-{copy}.npz"
