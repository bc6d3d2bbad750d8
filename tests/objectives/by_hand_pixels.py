"""Hand-computed losses of methods for pixels, as those of `by_hand`: two samples of 1×2 pixels, three classes."""

import numpy as np
import torch
from torch import nn

from dmt.core import noise
from dmt.core.pasting import ClassDraw, Paste
from dmt.objectives.flaws import GCT
from dmt.objectives.judged import S4GAN, AdvSemiSeg, JudgedDraw
from dmt.objectives.perturbed import PerturbedDraw, UniMatch, UniMatchV2
from dmt.objectives.slow_pasted import AugSeg, AugSegDraw, ClassMix
from dmt.types import IGNORE
from tests.objectives import by_hand
from tests.objectives.by_hand import LABELED, VALID, Case, Logits, ce, mean, p, pasted, supervised

SCORES, FLAWS = (2.4, 0.9, -1.3), (0.7, -0.7, 3.0)
"""What judges make of the probability of each class."""

BOX = Paste(torch.tensor(by_hand.INSIDE), torch.tensor([1, 0]))


def classmix(ours: list[Logits], _: list[Logits], slow: list[Logits]) -> float:
    """One class goes nowhere; of the second sample's two one goes onto the first: that of its second pixel."""
    target = p(slow[0]["weak"])
    assert np.unique(target.argmax(1)[0]).size == 1
    assert target.argmax(1)[1].tolist() == [[0, 2]]
    labels, confidence = pasted(target.argmax(1)), pasted(target.max(1))
    share = mean((confidence >= 0.95).astype(float), pasted(VALID))
    assert share == 0.25
    return supervised(ours[0][LABELED]) + 2.0 * share * mean(ce(pasted(ours[0]["strong"]), labels), pasted(VALID))


def augseg(*, patched: bool) -> by_hand.Formula:
    """The box shows the second sample's second pixel, or instead of it that of the first labeled image."""

    def formula(ours: list[Logits], _: list[Logits], slow: list[Logits]) -> float:
        target = p(slow[0]["weak"])
        labels, confidence = pasted(target.argmax(1)), pasted(target.max(1))
        learn, valid = pasted(ours[0]["strong"]), pasted(VALID)
        if patched:
            learn[0, :, 0, 1] = ours[0][LABELED][0, :, 0, 1]
            labels[0, 0, 1], confidence[0, 0, 1] = by_hand.PIXEL_TRUTH[0, 0, 1], 1.0
        sites = (confidence >= 0.65) * ce(learn, labels)
        assert 0 < (confidence >= 0.65).mean() < 1
        return supervised(ours[0][LABELED]) + 2.0 * mean(sites, valid)

    return formula


def _dropped(values: np.ndarray) -> np.ndarray:
    """Which of the three channels of each sample are dropped: 0, others 2."""
    masks = 2.0 * (noise.uniform(SEEDS, 3).numpy() < 0.5)
    return np.array(np.broadcast_to(masks[:, :, None, None], values.shape))


