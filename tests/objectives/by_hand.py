"""Every objective's loss on 2 samples × 3 classes, computed once more in plain numpy.

A formula gets the logits twice: as what learns and as what teaches. Its slope with respect to the first alone, by
finite differences, is the gradient that the objective must have: so no teacher, peer or slow copy can get any.

To add an objective, write its formula and add a `Case` to `CASES`; `tests/methods/test_all_methods.py` asks for it.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dmt.core.mixing import SampleMix
from dmt.core.pasting import Paste
from dmt.objectives.adaptive import FlexMatch, FreeMatch, SoftMatch
from dmt.objectives.base import Cast, Loss, Objective
from dmt.objectives.guessing import MixDraw, MixMatch, ReMixMatch, TurnDraw
from dmt.objectives.itself import UDA, FixMatch, FixMatchSeg, Online, PiModel, PseudoLabel
from dmt.objectives.noisy import Choice, CoTeaching, CoTeachingPlus
from dmt.objectives.peers import CrossPseudo, CrossPseudoPasted
from dmt.objectives.remembered import TemporalEnsembling
from dmt.objectives.slow import CutMixSeg, MeanTeacher, MeanTeacherSeg
from dmt.objectives.stored import Stored, StoredAskedWeak, StoredDraw, StoredStrong, StoredStrongAskedWeak
from dmt.objectives.truth import Supervised
from dmt.objectives.two_nets import DeepCoTraining, DualStudent
from dmt.types import IGNORE, Batch, Target

LABELED = "labeled"
SURE, UNSURE, OTHER, EVEN = (0.5, 5.5, -1.0), (0.4, 0.1, -0.3), (2.5, 0.3, -0.4), (-0.2, 0.7, 1.1)
"""Logits: probability .991 of class 1; .44 of class 0; .86 of class 0; .53 of class 2."""

TRUTH = (2, 0)
Logits = dict[str, np.ndarray]
"""By view and ``labeled``: (2, 3), of pixels (2, 3, 1, 2)."""

Formula = Callable[[list[Logits], list[Logits], list[Logits]], float]
"""Of what each net gives: as what learns, as what teaches; and of what each slow copy gives."""

IMAGES: Logits = {
    LABELED: np.array([EVEN, OTHER]),
    "train": np.array([SURE, UNSURE]),
    "weak": np.array([SURE, UNSURE]),
    "weak2": np.array([OTHER, EVEN]),
    "strong": np.array([(0.3, -0.2, 0.9), (1.0, 0.2, -0.5)]),
    "strong2": np.array([(-0.7, 0.4, 0.6), (0.1, 0.5, 0.3)]),
}
PEER: Logits = {name: np.roll(values, 1, axis=1) * 0.7 for name, values in IMAGES.items()}
SLOW: Logits = {name: values + np.array([0.4, -0.3, 0.1]) for name, values in IMAGES.items()}


def two_pixels(images: Logits) -> Logits:
    """Two samples of 1×2 pixels: the given logits at the first pixel, others, of which some are sure, at the second."""
    second = {name: values[:, ::-1] * (1.5 if name in ("train", "weak") else 0.8) for name, values in images.items()}
    return {name: np.stack([values, second[name]], axis=2)[:, :, None] for name, values in images.items()}


PIXEL_TRUTH = np.array([[[2, 1]], [[IGNORE, 0]]])
VALID = np.array([[[True, False]], [[True, True]]])
INSIDE = np.array([[[False, True]], [[False, False]]])
"""The first sample shows its partner's second pixel; the second sample stays as it is."""


