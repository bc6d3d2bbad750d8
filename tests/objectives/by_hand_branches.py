"""Hand-computed losses of methods with branches beside the main one, as those of `by_hand_pixels`."""

import numpy as np
import torch

from dmt.objectives.judged import S4GAN
from dmt.objectives.multi_label import MultiLabelDraw, S4GANMultiLabel
from tests.objectives import by_hand_pixels
from tests.objectives.by_hand import LABELED, Case, Logits


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
    Case(
        S4GANMultiLabel(S4GAN(0.5, semi=0.7, matching=0.4), consistency=3.0),
        MultiLabelDraw(by_hand_pixels.SEED_TABLES, torch.tensor(0.5)), s4gan_mlmt, True,
        parts={"judge": by_hand_pixels.LinearOfImages(0, -0.6)},
    ),
]  # fmt: skip

CASES: dict[str, list[Case]] = {}
for _case in _ALL:
    CASES.setdefault(type(_case.objective).__name__, []).append(_case)
