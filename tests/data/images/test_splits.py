import pytest
import torch

from dmt.data.images import splits
from dmt.errors import ConfigError

LABELS = torch.randint(0, 10, (2000,), generator=torch.Generator().manual_seed(0))


def test_parts_are_disjoint_whole_and_balanced() -> None:
    split = splits.draw(LABELS, 10, labeled=100, validation=200, seed=1)
    parts = [split.labeled, split.unlabeled, split.validation]
    assert torch.equal(torch.cat(parts).sort().values, torch.arange(2000))
    assert torch.bincount(LABELS[split.labeled]).tolist() == [10] * 10
    assert torch.bincount(LABELS[split.validation]).tolist() == [20] * 10


def test_validation_is_one_for_all_seeds_and_labels_are_nested() -> None:
    small, large = (splits.draw(LABELS, 10, labeled=count, validation=200, seed=3) for count in (40, 400))
    other = splits.draw(LABELS, 10, labeled=40, validation=200, seed=4)
    assert set(small.labeled.tolist()) < set(large.labeled.tolist())
    assert torch.equal(small.validation, other.validation)
    assert set(small.labeled.tolist()) != set(other.labeled.tolist())
    again = splits.draw(LABELS, 10, labeled=40, validation=200, seed=3)
    assert torch.equal(small.labeled, again.labeled)


def test_carve_depends_on_its_role_alone() -> None:
    rest, carved = splits.carve(LABELS, 10, 300, "test")
    assert torch.equal(torch.cat([rest, carved]).sort().values, torch.arange(2000))
    assert torch.bincount(LABELS[carved]).tolist() == [30] * 10
    assert torch.equal(carved, splits.carve(LABELS, 10, 300, "test")[1])


def test_uneven_or_impossible_counts_are_refused() -> None:
    with pytest.raises(ConfigError, match="multiple of the number of classes"):
        splits.draw(LABELS, 10, labeled=55, validation=0, seed=1)
    with pytest.raises(ConfigError, match="set labels lower"):
        splits.draw(LABELS, 10, labeled=1900, validation=200, seed=1)


def test_wrong_labels_are_as_many_as_asked_for_and_never_right() -> None:
    labels = torch.arange(50) % 5
    wrong = splits.mislabeled(labels, 5, 0.3, seed=1)
    assert int((wrong != labels).sum()) == 15
    assert set(wrong.tolist()) <= set(range(5))
    assert not torch.equal(wrong, splits.mislabeled(labels, 5, 0.3, seed=2))
