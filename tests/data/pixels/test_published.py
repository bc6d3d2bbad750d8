import hashlib
from pathlib import Path

import pytest

from dmt.data.pixels import published
from dmt.errors import ConfigError

# beginning and end of the MD5 of the published lists of labeled images, splits 0, 1, 2
SUMS = {
    ("voc", "8"): ("4f59dc29…bc05", "5d04d9ec…6b6e", "1da63f52…448a"),
    ("voc", "20"): ("c9016649…401b", "144dd8dc…cd63", "277f91a5…205d"),
    ("voc", "50"): ("1ce19ed7…d310", "a694f929…acc4", "6355f1be…2bbb"),
    ("voc", "106"): ("c71dd7e5…b22d", "7490598b…fd45", "65d500ee…0e2e"),
    ("cityscapes", "8"): ("ffa45f97…8cea", "684666fc…5255", "6dfecb79…9162"),
    ("cityscapes", "30"): ("0c878b35…f142", "a0ed923f…800f", "1c268616…c952"),
}
COUNTS = {
    "voc": {"2": 5291, "4": 2645, "8": 1322, "20": 530, "50": 211, "106": 100, "sbd": 1464},
    "cityscapes": {"2": 1487, "4": 743, "8": 371, "20": 148, "30": 100},
}
TOTAL = {"voc": 10_582, "cityscapes": 2_975}


def test_the_official_lists() -> None:
    sizes = {"voc_trainaug": 10_582, "voc_train": 1_464, "voc_val": 1_449, "cityscapes_train": 2_975}
    for name, size in sizes.items():
        ids = published.ids(name)
        assert len(set(ids)) == len(ids) == size
        assert list(ids) == sorted(ids)
    assert set(published.ids("voc_train")) < set(published.ids("voc_trainaug"))
    assert not set(published.ids("voc_val")) & set(published.ids("voc_trainaug"))


@pytest.mark.parametrize("dataset", ["voc", "cityscapes"])
@pytest.mark.parametrize("split", [0, 1, 2])
def test_written_lists_have_the_published_checksums(tmp_path: Path, dataset: str, split: int) -> None:
    written = published.write(tmp_path, dataset, split)
    assert sorted(written) == sorted(tmp_path.iterdir())
    assert len(written) == 2 * len(COUNTS[dataset])
    for (name, ratio), sums in SUMS.items():
        if name == dataset:
            content = (tmp_path / f"{ratio}_labeled_{split}.txt").read_bytes()
            found = hashlib.md5(content).hexdigest()
            assert f"{found[:8]}…{found[-4:]}" == sums[split]


@pytest.mark.parametrize("dataset", ["voc", "cityscapes"])
def test_labeled_and_unlabeled_are_everything_once(dataset: str) -> None:
    assert published.ratios(dataset) == tuple(COUNTS[dataset])
    for ratio, count in COUNTS[dataset].items():
        labeled, unlabeled = published.labeled_ids(dataset, ratio, split=1)
        assert len(labeled) == count
        assert len(set(labeled) | set(unlabeled)) == len(labeled) + len(unlabeled) == TOTAL[dataset]
    assert set(published.labeled_ids("voc", "sbd")[0]) == set(published.ids("voc_train"))


def test_labels_are_nested_and_splits_differ() -> None:
    few, many = (published.labeled_ids("voc", ratio, split=2)[0] for ratio in ("106", "8"))
    assert few == many[:100]
    assert few != published.labeled_ids("voc", "106", split=0)[0]


@pytest.mark.parametrize(
    ("dataset", "ratio", "split", "message"),
    [
        ("coco", "8", 0, "unknown data set"),
        ("cityscapes", "sbd", 0, "unknown ratio of cityscapes"),
        ("voc", "30", 0, "unknown ratio of voc '30'"),
        ("voc", "8", 3, "choose 0, 1 or 2"),
    ],
)
def test_what_was_not_published_is_refused(dataset: str, ratio: str, split: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        published.labeled_ids(dataset, ratio, split)
