"""Nets that look at the same images together: what each of them says, and what they see."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from dmt.data.ragged import Ragged
from dmt.data.sets import LabeledSet, UnlabeledSet
from dmt.tasks.base import Task, View
from dmt.training import inference
from dmt.types import ProgressCallback

Images = UnlabeledSet[Any] | LabeledSet[Any]


@dataclass(frozen=True)
class Ensemble:
    """One or two nets, on the device, in eval mode, beside the task whose images they know.

    Attributes:
        names: of the nets, for people.
    """

    task: Task
    nets: tuple[nn.Module, ...]
    names: tuple[str, ...]
    device: torch.device

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
            return thumbnails(images)
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


def thumbnails(images: Images, side: int = 16) -> Tensor:
    """(N, C · side²) small copies of all images in [0, 1], by which copies of one picture are known."""

    def small(planes: Tensor) -> Tensor:  # (n, C, H, W)
        size = (side, side)
        return nn.functional.interpolate(planes.float() / 255.0, size, mode="area").flatten(1)

    held = images.images
    if isinstance(held, Ragged):
        each = [small(held.image(position).permute(2, 0, 1)[None]) for position in range(len(images))]
        return torch.cat(each) if each else torch.zeros(0, 1)
    return torch.cat([small(part) for part in held.split(1000)]) if len(images) else torch.zeros(0, 1)


def inside(images: Images, view: View) -> Tensor:
    """(n, *S) bool, on the device: where a view shows its images, and not what they are padded with."""
    if not isinstance(images.images, Ragged):
        return torch.ones(len(view.positions), dtype=torch.bool, device=view.images.device)
    height, width = view.images.shape[-2:]
    heights, widths = (
        each[view.positions].to(view.images.device) for each in (images.images.heights, images.images.widths)
    )
    rows, columns = (torch.arange(size, device=view.images.device) for size in (height, width))
    return (rows < heights[:, None])[:, :, None] & (columns < widths[:, None])[:, None, :]


def _ordered(parts: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Rows by their positions: images of many sizes come in another order than they are stored in."""
    positions = torch.cat([each for each, _ in parts])
    return torch.cat([each for _, each in parts])[positions.argsort()]
