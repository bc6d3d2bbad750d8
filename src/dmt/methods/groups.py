"""Groups of options that belong to a single method: ``--set online.threshold=0.95``, or a table in a TOML file.

To add a group, write a frozen subclass of `MethodOptions` with the group's name, and pass the class as ``options`` in
the method's catalogue entry. It is then known to ``--set``, TOML files, ``dmt tune`` and ``dmt list options``.
"""

from dataclasses import dataclass
from typing import ClassVar, TypeVar

from dmt.options import option, require


@dataclass(frozen=True)
class MethodOptions:
    """Base class of the options of a method, with the name of their group."""

    group: ClassVar[str]


@dataclass(frozen=True)
class OnlineOptions(MethodOptions):
    """Options of Online ST."""

    group: ClassVar[str] = "online"

    epochs: int = option(20, "passes over the unlabeled images")
    threshold: float = option(0.9, "images or pixels at or below this confidence are ignored")

    def __post_init__(self) -> None:
        require("online.epochs", self.epochs, self.epochs >= 1, "at least 1")
        require("online.threshold", self.threshold, 0 <= self.threshold < 1, "at least 0 and below 1")


@dataclass(frozen=True)
class CBSTOptions(MethodOptions):
    """Options of CBST."""

    group: ClassVar[str] = "cbst"

    renormalized: bool = option(
        False, "images: choose labels by probability over the class's threshold, as its authors do"
    )


@dataclass(frozen=True)
class GraphOptions(MethodOptions):
    """Options of graph labels."""

    group: ClassVar[str] = "graph_labels"

    neighbors: int = option(50, "nearest images of each, by the teacher's features, that labels spread to")
    reach: float = option(0.99, "how far labels spread: how much of an image's label comes from its neighbors (0 to 1)")

    def __post_init__(self) -> None:
        require("graph_labels.neighbors", self.neighbors, self.neighbors >= 1, "at least 1")
        require("graph_labels.reach", self.reach, 0 <= self.reach < 1, "at least 0 and below 1")


Options = TypeVar("Options", bound=MethodOptions)


@dataclass(frozen=True)
class Groups:
    """Options of single methods, looked up by their class: ``groups[OnlineOptions].threshold``.

    Only options that differ from their defaults are stored. So two `Groups` with the same values are equal, whichever
    of them were given explicitly.
    """

    changed: frozenset[MethodOptions] = frozenset()

    @classmethod
    def of(cls, *options: MethodOptions) -> "Groups":
        """Return groups with these options; those equal to their defaults are dropped."""
        return cls(frozenset(each for each in options if each != type(each)()))

    def __getitem__(self, kind: type[Options]) -> Options:
        return next((each for each in self.changed if isinstance(each, kind)), kind())

    def replace(self, *options: MethodOptions) -> "Groups":
        """Return groups in which these options replace those of the same class."""
        kinds = {type(each) for each in options}
        return Groups.of(*(each for each in self.changed if type(each) not in kinds), *options)
