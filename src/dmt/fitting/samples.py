"""Pictures of a few unlabeled images for the report, the same in every round, with labels, weights and predictions.

The task defines their number, which is zero for classification.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn

from dmt import files, pictures
from dmt.core import codes, streams
from dmt.data.audits import Audit
from dmt.data.pixels import palettes
from dmt.data.sets import PseudoLabels
from dmt.fitting import assessment
from dmt.pseudo.pixel_store import name_of
from dmt.tasks.base import Task
from dmt.training import inference
from dmt.training.trainer import Trainer


def chosen(task: Task) -> torch.Tensor:
    """Return the positions of the samples in the unlabeled set."""
    order = streams.stream("samples").permutation(len(task.unlabeled))[: task.samples]
    return torch.from_numpy(np.sort(order))


def write_images(folder: Path, task: Task, audit: Audit[Any]) -> None:
    """Write the images and, for the report only, their true masks if they are known."""
    positions = chosen(task).tolist()
    kinds = ("image", "truth") if audit.known else ("image",)
    if all(len(list(folder.glob(f"*-{kind}.png"))) == len(positions) for kind in kinds):
        return
    for position in positions:
        name = name_of(position, task.unlabeled.ids[position])
        mask = audit.mask(position)
        if mask is not None:
            _save(folder / f"{name}-truth.png", palettes.indexed(mask.numpy(), task.colors))
        _save(folder / f"{name}-image.png", Image.fromarray(task.unlabeled.images.image(position).numpy()))


def write_round(folder: Path, trainer: Trainer, task: Task, pseudo: PseudoLabels[Any]) -> None:
    """Write for each sample its kept labels in colors, and confidence and the finished student's weights in gray."""
    samples = chosen(task)
    if not len(samples):
        return
    for each in assessment.weighed(trainer, task, pseudo, samples):
        for row, position in enumerate(each.positions.tolist()):
            name = name_of(position, task.unlabeled.ids[position])
            kept = pseudo.labels.image(position).numpy()
            height, width = kept.shape
            weight = each.weights[row, :height, :width].cpu()
            _save(folder / f"{name}-label.png", palettes.indexed(kept, task.colors))
            _save(folder / f"{name}-confidence.png", _gray(codes.decode(pseudo.confidence.image(position))))
            _save(folder / f"{name}-weight.png", _gray(weight))


def write_prediction(folder: Path, net: nn.Module, task: Task, device: torch.device) -> None:
    """Write a net's prediction for each sample, in the colors of the classes."""
    positions = chosen(task)
    if not len(positions):
        return
    for view, logits in inference.logits(net, task, task.unlabeled.take(positions), device):
        said = logits.argmax(1).to(torch.uint8).cpu()  # (n, H, W), padded at the bottom and right
        for row, position in enumerate(positions[view.positions].tolist()):
            name = name_of(position, task.unlabeled.ids[position])
            height, width = task.unlabeled.images.sizes[position]
            _save(folder / f"{name}-said.png", palettes.indexed(said[row, :height, :width].numpy(), task.colors))


def _gray(values: torch.Tensor) -> Image.Image:
    return Image.fromarray((values.float() * 255).round().to(torch.uint8).numpy())


def _save(path: Path, image: Image.Image) -> None:
    files.write(path, pictures.encode(image))
