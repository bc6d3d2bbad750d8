"""Semi-supervised vision by Dynamic Mutual Training.

>>> import dmt
>>> labels, weights = dmt.weighting.dynamic(logits, dmt.Target(pseudo, confidence), gamma=5.0)
>>> loss = dmt.losses.cross_entropy(logits, labels, weights, count=batch_sites)
>>> report = dmt.fit("digits", method="dmt", out="runs/a", seed=1)

Names are loaded on first use: importing torch takes seconds, and `dmt --help` does not need it.
"""

import os
from typing import TYPE_CHECKING

# By default, idle OpenMP threads spin, and so take CPU time from other processes and from our own threads: small nets
# on a busy machine ran many times slower. The variable must be set before torch is loaded; a user's value is kept.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from dmt.errors import DmtError
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
    "sklearn",
    "tune",
    "weighting",
]

if TYPE_CHECKING:
    from dmt import sklearn
    from dmt.core import losses, mixing, ramps, selection, weighting
    from dmt.fitting.run import fit
    from dmt.models.registered import register as register_net
    from dmt.results.report import Report
    from dmt.tuning.tuner import tune
    from dmt.types import IGNORE, Batch, Target
else:  # hidden from type checkers: a module-level __getattr__ would make them accept any name
    _HOMES = {
        "IGNORE": "dmt.types:IGNORE",
        "Batch": "dmt.types:Batch",
        "Report": "dmt.results.report:Report",
        "Target": "dmt.types:Target",
        "fit": "dmt.fitting.run:fit",
        "losses": "dmt.core.losses",
        "mixing": "dmt.core.mixing",
        "ramps": "dmt.core.ramps",
        "register_net": "dmt.models.registered:register",
        "selection": "dmt.core.selection",
        "sklearn": "dmt.sklearn",
        "tune": "dmt.tuning.tuner:tune",
        "weighting": "dmt.core.weighting",
    }

    def __getattr__(name):
        from pkgutil import resolve_name

        if name not in _HOMES:
            raise AttributeError(f"module 'dmt' has no attribute {name!r}")
        globals()[name] = found = resolve_name(_HOMES[name])
        return found

    def __dir__():
        return sorted({*globals(), *__all__})
