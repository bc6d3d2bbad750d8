"""Two classifiers that label for each other."""

from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dmt.sklearn import MutualSelfTraining
from tests.estimators.arrays import clouds


class Told(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Says what its first feature says: the probability of class 1. Keeps what it was taught."""

    taught: list[tuple[Any, Any, Any]] = []  # noqa: RUF012  of all instances

    def __init__(self, column: int = 0) -> None:
        self.column = column

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Told":  # noqa: N803
        self.classes_ = np.unique(y)
        Told.taught.append((X, y, sample_weight))
        return self

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        return np.stack([1 - X[:, self.column], X[:, self.column]], 1)


def test_weights_are_those_of_the_paper() -> None:
    """Teacher B says class 1 of all samples; student A agrees, is less sure of class 0, and is surer of it."""
    Told.taught.clear()
    rows = np.array([[0.0, 0.0], [1.0, 1.0], [0.9, 0.8], [0.3, 0.8], [0.1, 0.8]])
    partly = np.array([0, 1, -1, -1, -1])
    MutualSelfTraining(Told(0), Told(1), fractions=(1.0,), gamma=2.0, gamma2=3.0, labeled_share=0.0).fit(rows, partly)
    _, _, (samples, labels, weights), _ = Told.taught  # both first fits, then A and B in the round
    assert samples[:, 0].tolist() == [0.0, 1.0, 0.9, 0.3]  # the last counts nothing
    assert labels.tolist() == [0, 1, 1, 1]
    assert weights == pytest.approx([1, 1, 0.9**2, 0.3**3], rel=1e-5)


def test_given_labels_keep_their_share() -> None:
    Told.taught.clear()
    chance = np.random.default_rng(0).uniform(0.6, 0.9, (98, 1)).repeat(2, 1)
    rows = np.concatenate([[[0.0, 0.0], [1.0, 1.0]], chance])
    partly = np.array([0, 1] + [-1] * 98)
    MutualSelfTraining(Told(0), Told(1), fractions=(1.0,), weighting="uniform", labeled_share=0.3).fit(rows, partly)
    weights = Told.taught[-1][2]
    assert weights[:2].sum() / weights.sum() == pytest.approx(0.3)


def test_unlabeled_samples_teach() -> None:
    """Of each class one label, far from the middle: the rest shows where the classes are."""
    chance = np.random.default_rng(0)
    truth = np.arange(400) % 2
    rows = np.stack([chance.normal(4.0 * truth, 1.0), chance.normal(0.0, 3.0, 400)], 1)
    rows[:2] = [[1.5, -6.0], [2.5, 6.0]]
    partly = np.where(np.arange(400) < 2, truth, -1)
    alone = LogisticRegression().fit(rows[:2], truth[:2]).score(rows, truth)
    together = MutualSelfTraining(LogisticRegression(), random_state=0).fit(rows, partly).score(rows, truth)
    assert together > alone


def test_what_became_of_each_sample() -> None:
    rows, truth, partly = clouds()
    learner = MutualSelfTraining(LogisticRegression(), fractions=(0.2, 1.0), random_state=0).fit(rows, partly)
    assert (learner.transduction_[:9] == truth[:9]).all()
    assert (learner.transduction_ == truth).mean() > 0.9
    assert (learner.labeled_iter_[:9] == 0).all()
    assert set(learner.labeled_iter_[9:]) == {1, 2}
    assert 15 <= (learner.labeled_iter_ == 1).sum() <= 34  # either teacher's surest fifth of each class
    assert learner.n_iter_ == 2
    assert learner.termination_condition_ == "all_labeled"


def test_samples_may_stay_unlabeled() -> None:
    rows, _, partly = clouds()
    learner = MutualSelfTraining(LogisticRegression(), fractions=(0.2,)).fit(rows, partly)
    assert learner.termination_condition_ == "max_iter"
    never = learner.labeled_iter_ == -1
    assert never.any()
    assert (learner.transduction_[never] == -1).all()


def test_rounds_that_repeat_themselves_end() -> None:
    rows, _, partly = clouds(noise=0.1)
    learner = MutualSelfTraining(LogisticRegression(), weighting="uniform", fractions=(1.0,) * 9).fit(rows, partly)
    assert learner.n_iter_ < 9
    assert learner.termination_condition_ == "all_labeled"
    again = MutualSelfTraining(Told(0), Told(1), fractions=(0.5, 0.5)).fit(
        np.array([[0.0, 0.0], [1.0, 1.0], [0.9, 0.9], [0.8, 0.8], [0.7, 0.7]]), np.array([0, 1, -1, -1, -1])
    )
    assert (again.n_iter_, again.termination_condition_) == (1, "no_change")


def test_per_class_keeps_rare_classes() -> None:
    rows = np.linspace(0.55, 0.95, 20)[:, None].repeat(2, 1)
    rows = np.concatenate([[[0.0, 0.0], [1.0, 1.0]], rows, [[0.45, 0.45], [0.44, 0.44]]])
    partly = np.array([0, 1] + [-1] * 22)
    kept = {}
    for per_class in (False, True):
        learner = MutualSelfTraining(Told(0), Told(1), fractions=(0.5,), per_class=per_class).fit(rows, partly)
        kept[per_class] = (learner.transduction_[2:] == 0).sum()
    assert kept == {False: 0, True: 1}


def test_labels_may_be_strings_of_dtype_object() -> None:
    rows, truth, partly = clouds()
    names = np.array(["ant", "bee", "cat"], dtype=object)
    given = np.where(partly < 0, -1, names[truth])
    learner = MutualSelfTraining(LogisticRegression(), random_state=0).fit(rows, given)
    assert learner.classes_.tolist() == ["ant", "bee", "cat"]
    assert learner.score(rows, names[truth]) > 0.9
    with pytest.raises(ValueError, match="dtype object"):
        learner.fit(rows, given.astype(str))


def test_the_second_may_be_of_another_kind_and_seeds_repeat() -> None:
    rows, truth, partly = clouds()
    learner = MutualSelfTraining(LogisticRegression(), RandomForestClassifier(5), fractions=(1.0,), random_state=3)
    first = learner.fit(rows, partly).predict_proba(rows)
    assert [type(each).__name__ for each in learner.estimators_] == ["LogisticRegression", "RandomForestClassifier"]
    assert (clone(learner).fit(rows, partly).predict_proba(rows) == first).all()
    assert learner.estimator_b.random_state is None  # what was given stays as it was
    assert learner.score(rows, truth) > 0.9


def test_pipeline_and_grid_search() -> None:
    rows, truth, partly = clouds(labeled=6)
    pipeline = make_pipeline(StandardScaler(), MutualSelfTraining(LogisticRegression(), random_state=0))
    grid = {"mutualselftraining__gamma": [0.5, 4.0], "mutualselftraining__estimator__C": [1.0]}

    def seen(learner: Any, X: Any, y: Any) -> float:  # noqa: N803  only labeled samples can judge
        return float(learner.score(X[y != -1], y[y != -1]))

    found = GridSearchCV(pipeline, grid, cv=StratifiedKFold(2), scoring=seen).fit(rows, partly)
    assert found.score(rows, truth) > 0.9


def test_a_pipeline_inside_takes_weights_by_routing() -> None:
    rows, truth, partly = clouds()
    with pytest.raises(ValueError, match="metadata routing"):
        MutualSelfTraining(make_pipeline(StandardScaler(), LogisticRegression())).fit(rows, partly)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            LogisticRegression().set_fit_request(sample_weight=True),
        )
        assert MutualSelfTraining(inner).fit(rows, partly).score(rows, truth) > 0.9


def test_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    rows, truth, partly = clouds()
    frame = pandas.DataFrame(rows, columns=list("abcd"))
    learner = MutualSelfTraining(LogisticRegression(), random_state=0).fit(frame, pandas.Series(partly))
    assert learner.feature_names_in_.tolist() == list("abcd")
    assert learner.score(frame, truth) > 0.9
    with pytest.raises(ValueError, match="feature names"):
        learner.predict(frame[list("abdc")])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"estimator": None}, "predict_proba"),
        ({"estimator": KNeighborsClassifier()}, "sample_weight"),
        ({"fractions": ()}, "fractions"),
        ({"fractions": (0.0, 1.0)}, "fractions"),
        ({"weighting": "dynamite"}, "one of uniform"),
        ({"gamma": -1.0}, "gamma must be 0 or more"),
        ({"share": 0.4}, "share"),
        ({"labeled_share": 1.0}, "labeled_share"),
    ],
)
def test_options_without_sense_are_refused(options: dict[str, Any], match: str) -> None:
    rows, _, partly = clouds()
    with pytest.raises(ValueError, match=match):
        MutualSelfTraining(**{"estimator": LogisticRegression(), **options}).fit(rows, partly)


def test_no_label_at_all_is_refused() -> None:
    rows, _, _ = clouds()
    with pytest.raises(ValueError, match="no labels"):
        MutualSelfTraining(LogisticRegression()).fit(rows, np.full(len(rows), -1))
