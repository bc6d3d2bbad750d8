"""Arrays in a cache: they can be made again, and are if they are of something else or not what was written."""

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
    """Arrays and lines that were kept under this seal; None if there are none, or they are damaged.

    Of several processes each has a folder of its own in the cache of the first, whose arrays serve all of them.
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
    """Keep them; the file beside, which vouches for them, is written last."""
    tensors = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
    digest = files.write_tensors(file, tensors)
    files.write_json(file.with_suffix(".json"), {"seal": seal, "digest": digest, "lines": list(lines)})
