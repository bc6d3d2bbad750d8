"""What to label next: images that the nets are unsure of or disagree about, and that differ from each other."""

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
"""Of so many times the images asked for, the ones most worth a label, the list is chosen."""

FEWEST, MOST = 1000, 5000
"""But never of fewer, nor of more unless more are asked for: each one chosen is compared with all of them."""

EVEN, FLOOR = 2.0, 5
"""A class may have so many times its even part of the list, and so many images in any case."""


@dataclass(frozen=True)
class Candidate:
    """An unlabeled image worth a label.

    Attributes:
        position, file: of the image in the unlabeled set.
        label: the class it would get now; of pixels, the class it is most about among those in doubt.
        doubt: how unsure the nets are in all, in [0, 1].
        disagreement: the part of that which comes from contradicting each other.
        nets: each net's label and confidence; of pixels, IGNORE and the mean confidence.
        sure: the probability of that class in the mean over nets; of pixels, of the class that each would get.
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
    """What an ensemble says of all images: of images of one label (N,) each, of pixels means over them.

    Attributes:
        shares: (N, C) what is in doubt, by the class it would get.
        says, confidence: (N, nets) each net's label, of pixels IGNORE, and confidence.
        sure: (N,) confidence of the nets in their mean.
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
        """(N,) the class that stands out in what is in doubt. Nearly every picture has doubt about background."""
        return (self.shares / self.shares.mean(0).clamp(min=1e-12)).argmax(1)


def choose(ensemble: Ensemble, count: int, on_progress: ProgressCallback | None = None) -> list[Candidate]:
    """Up to ``count`` unlabeled images, the one to label first at the head."""
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
    """Doubt and disagreement about every image."""
    parts = [
        (view.positions, _read(ensemble, images, view, said))
        for view, said in ensemble.predictions(images, on_progress)
    ]
    order = torch.cat([positions for positions, _ in parts]).argsort()
    columns = zip(*(part for _, part in parts), strict=True)
    return Reading(*(torch.cat(column)[order] for column in columns))


def _read(ensemble: Ensemble, images: Images, view: View, probabilities: Tensor) -> tuple[Tensor, ...]:
    """The columns of a reading for one batch, on the host."""
    where = set_pictures.inside(images, view.positions, view.images).float()  # (n, *S)
    count = where.flatten(1).sum(1) if where.dim() > 1 else where

    def mean(values: Tensor) -> Tensor:  # (n, *S) to (n,)
        return (values * where).flatten(1).sum(1) / count if where.dim() > 1 else values

    doubt = disagreement.doubt(probabilities)
    best, says = probabilities.max(2)  # (nets, n, *S)
    sure, label = probabilities.mean(0).max(1)  # (n, *S)
    some = doubt.clamp(min=1e-9)  # so that an image without any doubt has a class too
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
    """Features of length 1: what a net sees counts, not how much of it."""
    result: np.ndarray = (features / features.norm(dim=1, keepdim=True).clamp(min=1e-12)).numpy()
    return result
