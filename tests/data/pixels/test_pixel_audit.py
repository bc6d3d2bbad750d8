from collections.abc import Iterable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from dmt.core.codes import LEVELS
from dmt.core.weighting import AGREE, NEGATIVE, POSITIVE
from dmt.data import ragged
from dmt.data.audits import Weighed
from dmt.data.pixels import size_groups
from dmt.data.pixels.pixel_audit import JUDGED, LabelCounter, PixelAudit
from dmt.data.pixels.size_groups import Group
from dmt.data.ragged import Ragged
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
    return PixelAudit(truth, LabeledSet(tuple("abcd"[: len(planes)]), images, truth), classes=10)


def observer_of(audit: PixelAudit) -> LabelCounter:
    observer = audit.observer()
    assert observer is not None
    return observer


def test_where_nobody_knows_the_truth_nothing_is_audited() -> None:
    audit = PixelAudit(None, audit_of(masks(0.0)).everything, 10)
    assert not audit.known
    assert audit.observer() is None
    assert audit.mask(0) is None
    planes = ragged.stack(masks(0.0))
    labels = PseudoLabels(planes, planes, torch.ones(len(SIZES), dtype=torch.bool))
    assert audit.pseudo_labels(labels, None, CPU, {}) == {}


def guesses(generator: torch.Generator, levels: int) -> list[tuple[Tensor, Tensor]]:
    """Labels (H, W) int64 and codes (H, W) int32 of every image."""
    return [
        (torch.randint(0, 4, size, generator=generator), torch.randint(0, levels, size, generator=generator).int())
        for size in SIZES
    ]


def see(
    audit: PixelAudit, planes: list[tuple[Tensor, Tensor]], observer: LabelCounter | None = None
) -> dict[str, float | None]:
    """Through the same padded batches as labeling; what lies in the padding is nonsense, and sure."""
    observer = observer or observer_of(audit)
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


def pseudo(planes: list[np.ndarray]) -> PseudoLabels[Ragged]:
    kept = ragged.stack(planes)
    return PseudoLabels(kept, kept, torch.ones(len(planes), dtype=torch.bool))


def test_flipped_pixels_are_judged_as_they_are_learned() -> None:
    """Where the student is surer, DMT-Flip learns the student's label."""
    audit = audit_of([np.array([[0, 1, 2, 3, 255, 1]], np.uint8)])
    teacher = pseudo([np.array([[0, 9, 2, 9, 0, 255]], np.uint8)])
    learned = torch.tensor([[[0, 1, 8, 9, 1, IGNORE]]])  # the second is mended, the third spoiled
    weights = torch.tensor([[[1.0, 0.5, 0.25, 0.125, 1.0, 0.0]]])
    cases = torch.tensor([[[AGREE, POSITIVE, POSITIVE, NEGATIVE, AGREE, IGNORE]]])

    def weigh(chosen: Tensor | None) -> list[Weighed]:
        assert chosen is not None
        assert chosen.tolist() == [0]
        return [Weighed(chosen, learned, weights, cases)]

    found = audit.pseudo_labels(teacher, weigh, CPU, {"error_top": {}, "predicted": [2, 0, 2, 0, 0, 0, 0, 0, 0, 4]})
    by_class = found.pop("by_class")
    assert found.pop("error_top") == {}
    assert found == pytest.approx(
        {
            "images": 1,
            "images_all": 1,
            "error_kept_all": 50,
            "kept": 4,
            "coverage": 0.5,
            "error_kept": 50,
            "error_kept_weighted": 100 * 0.375 / 1.875,
            "weight_right": 0.75,
            "weight_wrong": 0.1875,
            "agree": 0.25,
            "negative": 0.25,
            "positive": 0.5,
        }
    )
    assert by_class["kept"] == [1, 0, 1, 0, 0, 0, 0, 0, 0, 2]
    assert by_class["error_kept"][9] == 100  # as the teacher called them
    assert by_class["error_kept_weighted"][8] == 100  # as the student learned them
    assert by_class["weight_right"][:3] == [1.0, 0.5, None]
    assert by_class["positive"][9] == 0.5
    assert by_class["coverage"][0] == 0.5


