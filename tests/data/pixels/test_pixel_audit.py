import numpy as np
import pytest
import torch
from torch import Tensor

from dmt.core.codes import LEVELS
from dmt.data import ragged
from dmt.data.audits import Weighed
from dmt.data.pixels import size_groups
from dmt.data.pixels.pixel_audit import ErrorByConfidence, PixelAudit, Tally
from dmt.data.sets import LabeledSet, PseudoLabels
from dmt.types import IGNORE

SIZES = [(20, 31), (33, 10), (5, 5), (25, 30)]
CPU = torch.device("cpu")


def masks(void: float) -> list[np.ndarray]:
    """Random truth; this share of its pixels has none."""
    numbers = np.random.default_rng(3)
    planes = [numbers.integers(0, 4, size).astype(np.uint8) for size in SIZES]
    return [np.where(numbers.random(plane.shape) < void, np.uint8(255), plane) for plane in planes]


def audit_of(planes: list[np.ndarray]) -> PixelAudit:
    truth = ragged.stack(planes)
    images = ragged.stack([np.zeros((*plane.shape, 3), np.uint8) for plane in planes])
    return PixelAudit(truth, LabeledSet(tuple("abcd"[: len(planes)]), images, truth))


def observer_of(audit: PixelAudit) -> ErrorByConfidence:
    observer = audit.observer()
    assert observer is not None
    return observer


def tally_of(audit: PixelAudit) -> Tally:
    assert audit._truth is not None
    return Tally(audit._truth)


def test_where_nobody_knows_the_truth_nothing_is_audited() -> None:
    audit = PixelAudit(None, audit_of(masks(0.0)).everything)
    assert not audit.known
    assert audit.observer() is None
    assert audit.mask(0) is None
    planes = ragged.stack(masks(0.0))
    labels = PseudoLabels(planes, planes, torch.ones(len(SIZES), dtype=torch.bool))
    assert audit.pseudo_labels(labels, None, CPU) == {}


def guesses(generator: torch.Generator, levels: int) -> list[tuple[Tensor, Tensor]]:
    """Labels (H, W) int64 and codes (H, W) int32 of every image."""
    return [
        (torch.randint(0, 4, size, generator=generator), torch.randint(0, levels, size, generator=generator).int())
        for size in SIZES
    ]


def see(audit: PixelAudit, planes: list[tuple[Tensor, Tensor]]) -> dict[str, float | None]:
    """Through the same padded batches as labeling; what lies in the padding is nonsense, and sure."""
    observer = observer_of(audit)
    for group in size_groups.groups(SIZES):
        labels = torch.zeros(len(group.positions), group.height, group.width, dtype=torch.int64)
        found = torch.full(labels.shape, LEVELS - 1, dtype=torch.int32)
        for row, position in enumerate(group.positions):
            tall, wide = SIZES[position]
            labels[row, :tall, :wide], found[row, :tall, :wide] = planes[position]
        observer.see(torch.tensor(group.positions), labels, found)
    return observer.error_top()


def sorted_errors(planes: list[tuple[Tensor, Tensor]], truth: list[np.ndarray], top: float) -> float:
    """A full sort of all pixels that have truth; among equals every pixel is as wrong as they are in the mean."""
    flat = np.concatenate([plane.flatten() for plane in truth])
    labels, found = (np.concatenate([each[number].numpy().flatten() for each in planes]) for number in (0, 1))
    known = flat != 255
    wrong, found = (labels != flat)[known].astype(float), found[known]
    values, inverse = np.unique(found, return_inverse=True)
    means = np.array([wrong[found == value].mean() for value in values])
    shared = means[inverse][np.argsort(-found, kind="stable")]
    wanted = top * len(shared)
    whole = int(wanted)
    rest = (wanted - whole) * (shared[whole] if whole < len(shared) else 0.0)
    return float(100.0 * (shared[:whole].sum() + rest) / wanted)


@pytest.mark.parametrize("levels", [LEVELS, 7, 1], ids=["hardly a tie", "many ties", "all alike"])
@pytest.mark.parametrize("void", [0.0, 0.4])
def test_error_top_equals_a_full_sort(levels: int, void: float, generator: torch.Generator) -> None:
    truth, planes = masks(void), guesses(generator, levels)
    found = see(audit_of(truth), planes)
    assert list(found) == ["20%", "40%", "60%", "80%", "100%"]
    for top in (0.2, 0.4, 0.6, 0.8, 1.0):
        assert found[f"{top:.0%}"] == pytest.approx(sorted_errors(planes, truth, top), abs=1e-9)


def test_surer_labels_that_are_right_come_first(generator: torch.Generator) -> None:
    truth = masks(void=0.3)
    planes = []
    for plane, (labels, _) in zip(truth, guesses(generator, 2), strict=True):
        right = labels.numpy() == plane
        planes.append((labels, torch.from_numpy(np.where(right, 60_000, 10)).int()))
    found = see(audit_of(truth), planes)
    assert found["20%"] == 0.0
    everything = found["100%"]
    assert everything is not None
    assert everything == pytest.approx(75, abs=6)


