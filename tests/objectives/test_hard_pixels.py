"""Labels teach by their hard pixels where a method is told so; the rest of its loss stays as it is."""

import math

import numpy as np
import pytest

from dmt.config import override
from dmt.core import losses
from dmt.errors import ConfigError
from dmt.methods import catalogue
from dmt.presets import get
from tests.objectives import by_hand, cases
from tests.objectives.by_hand import LABELED, Case

BOUND = 0.3
"""Here a net is unsure below this: the labeled pixels have .07 to .51, and some of them must be easy."""

SHARES = {
    "FixMatchSeg": 0.5, "UniMatch": 0.5, "UniMatchV2": 0.5, "AugSeg": 1.0, "CrossPseudo": 1.0, "CrossPseudoPasted": 1.0
}  # fmt: skip
"""Objectives that know hard pixels, and what each net's mean over labels counts in their loss."""

CASES = [case for name in SHARES for case in cases.CASES[name] if case.pixels]


def hard(logits: np.ndarray, least: int) -> float:
    """The mean over labeled pixels that are unsure, or over the hardest ``least`` of all four."""
    sites = by_hand.ce(logits, by_hand.PIXEL_TRUTH)
    bound = min(-math.log(BOUND), np.sort(sites.flatten())[-least])
    kept = (sites >= bound) & (by_hand.PIXEL_TRUTH >= 0)
    return float(sites[kept].mean())


@pytest.fixture(autouse=True)
def bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "HARD", BOUND)


@pytest.mark.parametrize("least", [1, 2, 3])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_only_the_term_of_the_labels_changes(case: Case, least: int) -> None:
    plain, mined = (by_hand.step(case, hard=share).loss.total.item() for share in (None, least / 4))
    nets = [net[LABELED] for net in case.given()[0]]
    change = sum(hard(each, least) - by_hand.supervised(each) for each in nets)
    assert mined - plain == pytest.approx(SHARES[type(case.objective).__name__] * change, abs=1e-5)


def test_some_pixels_are_easy() -> None:
    """Else the test above would compare two equal means."""
    for case in CASES:
        labeled = [net[LABELED] for net in case.given()[0]]
        means = [[hard(each, least) for least in (1, 2, 3)] + [by_hand.supervised(each)] for each in labeled]
        assert any(len({round(mean, 6) for mean in every}) > 2 for every in means)


PUBLISHED = {
    "fixmatch-seg": 0.16, "unimatch": 0.16, "unimatch-v2": 0.16, "augseg": 0.04, "cps": 0.08, "cps-cutmix": 0.08
}  # fmt: skip


@pytest.mark.parametrize("method", PUBLISHED)
def test_cityscapes_was_published_with_them(method: str) -> None:
    city, voc = (
        catalogue.plan(method, get(name).config.recipe).stages[0].objective for name in ("cityscapes-1of8", "voc-1of8")
    )
    assert getattr(city, "hard") == PUBLISHED[method]  # noqa: B009
    assert getattr(voc, "hard") is None  # noqa: B009


def test_a_share_must_be_one() -> None:
    with pytest.raises(ConfigError, match=r"unimatch\.hard must be above 0 and up to 1, or none, not 1\.5"):
        override(get("scenes").config, {"unimatch.hard": 1.5})