def unimatch(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
    target = p(theirs[0]["weak"])
    kept, labels = target.max(1) >= 0.95, target.argmax(1)
    assert 0 < kept[VALID].mean() < 1
    first, second = (
        mean(pasted(kept) * ce(pasted(ours[0][view]), pasted(labels)), pasted(VALID)) for view in ("strong", "strong2")
    )
    masks = _dropped(target)
    assert set(np.unique(masks)) == {0.0, 2.0}
    features = mean(kept * ce(ours[0]["weak"] * masks, labels))
    return (supervised(ours[0][LABELED]) + first / 4 + second / 4 + features / 2) / 2


def unimatch_v2(ours: list[Logits], _: list[Logits], slow: list[Logits]) -> float:
    """The second sample keeps all of its features."""
    target = p(slow[0]["weak"])
    kept, labels = pasted(target.max(1)) >= 0.65, pasted(target.argmax(1))
    masks = _dropped(target)
    total = 0.0
    for view, mask in (("strong", masks), ("strong2", 2.0 - masks)):
        mask[1] = 1.0
        total += mean(kept * ce(pasted(ours[0][view]) * mask, labels), pasted(VALID))
    return (supervised(ours[0][LABELED]) + total / 2) / 2


SEEDS = torch.tensor([4, 9])
TWICE = PerturbedDraw((BOX, BOX), SEEDS, torch.tensor([False, True]))


def score(probabilities: np.ndarray, slope: tuple[float, ...] = SCORES, bias: float = -0.9) -> np.ndarray:
    """Of the judge of pixels."""
    return np.asarray(np.einsum("nchw,c->nhw", probabilities, np.array(slope)) + bias)


def flaw(probabilities: np.ndarray) -> np.ndarray:
    """Of the detector of flaws."""
    return score(probabilities, FLAWS, 1.0)


def bce(scores: np.ndarray, wanted: float) -> np.ndarray:
    chance = 1.0 / (1.0 + np.exp(-scores))
    return np.asarray(-wanted * np.log(chance) - (1.0 - wanted) * np.log(1.0 - chance))


def over(sites: np.ndarray, counted: np.ndarray) -> float:
    return float(sites[counted].mean())


def hot(truth: np.ndarray) -> np.ndarray:
    """(2, 3, 1, 2): the truth as probabilities, 0 without a label."""
    return np.asarray(truth[:, None] == np.arange(3)[None, :, None, None], float)


TOLD = by_hand.PIXEL_TRUTH != IGNORE


def adv_semi_seg(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
    learn, known = ours[0]["weak"], ours[0][LABELED]
    believed = 1.0 / (1.0 + np.exp(-score(p(theirs[0]["weak"])))) >= 0.45
    kept = believed & VALID
    assert 0 < kept.sum() < VALID.sum()
    total = supervised(known) + 0.3 * over(bce(score(p(known)), 1.0), TOLD)
    total += 0.2 * over(bce(score(p(learn)), 1.0), VALID)
    total += 0.5 * 0.7 * over(ce(learn, theirs[0]["weak"].argmax(1)), kept)  # over the kept ones, as published
    fakes = ((theirs[0]["weak"], VALID), (theirs[0][LABELED], TOLD))
    fake = sum(over(bce(score(p(logits)), 0.0), counted) for logits, counted in fakes) / 2
    return total + (fake + over(bce(score(hot(by_hand.PIXEL_TRUTH)), 1.0), TOLD)) / 2


def s4gan(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
    """The judge's features are means of [probabilities; image] over pixels; images are numbers of pixels."""
    unlabeled, labeled = np.array([[4.5], [6.5]]), np.array([[0.5], [2.5]])
    learn, teach = ours[0]["weak"], theirs[0]["weak"]

    def seen(probabilities: np.ndarray, images: np.ndarray) -> np.ndarray:
        return np.concatenate([probabilities.mean((2, 3)), images], axis=1)

    def scored(features: np.ndarray) -> np.ndarray:
        return np.asarray(features[:, :3] @ np.array(SCORES) - 0.6)

    given = seen(hot(by_hand.PIXEL_TRUTH), labeled)
    apart = np.abs(given.mean(0) - seen(p(learn), unlabeled).mean(0)).mean()
    scores = scored(seen(p(teach), unlabeled))
    believed = 1.0 / (1.0 + np.exp(-scores)) > 0.5
    assert believed.tolist() == [True, False]
    own = over(ce(learn, teach.argmax(1)), VALID & believed[:, None, None])
    judge = (bce(scores, 0.0).mean() + bce(scored(given), 1.0).mean()) / 2
    return float(supervised(ours[0][LABELED]) + 0.4 * apart + 0.7 * own + judge)


def gct(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
    """Images this small are not blurred, and their true flaws are equal at both pixels once dilated."""

    def both(logits: Logits) -> np.ndarray:
        return p(np.concatenate([logits["weak"], logits[LABELED]]))

    def scaled(maps: np.ndarray) -> np.ndarray:
        low, high = maps.min(axis=(1, 2), keepdims=True), maps.max(axis=(1, 2), keepdims=True)
        return np.asarray((maps - low) / (high - low + 1e-9))

    counted = np.concatenate([VALID, TOLD])
    held = [both(each) for each in theirs]
    rough = [np.maximum(flaw(each), 0.0) for each in held]
    maps = [scaled(each) * (each.max(axis=(1, 2), keepdims=True) > 0.1) for each in rough]
    flaws = [np.where(each > 0.6, 1.0, each) for each in maps]
    flawed = (maps[0] > 0.6) & (maps[1] > 0.6)
    assert (flaws[1] < flaws[0]).any()
    assert (flaws[0] < flaws[1]).any()
    assert flawed[counted].any()
    total = 0.0
    for mine, other in ((0, 1), (1, 0)):
        found = both(ours[mine])
        still = np.where((flaws[other] < flaws[mine])[:, None], held[other], held[mine])
        squares = ((found - still) ** 2).sum(1) / 3
        apart = np.abs(hot(by_hand.PIXEL_TRUTH) - held[mine][2:]).sum(1) / 2 * TOLD
        truth = scaled(np.broadcast_to(apart.max(axis=(1, 2), keepdims=True), apart.shape))
        total += supervised(ours[mine][LABELED]) + 8.0 * 0.5 * over(squares, counted)
        total += 3.0 * over(flaw(found) ** 2 * flawed, counted)
        total += 2.0 * over((flaw(held[mine][2:]) - truth) ** 2, TOLD)
    return total


class Linear(nn.Module):
    """A judge that can be computed by hand; it sees probabilities, the last three of its maps or the first three."""

    def __init__(self, first: int, bias: float, slope: tuple[float, ...] = SCORES) -> None:
        super().__init__()
        self.slope, self.bias = nn.Parameter(torch.tensor(slope)), nn.Parameter(torch.tensor(bias))
        self.first = first

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        return torch.einsum("nchw,c->nhw", maps[:, self.first : self.first + 3], self.slope) + self.bias


class LinearOfImages(Linear):
    """The same of whole images, with what it has seen of them."""

    def forward(self, maps: torch.Tensor, seeds: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:  # type: ignore[override]
        return super().forward(maps).mean((1, 2)), maps.mean((2, 3))


SEED_TABLES = JudgedDraw(torch.zeros(2, 3, dtype=torch.int64), torch.zeros(2, 3, dtype=torch.int64))


def _first(*classes: int) -> torch.Tensor:
    """Priorities of two images: this class of each goes first."""
    priorities = torch.full((2, 255), 0.5)
    priorities[torch.arange(2), torch.tensor(classes)] = 0.1
    return priorities


def _augseg_draw(chance: float) -> AugSegDraw:
    patches = torch.tensor([[[True, True]], [[False, True]]])
    return AugSegDraw(BOX, patches, torch.tensor([1, 0]), torch.tensor([1.0, chance]))


_ALL: list[Case] = [
    Case(ClassMix(0.95, weight=2.0), ClassDraw(_first(1, 2), torch.tensor([1, 0])), classmix, True),
    Case(AugSeg(0.65, weight=2.0), _augseg_draw(0.0), augseg(patched=True), True, name="patched"),
    Case(AugSeg(0.65, weight=2.0), _augseg_draw(1.0), augseg(patched=False), True, name="plain"),
    Case(UniMatch(0.95), TWICE, unimatch, True),
    Case(UniMatchV2(0.65), TWICE, unimatch_v2, True),
    Case(
        AdvSemiSeg(0.45, semi=0.7, adversarial=0.3, adversarial_unlabeled=0.2), torch.tensor(0.5), adv_semi_seg, True,
        parts={"judge": Linear(0, -0.9)},
    ),
    Case(S4GAN(0.5, semi=0.7, matching=0.4), SEED_TABLES, s4gan, True, parts={"judge": LinearOfImages(0, -0.6)}),
    Case(
        GCT(8.0, threshold=0.6, correction=3.0, detection=2.0), torch.tensor(0.5), gct, True,
        separate=False, parts={"detector": Linear(1, 1.0, FLAWS)},
    ),
]  # fmt: skip

CASES: dict[str, list[Case]] = {}
for _case in _ALL:
    CASES.setdefault(type(_case.objective).__name__, []).append(_case)