class Table:
    """A net that knows its logits by heart: the value of a pixel, or of an image's first one, is a row of its table."""

    def __init__(self, rows: np.ndarray, pixels: bool) -> None:
        self.rows = torch.tensor(rows, dtype=torch.float64).requires_grad_()
        self._pixels = pixels

    def __call__(self, images: Tensor, *, update_statistics: bool = True) -> Tensor:
        if images.shape[1] > 1:  # how much of each row there is in an image
            return (images[:, :, 0, 0].double() @ self.rows).float()
        places = images[:, 0].long()
        return self.rows[places].movedim(-1, 1).float() if self._pixels else self.rows[places[:, 0, 0]].float()

    def input_gradient(self, images: Tensor, labels: Tensor) -> Tensor:
        """Upward: a row is found by whole numbers, so a small step along it leads to the same one."""
        return torch.ones_like(images)

    @torch.no_grad()
    def peek(self, images: Tensor, *, update_statistics: bool = False) -> Tensor:
        return self(images, update_statistics=update_statistics)

    def embed(self, images: Tensor, *, update_statistics: bool = True) -> Tensor:
        """Its last layer changes nothing."""
        return self(images)

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        """Its logits: the decoder changes nothing."""
        return (self(images),)

    def decode(self, features: tuple[Tensor, ...], size: tuple[int, int]) -> Tensor:
        return features[0]

    def presence(self, images: Tensor) -> Tensor:
        """A class is in an image as far as it is in its pixels, on average."""
        return self(images).mean((2, 3))


class SlowTable(Table):
    """A slow copy of that kind: without gradient, as the trainer hands it out."""

    def __call__(self, images: Tensor, *, update_statistics: bool = True) -> Tensor:
        with torch.no_grad():
            return super().__call__(images)


@dataclass(frozen=True)
class Case:
    """One objective with all that a step gives it, and the formula of its loss.

    Attributes:
        separate: whether labeled and unlabeled terms are means of their own, so that repeating either batch changes
            nothing.
        memory: what the step before left behind.
        parts: modules beside the nets.
        mixed: whether images are mixed. Then they say how much of each row they are.
    """

    objective: Objective
    draw: Any
    formula: Formula
    pixels: bool = False
    pseudo: Target | None = None
    separate: bool = True
    name: str = ""
    memory: Mapping[str, Tensor] = field(default_factory=dict)
    parts: Mapping[str, nn.Module] = field(default_factory=dict)
    mixed: bool = False

    def __str__(self) -> str:
        kind = "pixels" if self.pixels else "images"
        return "-".join(filter(None, (type(self.objective).__name__, kind, self.name)))

    def given(self) -> tuple[list[Logits], list[Logits]]:
        """What nets and slow copies say."""
        nets, slow = [IMAGES, PEER][: self.objective.lines], [SLOW] if self.objective.slow else []
        names = (LABELED, *self.objective.views)

        def told(logits: Logits) -> Logits:
            wanted = {name: logits[name] for name in names}
            return two_pixels(wanted) if self.pixels else wanted

        return [told(each) for each in nets], [told(each) for each in slow]


@dataclass
class Step:
    """A step of a case, by the library."""

    loss: Loss
    nets: list[Table]
    slow: list[Table]


def step(case: Case, *, draw: Any = None, **changes: Any) -> Step:
    """The loss of a case, some of its objective's options changed."""
    objective = dataclasses.replace(case.objective, **changes)  # type: ignore[type-var]
    nets, slow = case.given()
    students = [Table(rows(each), case.pixels) for each in nets]
    teachers = [SlowTable(rows(each), case.pixels) for each in slow]
    batch = batch_of(case)
    cast = Cast(tuple(students), tuple(teachers), case.parts, case.memory)
    return Step(objective.loss(cast, batch, case.draw if draw is None else draw), students, list(teachers))


def batch_of(case: Case) -> Batch:
    """Images whose pixels are rows of the tables."""
    places = _places(case.given()[0][0], case.pixels)
    images = {name: torch.tensor(each, dtype=torch.float32)[:, None] for name, each in places.items()}
    if case.mixed:
        every = torch.eye(sum(map(len, images.values())))
        images = {name: every[each.flatten().long()][:, :, None, None] for name, each in images.items()}
    return Batch(
        images=images.pop(LABELED),
        truth=torch.tensor(PIXEL_TRUTH if case.pixels else TRUTH),
        views=images,
        pseudo=case.pseudo,
        positions=torch.arange(2),
        valid=torch.tensor(VALID) if case.pixels else None,
    )


def weightless(objective: Objective) -> dict[str, float]:
    """Its options that weigh a term, all 0."""
    return {each.name: 0.0 for each in dataclasses.fields(objective) if each.name.split("_")[0] == "weight"}  # type: ignore[arg-type]


