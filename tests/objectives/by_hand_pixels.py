"""Hand-computed losses of methods for pixels, as those of `by_hand`: two samples of 1×2 pixels, three classes."""

import numpy as np
import torch

from dmt.core import noise
from dmt.core.pasting import ClassDraw, Paste
from dmt.objectives.perturbed import PerturbedDraw, UniMatch, UniMatchV2
from dmt.objectives.slow_pasted import AugSeg, AugSegDraw, ClassMix
from tests.objectives import by_hand
from tests.objectives.by_hand import LABELED, VALID, Case, Logits, ce, mean, p, pasted, supervised

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
    return np.asarray(2.0 * (noise.uniform(SEEDS, 3).numpy() < 0.5))[:, :, None, None] * np.ones_like(values)


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
]

CASES: dict[str, list[Case]] = {}
for _case in _ALL:
    CASES.setdefault(type(_case.objective).__name__, []).append(_case)
