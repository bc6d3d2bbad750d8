"""Nets that look at the same images together: what each of them says, and what they see."""

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
    """One or two nets, on the device, in eval mode, beside the task whose images they know.

    Attributes:
        names: of the nets, for people.
        pictures: the task in images, if these nets know it by features.
    """

    task: Task
    nets: tuple[nn.Module, ...]
    names: tuple[str, ...]
    device: torch.device
    pictures: Task | None = None

    @property
    def pictured(self) -> Task:
        """The task in images."""
        return self.pictures or self.task

    def predictions(self, images: Images, on_progress: ProgressCallback | None = None) -> Iterator[tuple[View, Tensor]]:
        """Batch by batch: the images, and probabilities (nets, n, C, *S) float32.

        Args:
            on_progress: hears how many images are done.
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
        """(N, D) on the host: what goes into the last layer of the first net, in the mean over a picture.

        Of a net whose last layer cannot be found, it is small copies of the images themselves.
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
    """The last linear or convolutional layer of a net that gives a number for each class."""
    found = None
    for module in net.modules():
        wide = getattr(module, "out_features", None) if isinstance(module, nn.Linear) else None
        wide = module.out_channels if isinstance(module, nn.Conv2d) else wide
        found = module if wide == classes else found
    return found


def _ordered(parts: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Rows by their positions: images of many sizes come in another order than they are stored in."""
    positions = torch.cat([each for each, _ in parts])
    return torch.cat([each for _, each in parts])[positions.argsort()]