def test_tally_equals_a_loop(generator: torch.Generator) -> None:
    truth = masks(void=0.3)
    audit = audit_of(truth)
    tally, weighed = tally_of(audit), tally_of(audit)
    kept_planes, weight_planes = [], []
    for position, (labels, _) in enumerate(guesses(generator, 2)):
        kept = torch.where(torch.rand(SIZES[position], generator=generator) < 0.5, labels, 255).to(torch.uint8)
        weights = torch.rand(SIZES[position], generator=generator)
        kept_planes.append(kept)
        weight_planes.append(weights)
        tall, wide = -(-SIZES[position][0] // 32) * 32, -(-SIZES[position][1] // 32) * 32
        padded = torch.full((1, tall, wide), 255, dtype=torch.uint8)
        padded[0, : kept.shape[0], : kept.shape[1]] = kept
        heavy = torch.ones(1, tall, wide)  # weights in the padding must not count
        heavy[0, : kept.shape[0], : kept.shape[1]] = weights
        tally.add(torch.tensor([position]), padded)
        weighed.add(torch.tensor([position]), padded, heavy)
    rows = [
        (int(label) != int(true), float(weight))
        for kept, plane, weights in zip(kept_planes, truth, weight_planes, strict=True)
        for label, true, weight in zip(kept.flatten(), plane.flatten(), weights.flatten(), strict=True)
        if int(label) != 255 and int(true) != 255
    ]
    wrong = [weight for bad, weight in rows if bad]
    right = [weight for bad, weight in rows if not bad]
    assert tally.error() == weighed.error() == pytest.approx(100 * len(wrong) / len(rows))
    found = weighed.weighted()
    assert found["error_kept_weighted"] == pytest.approx(100 * sum(wrong) / (sum(wrong) + sum(right)))
    assert found["weight_right"] == pytest.approx(sum(right) / len(right))
    assert found["weight_wrong"] == pytest.approx(sum(wrong) / len(wrong))


def test_flipped_pixels_are_judged_as_they_are_learned() -> None:
    """Where the student is surer, DMT-Flip learns the student's label; images that nobody weighs count plainly."""
    audit = audit_of([np.array([[0, 1, 2, 3, 255, 1]], np.uint8), np.zeros((1, 2), np.uint8)])
    teacher = ragged.stack([np.array([[0, 9, 2, 9, 0, 255]], np.uint8), np.full((1, 2), 9, np.uint8)])
    learned = torch.tensor([[[0, 1, 8, 9, 1, IGNORE]]])  # the second is mended, the third spoiled
    weights = torch.tensor([[[1.0, 0.5, 0.25, 0.125, 1.0, 0.0]]])

    def weigh(chosen: Tensor | None) -> list[Weighed]:
        assert chosen is not None
        assert sorted(chosen.tolist()) == [0, 1]
        return [Weighed(torch.tensor([0]), learned, weights)]

    labels = PseudoLabels(teacher, teacher, torch.ones(2, dtype=torch.bool))
    assert audit.pseudo_labels(labels, None, CPU) == {"error_kept": pytest.approx(100 * 4 / 6)}
    assert audit.pseudo_labels(labels, weigh, CPU) == pytest.approx(
        {
            "error_kept": 100 * 4 / 6,
            "error_kept_sample": 50,  # of the same image as
            "error_kept_weighted": 100 * 0.375 / 1.875,
            "weight_right": 0.75,
            "weight_wrong": 0.1875,
        }
    )


def test_without_truth_or_labels_there_is_nothing_to_say(generator: torch.Generator) -> None:
    blind = audit_of([np.full(size, 255, np.uint8) for size in SIZES])
    assert set(see(blind, guesses(generator, 9)).values()) == {None}
    tally = tally_of(blind)
    tally.add(torch.tensor([2]), torch.zeros(1, 5, 5, dtype=torch.uint8), torch.ones(1, 5, 5))
    assert tally.error() is None
    assert set(tally.weighted().values()) == {None}
    unkept = tally_of(audit_of(masks(void=0.0)))
    unkept.add(torch.tensor([2]), torch.full((1, 5, 5), 255, dtype=torch.uint8))
    assert unkept.error() is None


def test_labels_that_are_all_right_weigh_nothing_wrong() -> None:
    planes = masks(void=0.0)
    tally = tally_of(audit_of(planes))
    tally.add(torch.tensor([2]), torch.from_numpy(planes[2])[None], torch.full((1, 5, 5), 0.25))
    assert tally.error() == 0.0
    assert tally.weighted() == {"error_kept_weighted": 0.0, "weight_right": 0.25, "weight_wrong": None}
