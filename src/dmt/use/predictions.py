"""Predictions for all images that were named, written as a table, as masks or as shards, with progress shown."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from dmt.data.folders import photo_files
from dmt.data.folders.contents import Photo
from dmt.runs import progress
from dmt.runs.progress import Watcher
from dmt.use import predict, predict_inputs, predict_masks, predict_shards
from dmt.use.predict import Prediction
from dmt.use.predict_inputs import Inputs, Skipped
from dmt.use.scoring import Shipped


@dataclass(frozen=True)
class Predictions:
    """Predictions to be made; each method makes them, writes them, and returns their number.

    Attributes:
        shipped: the net or nets.
        inputs: the images.
        skipped: is told which of them cannot be read.
        force: whether files of other kinds may be overwritten, and masks of an earlier call replaced.
    """

    shipped: Shipped
    inputs: Inputs
    skipped: Skipped
    force: bool = False

    def to_table(self, path: Path) -> int:
        """Write the classes of images as a CSV."""
        with progress.default() as watcher:
            return predict.write_csv(self._classes(watcher), path, inputs=self.inputs.here, force=self.force)

    def to_masks(self, folder: Path) -> int:
        """Write masks, overlays, a legend and a table to a folder."""
        with progress.default() as watcher:
            tell, below = partial(self._tell, watcher), self.inputs.folders
            return predict_masks.write(self.shipped, self._planes(), folder, tell, folders=below, force=self.force)

    def to_mask(self, path: Path) -> int:
        """Write the mask of a single image to a file."""
        return predict_masks.write_one(self.shipped, self._planes(), path, force=self.force)

    def to_shards(self, pattern: Path) -> int:
        """Write classes or masks as shards."""
        if self.shipped.spec.pixels:
            planes = predict_inputs.begun(self._planes())
            predict_masks.write_legend(self.shipped, pattern.parent, force=self.force)
            return predict_shards.write(predict_masks.samples(self.shipped, planes), pattern, force=self.force)
        with progress.default() as watcher:
            found = self._classes(watcher, whole=True)
            samples = (predict_shards.sample(each, self.shipped.classes) for each in found)
            return predict_shards.write(samples, pattern, force=self.force)

    def _planes(self) -> Iterator[tuple[Photo, np.ndarray]]:
        return predict_inputs.decoded(self.inputs, photo_files.read_photo, self.skipped)

    def _classes(self, watcher: Watcher, *, whole: bool = False) -> Iterator[Prediction]:
        """Yield a prediction for each image, with the probabilities of all classes if ``whole``."""
        read = partial(predict.read, shape=self.shipped.spec.shape)
        squares, expected = predict_inputs.decoded(self.inputs, read, self.skipped), len(self.inputs.files)
        net, classes = self.shipped.net, self.shipped.classes
        said = predict.predict(net, squares, classes, whole=whole, expected=expected)
        return _told(said, partial(self._tell, watcher))

    def _tell(self, watcher: Watcher, done: int) -> None:
        """Report progress; how many images shards hold is not known in advance."""
        watcher.busy("predicting", done, done if self.inputs.shards else len(self.inputs.files))


def _told(found: Iterable[Prediction], tell: Callable[[int], None]) -> Iterator[Prediction]:
    """Yield the predictions unchanged, and report after each how many there were."""
    for number, each in enumerate(found, start=1):
        yield each
        tell(number)
