"""A cache of arrays that can be recomputed, and are if the cached ones are damaged or belong to other data."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dmt import files
from dmt.errors import RunError

Arrays = dict[str, npt.NDArray[Any]]


def load(file: Path, seal: str) -> tuple[Arrays, tuple[str, ...]] | None:
    """Return the arrays and lines cached under this seal, or None if there are none or they are damaged.

    With several processes, each has a folder of its own inside the first one's cache. So ``file`` is looked for in the
    parent folder too: what the first process cached serves all of them.

    Args:
        seal: identifies what the arrays were computed from.
    """
    for place in (file, file.parent.parent / file.name):
        try:
            about = files.read_json(place.with_suffix(".json"))
            files.require_digest(place, about["digest"], "")
            if about["seal"] == seal:
                held = {name: tensor.numpy() for name, tensor in files.read_tensors(place).items()}
                return held, tuple(map(str, about["lines"]))
        except (RunError, KeyError, TypeError):
            continue
    return None


def save(file: Path, seal: str, arrays: Mapping[str, npt.NDArray[Any]], lines: Sequence[str]) -> None:
    """Cache arrays and lines. The JSON file beside them, which holds their digest, is written last."""
    tensors = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
    digest = files.write_tensors(file, tensors)
    files.write_json(file.with_suffix(".json"), {"seal": seal, "digest": digest, "lines": list(lines)})
