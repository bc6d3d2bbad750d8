"""Classification data sets known by name: their properties, and how to read them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from dmt.data.images import cifar, embedded
from dmt.data.sets import LabeledSet
from dmt.types import Normalization

Notify = Callable[[str], None]


@dataclass(frozen=True)
class DataSet:
    """Properties of a data set, known without opening it.

    Attributes:
        name: as options name it.
        classes: names of the classes, in order.
        train, test: number of images.
        shape: (C, H, W) of every image.
        normalization: used by nets that are trained on it from scratch.
        read: maps (folder, notify) to (train, test).
    """

    name: str
    classes: tuple[str, ...]
    train: int
    test: int
    shape: tuple[int, int, int]
    normalization: Normalization
    read: Callable[[Path, Notify], tuple[LabeledSet[Tensor], LabeledSet[Tensor]]]


def _read_digits(folder: Path, notify: Notify) -> tuple[LabeledSet[Tensor], LabeledSet[Tensor]]:
    return embedded.digits()


def _read_cifar10(folder: Path, notify: Notify) -> tuple[LabeledSet[Tensor], LabeledSet[Tensor]]:
    raw = cifar.open_or_download(folder, notify)
    train = tuple(f"train-{n:05d}" for n in range(len(raw.train_labels)))
    test = tuple(f"test-{n:05d}" for n in range(len(raw.test_labels)))
    return (
        LabeledSet(train, raw.train_images, raw.train_labels),
        LabeledSet(test, raw.test_images, raw.test_labels),
    )


DATASETS: dict[str, DataSet] = {
    each.name: each
    for each in (
        DataSet(
            name="digits",
            classes=tuple("0123456789"),
            train=1397,
            test=embedded.TEST,
            shape=(1, 8, 8),
            normalization=Normalization((0.305,), (0.376,)),
            read=_read_digits,
        ),
        DataSet(
            name="cifar10",
            classes=cifar.CLASSES,
            train=50_000,
            test=10_000,
            shape=(3, 32, 32),
            normalization=Normalization((0.49137, 0.48235, 0.44667), (0.24706, 0.24353, 0.26157)),
            read=_read_cifar10,
        ),
    )
}
