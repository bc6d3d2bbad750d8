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

from dmt.core.pasting import Paste
from dmt.objectives.base import Cast, Loss, Objective
from dmt.objectives.itself import UDA, FixMatch, FixMatchSeg, Online, Pasted, PiModel, PseudoLabel
from dmt.objectives.peers import CrossPseudo, CrossPseudoPasted
from dmt.objectives.slow import CutMixSeg, MeanTeacher, MeanTeacherSeg
from dmt.objectives.stored import Stored, StoredAskedWeak, StoredDraw, StoredStrong, StoredStrongAskedWeak
from dmt.objectives.truth import Supervised
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
    "strong2": np.array([(0.6, 0.8, -0.1), (-0.7, 0.1, 0.2)]),
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
        places = images[:, 0].long()
        return self.rows[places].movedim(-1, 1).float() if self._pixels else self.rows[places[:, 0, 0]].float()

    @torch.no_grad()
    def peek(self, images: Tensor, *, update_statistics: bool = False) -> Tensor:
        return self(images, update_statistics=update_statistics)

    def features(self, images: Tensor) -> tuple[Tensor, ...]:
        """Its logits: the decoder changes nothing."""
        return (self(images),)

    def decode(self, features: tuple[Tensor, ...], size: tuple[int, int]) -> Tensor:
        return features[0]


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
    """

    objective: Objective
    draw: Any
    formula: Formula
    pixels: bool = False
    pseudo: Target | None = None
    separate: bool = True
    name: str = ""
    parts: Mapping[str, nn.Module] = field(default_factory=dict)

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
    cast = Cast(tuple(students), tuple(teachers), case.parts)
    return Step(objective.loss(cast, batch, case.draw if draw is None else draw), students, list(teachers))


def batch_of(case: Case) -> Batch:
    """Images whose pixels are rows of the tables."""
    places = _places(case.given()[0][0], case.pixels)
    images = {name: torch.tensor(each, dtype=torch.float32)[:, None] for name, each in places.items()}
    return Batch(
        images=images.pop(LABELED),
        truth=torch.tensor(PIXEL_TRUTH if case.pixels else TRUTH),
        views=images,
        pseudo=case.pseudo,
        positions=torch.arange(2),
        valid=torch.tensor(VALID) if case.pixels else None,
    )


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
    target = p(slow[0]["weak"])
    share = mean((target.max(1) >= 0.95).astype(float))
    squares = ((p(pasted(ours[0]["weak"])) - pasted(target)) ** 2).sum(1)
    return supervised(ours[0][LABELED]) + 2.0 * share * mean(squares, pasted(VALID))


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


PASTE = Pasted(Paste(torch.tensor(INSIDE), torch.tensor([1, 0])))
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
    Case(FixMatchSeg(0.95), PASTE, fixmatch_seg, True),
    Case(MeanTeacher(), torch.tensor(5.0), mean_teacher),
    Case(MeanTeacherSeg(), torch.tensor(0.5), mt_seg, True),
    Case(CutMixSeg(0.95, weight=2.0), PASTE, cutmix_seg, True),
    *both(CrossPseudo(1.5), None, cps, separate=False),
    Case(CrossPseudoPasted(2.0), PASTE, cps_cutmix, True),
]  # fmt: skip

CASES: dict[str, list[Case]] = {}
for _case in _ALL:
    CASES.setdefault(type(_case.objective).__name__, []).append(_case)