def expected(case: Case) -> float:
    """The same by hand."""
    nets, slow = case.given()
    return case.formula(nets, nets, slow)


def slopes(case: Case, reach: float = 1e-5) -> list[np.ndarray]:
    """The gradient of every net's table by finite differences, of what learns alone."""
    nets, slow = case.given()
    found = []
    for number in range(len(nets)):
        moved = [{name: values.copy() for name, values in each.items()} for each in nets]
        gradient = {name: np.zeros_like(values) for name, values in moved[number].items()}
        for name, values in moved[number].items():
            for place in np.ndindex(*values.shape):
                sides = []
                for way in (reach, -2 * reach):
                    values[place] += way
                    sides.append(case.formula(moved, nets, slow))
                values[place] += reach
                gradient[name][place] = (sides[0] - sides[1]) / (2 * reach)
        found.append(rows(gradient))
    return found


def rows(logits: Logits) -> np.ndarray:
    """(rows, C) of all sites, view by view."""
    return np.concatenate([np.moveaxis(each, 1, -1).reshape(-1, each.shape[1]) for each in logits.values()])


def _places(logits: Logits, pixels: bool) -> dict[str, np.ndarray]:
    """Which row of the table stands at which site."""
    count, places = 0, {}
    for name, values in logits.items():
        shape = (values.shape[0], *values.shape[2:]) if pixels else (values.shape[0], 1, 1)
        places[name] = count + np.arange(math.prod(shape)).reshape(shape)
        count += math.prod(shape)
    return places


# ---- plain formulas -------------------------------------------------------------------------------------------------


def p(logits: np.ndarray) -> np.ndarray:
    """Softmax over classes."""
    powers = np.exp(logits)
    return np.asarray(powers / powers.sum(1, keepdims=True))


