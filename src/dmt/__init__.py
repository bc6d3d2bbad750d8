"""Semi-supervised vision by Dynamic Mutual Training.

>>> import dmt
>>> labels, weights = dmt.weighting.dynamic(logits, dmt.Target(pseudo, confidence), gamma=5.0)
>>> loss = dmt.losses.cross_entropy(logits, labels, weights, count=batch_sites)
>>> report = dmt.fit("digits", method="dmt", out="runs/a", seed=1)
"""

import os

# Idle OpenMP threads that spin steal the cores of whoever shares the machine, and our own: small nets on a busy
# machine ran many times slower. It counts only if set before torch is loaded; whoever set it otherwise keeps that.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from dmt.core import losses, mixing, ramps, selection, weighting
from dmt.errors import DmtError
from dmt.fitting.run import fit
from dmt.models.build import register as register_net
from dmt.results.report import Report
from dmt.tuning.tuner import tune
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
    "register_net",
    "selection",
    "tune",
    "weighting",
]
