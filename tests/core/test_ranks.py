import numpy as np
import pytest
import torch

from dmt.core import codes, selection
from dmt.core.ranks import ClassRanks, Selector

FRACTIONS = [0.0, 0.01, 0.2, 0.333, 0.5, 0.8, 0.999, 1.0]
CLASSES = 6  # class 4 is never predicted


def images(levels: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Labels and codes of images of several sizes, the codes spread over the range in few levels."""
    rng = np.random.default_rng(levels)
    sizes = [(3, 5), (40, 31), (1, 1), (25, 25), (17, 60)]
    labels = [rng.choice([0, 0, 0, 1, 2, 3, 5], size).astype(np.uint8) for size in sizes]
    step = (codes.LEVELS - 1) // (levels - 1)
    return [(each, (rng.integers(0, levels, each.shape) * step).astype(np.uint16)) for each in labels]


def tensors(labels: np.ndarray, code: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.from_numpy(labels), codes.pack(torch.from_numpy(code.astype(np.int32)))


def counted(planes: list[tuple[np.ndarray, np.ndarray]]) -> ClassRanks:
    ranks = ClassRanks(CLASSES)
    for labels, code in planes:
        ranks.add(torch.from_numpy(labels), torch.from_numpy(code.astype(np.int32)))
    return ranks


@pytest.mark.parametrize("fraction", FRACTIONS)
@pytest.mark.parametrize("levels", [2, 7, 65536], ids=["two levels", "many ties", "few ties"])
def test_same_as_a_stable_sort_of_everything(fraction: float, levels: int) -> None:
    planes = images(levels)
    selector = Selector(counted(planes).cutoffs(fraction))
    marked = np.concatenate([selector(*tensors(labels, code)).numpy().reshape(-1) for labels, code in planes])
    everything = [torch.from_numpy(np.concatenate([each[part].reshape(-1) for each in planes])) for part in (0, 1)]
    labels, code = everything[0].long(), everything[1].to(torch.int32)
    expected = selection.top_per_class(code, labels, fraction, CLASSES)
    np.testing.assert_array_equal(marked, expected.numpy())
    for label in range(CLASSES):
        count = int((labels == label).sum())
        assert int(marked[labels.numpy() == label].sum()) == selection.quota(fraction, count)


def test_counts_do_not_depend_on_batches_or_order() -> None:
    planes = images(50)
    backwards = counted(planes[::-1])
    assert torch.equal(backwards.counts, counted(planes).counts)
    assert backwards.predicted.sum() == sum(labels.size for labels, _ in planes)


def test_a_class_never_predicted_selects_nothing() -> None:
    ranks = counted(images(7))
    assert ranks.predicted[4] == 0
    for fraction in FRACTIONS:
        assert ranks.cutoffs(fraction).ties[4] == 0


def test_ends_of_the_range_can_be_cutoffs() -> None:
    labels, code = np.zeros((1, 4), np.uint8), np.array([[0, 65535, 65535, 0]], np.uint16)
    ranks = ClassRanks(1)
    ranks.add(torch.from_numpy(labels), torch.from_numpy(code))
    assert Selector(ranks.cutoffs(0.25))(*tensors(labels, code)).tolist() == [[False, True, False, False]]
    assert Selector(ranks.cutoffs(0.75))(*tensors(labels, code)).tolist() == [[True, True, True, False]]


def test_wrong_input_is_not_counted_as_something_else() -> None:
    ranks = ClassRanks(2)
    code = torch.tensor([5], dtype=torch.int32)
    with pytest.raises(TypeError, match="packed"):
        ranks.add(torch.tensor([1]), codes.pack(code))
    with pytest.raises(RuntimeError):
        ranks.add(torch.tensor([2]), code)
