"""Dynamic Mutual Training as scikit-learn estimators: nets on arrays, or any two classifiers."""

from dmt.sklearn.features import FrozenFeatures
from dmt.sklearn.mutual import MutualSelfTraining
from dmt.sklearn.nets import DMTClassifier

__all__ = ["DMTClassifier", "FrozenFeatures", "MutualSelfTraining"]
