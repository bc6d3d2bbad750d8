"""A few unlabeled images as pictures, the same in every round: their labels, how these count, what came of them."""

import io
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

from dmt import files
from dmt.core import codes, streams
from dmt.data.pixels.pixel_audit import PixelAudit
from dmt.data.ragged import Ragged
from dmt.fitting import assessment
from dmt.pseudo.pixel_store import name_of
from dmt.tasks.base import Task
from dmt.training import inference
from dmt.training.trainer import Trainer

COUNT = 8
PALE = (224, 224, 224)
"""The color of pixels without a label."""


def chosen(task: Task) -> torch.Tensor:
    """Positions of the samples in the unlabeled set."""
    order = streams.stream("samples").permutation(len(task.unlabeled))[:COUNT]
    return torch.from_numpy(np.sort(order))


def write_images(folder: Path, task: Task, audit: PixelAudit) -> None:
    """The images and, for the report alone, their masks."""
    positions = chosen(task).tolist()
    kinds = ("image",) if audit.mask(0) is None else ("image", "truth")
    if all(len(list(folder.glob(f"*-{kind}.png"))) == len(positions) for kind in kinds):
        return
    for position in positions:
        name = name_of(position, task.unlabeled.ids[position])
        mask = audit.mask(position)
        if mask is not None:
            _save(folder / f"{name}-truth.png", indexed(mask.numpy(), task.colors))
        _save(folder / f"{name}-image.png", Image.fromarray(task.unlabeled.images.image(position).numpy()))


def write_round(folder: Path, trainer: Trainer, task: Task, planes: tuple[Ragged, Ragged]) -> None:
    """Of each sample: kept labels in colors, confidence and the finished student's weight in gray."""
    labels, confidence = planes
    for positions, _, weights in assessment.weighed(trainer, task, planes, chosen(task)):
        for row, position in enumerate(positions.tolist()):
            name = name_of(position, task.unlabeled.ids[position])
            kept = labels.image(position).numpy()
            height, width = kept.shape
            weight = weights[row, :height, :width].cpu()
            _save(folder / f"{name}-label.png", indexed(kept, task.colors))
            _save(folder / f"{name}-confidence.png", _gray(codes.decode(confidence.image(position))))
            _save(folder / f"{name}-weight.png", _gray(weight))


def write_prediction(folder: Path, net: nn.Module, task: Task, device: torch.device) -> None:
    """What a stage's net says of each sample, in the colors of the classes."""
    positions = chosen(task)
    if not len(positions):
        return
    for view, logits in inference.logits(net, task, task.unlabeled.take(positions), device):
        said = logits.argmax(1).to(torch.uint8).cpu()  # (n, H, W), padded at the bottom and right
        for row, position in enumerate(positions[view.positions].tolist()):
            name = name_of(position, task.unlabeled.ids[position])
            height, width = task.unlabeled.images.sizes[position]
            _save(folder / f"{name}-said.png", indexed(said[row, :height, :width].numpy(), task.colors))


def indexed(labels: np.ndarray, palette: tuple[tuple[int, int, int], ...]) -> Image.Image:
    """Labels (H, W) uint8 as an image in the colors of their classes; 255 is nearly white."""
    image = Image.fromarray(labels)
    image.putpalette(colors(palette))
    return image


def colors(palette: tuple[tuple[int, int, int], ...]) -> list[int]:
    """768 numbers: the classes' colors, black where there are no more classes, and nearly white for 255."""
    rows = [*palette[:255], *[(0, 0, 0)] * (255 - len(palette[:255])), PALE]
    return [number for row in rows for number in row]


def _gray(values: torch.Tensor) -> Image.Image:
    return Image.fromarray((values.float() * 255).round().to(torch.uint8).numpy())


def _save(path: Path, image: Image.Image) -> None:
    content = io.BytesIO()
    image.save(content, "PNG")
    files.write(path, content.getvalue())
