"""Pictures for the gallery, for segmentation: an image, the mask in question, the prediction, and where they differ."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dmt.auditing.ensembles import Ensemble
from dmt.auditing.suspects import LabelCheck
from dmt.core import disagreement
from dmt.data import set_pictures
from dmt.data.set_pictures import Images
from dmt.types import ProgressCallback


@dataclass(frozen=True)
class MaskPictures:
    """One image and its maps, all of the same size.

    Attributes:
        image: (H, W, 3) uint8.
        suggested: (H, W) uint8, the prediction of the nets.
        heat: (H, W) float32 in [0, 1], how much a pixel deserves a look.
        given: (H, W) uint8, the mask in question, 255 where it has no label; None if there is no mask.
    """

    image: np.ndarray
    suggested: np.ndarray
    heat: np.ndarray
    given: np.ndarray | None = None


def of_labels(
    check: LabelCheck, places: Iterable[int], bars: Tensor, on_progress: ProgressCallback | None = None
) -> dict[int, MaskPictures]:
    """Return pictures of judged labels by place; heat is the margin by which a suspicious label loses, else 0."""
    few = check.only(places)
    found = {}
    for view, probabilities, given in few.predictions(on_progress):
        judgment = few.judge(probabilities, given, bars)
        planes = (probabilities.mean(0).argmax(1), judgment.margin.where(judgment.suspicious, 0.0), given)
        suggested, heat, labels = (plane.cpu() for plane in planes)
        for row, position in enumerate(view.positions.tolist()):
            image = set_pictures.picture(few.images, position)
            height, width = image.shape[:2]
            found[int(few.places[position])] = MaskPictures(
                image,
                suggested[row, :height, :width].to(torch.uint8).numpy(),
                heat[row, :height, :width].numpy(),
                labels[row, :height, :width].to(torch.uint8).numpy(),  # IGNORE, -1, becomes 255
            )
    return found


def of_doubt(
    ensemble: Ensemble, images: Images, places: list[int], on_progress: ProgressCallback | None = None
) -> dict[int, MaskPictures]:
    """Return pictures of unlabeled images by place; heat is the uncertainty of the nets."""
    few = images.take(torch.tensor(places, dtype=torch.int64))
    found = {}
    for view, probabilities in ensemble.predictions(few, on_progress):
        suggested, heat = probabilities.mean(0).argmax(1).cpu(), disagreement.doubt(probabilities).cpu()
        for row, position in enumerate(view.positions.tolist()):
            image = set_pictures.picture(few, position)
            height, width = image.shape[:2]
            plane = suggested[row, :height, :width].to(torch.uint8).numpy()
            found[places[position]] = MaskPictures(image, plane, heat[row, :height, :width].numpy())
    return found
