"""Images to label next: those that the nets are uncertain of or disagree about, and that differ from each other."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dmt.auditing.ensembles import Ensemble
from dmt.core import disagreement, diverse
from dmt.core.diverse import Pool
from dmt.data import set_pictures
from dmt.data.set_pictures import Images
from dmt.tasks.base import View
from dmt.types import IGNORE, ProgressCallback

POOL = 20
"""The list is chosen from the most uncertain images: this many times as many as are asked for."""

FEWEST, MOST = 1000, 5000
"""Bounds of that number; the upper one, since each chosen image is compared with all, gives way to a longer list."""

EVEN, FLOOR = 2.0, 5
"""A class may take this many times its equal share of the list, and this many images in any case."""


@dataclass(frozen=True)
class Candidate:
    """An unlabeled image that is worth labeling.

    Attributes:
        position, file: position and id of the image in the unlabeled set.
        label: the class it would get now; for segmentation, the class that stands out among the uncertain pixels.
        doubt: total uncertainty of the nets, in [0, 1].
        disagreement: the part of it that comes from the nets contradicting each other.
        nets: label and confidence of each net; for segmentation, IGNORE and the mean confidence.
        sure: probability of the predicted class, averaged over nets; for segmentation, also over pixels.
    """

    position: int
    file: str
    label: int
    doubt: float
    disagreement: float
    nets: tuple[tuple[int, float], ...]
    sure: float


@dataclass(frozen=True)
class Reading:
    """Predictions of an ensemble for all images; for segmentation, means over the pixels of each image.

    Attributes:
        doubt, disagreement: (N,) total uncertainty, and the part of it that is disagreement.
        shares: (N, C) the uncertainty by predicted class.
        says, confidence: (N, nets) label (IGNORE for segmentation) and confidence of each net.
        sure: (N,) confidence of the mean of the nets.
    """

    doubt: Tensor
    disagreement: Tensor
    shares: Tensor
    says: Tensor
    confidence: Tensor
    sure: Tensor

    def take(self, positions: Tensor) -> "Reading":
        every = (self.doubt, self.disagreement, self.shares, self.says, self.confidence, self.sure)
        return Reading(*(each[positions] for each in every))

    def kinds(self) -> Tensor:
        """Return the class that stands out in each image's uncertainty, (N,).

        It is relative to the mean over images, since nearly every image has uncertain background pixels.
        """
        return (self.shares / self.shares.mean(0).clamp(min=1e-12)).argmax(1)


def choose(ensemble: Ensemble, count: int, on_progress: ProgressCallback | None = None) -> list[Candidate]:
    """Return up to ``count`` unlabeled images, the one to label first at the head."""
    images, classes = ensemble.task.unlabeled, len(ensemble.task.classes)
    if not len(images):
        return []
    reading = read(ensemble, images, on_progress)
    most_doubted = max(FEWEST, count, min(POOL * count, MOST))
    best = reading.doubt.argsort(descending=True, stable=True)[:most_doubted]
    few, kept = images.take(best), reading.take(best)
    kinds = kept.kinds()
    pool = Pool(
        worth=kept.doubt.numpy(),
        features=_unit(ensemble.features(few, on_progress)),
        thumbnails=set_pictures.thumbnails(ensemble.pictured.unlabeled.take(best)).numpy(),
        kinds=kinds.numpy(),
    )
    most = max(FLOOR, int(np.ceil(EVEN * count / classes)))
    return [_candidate(few, best, kept, kinds, row) for row in diverse.choose(pool, count, most)]


def read(ensemble: Ensemble, images: Images, on_progress: ProgressCallback | None = None) -> Reading:
    """Return the predictions of an ensemble for all images, with its uncertainty and disagreement."""
    parts = [
        (view.positions, _read(ensemble, images, view, said))
        for view, said in ensemble.predictions(images, on_progress)
    ]
    order = torch.cat([positions for positions, _ in parts]).argsort()
    columns = zip(*(part for _, part in parts), strict=True)
    return Reading(*(torch.cat(column)[order] for column in columns))


def _read(ensemble: Ensemble, images: Images, view: View, probabilities: Tensor) -> tuple[Tensor, ...]:
    """Return the columns of a `Reading` for one batch, on the host."""
    where = set_pictures.inside(images, view.positions, view.images).float()  # (n, *S)
    count = where.flatten(1).sum(1) if where.dim() > 1 else where

    def mean(values: Tensor) -> Tensor:  # (n, *S) to (n,)
        return (values * where).flatten(1).sum(1) / count if where.dim() > 1 else values

    doubt = disagreement.doubt(probabilities)
    best, says = probabilities.max(2)  # (nets, n, *S)
    sure, label = probabilities.mean(0).max(1)  # (n, *S)
    some = doubt.clamp(min=1e-9)  # so that an image without any uncertainty gets a class too
    shares = torch.stack([mean(some * (label == number)) for number in range(len(ensemble.task.classes))], 1)
    confidence = torch.stack([mean(each) for each in best], 1)
    named = says.T if says.dim() == 2 else torch.full_like(confidence, IGNORE, dtype=torch.int64)
    columns = (mean(doubt), mean(disagreement.disagreement(probabilities)), shares, named, confidence, mean(sure))
    return tuple(each.cpu() for each in columns)


def _candidate(images: Images, places: Tensor, reading: Reading, kinds: Tensor, row: int) -> Candidate:
    return Candidate(
        position=int(places[row]),
        file=images.ids[row],
        label=int(kinds[row]),
        doubt=float(reading.doubt[row]),
        disagreement=float(reading.disagreement[row]),
        nets=tuple(zip(reading.says[row].tolist(), reading.confidence[row].tolist(), strict=True)),
        sure=float(reading.sure[row]),
    )


def _unit(features: Tensor) -> np.ndarray:
    """Return features scaled to length 1, so that only their direction counts."""
    result: np.ndarray = (features / features.norm(dim=1, keepdim=True).clamp(min=1e-12)).numpy()
    return result
