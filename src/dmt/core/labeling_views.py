"""Test-time views in which a teacher labels images: as they are, mirrored, resized, or with dropout."""

from collections.abc import Iterable
from typing import NamedTuple

from dmt.errors import ConfigError

FLIP = "flip"
DROPOUT = "dropout"
DROPOUT_PASSES = 4
"""Number of additional passes over the original image, each with a different dropout mask."""


class LabelingView(NamedTuple):
    """One view of an image: its scale, mirroring and dropout pass."""

    scale: float = 1.0  # factor of both sides
    mirrored: bool = False  # flipped horizontally
    dropout_pass: int = 0  # number of the pass with dropout, from 1; 0 for no dropout

    @property
    def pixels(self) -> float:
        """Number of pixels that the net processes, relative to the original image."""
        return self.scale**2


PLAIN = LabelingView()


def sorted_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of views in canonical form and order: ``flip``, scales in ascending order, ``dropout``."""
    names = tuple(names)
    scales = sorted({_scale(name) for name in names if name not in (FLIP, DROPOUT)})
    return (*((FLIP,) if FLIP in names else ()), *map(str, scales), *((DROPOUT,) if DROPOUT in names else ()))


def every(names: Iterable[str]) -> tuple[LabelingView, ...]:
    """Return all views of these names, the original image first.

    With ``flip``, every scale also comes mirrored; ``dropout`` adds `DROPOUT_PASSES` passes over the original image.
    """
    names = sorted_names(names)
    scales = (1.0, *(_scale(name) for name in names if name not in (FLIP, DROPOUT)))
    sides = (False, True) if FLIP in names else (False,)
    passes = range(1, DROPOUT_PASSES + 1) if DROPOUT in names else ()
    return (
        *(LabelingView(scale, mirrored) for scale in scales for mirrored in sides),
        *(LabelingView(dropout_pass=number) for number in passes),
    )


def _scale(name: str) -> float:
    try:
        scale = float(name)
    except ValueError:
        scale = 0.0
    if not 0.1 <= scale <= 10 or scale == 1:
        raise ConfigError(
            f"labeling_views must be flip, dropout and, for pixels, scales such as 0.75,1.25, not '{name}'"
        )
    return scale
