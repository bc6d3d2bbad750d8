"""Ensembles of nets on the same images: the prediction of each net, and the features of the first."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dmt.data import set_pictures
from dmt.data.set_pictures import Images
from dmt.tasks.base import Task, View
from dmt.training import inference
from dmt.types import ProgressCallback


@dataclass(frozen=True)
class Ensemble:
    """One or two nets, on the device and in eval mode, with the task they were trained for.

    Attributes:
        task: the task as the nets see it: with images, or with the stored features of a frozen encoder.
        names: names of the nets, for people.
        pictures: the task with images, if ``task`` has stored features.
    """

    task: Task
    nets: tuple[nn.Module, ...]
    names: tuple[str, ...]
    device: torch.device
    pictures: Task | None = None

    @property
    def pictured(self) -> Task:
        """The task with images, never with stored features."""
        return self.pictures or self.task

    def predictions(self, images: Images, on_progress: ProgressCallback | None = None) -> Iterator[tuple[View, Tensor]]:
        """Yield each batch of images with the probabilities of all nets, (nets, n, C, *S) float32.

        Args:
            images: images of the task.
            on_progress: is called with the number of images done, and of all.
        """
        passes = [inference.logits(net, self.task, images, self.device) for net in self.nets]
        done = 0
        for outputs in zip(*passes, strict=True):
            view = outputs[0][0]
            yield view, torch.stack([logits.softmax(1) for _, logits in outputs])
            done += len(view.positions)
            if on_progress is not None:
                on_progress(done, len(images))

    def features(self, images: Images, on_progress: ProgressCallback | None = None) -> Tensor:
        """Return features of images, (N, D) on the host: the input of the first net's last layer, averaged over pixels.

        If the last layer cannot be found, they are thumbnails of the images instead.
        """
        layer = last_layer(self.nets[0], len(self.task.classes))
        if layer is None:
            return set_pictures.thumbnails(images)
        seen: list[Tensor] = []
        parts: list[tuple[Tensor, Tensor]] = []
        hook = layer.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
        try:
            for view, _ in inference.logits(self.nets[0], self.task, images, self.device):
                last = seen[-1].float()
                parts.append((view.positions, (last if last.dim() == 2 else last.flatten(2).mean(2)).cpu()))
                seen.clear()
                if on_progress is not None:
                    on_progress(sum(len(positions) for positions, _ in parts), len(images))
        finally:
            hook.remove()
        return _ordered(parts) if parts else torch.zeros(0, 1)


def last_layer(net: nn.Module, classes: int) -> nn.Module | None:
    """Return the last linear or convolutional layer of a net with one output per class, or None."""
    found = None
    for module in net.modules():
        wide = getattr(module, "out_features", None) if isinstance(module, nn.Linear) else None
        wide = module.out_channels if isinstance(module, nn.Conv2d) else wide
        found = module if wide == classes else found
    return found


def _ordered(parts: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Return rows in the order of their positions: images of different sizes are not batched as they are stored."""
    positions = torch.cat([each for each, _ in parts])
    return torch.cat([each for _, each in parts])[positions.argsort()]