def test_plain_and_weighted_errors_are_of_the_same_images(generator: torch.Generator) -> None:
    """More images than are judged, of two sizes: the plain error of the judged ones, and that of all beside it."""
    count = JUDGED + 40
    sizes = [(2, 3) if number % 3 else (4, 2) for number in range(count)]
    truth, kept = (
        [torch.randint(0, 4, size, generator=generator).to(torch.uint8).numpy() for size in sizes] for _ in range(2)
    )
    truth[7][0, 0], kept[8][1, 1] = 255, 255
    images = ragged.stack([np.zeros((*size, 3), np.uint8) for size in sizes])
    audit = PixelAudit(ragged.stack(truth), LabeledSet(tuple(map(str, range(count))), images, ragged.stack(truth)), 4)
    labels, asked = pseudo(kept), set[int]()

    def weigh(chosen: Tensor | None) -> Iterator[Weighed]:
        """Counts every label alike, and is sure of everything in the padding."""
        assert chosen is not None
        asked.update(chosen.tolist())
        for group in size_groups.groups([sizes[position] for position in chosen.tolist()]):
            positions = chosen[group.positions]
            place = Group(positions.tolist(), group.height, group.width)
            learned = size_groups.truth(size_groups.gather_plane(labels.labels, place, CPU))
            yield Weighed(positions, learned, torch.ones(learned.shape), torch.zeros_like(learned))

    plain, weighed = (audit.pseudo_labels(labels, each, CPU, {}) for each in (None, weigh))

    def error(positions: Iterable[int]) -> float:
        pairs = [(kept[position].flatten(), truth[position].flatten()) for position in positions]
        hits = [bad for mine, true in pairs for bad in (mine != true)[(mine != 255) & (true != 255)]]
        return float(100 * np.mean(hits))

    assert len(asked) == weighed["images"] == plain["images"] == JUDGED
    assert plain["error_kept_all"] == weighed["error_kept_all"] == pytest.approx(error(range(count)))
    assert plain["error_kept"] == weighed["error_kept"] == weighed["error_kept_weighted"] == pytest.approx(error(asked))
    assert plain["error_kept"] != plain["error_kept_all"]
    assert weighed["by_class"]["error_kept"] == plain["by_class"]["error_kept"]
    assert "error_kept_weighted" not in plain
    assert "coverage" not in plain  # made by an older release, which did not count what was predicted


def test_what_was_predicted_is_counted_where_it_is_judged(generator: torch.Generator) -> None:
    truth, planes = masks(0.3), guesses(generator, 9)
    audit = audit_of(truth)
    observer = observer_of(audit)
    see(audit, planes, observer)
    known = np.concatenate([plane.flatten() for plane in truth]) != 255
    said = np.concatenate([labels.numpy().flatten() for labels, _ in planes])
    assert observer.numbers()["predicted"] == np.bincount(said[known], minlength=10).tolist()


def test_without_truth_or_labels_there_is_nothing_to_say(generator: torch.Generator) -> None:
    blind = audit_of([np.full(size, 255, np.uint8) for size in SIZES])
    assert set(see(blind, guesses(generator, 9)).values()) == {None}
    found = blind.pseudo_labels(pseudo(masks(0.0)), None, CPU, {})
    assert found["error_kept"] is None
    assert found["error_kept_all"] is None
    unkept = [np.full(size, 255, np.uint8) for size in SIZES]
    assert audit_of(masks(0.0)).pseudo_labels(pseudo(unkept), None, CPU, {})["error_kept"] is None


def test_labels_that_are_all_right_weigh_nothing_wrong() -> None:
    planes = masks(void=0.0)

    def weigh(chosen: Tensor | None) -> Iterator[Weighed]:
        for position, plane in enumerate(planes):
            yield Weighed(
                torch.tensor([position]), torch.from_numpy(plane)[None].long(), torch.full((1, *plane.shape), 0.25)
            )

    found = audit_of(planes).pseudo_labels(pseudo(planes), weigh, CPU, {})
    assert found["error_kept"] == found["error_kept_weighted"] == 0.0
    assert found["weight_right"] == 0.25
    assert found["weight_wrong"] is None
    assert "agree" not in found
