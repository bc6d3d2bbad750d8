"""Semi-supervised vision by Dynamic Mutual Training.

>>> import dmt
>>> labels, weights = dmt.weighting.dynamic(logits, dmt.Target(pseudo, confidence), gamma=5.0)
>>> loss = dmt.losses.cross_entropy(logits, labels, weights, count=batch_sites)
>>> report = dmt.fit("digits", method="dmt", out="runs/a", seed=1)
"""

from dmt.core import losses, mixing, ramps, selection, weighting
from dmt.errors import DmtError
from dmt.report import Report
from dmt.run import fit
from dmt.types import IGNORE, Batch, Target
from dmt.version import VERSION as __version__

__all__ = [
    "IGNORE",
    "Batch",
    "DmtError",
    "Report",
    "Target",
    "__version__",
    "fit",
    "losses",
    "mixing",
    "ramps",
    "selection",
    "weighting",
]
