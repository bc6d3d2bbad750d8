"""Predictions as shards: tar files that hold the prediction for each image under the name of the image."""

import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from dmt import files, outputs
from dmt.data.folders import tar_places
from dmt.errors import ConfigError
from dmt.use.predict import Prediction

PATTERN = "pred-%06d.tar"
IMAGES = 10_000
"""Number of predictions in a shard."""

Sample = tuple[str, Mapping[str, bytes]]
"""Name of an image without its ending, and the files to store under this name, by ending."""


def pattern(out: Path, asked: bool) -> Path | None:
    """Return how shards are to be named, with a place for their number; None if none were asked for."""
    if not asked and not (out.suffix == ".tar" and "%" in out.name):
        return None
    found = out if out.suffix == ".tar" else out / PATTERN
    try:
        if found.name % 0 == found.name % 1:
            raise ValueError
    except (TypeError, ValueError):
        raise ConfigError(f"{found} does not say where the number of a shard goes; give --out {PATTERN}") from None
    return found


def sample(prediction: Prediction, classes: tuple[str, ...]) -> Sample:
    """Return a prediction as a sample: the number of the class, and everything that is known as JSON."""
    told = {
        "class": prediction.label,
        "probability": round(prediction.probability, 6),
        "margin": round(prediction.margin, 6),
        "probabilities": [round(each, 6) for each in prediction.probabilities],
    }
    number = str(classes.index(prediction.label)).encode()
    return key(prediction.name), {"cls": number, "json": json.dumps(told, ensure_ascii=False).encode()}


def key(name: str) -> str:
    """Return a name without its ending and without leading slashes, which no tar file should hold."""
    folder, slash, last = name.lstrip("/").rpartition("/")
    return f"{folder}{slash}{last.rpartition('.')[0] or last}"


def write(samples: Iterable[Sample], place: Path, *, force: bool = False) -> int:
    """Write predictions to shards, each of which is complete or absent, and return the number of predictions.

    Args:
        samples: the predictions.
        place: path of the shards, with a place for their number in the name, as `pattern` returns it.
        force: overwrite existing shards.
    """
    library = tar_places.webdataset("writing shards")
    outputs.require_new(place.with_name(place.name % 0), force=force)
    count = 0
    with ExitStack() as room:  # holds the shard that is being written

        def opened(name: str) -> IO[bytes]:
            return room.enter_context(files.writing(Path(name)))

        told = {"mtime": 0, "user": "", "group": "", "format": "PAX_FORMAT", "encoder": False, "verbose": 0}
        writer = library.ShardWriter(
            str(place.parent).replace("%", "%%") + "/" + place.name,
            maxcount=IMAGES,
            opener=opened,
            post=lambda name: room.close(),
            **told,
        )
        for count, (name, beside) in enumerate(samples, start=1):  # noqa: B007
            writer.write({"__key__": name, **beside})
        writer.close()
    return count
