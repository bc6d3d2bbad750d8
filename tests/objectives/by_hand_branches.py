"""Hand-computed losses of methods with branches beside the main one, as those of `by_hand_pixels`."""

import numpy as np
import torch
from torch import nn

from dmt.core import noise
from dmt.objectives.auxiliary import CCT, CCTDraw
from dmt.objectives.judged import S4GAN
from dmt.objectives.multi_label import MultiLabelDraw, S4GANMultiLabel
from dmt.objectives.perturbations import KINDS
from tests.objectives import by_hand_pixels
from tests.objectives.by_hand import LABELED, VALID, Case, Formula, Logits, mean, p, supervised


def uniform(seeds: torch.Tensor, count: int) -> np.ndarray:
    return np.asarray(noise.uniform(seeds, count), np.float64)


def perturbed(kind: str, clean: np.ndarray, said: np.ndarray) -> np.ndarray:
    """Features (2, 3, 1, 2) as a decoder sees them; ``said`` are the same, held still."""
    channels, salient, _ = CCT_DRAW.seeds[:, :, 0].T
    loud, first = (uniform(seed, 6).reshape(3, 1, 2) - 0.5 for seed in CCT_DRAW.maps[:, 0])
    objects = (said.argmax(1) != 1)[:, None]
    activation = said.mean(1)
    share = 0.7 + 0.2 * uniform(salient, 1)[:, :, None]
    quiet = (activation < activation.max(axis=(1, 2), keepdims=True) * share)[:, None]
    assert all(0 < each.mean() < 1 for each in (quiet, objects))
    change = p(said) * (first - (p(said) * first).sum(1, keepdims=True)) * VALID[:, None]
    worst = 2.0 * change / np.sqrt((change**2).sum(axis=(1, 2, 3), keepdims=True))
    seen: dict[str, np.ndarray] = {
        "channels": clean * 2.0 * (uniform(channels, 3) < 0.5)[:, :, None, None],
        "salient": clean * quiet,
        "noise": clean * (1.0 + 0.6 * loud),
        "cutout": clean,  # of objects this small nothing is cut out
        "context": clean * objects,
        "objects": clean * ~objects,
        "adversarial": clean + worst,
    }
    return seen[kind]


def cct(*kinds: str) -> Formula:
    """Decoders that change nothing, one for each kind of perturbation; class 1 is the background."""

    def formula(ours: list[Logits], theirs: list[Logits], _: list[Logits]) -> float:
        clean, said = ours[0]["weak"], theirs[0]["weak"]
        terms = [mean(((p(perturbed(kind, clean, said)) - p(said)) ** 2).sum(1) / 3) for kind in kinds]
        return supervised(ours[0][LABELED]) + 7.0 * 0.5 * sum(terms) / len(kinds)

    return formula


class Same(nn.Module):
    """A decoder that changes nothing."""

    def forward(self, features: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
        return features


CCT_DRAW = CCTDraw(torch.tensor(0.5), torch.tensor([[[4], [9], [5]], [[11], [2], [7]]]), torch.tensor([[3], [8]]))


def _cct(name: str, *kinds: str) -> Case:
    parts = {"decoders": nn.ModuleList(Same() for _ in kinds)}
    return Case(CCT(7.0, each=1, kinds=kinds, background=1), CCT_DRAW, cct(*kinds), True, name=name, parts=parts)


def s4gan_mlmt(ours: list[Logits], theirs: list[Logits], slow: list[Logits]) -> float:
    """The classifier's logits are means over pixels; truth shows classes 1 and 2, and class 0."""
    learn, teach = ({name: values.mean((2, 3)) for name, values in each[0].items()} for each in (ours, slow))
    shown = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    chance = 1.0 / (1.0 + np.exp(-learn[LABELED]))
    named = -(shown * np.log(chance) + (1.0 - shown) * np.log(1.0 - chance)).sum() / 6
    apart = 0.0
    for mine, target in zip(learn["strong"], teach["weak"], strict=True):
        apart += 1.0 - (mine * target).sum() / np.sqrt((mine**2).sum() * (target**2).sum())
    assert apart > 0.1
    return by_hand_pixels.s4gan(ours, theirs, slow) + float(named + 3.0 * 0.5 * apart / 2)


_ALL: list[Case] = [
    _cct("all", *KINDS),
    *(_cct(kind, kind) for kind in ("context", "objects", "adversarial")),
    Case(
        S4GANMultiLabel(S4GAN(0.5, semi=0.7, matching=0.4), consistency=3.0),
        MultiLabelDraw(by_hand_pixels.SEED_TABLES, torch.tensor(0.5)), s4gan_mlmt, True,
        parts={"judge": by_hand_pixels.LinearOfImages(0, -0.6)},
    ),
]  # fmt: skip

CASES: dict[str, list[Case]] = {}
for _case in _ALL:
    CASES.setdefault(type(_case.objective).__name__, []).append(_case)
