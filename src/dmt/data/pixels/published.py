"""The paper's splits of PASCAL VOC and Cityscapes, byte for byte equal to the published lists."""

import gzip
import random
from functools import cache
from importlib import resources
from pathlib import Path

from dmt import files, outputs
from dmt.errors import ConfigError, unknown

RATIOS: dict[str, dict[str, float]] = {
    "voc": {"2": 2, "4": 4, "8": 8, "20": 20, "50": 50, "106": 105.82},
    "cityscapes": {"2": 2, "4": 4, "8": 8, "20": 20, "30": 29.75},
}
"""For each data set, the names of its ratios: ``"8"`` means that one image in 8 is labeled."""

SBD = "sbd"
"""Used in place of a ratio: VOC's own 1,464 training masks are labeled, those added by SBD are not. One split only."""

SPLITS = (0, 1, 2)
_LISTS = {"voc": "voc_trainaug", "cityscapes": "cityscapes_train"}
_SEED = 7777


@cache
def ids(name: str) -> tuple[str, ...]:
    """Return the official list ``voc_trainaug``, ``voc_train``, ``voc_val`` or ``cityscapes_train``, sorted."""
    packed = resources.files("dmt").joinpath("data", "pixels", "ids", f"{name}.txt.gz").read_bytes()
    return tuple(gzip.decompress(packed).decode().split())


def ratios(dataset: str) -> tuple[str, ...]:
    """Return the names of the ratios of a data set."""
    if dataset not in RATIOS:
        raise unknown("data set with published splits", dataset, RATIOS)
    return (*RATIOS[dataset], SBD) if dataset == "voc" else tuple(RATIOS[dataset])


def labeled_ids(dataset: str, ratio: str, split: int = 0) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids (labeled, unlabeled) in the published order.

    Within one split, a smaller labeled set is contained in a larger one.
    """
    if ratio not in (names := ratios(dataset)):
        raise unknown(f"ratio of {dataset}", ratio, names)
    if split not in SPLITS:
        raise ConfigError(f"there is no published split {split}; choose 0, 1 or 2")
    if ratio == SBD:
        labeled = ids("voc_train")
        known = set(labeled)
        return labeled, tuple(each for each in ids("voc_trainaug") if each not in known)
    order = list(ids(_LISTS[dataset]))
    generator = random.Random(_SEED)
    for _ in range(split + 1):  # every split shuffles the order of the split before it
        generator.shuffle(order)
    count = int(len(order) / RATIOS[dataset][ratio])
    count += count % 8 == 1  # so that an epoch of batches of 8 does not end with a single image: 529 became 530
    return tuple(order[:count]), tuple(order[count:])


def write(folder: Path, dataset: str, split: int, *, force: bool = False) -> list[Path]:
    """Write ``<ratio>_labeled_<split>.txt`` and ``<ratio>_unlabeled_<split>.txt`` for every ratio, one id per line.

    Existing files with other content are an error unless ``force``; this is checked before anything is written.
    """
    lists: dict[Path, bytes] = {}
    for ratio in ratios(dataset):
        for kind, names in zip(("labeled", "unlabeled"), labeled_ids(dataset, ratio, split), strict=True):
            lists[folder / f"{ratio}_{kind}_{split}.txt"] = "".join(f"{name}\n" for name in names).encode()
    for path, content in lists.items():
        outputs.require_content(path, content, force=force)
    for path, content in lists.items():
        files.write(path, content)
    return list(lists)
