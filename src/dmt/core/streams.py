"""Random streams by name: the same names always give the same numbers, whatever was drawn before.

So a step's randomness depends on the step alone, and a stage resumed at step 900 draws what it would have drawn without
the interruption.
"""

import hashlib
import json

import numpy as np
import torch


def seed_of(*names: str | int) -> int:
    """Return a 63-bit seed for a list of names, e.g. ``seed_of(seed, stage, "augment", step)``."""
    digest = hashlib.sha256(json.dumps(names).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def stream(*names: str | int) -> np.random.Generator:
    """Return a numpy generator for numbers drawn on the host: orders, mixing coefficients, splits."""
    return np.random.Generator(np.random.PCG64(seed_of(*names)))


def device_stream(device: torch.device, *names: str | int) -> torch.Generator:
    """Return a torch generator for numbers drawn on the device itself: augmentation."""
    return torch.Generator(device).manual_seed(seed_of(*names))
