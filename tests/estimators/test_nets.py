"""Two nets on arrays."""

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dmt.sklearn import DMTClassifier
from dmt.sklearn.inputs import Images, Rows
from tests.estimators.arrays import clouds

TINY: dict[str, Any] = {
    "fractions": (0.5, 1.0), "epochs": 1, "epochs_round": 1, "min_steps": 12, "batch_size": 32, "rate": 0.05,
    "random_state": 0,
}  # fmt: skip


def test_rows() -> None:
    rows, truth, partly = clouds()
    learner = DMTClassifier("mlp-8", **TINY).fit(1e4 * rows + 1e6, partly)  # it standardizes
    assert learner.score(1e4 * rows + 1e6, truth) > 0.9
    assert (learner.transduction_ == truth).mean() > 0.9
    assert set(learner.labeled_iter_) == {0, 1, 2}
    assert (learner.labeled_iter_[:9] == 0).all()
    assert (learner.n_iter_, learner.termination_condition_) == (2, "all_labeled")


def test_a_seed_decides_everything() -> None:
    rows, _, partly = clouds(noise=2.0)
    learner = DMTClassifier("mlp-8", **{**TINY, "fractions": (1.0,)})
    said = [learner.set_params(random_state=seed).fit(rows, partly).predict_proba(rows) for seed in (1, 1, 2)]
    assert (said[0] == said[1]).all()
    assert (said[0] != said[2]).any()


def test_images() -> None:
    digits = load_digits()
    few = digits.target < 3
    images, truth = digits.images[few][:120], digits.target[few][:120]
    partly = np.where(np.arange(120) < 30, truth, -1)
    learner = DMTClassifier("resnet8-4", **{**TINY, "min_steps": 30}).fit(images, partly)
    assert learner.score(images, truth) > 0.8
    again = pickle.loads(pickle.dumps(learner))
    assert (again.predict_proba(images) == learner.predict_proba(images)).all()
    with pytest.raises(ValueError, match="were fitted"):
        learner.predict(images[:, :, :7])
    with pytest.raises(ValueError, match="learn from X of 3 dimensions"):
        DMTClassifier("frozen:resnet18", **TINY).fit(images, partly)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_nets_stay_on_the_host() -> None:
    rows, truth, partly = clouds()
    learner = DMTClassifier("mlp-8", device="cuda", **TINY).fit(rows, partly)
    assert learner.score(rows, truth) > 0.9
    assert {each.device.type for net in learner.nets_ for each in net.parameters()} == {"cpu"}


def test_images_become_bytes() -> None:
    chance = np.random.default_rng(0)
    colors = chance.integers(0, 256, (5, 4, 6, 3), dtype=np.uint8)
    seen = Images.seen(colors)
    assert seen.shape == (3, 4, 6)
    assert (seen.tensor(colors).numpy() == colors.transpose(0, 3, 1, 2)).all()
    assert seen.normalization.mean == pytest.approx(tuple(colors.mean((0, 1, 2)) / 255))
    gray = chance.normal(size=(5, 4, 6))
    known = Images.seen(gray)
    planes = known.tensor(gray)
    assert (planes.shape, int(planes.min()), int(planes.max())) == ((5, 1, 4, 6), 0, 255)
    assert int(known.tensor(gray + 100).min()) == 255  # beyond what was seen


def test_a_constant_feature_stays_harmless() -> None:
    rows = np.stack([np.full(6, 0.1 + 0.2), np.arange(6.0)], 1)
    seen = Rows.seen(rows).tensor(rows)
    assert np.abs(seen.numpy()).max() < 2


def test_labels_alone_teach_too() -> None:
    rows, truth, partly = clouds()
    with pytest.warns(UserWarning, match="no unlabeled"):
        learner = DMTClassifier("mlp-8", **TINY).fit(rows[:9], truth[:9])
    assert (learner.n_iter_, learner.termination_condition_) == (0, "all_labeled")
    few = DMTClassifier("mlp-8", **{**TINY, "fractions": (0.4,)}).fit(rows[:12], partly[:12])  # of each class 0.4
    assert (few.n_iter_, few.termination_condition_) == (0, "max_iter")


def test_pipeline_and_grid_search() -> None:
    rows, truth, partly = clouds(labeled=8)
    pipeline = make_pipeline(StandardScaler(), DMTClassifier("mlp-8", **{**TINY, "fractions": (1.0,)}))

    def seen(learner: Any, X: Any, y: Any) -> float:  # noqa: N803  only labeled samples can judge
        return float(learner.score(X[y != -1], y[y != -1]))

    found = GridSearchCV(pipeline, {"dmtclassifier__gamma": [1.0, 4.0]}, cv=2, scoring=seen).fit(rows, partly)
    assert found.score(rows, truth) > 0.9


def test_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    rows, truth, partly = clouds()
    frame = pandas.DataFrame(rows, columns=list("abcd"))
    learner = DMTClassifier("mlp-8", **TINY).fit(frame, pandas.Series(partly))
    assert learner.feature_names_in_.tolist() == list("abcd")
    assert learner.score(frame, truth) > 0.9


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"net": "resnet8-4"}, "mlp-W"),
        ({"augment": "twist"}, "augment must be one of none"),
        ({"rate": 0.0}, "rate must be greater than 0"),
        ({"batch_size": 1}, "batch_size must be 2 or more"),
        ({"fractions": (2.0,)}, "fraction must be within"),
        ({"epochs": -1}, "epochs must be a whole number of 0 or more, not -1"),
        ({"epochs_round": 1.5}, "epochs_round must be a whole number"),
        ({"net": len}, "net must be the name of a net, not .*; your own gets one by dmt.register_net"),
    ],
)
def test_options_without_sense_are_refused(options: dict[str, Any], match: str) -> None:
    rows, _, partly = clouds()
    with pytest.raises(ValueError, match=match):
        DMTClassifier(**{**TINY, **options}).fit(rows, partly)