def ce(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """−log p of the label at every site; 0 where it has none."""
    chosen = np.take_along_axis(p(logits), np.maximum(labels, 0)[:, None], 1)[:, 0]
    return np.where(labels == IGNORE, 0.0, -np.log(chosen))


def truth_of(logits: np.ndarray) -> np.ndarray:
    return PIXEL_TRUTH if logits.ndim == 4 else np.array(TRUTH)


def supervised(logits: np.ndarray) -> float:
    """Over the labeled sites: both images, or three of the four pixels."""
    return float(ce(logits, truth_of(logits)).sum() / (3 if logits.ndim == 4 else 2))


def mean(sites: np.ndarray, valid: np.ndarray = VALID) -> float:
    """Over both images, or over the valid pixels, whatever they weigh."""
    return float((sites * valid).sum() / valid.sum()) if sites.ndim == 3 else float(sites.sum() / 2)


def pasted(values: np.ndarray) -> np.ndarray:
    """The first sample with its partner's second pixel."""
    values = values.copy()
    values[0, ..., 1] = values[1, ..., 1]
    return values


def pseudo_label(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
    learn, teach = ours[0]["weak"], p(theirs[0]["weak"])
    kept = teach.max(1) > 0.9
    return supervised(ours[0][LABELED]) + 0.25 * mean(kept * ce(learn, teach.argmax(1)))


def online(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
    learn, teach = ours[0]["train"], p(theirs[0]["train"])
    kept = (teach.max(1) > 0.9) & (VALID if teach.ndim == 4 else True)
    truth = truth_of(ours[0][LABELED])
    total = (kept * ce(learn, teach.argmax(1))).sum() + ce(ours[0][LABELED], truth).sum()
    return float(total / (kept.sum() + (truth != IGNORE).sum()))


def pi_model(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
    squares = ((p(ours[0]["weak"]) - p(theirs[0]["weak2"])) ** 2).sum(1) / 3
    return supervised(ours[0][LABELED]) + 7.0 * mean(squares)


def uda(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
    target, kept = p(theirs[0]["weak"] / 0.5), p(theirs[0]["weak"]).max(1) > 0.8
    divergence = (target * (np.log(target) - np.log(p(ours[0]["strong"])))).sum(1)
    return supervised(ours[0][LABELED]) + 2.0 * mean(kept * divergence)


def fixmatch(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
    teach = p(theirs[0]["weak"])
    kept = teach.max(1) >= 0.95
    return supervised(ours[0][LABELED]) + 3.0 * mean(kept * ce(ours[0]["strong"], teach.argmax(1)))


def flexmatch(limits: list[float]) -> Formula:
    """FixMatch with a threshold for each class."""

    def formula(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
        teach = p(theirs[0]["weak"])
        kept = teach.max(1) >= np.array(limits)[teach.argmax(1)]
        return supervised(ours[0][LABELED]) + 3.0 * mean(kept * ce(ours[0]["strong"], teach.argmax(1)))

    return formula


def freematch(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
    """Both samples are kept; on strong views they are given classes 2 and 0, so class 1 is left out."""
    teach, found = p(theirs[0]["weak"]), p(ours[0]["strong"])
    usual = 0.9 * np.array(AVERAGES["probabilities"]) + 0.1 * teach.mean(0)
    labels = 0.9 * np.array(AVERAGES["labels"]) + 0.1 * np.array([0.5, 0.5, 0.0])
    limits = (0.9 * 0.4 + 0.1 * teach.max(1).mean()) * usual / usual.max()
    kept = teach.max(1) >= limits[teach.argmax(1)]
    assert kept.all()
    assert found.argmax(1).tolist() == [2, 0]
    wanted = usual / labels / (usual / labels).sum()
    given = found.mean(0)[[0, 2]] / found.mean(0)[[0, 2]].sum()  # each is given to half of them
    fairness = float((wanted[[0, 2]] * np.log(given)).sum())
    return supervised(ours[0][LABELED]) + 3.0 * mean(ce(ours[0]["strong"], teach.argmax(1))) + 0.5 * fairness


def softmatch(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
    """Aligned confidence decides the weight, and labels are those before."""
    teach = p(theirs[0]["weak"])
    confidence = teach.max(1)
    usual = 0.9 * np.array(AVERAGES["probabilities"]) + 0.1 * teach.mean(0)
    middle = 0.9 * 0.6 + 0.1 * confidence.mean()
    variance = 0.9 * 0.05 + 0.1 * ((confidence - confidence.mean()) ** 2).sum()  # of two, divided by one
    even = teach * (1 / 3 + 1e-6) / (usual + 1e-6)
    below = np.minimum((even / even.sum(1, keepdims=True)).max(1) - middle, 0.0)
    weights = np.exp(-(below**2) / (2 * variance / 4))
    assert weights[0] == 1.0
    assert 0.1 < weights[1] < 0.9
    return supervised(ours[0][LABELED]) + 3.0 * mean(weights * ce(ours[0]["strong"], teach.argmax(1)))


AVERAGES: dict[str, list[float]] = {"probabilities": [0.5, 0.3, 0.2], "labels": [0.6, 0.1, 0.3]}
"""Of FreeMatch and SoftMatch."""


def _averages(**numbers: float | list[float]) -> dict[str, Tensor]:
    return {name: torch.tensor(value) for name, value in numbers.items()}


def soft_ce(logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
    return np.asarray(-(targets * np.log(p(logits))).sum(1))


def sharpened(probabilities: np.ndarray) -> np.ndarray:
    """By a temperature of 1/2."""
    return np.asarray(probabilities**2 / (probabilities**2).sum(1, keepdims=True))


def pool(ours: Logits, guess: np.ndarray, views: list[str], mix: SampleMix | None) -> tuple[np.ndarray, np.ndarray]:
    """Logits and soft labels of [labeled; views], row by row with its partner's; what a linear net says of a mixture
    is the mixture of what it says."""
    logits = np.concatenate([ours[LABELED], *(ours[view] for view in views)])
    soft = np.concatenate([np.eye(3)[list(TRUTH)], *[guess] * len(views)])
    if mix is None:
        return logits, soft
    rows = list(zip(mix.coefficients.double().tolist(), mix.partners.tolist(), strict=True))
    mixed = [
        np.array([share * each[n] + (1 - share) * each[partner] for n, (share, partner) in enumerate(rows)])
        for each in (logits, soft)
    ]
    return mixed[0], mixed[1]


def mixmatch(mix: SampleMix | None) -> Formula:
    def formula(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
        guess = sharpened((p(theirs[0]["weak"]) + p(theirs[0]["weak2"])) / 2)
        logits, soft = pool(ours[0], guess, ["weak", "weak2"], mix)
        squares = ((p(logits[2:]) - soft[2:]) ** 2).sum(1) / 3
        return float(soft_ce(logits[:2], soft[:2]).sum() / 2 + 0.25 * 10.0 * squares.sum() / 4)

    return formula


def remixmatch(mix: SampleMix | None) -> Formula:
    def formula(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
        usual = np.array([[0.2, 0.5, 0.3], [0.4, 0.1, 0.5]]).mean(0)
        aligned = p(theirs[0]["weak"]) * (np.array([0.3, 0.3, 0.4]) + 1e-6) / (usual + 1e-6)
        guess = sharpened(aligned / aligned.sum(1, keepdims=True))
        logits, soft = pool(ours[0], guess, ["weak", "strong", "strong2"], mix)
        total = soft_ce(logits[:2], soft[:2]).sum() / 2 + 0.25 * 2.0 * soft_ce(logits[2:], soft[2:]).sum() / 6
        total += 0.25 * 3.0 * soft_ce(ours[0]["strong"], guess).sum() / 2
        told = ours[0]["strong"] @ np.array(TURNS).T + np.array(SHIFTS)
        return float(total + 4.0 * ce(told, np.array([2, 1])).sum() / 2)

    return formula


TURNS, SHIFTS = [[0.5, -0.2, 0.1], [0.3, 0.4, -0.6], [-0.1, 0.2, 0.7], [0.0, -0.5, 0.2]], [0.1, -0.1, 0.3, 0.0]
"""Of the layer that tells rotations by three features."""


def _turns() -> dict[str, nn.Module]:
    head = nn.Linear(3, 4)
    with torch.no_grad():
        head.weight.copy_(torch.tensor(TURNS))
        head.bias.copy_(torch.tensor(SHIFTS))
    return {"rotation": head}


def _mix(*partners: int) -> SampleMix:
    return SampleMix(torch.linspace(0.55, 0.95, len(partners)), torch.tensor(partners))


def _guessed() -> list[Case]:
    six, eight, quarter = _mix(3, 0, 5, 1, 2, 4), _mix(5, 0, 7, 1, 3, 2, 6, 4), torch.tensor(0.25)
    memory = {"given": torch.tensor([[0.2, 0.5, 0.3], [0.4, 0.1, 0.5]]), "truth": torch.tensor([0.3, 0.3, 0.4])}
    found = []
    for name, first, second in (("mixed", six, eight), ("plain", None, None)):
        found.append(Case(MixMatch(weight=10.0), MixDraw(quarter, first), mixmatch(first), name=name, mixed=True))
        objective = ReMixMatch(strong_views=2, weight=2.0, weight_strong=3.0, weight_rotation=4.0)
        draw = TurnDraw(quarter, second, torch.tensor([2, 1]))
        found.append(Case(objective, draw, remixmatch(second), name=name, mixed=True, memory=memory, parts=_turns()))
    return found


def fixmatch_seg(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
    teach = pasted(p(theirs[0]["weak"]))
    kept = teach.max(1) >= 0.95
    sites = kept * ce(pasted(ours[0]["strong"]), teach.argmax(1))
    return (supervised(ours[0][LABELED]) + mean(sites, pasted(VALID))) / 2


def mean_teacher(ours: list[Logits], _: list[Logits], slow: list[Logits]) -> float:
    squares = ((p(ours[0]["weak"]) - p(slow[0]["weak2"])) ** 2).sum(1) / 3
    return supervised(ours[0][LABELED]) + 5.0 * mean(squares)


def mt_seg(ours: list[Logits], _: list[Logits], slow: list[Logits]) -> float:
    squares = ((ours[0]["weak"] - slow[0]["weak"]) ** 2).sum(1) / 3
    return supervised(ours[0][LABELED]) + 0.5 * mean(squares)


def cutmix_seg(ours: list[Logits], _: list[Logits], slow: list[Logits]) -> float:
    target = pasted(p(slow[0]["weak"]))
    share = (target.max(1) >= 0.95).mean()
    squares = ((p(pasted(ours[0]["weak"])) - target) ** 2).sum(1)
    return supervised(ours[0][LABELED]) + 2.0 * float(share * (squares * pasted(VALID)).mean())


def cps(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
    total = 0.0
    for mine, peer in ((0, 1), (1, 0)):
        learn, teach = (np.concatenate([each["weak"], each[LABELED]]) for each in (ours[mine], theirs[peer]))
        sites = ce(learn, teach.argmax(1))
        pixels = sites.ndim == 3
        counts = np.concatenate([VALID, PIXEL_TRUTH != IGNORE]) if pixels else np.ones(4, bool)
        total += supervised(ours[mine][LABELED]) + 1.5 * float((sites * counts).sum() / counts.sum())
    return total


def cps_cutmix(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
    total = 0.0
    for mine, peer in ((0, 1), (1, 0)):
        sites = ce(pasted(ours[mine]["weak"]), pasted(theirs[peer]["weak"].argmax(1)))
        total += supervised(ours[mine][LABELED]) + 2.0 * mean(sites, pasted(VALID))
    return total


def temporal_ensembling(ours: list[Logits], _: list[Logits], __: list[Logits]) -> float:
    """The first image was seen twice, α ½: its sum stands for 1 − ¼ of an average. The second never was."""
    target = np.array(SUMS[0]) / 0.75
    square = ((p(ours[0]["weak"])[0] - target) ** 2).sum() / 3
    return supervised(ours[0][LABELED]) + 4.0 * float(square) / 2


SUMS = ((0.15, 0.45, 0.15), (0.0, 0.0, 0.0))


def dual_student(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
    """Both nets give the first image one class in both views, the second another; which is sure, `threshold` says."""
    views = (("weak", "weak2"), ("weak2", "weak"))
    learn = [p(net[mine]) for net, (mine, __) in zip(ours, views, strict=True)]
    held = [p(net[mine]) for net, (mine, __) in zip(theirs, views, strict=True)]
    other = [p(net[asked]) for net, (__, asked) in zip(theirs, views, strict=True)]
    total = sum(supervised(net[LABELED]) for net in ours)
    errors = [((a - b) ** 2).sum(1) / 3 for a, b in zip(held, other, strict=True)]
    stable = [
        (a.argmax(1) == b.argmax(1)) & (np.maximum(a.max(1), b.max(1)) > 0.5) for a, b in zip(held, other, strict=True)
    ]
    for net, peer in ((0, 1), (1, 0)):
        for sample in (0, 1):
            unsteady = not stable[net][sample] or errors[net][sample] > errors[peer][sample]
            taught = ((learn[net][sample] - held[peer][sample]) ** 2).sum() / 3 if stable[peer][sample] else 0.0
            own = ((learn[net][sample] - other[net][sample]) ** 2).sum() / 3
            total += 3.0 * float(taught * unsteady + 0.5 * own) / 2
    return total


def deep_co_training(ours: list[Logits], _: list[Logits], __: list[Logits]) -> float:
    """The first labeled image is the first net's, the second the second's; images that fool are rows as they were."""

    def entropy(probabilities: np.ndarray) -> np.ndarray:
        return np.asarray(-(probabilities * np.log(probabilities)).sum(1))

    first, second = (p(net["weak"]) for net in ours)
    total = sum(float(ce(net[LABELED], np.array(TRUTH))[half]) for half, net in enumerate(ours))
    agree = entropy((first + second) / 2) - (entropy(first) + entropy(second)) / 2
    differ = 0.0
    for net, peer in ((0, 1), (1, 0)):
        mine, judged = (
            np.concatenate([each["weak"], each[LABELED][net : net + 1]]) for each in (ours[net], ours[peer])
        )
        differ += float(-(p(mine) * np.log(p(judged))).sum() / 3)
    return total + 0.5 * (10.0 * float(agree.mean()) + 0.5 * differ)


def co_teaching(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
    """Half of two labels: the one that the peer finds easier."""
    total = 0.0
    for net, peer in ((0, 1), (1, 0)):
        easy = ce(theirs[peer][LABELED], np.array(TRUTH)).argmin()
        total += float(ce(ours[net][LABELED], np.array(TRUTH))[easy])
    return total


def truth_alone(ours: list[Logits], _: list[Logits], __: list[Logits]) -> float:
    return supervised(ours[0][LABELED])


GIVEN, CONFIDENCE, SURER = np.array([1, 1]), np.array([0.6, 0.3]), np.array([0.6, 0.9])
"""Stored labels: the first agrees with the student, who is surer of another than the teacher was of the second,
unless that is `SURER`."""


def stored(weighting: str) -> Formula:
    """γ 2·½ where they agree, 3·½ where they do not."""

    def formula(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
        view = p(theirs[0]["train"])
        agree = view[0, 1]
        labels, weights = {
            "uniform": ([1, 1], [1.0, 1.0]),
            "naive": ([1, 1], [agree**1.0, view[1, 1] ** 1.0]),
            "dynamic": ([1, 1], [agree**1.0, 0.0]),
            "flip": ([1, 0], [agree**1.0, (1 - 0.3) ** 1.5]),
        }[weighting]
        total = (np.array(weights) * ce(ours[0]["train"], np.array(labels))).sum()
        return float((total + ce(ours[0][LABELED], np.array(TRUTH)).sum()) / 4)

    return formula


def stored_strong(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
    """The same rule written out for the strong view: agreed, or by whoever is surer."""
    view, weights = p(theirs[0]["strong"]), np.zeros((2, 1, 2))
    for sample, row, column in zip(*np.nonzero(PIXEL_GIVEN != IGNORE), strict=True):
        site, given = view[sample, :, row, column], PIXEL_GIVEN[sample, row, column]
        if site.argmax() == given:
            weights[sample, row, column] = site[given] ** 1.0
        elif site.max() < PIXEL_CONFIDENCE[sample, row, column]:
            weights[sample, row, column] = site[given] ** 1.5
    total = (weights * ce(ours[0]["strong"], PIXEL_GIVEN)).sum() + ce(ours[0][LABELED], PIXEL_TRUTH).sum()
    return float(total / (3 + 3))


def asked_weak(learned: str) -> Formula:
    """The student learns from one view, and its opinion of the weak one weighs: agreed, then lost by the student."""

    def formula(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
        weights = np.array([p(theirs[0]["weak"])[0, 1] ** 1.0, p(theirs[0]["weak"])[1, 1] ** 1.5])
        total = (weights * ce(ours[0][learned], GIVEN)).sum()
        return float((total + ce(ours[0][LABELED], np.array(TRUTH)).sum()) / 4)

    return formula


def stored_pixels(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
    """Three pixels have a stored label: agreed with, won by the student (weight 0, counted), won by the teacher."""
    view = p(theirs[0]["train"])
    weights = np.zeros((2, 1, 2))
    weights[0, 0, 0] = view[0, 1, 0, 0] ** 1.0
    weights[1, 0, 1] = view[1, 1, 0, 1] ** 1.5
    total = (weights * ce(ours[0]["train"], PIXEL_GIVEN)).sum() + ce(ours[0][LABELED], PIXEL_TRUTH).sum()
    return float(total / (3 + 3))


PIXEL_GIVEN = np.array([[[1, 2]], [[IGNORE, 1]]])
PIXEL_CONFIDENCE = np.array([[[0.6, 0.3]], [[0.0, 0.9]]])


def _target(labels: np.ndarray, confidence: np.ndarray) -> Target:
    return Target(torch.tensor(labels), torch.tensor(confidence, dtype=torch.float32))


PASTE = Paste(torch.tensor(INSIDE), torch.tensor([1, 0]))
HALF = StoredDraw(torch.tensor(0.5), None)


def both(objective: Objective, draw: Any, formula: Formula, **options: Any) -> list[Case]:
    """For images and for pixels."""
    return [Case(objective, draw, formula, pixels, **options) for pixels in (False, True)]


def _stored(weighting: str) -> Case:
    objective = Stored(weighting, gamma=2.0, gamma2=3.0)
    return Case(objective, HALF, stored(weighting), pseudo=_target(GIVEN, CONFIDENCE), separate=False, name=weighting)


_ALL: list[Case] = [
    *both(Supervised(), None, truth_alone),
    *both(Online(0.9), None, online, separate=False),
    *map(_stored, ("uniform", "naive", "dynamic", "flip")),
    Case(
        Stored("dynamic", gamma=2.0, gamma2=3.0), HALF, stored_pixels, True,
        _target(PIXEL_GIVEN, PIXEL_CONFIDENCE), separate=False,
    ),
    Case(
        StoredStrong("dynamic", gamma=2.0, gamma2=3.0), HALF, stored_strong, True,
        _target(PIXEL_GIVEN, PIXEL_CONFIDENCE), separate=False,
    ),
    Case(
        StoredAskedWeak("dynamic", gamma=2.0, gamma2=3.0), HALF, asked_weak("train"),
        pseudo=_target(GIVEN, SURER), separate=False,
    ),
    Case(
        StoredStrongAskedWeak("dynamic", gamma=2.0, gamma2=3.0), HALF, asked_weak("strong"),
        pseudo=_target(GIVEN, SURER), separate=False,
    ),
    *both(PseudoLabel(0.9, weight=1.0), torch.tensor(0.25), pseudo_label),
    Case(PiModel(), torch.tensor(7.0), pi_model),
    Case(UDA(0.8, temperature=0.5, weight=2.0), None, uda),
    Case(FixMatch(0.95, weight=3.0), None, fixmatch),
    Case(FlexMatch(0.999, weight=3.0), None, flexmatch([0.999, 0.999 / 3, 0.999 / 3]), name="seldom",
         memory={"given": torch.tensor([0, 0, 1, IGNORE, 2])}),
    Case(FlexMatch(0.95, weight=3.0), None, flexmatch([0.0, 0.95, 0.95 / 5]), name="never",
         memory={"given": torch.tensor([1, 1, 1, IGNORE, 2])}),
    Case(FlexMatch(0.95, weight=3.0), None, flexmatch([0.0, 0.95 / 7, 0.0]), name="begins",
         memory={"given": torch.tensor([IGNORE, 1, IGNORE, IGNORE, IGNORE])}),
    Case(FreeMatch(3.0, weight_fairness=0.5, memory_ema=0.9), None, freematch,
         memory=_averages(threshold=0.4, **AVERAGES)),
    Case(SoftMatch(3.0, memory_ema=0.9), None, softmatch,
         memory=_averages(mean=0.6, variance=0.05, probabilities=AVERAGES["probabilities"])),
    *_guessed(),
    Case(FixMatchSeg(0.95), PASTE, fixmatch_seg, True),
    Case(MeanTeacher(), torch.tensor(5.0), mean_teacher),
    Case(MeanTeacherSeg(), torch.tensor(0.5), mt_seg, True),
    Case(CutMixSeg(0.95, weight=2.0), PASTE, cutmix_seg, True),
    *both(CrossPseudo(1.5), None, cps, separate=False),
    Case(CrossPseudoPasted(2.0), PASTE, cps_cutmix, True),
    Case(
        TemporalEnsembling(decay=0.5), torch.tensor(4.0), temporal_ensembling,
        memory={"sums": torch.tensor(SUMS), "visits": torch.tensor([2.0, 0.0])},
    ),
    Case(DualStudent(own=0.5, threshold=0.5), torch.tensor(3.0), dual_student),
    Case(DeepCoTraining(), torch.tensor(0.5), deep_co_training, separate=False),
    Case(CoTeaching(), Choice(torch.tensor(0.5), torch.tensor(True)), co_teaching),
    Case(CoTeachingPlus(), Choice(torch.tensor(0.5), torch.tensor(False)), co_teaching),
]  # fmt: skip

CASES: dict[str, list[Case]] = {}
for _case in _ALL:
    CASES.setdefault(type(_case.objective).__name__, []).append(_case)
