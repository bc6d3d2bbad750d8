"""scikit-learn's own checks, with tiny settings."""

from typing import Any

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_classifiers_classes, parametrize_with_checks

from dmt.sklearn import DMTClassifier, MutualSelfTraining

pytestmark = pytest.mark.filterwarnings(
    "ignore:y contains no unlabeled samples", "ignore::sklearn.exceptions.SkipTestWarning"
)

MUTUAL = MutualSelfTraining(LogisticRegression(), fractions=(0.5, 1.0))
NETS = DMTClassifier("mlp-8", fractions=(0.5, 1.0), epochs=1, min_steps=8, batch_size=32, rate=0.05)

RESERVED = {
    "check_classifiers_classes": "it has -1 for a class, which means unlabeled here as in scikit-learn's own "
    "semi-supervised classifiers; the check spares those by their names"
}


def expected_failures(estimator: Any) -> dict[str, str]:
    return RESERVED


@parametrize_with_checks([MUTUAL, NETS], expected_failed_checks=expected_failures)  # type: ignore[untyped-decorator]
def test_a_check_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("estimator", [MUTUAL, NETS], ids=["mutual", "nets"])
def test_the_check_that_spares_semi_supervised_classifiers_by_name(estimator: Any) -> None:
    check_classifiers_classes("SelfTrainingClassifier", estimator)
