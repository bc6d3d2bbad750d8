"""In which views a teacher sees the images that it labels: as they are, mirrored, resized, or with dropout."""

from collections.abc import Iterable
from typing import NamedTuple

from dmt.errors import ConfigError

FLIP = "flip"
DROPOUT = "dropout"
DROPOUT_PASSES = 4
"""Further passes over the plain image, each with other units dropped."""


class LabelingView(NamedTuple):
    """One way to see an image."""

    scale: float = 1.0  # of both sides
    mirrored: bool = False  # left and right exchanged
    dropout_pass: int = 0  # with dropout: the number of the pass, from 1 on; 0 for none

    @property
    def pixels(self) -> float:
        """How many a net looks at, relative to the plain image."""
        return self.scale**2


PLAIN = LabelingView()


def sorted_names(names: Iterable[str]) -> tuple[str, ...]:
    """The same views always by the same names in the same order: ``flip``, scales from small to large, ``dropout``."""
    names = tuple(names)
    scales = sorted({_scale(name) for name in names if name not in (FLIP, DROPOUT)})
    return (*((FLIP,) if FLIP in names else ()), *map(str, scales), *((DROPOUT,) if DROPOUT in names else ()))


def every(names: Iterable[str]) -> tuple[LabelingView, ...]:
    """The plain image first, then all further views.

    With ``flip`` every scale comes with its mirror image; ``dropout`` adds passes over the plain image.
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
