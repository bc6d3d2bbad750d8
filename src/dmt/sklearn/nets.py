"""Dynamic Mutual Training of two nets on arrays, with the plan and trainer of `dmt fit`, but in memory."""

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from dmt.core import selection, streams
from dmt.data.images import augment
from dmt.data.sets import PseudoLabels, UnlabeledSet
from dmt.errors import ConfigError
from dmt.methods import catalogue
from dmt.methods.plan import Plan
from dmt.methods.recipe import Recipe
from dmt.models import names
from dmt.runs import environment, starting
from dmt.runs.in_memory import InMemory
from dmt.runs.starting import Starts
from dmt.sklearn import inputs
from dmt.sklearn.inputs import Sets
from dmt.sklearn.targets import Targets, Taught, Transduction
from dmt.training import inference

ROWS, IMAGES = "mlp-64", "resnet8-12"
"""Default nets for rows of features and for images."""


class DMTClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Dynamic Mutual Training of two nets, on rows of features or on images.

    First, both nets are trained on the labels. Then, in each round, each net labels all unlabeled samples, and its most
    confident labels are used to train the other, weighted in every step by that net's agreement. Predictions are by the
    mean of both nets' probabilities. Rows are standardized; images that are not uint8 are scaled to 256 levels.

    Parameters
    ----------
    net, net_b : str, default=None
        Names of the two nets, see ``dmt list nets``; they start from random parameters. By default, ``net`` is
        ``mlp-64`` (rows) or ``resnet8-12`` (images), and ``net_b`` equals ``net``.
    fractions : sequence of float, default=(0.2, 0.4, 0.6, 0.8, 1.0)
        The fraction of pseudo labels that is kept in each round. Rounds that would keep none are left out.
    gamma : float, default=4.0
        γ1 of the dynamic weight, where both nets agree. It grows over a round from nearly 0.
    gamma2 : float, default=None
        γ2, where they disagree and the teacher is more confident; None for γ1.
    per_class : bool, default=True
        Rank pseudo labels within each class, so that each class keeps its share, instead of over all classes.
    mixup : float, default=None
        Parameter of mixup's Beta distribution; None for no mixup.
    augment : str, default="shift"
        Augmentation of images; rows are not augmented.
    epochs, epochs_round : int, default=20 and 5
        Passes over the labels before the first round, and over the pseudo labels in each round.
    min_steps : int, default=200
        Minimum number of steps of each of these trainings, however few samples there are.
    batch_size : int, default=64
        Samples per step. In rounds, half of them are labeled.
    rate, weight_decay : float, default=3e-3 and 1e-2
        Learning rate and weight decay of AdamW.
    device : str, default="cpu"
        "cpu", "cuda", "cuda:N", or "auto" for a GPU if there is one.
    random_state : int, RandomState instance or None, default=None
        Determines all random numbers.

    Attributes
    ----------
    nets_ : tuple of two modules
        The nets after the last round.
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n_samples,)
        The given labels and, for the other samples, the labels kept in the last round; -1 where none was kept.
    labeled_iter_ : ndarray of shape (n_samples,)
        The round in which a sample was first labeled: 0 if its label was given, -1 if it never was.
    n_iter_ : int
        The number of rounds.
    termination_condition_ : {"all_labeled", "max_iter"}
        "all_labeled" if every sample was labeled in the end, or else "max_iter".
    n_features_in_ : int
        The number of features of a row, or the height of an image.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if ``X`` has feature names that are all strings.
    """

    def __init__(
        self,
        net: str | None = None,
        net_b: str | None = None,
        *,
        fractions: Sequence[float] = (0.2, 0.4, 0.6, 0.8, 1.0),
        gamma: float = 4.0,
        gamma2: float | None = None,
        per_class: bool = True,
        mixup: float | None = None,
        augment: str = "shift",
        epochs: int = 20,
        epochs_round: int = 5,
        min_steps: int = 200,
        batch_size: int = 64,
        rate: float = 3e-3,
        weight_decay: float = 1e-2,
        device: str = "cpu",
        random_state: Any = None,
    ) -> None:
        self.net = net
        self.net_b = net_b
        self.fractions = fractions
        self.gamma = gamma
        self.gamma2 = gamma2
        self.per_class = per_class
        self.mixup = mixup
        self.augment = augment
        self.epochs = epochs
        self.epochs_round = epochs_round
        self.min_steps = min_steps
        self.batch_size = batch_size
        self.rate = rate
        self.weight_decay = weight_decay
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803  scikit-learn's name
        """Fit on labeled samples and on unlabeled ones, whose ``y`` is -1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), (n_samples, H, W) or (n_samples, H, W, C)
        y : array-like of shape (n_samples,)
            -1 means unlabeled. Labels that are strings need an array of dtype object.
        """
        X, y = validate_data(self, X, y, allow_nd=True)  # noqa: N806
        targets = Targets.read(y)
        lines, plan = self._lines(X), self._plan(targets)
        self._input = inputs.seen(X)
        sets = Sets.of(self._input.tensor(X), targets.labeled, targets.codes, targets.unlabeled)
        task = self._input.task(sets, tuple(map(str, targets.classes)), tuple(lines.values()), self.augment)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        execution = environment.pick_execution(self.device, fast=False)
        trains = InMemory(task, Starts(starting.RANDOM, {}), execution, lines.__getitem__)
        nets: dict[str, torch.nn.Module] = {}
        lessons: dict[int, list[Taught]] = {}  # by round
        with environment.threads(environment.fitting_threads(task.shape)):
            for found in trains.train(plan.stages, task.labeled, lambda stage: streams.seed_of(seed, stage.name)):
                nets |= found.nets
                if found.pseudo is not None:
                    lessons.setdefault(found.stage.round, []).append(_taught(found.pseudo))
        taught = Transduction(targets)
        for each in lessons.values():
            taught.add(*each)
        nobody = torch.arange(0)
        self._task = replace(task, labeled=task.labeled.take(nobody), unlabeled=task.unlabeled.take(nobody))
        self.nets_ = tuple(nets[line].cpu().eval() for line in "AB")
        self.classes_ = targets.classes
        self.transduction_, self.labeled_iter_ = taught.labels(), taught.first_rounds()
        self.n_iter_ = taught.rounds
        self.termination_condition_ = "all_labeled" if taught.complete else "max_iter"
        return self

    def _lines(self, X: npt.NDArray[Any]) -> dict[str, str]:  # noqa: N803
        """Return the names of the nets by line."""
        if X.ndim not in (2, 3, 4):
            raise ValueError(f"X must be rows of features or images, of 2 to 4 dimensions, not {X.ndim}")
        net = self.net or (ROWS if X.ndim == 2 else IMAGES)
        lines = {"A": net, "B": self.net_b or net}
        for name in lines.values():
            if not isinstance(name, str):
                raise ValueError(f"net must be the name of a net, not {name!r}; your own gets one by dmt.register_net")
            if names.is_frozen(name) or (X.ndim == 2 and names.kind(name) not in ("mlp", None)):
                others = "mlp-W" if X.ndim == 2 else "nets that learn as a whole"
                raise ValueError(f"net '{name}' cannot learn from X of {X.ndim} dimensions here; take {others}")
        for option in ("epochs", "epochs_round", "min_steps"):
            value = getattr(self, option)
            if not isinstance(value, Integral) or value < 0:
                raise ValueError(f"{option} must be a whole number of 0 or more, not {value!r}")
        if self.batch_size < 2:
            raise ValueError(
                f"batch_size must be 2 or more, since BatchNorm needs two samples, not {self.batch_size!r}"
            )
        if self.augment not in augment.POLICIES:
            raise ValueError(f"augment must be one of {', '.join(augment.POLICIES)}, not {self.augment!r}")
        return lines

    def _plan(self, targets: Targets) -> Plan:
        """Return the plan; without unlabeled samples, or with too few to keep any, that of the Baseline."""
        try:
            kept = {each: selection.quota(each, len(targets.unlabeled)) for each in self.fractions}
            # the most frequently predicted class has at least this many samples
            ranked = math.ceil(len(targets.unlabeled) / (len(targets.classes) if self.per_class else 1))
            fractions = tuple(each for each in self.fractions if selection.quota(each, ranked))
            half = max(1, self.batch_size // 2)
            recipe = Recipe(
                batch=self.batch_size,
                batch_pseudo=half,
                batch_labeled=half,
                epochs=self._epochs(self.epochs, len(targets.labeled), self.batch_size),
                epochs_round=tuple(self._epochs(self.epochs_round, kept[each], half) for each in fractions) or 1,
                rate=self.rate,
                rate_round=self.rate,
                optimizer="adamw",
                weight_decay=self.weight_decay,
                decay="kernels",
                mixup=self.mixup,
                gamma=self.gamma,
                gamma2=self.gamma2,
                fractions=fractions or (1.0,),
                per_class=self.per_class,
                shape="pair",
                ema=None,
            )
        except ConfigError as error:
            raise ValueError(str(error)) from error
        method = catalogue.default() if fractions else catalogue.baseline()
        return catalogue.plan(method.name, recipe)

    def _epochs(self, wanted: int, samples: int, batch: int) -> int:
        """Return the wanted number of epochs, or more if needed for the minimum number of steps."""
        return max(wanted, math.ceil(self.min_steps / math.ceil(samples / batch)))

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        """Return class probabilities, the mean of both nets', of shape (n_samples, n_classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, allow_nd=True, reset=False)  # noqa: N806
        if X.shape[1:] != self._input.size:
            raise ValueError(f"X has samples of shape {X.shape[1:]}, and {self._input.size} were fitted")
        device = environment.pick_device(self.device)
        # a copy moves to a GPU: an estimator that was saved there could not be loaded without one
        nets = [net if device.type == "cpu" else copy.deepcopy(net).to(device) for net in self.nets_]
        images = UnlabeledSet(tuple(map(str, range(len(X)))), self._input.tensor(X))
        parts = [said.double().cpu() for _, said in inference.probabilities(nets, self._task, images, device)]
        return torch.cat(parts).numpy()

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """Return the class of each sample."""
        said = self.predict_proba(X)
        return self.classes_[said.argmax(1)]  # type: ignore[no-any-return]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


def _taught(pseudo: PseudoLabels[torch.Tensor]) -> Taught:
    return Taught(pseudo.labels.numpy(), pseudo.confidence.numpy(), pseudo.selected.numpy())
