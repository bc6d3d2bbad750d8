"""Images to label in Label Studio, with the prediction of the nets as a first annotation to accept or correct.

Images are referenced by their paths below a folder that Label Studio serves, ``/data/local-files/?d=<path>``.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import numpy as np
from PIL import Image

from dmt.core import rle
from dmt.data.folders.photo_files import shown

SERVED = "/data/local-files/?d="


@dataclass(frozen=True)
class LabelingTask:
    """An image to label.

    Attributes:
        path: path of its file below the folder that is served.
        label: the predicted class; None for segmentation.
        mask: (H, W) uint8, the predicted class of each pixel; None for classification.
        score: confidence of the nets.
        size: (height, width) of the file, if it differs from the mask's.
        why: names and values that say why the image was chosen, stored in the task's data.
    """

    path: str
    label: int | None
    mask: np.ndarray | None
    score: float
    size: tuple[int, int] | None = None
    why: tuple[tuple[str, str | float], ...] = ()


def tasks(found: Iterable[LabelingTask], classes: Sequence[str], version: str) -> str:
    """Return the import file, as JSON."""
    names = [shown(name) for name in classes]
    return json.dumps([_task(each, names, version) for each in found], ensure_ascii=False) + "\n"


def interface(classes: Sequence[str], palette: Sequence[tuple[int, int, int]], *, pixels: bool) -> str:
    """Return the labeling interface that the import file requires, as XML."""
    kind, item = ("BrushLabels", "Label") if pixels else ("Choices", "Choice")
    items = []
    for number, name in enumerate(classes):
        color = f' background="#{bytes(palette[number]).hex()}"' if number < len(palette) else ""
        items.append(f"    <{item} value={quoteattr(shown(name))}{color if pixels else ''}/>\n")
    single = "" if pixels else ' choice="single" showInLine="true"'
    return (
        '<View>\n  <Image name="image" value="$image" zoom="true"/>\n'
        f'  <{kind} name="label" toName="image"{single}>\n{"".join(items)}  </{kind}>\n</View>\n'
    )


def _task(task: LabelingTask, names: Sequence[str], version: str) -> dict[str, Any]:
    result = _strokes(task, names) if task.label is None else [_choice(names[task.label])]
    return {
        "data": {"image": SERVED + quote(task.path), "file": task.path, **dict(task.why)},
        "predictions": [{"model_version": version, "score": round(task.score, 6), "result": result}],
    }


def _choice(name: str) -> dict[str, Any]:
    return {"id": "label", "from_name": "label", "to_name": "image", "type": "choices", "value": {"choices": [name]}}


def _strokes(task: LabelingTask, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return one brush stroke for each class that occurs in the mask."""
    assert task.mask is not None
    height, width = task.size or task.mask.shape
    mask = np.asarray(Image.fromarray(task.mask).resize((width, height), Image.Resampling.NEAREST))
    return [
        {
            "id": f"class{number}",
            "from_name": "label",
            "to_name": "image",
            "type": "brushlabels",
            "original_width": width,
            "original_height": height,
            "image_rotation": 0,
            "value": {"format": "rle", "rle": stroke(mask == number), "brushlabels": [names[number]]},
        }
        for number in np.unique(mask).tolist()
    ]


def stroke(where: np.ndarray) -> list[int]:
    """Encode pixels (H, W) bool as a brush stroke: red, green, blue and opacity of each pixel, 0 or 255, packed."""
    return list(rle.encode(np.repeat(np.where(where, np.uint8(255), np.uint8(0)).ravel(), 4)))


def unstroke(packed: Sequence[int], size: tuple[int, int]) -> np.ndarray:
    """Decode a brush stroke, of ours or of Label Studio's, to pixels (H, W) bool."""
    opacity: np.ndarray = rle.decode(bytes(packed)).reshape(*size, 4)[..., 3]
    return opacity > 0
