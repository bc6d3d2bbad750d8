"""Which setting is chosen, from what nets said of the validation images."""

from pathlib import Path

import numpy as np
import pytest

from dmt.core.evidence import Evidence
from dmt.results import guard_rules
from dmt.tuning import judging
from dmt.tuning.judging import Verdict
from dmt.tuning.outcome import FINE, Trial, Tuning


def said(right: np.ndarray, sure: float = 0.9) -> Evidence:
    """Of two classes; a right image is called so with this probability."""
    image = np.arange(len(right), dtype=np.int32)
    truth = image % 2
    labels = np.where(right, truth, 1 - truth).astype(np.int32)
    return Evidence(image, truth, labels, np.ones_like(image), sure * right.astype(np.float32), 2, False)


def words(verdict: Verdict, images: int = 200) -> str:
    """What is said of the default, γ = 4, and of γ = 1."""
    trials = tuple(
        Trial(name, {"gamma": gamma}, Path(name), 0.0) for name, gamma in (("default", 4.0), ("gamma=1", 1.0))
    )
    return str(Tuning(trials, verdict, FINE, images, 1, {}, ("dmt", "fit", "digits")))


def test_noise_is_rarely_chosen() -> None:
    chance = np.random.default_rng(0)
    chosen = [judging.judge([[said(chance.random(200) < 0.8)] for _ in range(5)], fine=True).chosen for _ in range(25)]
    assert sum(number != 0 for number in chosen) <= 3  # one in twenty is expected


def test_a_net_that_is_merely_surer_is_not_chosen() -> None:
    right = np.arange(200) % 10 > 1
    less = right & (np.arange(200) != 2)  # one right answer less
    verdict = judging.judge([[said(right, 0.7)], [said(less, 0.95)]], fine=True)
    assert verdict.over_default[1].low > 0
    assert (verdict.best, verdict.chosen, verdict.surer) == (1, 0, (1,))
    assert verdict.accuracies == pytest.approx((80.0, 79.5))
    assert "gamma=1: more confident than the default, but less accurate; keep the default:" in words(verdict)
    assert judging.judge([[said(right, 0.7)], [said(right, 0.95)]], fine=True).chosen == 1  # as often right


def test_a_handful_of_images_chooses_nothing() -> None:
    def judged(images: int) -> judging.Verdict:
        every = np.ones(images, dtype=bool)
        return judging.judge([[said(np.arange(images) % 2 == 0)], [said(every)]], fine=True)

    assert (judged(guard_rules.FEW).chosen, judged(guard_rules.FEW).few) == (1, False)
    few = judged(guard_rules.FEW - 1)
    assert few.over_default[1].low > 0
    assert (few.chosen, few.few) == (0, True)
    assert "29 validation images are too few to choose by; keep the default:" in words(few, 29)


def test_a_setting_is_not_advised_and_warned_of_at_once() -> None:
    one, other = np.random.default_rng(1).random((2, 60))
    near, far = (judging.judge([[said(one < 0.3)], [said(other < share)]], fine=True) for share in (0.35, 0.9))
    assert min(near.least, far.least) > judging.COARSE
    assert "keep it:" in words(near)
    assert "too few to tune on; label more, or keep the default" in words(near)
    assert "use it:" in words(far)
    assert "too few to tune on" not in words(far)


def test_a_difference_is_found_and_what_it_cannot_tell_is_said() -> None:
    chance = np.random.default_rng(1)
    hard = chance.random(200)  # the same images are hard for all nets
    trials = [[said(hard + 0.1 * chance.random(200) < limit)] for limit in (0.75, 0.85, 0.86)]
    verdict = judging.judge(trials, fine=True)
    assert verdict.chosen == verdict.best == 2
    assert not verdict.over_best[1].clear
    assert verdict.over_best[0].high < 0
    assert 0.5 < verdict.least < 5


def test_seeds_that_disagree_are_less_sure_than_seeds_that_agree() -> None:
    def nets(*shares: float) -> list[Evidence]:
        return [said(np.arange(200) % 20 < 20 * share) for share in shares]

    agree = judging.judge([nets(0.8, 0.8), nets(0.85, 0.85)], fine=True).over_default[1]
    disagree = judging.judge([nets(0.8, 0.8), nets(0.7, 1.0)], fine=True).over_default[1]
    assert agree.value == pytest.approx(disagree.value)
    assert agree.clear
    assert not disagree.clear
