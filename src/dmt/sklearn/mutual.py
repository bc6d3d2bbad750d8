"""Mutual self-training of any two classifiers: the dynamic weight of DMT outside of deep learning."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from dmt.core import selection
from dmt.core.weighting import WEIGHTINGS
from dmt.sklearn.targets import Codes, Targets, Taught, Transduction
from dmt.types import Target

SPARSE = ["csr", "csc", "lil", "dok"]
"""Formats of sparse matrices that support indexing of rows."""

Floats = npt.NDArray[np.float64]


class MutualSelfTraining(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Two classifiers that pseudo-label for each other, each label weighted by the agreement of its student.

    First, both are trained on the labels. Then, in each round, each labels all unlabeled samples, and its most
    confident labels are used to train a fresh copy of the other. They are weighted by the dynamic weight of DMT: p^γ1
    if the student's previous copy agrees, p^γ2 if it disagrees but is less confident than the teacher, and 0 if it
    disagrees and is more confident. Here p is the probability that the previous copy gives the label. Predictions are
    by the mean of both classifiers' probabilities.

    Parameters
    ----------
    estimator : estimator object
        A classifier with ``predict_proba`` whose ``fit`` takes ``sample_weight``.
    estimator_b : estimator object, default=None
        The second classifier; None for another copy of the first.
    fractions : sequence of float, default=(0.2, 0.4, 0.6, 0.8, 1.0)
        The fraction of pseudo labels that is kept in each round.
    weighting : {"dynamic", "naive", "flip", "uniform"}, default="dynamic"
        How pseudo labels are weighted: "dynamic" as above; "naive" by p^γ1 in all cases; "flip" as "dynamic", but where
        the student disagrees and is more confident, its own label is learned; "uniform" all equally.
    gamma : float, default=1.0
        γ1, where both agree.
    gamma2 : float, default=None
        γ2, where they disagree and the teacher is more confident; None for γ1.
    per_class : bool, default=True
        Rank pseudo labels within each class, so that each class keeps its share, instead of over all classes.
        Confidence can differ widely between classes, and without this, one class may take over.
    share : float, default=0.75
        The share of each class's labels that each of the two is trained on before the first round, one on the head of
        the shuffled list and one on its tail, so that they differ even if they are of the same kind. In rounds, both
        are trained on all labels.
    labeled_share : float, default=0.3
        The total weight of the given labels as a share of all labels of a round, each pseudo label counted as 1. A
        given label never weighs less than 1.
    random_state : int, RandomState instance or None, default=None
        Determines the shares, and the random state of estimators that have one.

    Attributes
    ----------
    estimators_ : tuple of two estimators
        The classifiers after the last round. Their classes are indices into ``classes_``.
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_samples,)
        The given labels and, for the other samples, the labels kept in the last round; -1 where none was kept.
    labeled_iter_ : ndarray of shape (n_samples,)
        The round in which a sample was first labeled: 0 if its label was given, -1 if it never was.
    n_iter_ : int
        The number of rounds.
    termination_condition_ : {"all_labeled", "no_change", "max_iter"}
        "all_labeled" if every sample was labeled in the end; or else "no_change" if a round would have repeated the
        previous one, "max_iter" if there were no more fractions.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if ``X`` has feature names that are all strings.
    """

    def __init__(
        self,
        estimator: Any = None,
        estimator_b: Any = None,
        *,
        fractions: Sequence[float] = (0.2, 0.4, 0.6, 0.8, 1.0),
        weighting: str = "dynamic",
        gamma: float = 1.0,
        gamma2: float | None = None,
        per_class: bool = True,
        share: float = 0.75,
        labeled_share: float = 0.3,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.estimator_b = estimator_b
        self.fractions = fractions
        self.weighting = weighting
        self.gamma = gamma
        self.gamma2 = gamma2
        self.per_class = per_class
        self.share = share
        self.labeled_share = labeled_share
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803  scikit-learn's name
        """Fit on labeled samples and on unlabeled ones, whose ``y`` is -1.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            -1 means unlabeled. Labels that are strings need an array of dtype object.
        """
        self._require_sense()
        # the two classifiers decide whether values must be finite
        X, y = validate_data(self, X, y, accept_sparse=SPARSE, ensure_all_finite=False)  # noqa: N806
        targets = Targets.read(y)
        chance = check_random_state(self.random_state)
        given = (self.estimator, self.estimator if self.estimator_b is None else self.estimator_b)
        fresh = [_seeded(each, chance) for each in given]
        taught = Transduction(targets)
        known, codes = X[targets.labeled], targets.codes
        if not len(targets.unlabeled):
            pair = [clone(each).fit(known, codes) for each in fresh]
            self.termination_condition_ = "all_labeled"
        else:
            pair = [
                clone(each).fit(known[part], codes[part])
                for each, part in zip(fresh, _shares(codes, self.share, chance), strict=True)
            ]
            pair = self._rounds(fresh, pair, X, targets, taught)
        self.estimators_ = tuple(pair)
        self.classes_ = targets.classes
        self.transduction_, self.labeled_iter_ = taught.labels(), taught.first_rounds()
        self.n_iter_ = taught.rounds
        return self

    def _rounds(self, fresh: list[Any], pair: list[Any], X: Any, targets: Targets, taught: Transduction) -> list[Any]:  # noqa: N803
        """Train both classifiers in rounds, until there are no more or one would repeat the previous one."""
        pool, before = X[targets.unlabeled], None
        self.termination_condition_ = "max_iter"
        for fraction in self.fractions:
            said = [_probabilities(each, pool, len(targets.classes)) for each in pair]
            teachers = [self._taught(each, fraction) for each in said]
            lessons = [self._lesson(said[0], teachers[1]), self._lesson(said[1], teachers[0])]
            if before is not None and _equal(lessons, before):
                self.termination_condition_ = "no_change"
                break
            taught.add(*teachers)
            pair = [self._student(*each, X, targets) for each in zip(fresh, lessons, strict=True)]
            before = lessons
        if taught.complete:
            self.termination_condition_ = "all_labeled"
        return pair

    def _taught(self, said: Floats, fraction: float) -> Taught:
        """Return a teacher's labels of all unlabeled samples, from its probabilities (U, C), and which are kept."""
        labels, confidence = said.argmax(1), said.max(1)
        surest = torch.from_numpy(confidence)
        kept = (
            selection.top_per_class(surest, torch.from_numpy(labels), fraction, said.shape[1])
            if self.per_class
            else selection.top(surest, fraction)
        )
        return Taught(labels, confidence, kept.numpy())

    def _lesson(self, student: Floats, taught: Taught) -> tuple[Codes, Floats]:
        """Return the label that a student learns for each unlabeled sample, and its weight: 0 if it was not kept.

        Args:
            student: the student's probabilities, (U, C).
            taught: the teacher's labels.
        """
        # softmax inverts the logarithm; probabilities of 0 become tiny, so that it stays finite
        logits = torch.from_numpy(np.log(np.maximum(student, np.finfo(np.float32).tiny))).float()
        target = Target(torch.from_numpy(taught.labels), torch.from_numpy(taught.confidence).float())
        learned, weights = WEIGHTINGS[self.weighting](logits, target, self.gamma, self.gamma2)
        return learned.numpy(), np.where(taught.kept, weights.double().numpy(), 0.0)

    def _student(self, fresh: Any, lesson: tuple[Codes, Floats], X: Any, targets: Targets) -> Any:  # noqa: N803
        """Return a fresh classifier, trained on the given labels and the pseudo labels with positive weight."""
        learned, weights = lesson
        counts = weights > 0
        rows = np.concatenate([targets.labeled, targets.unlabeled[counts]])
        codes = np.concatenate([targets.codes, learned[counts]])
        own = self.labeled_share / (1.0 - self.labeled_share) * counts.sum() / len(targets.labeled)
        sample_weight = np.concatenate([np.full(len(targets.labeled), max(1.0, own)), weights[counts]])
        return clone(fresh).fit(X[rows], codes, sample_weight=sample_weight)

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Return class probabilities, the mean of both classifiers', of shape (n_samples, n_classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=SPARSE, ensure_all_finite=False, reset=False)  # noqa: N806
        first, second = (_probabilities(each, X, len(self.classes_)) for each in self.estimators_)
        return (first + second) / 2

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """Return the class of each sample."""
        said = self.predict_proba(X)
        return self.classes_[said.argmax(1)]  # type: ignore[no-any-return]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = [get_tags(each) for each in (self.estimator, self.estimator_b) if each is not None]
        tags.input_tags.sparse = bool(inner) and all(each.input_tags.sparse for each in inner)
        tags.input_tags.allow_nan = bool(inner) and all(each.input_tags.allow_nan for each in inner)
        return tags

    def _require_sense(self) -> None:
        for name in ("estimator", "estimator_b"):
            each = getattr(self, name)
            if each is None and name == "estimator_b":
                continue
            if not (hasattr(each, "fit") and hasattr(each, "predict_proba")):
                raise ValueError(f"{name} must be a classifier with predict_proba, not {each!r}")
            if not _takes_weights(each):
                raise ValueError(
                    f"{name} must take sample_weight in fit, which {type(each).__name__} does not; a Pipeline takes it "
                    f"with metadata routing, or put it around the whole: make_pipeline(scaler, MutualSelfTraining(…))"
                )
        fractions = list(self.fractions)
        if not fractions or not all(_within(each, 0, 1) and each > 0 for each in fractions):
            raise ValueError(f"fractions must be one or more numbers above 0 and up to 1, not {self.fractions!r}")
        if self.weighting not in WEIGHTINGS:
            raise ValueError(f"weighting must be one of {', '.join(WEIGHTINGS)}, not {self.weighting!r}")
        for name, value in (("gamma", self.gamma), ("gamma2", 0 if self.gamma2 is None else self.gamma2)):
            if not _within(value, 0, np.inf):
                raise ValueError(f"{name} must be 0 or more, not {value!r}")
        if not (_within(self.share, 0.5, 1) and self.share > 0.5):
            raise ValueError(f"share must be above 0.5 and up to 1, not {self.share!r}")
        if not (_within(self.labeled_share, 0, 1) and self.labeled_share < 1):
            raise ValueError(f"labeled_share must be at least 0 and below 1, not {self.labeled_share!r}")


def _within(value: object, low: float, high: float) -> bool:
    return isinstance(value, Real | Integral) and low <= float(value) <= high


def _takes_weights(estimator: Any) -> bool:
    """Whether ``fit`` takes ``sample_weight``, directly or by metadata routing."""
    if has_fit_parameter(estimator, "sample_weight"):
        return True
    return bool(get_routing_for_object(estimator).consumes("fit", ["sample_weight"]))


def _seeded(estimator: Any, chance: np.random.RandomState) -> Any:
    """Return a copy in which every ``random_state`` that is None is set from ours."""
    copy = clone(estimator)
    for name, value in sorted(copy.get_params(deep=True).items()):
        if (name == "random_state" or name.endswith("__random_state")) and value is None:
            copy.set_params(**{name: int(chance.randint(np.iinfo(np.int32).max))})
    return copy


def _shares(codes: Codes, share: float, chance: np.random.RandomState) -> tuple[Codes, Codes]:
    """Return positions of head and tail of the labels, shuffled within each class, so that both have all classes."""
    heads, tails = [], []
    for code in range(codes.max() + 1):
        members = chance.permutation(np.flatnonzero(codes == code))
        count = int(np.ceil(share * len(members)))
        heads.append(members[:count])
        tails.append(members[-count:])
    return np.sort(np.concatenate(heads)), np.sort(np.concatenate(tails))


def _probabilities(estimator: Any, X: Any, classes: int) -> Floats:  # noqa: N803
    """Return an estimator's class probabilities, (n, C), after checking that all are finite and no class is missing."""
    said = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    if said.shape[1] != classes:
        raise ValueError(f"{type(estimator).__name__} knows {said.shape[1]} classes, and there are {classes}")
    if not np.isfinite(said).all():
        raise ValueError(f"{type(estimator).__name__} gives probabilities that are not finite")
    return np.clip(said, 0.0, 1.0)


def _equal(lessons: list[tuple[Codes, Floats]], before: list[tuple[Codes, Floats]]) -> bool:
    """Whether two rounds learn the same labels with the same weights; labels of weight 0 do not matter."""
    return all(
        np.array_equal(weights, old_weights) and np.array_equal(learned[weights > 0], old[weights > 0])
        for (learned, weights), (old, old_weights) in zip(lessons, before, strict=True)
    )
