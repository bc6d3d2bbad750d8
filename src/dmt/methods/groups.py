"""Options of one method, in a group of their own: ``--set online.threshold=0.95``, or a table of a TOML file.

To add a group, write a frozen subclass of `MethodOptions` with its name, and name the class in the method's catalogue
entry. It is then known to ``--set``, TOML files, ``dmt tune`` and ``dmt list options``.
"""

from dataclasses import dataclass
from typing import ClassVar, TypeVar

from dmt.options import option, require


@dataclass(frozen=True)
class MethodOptions:
    """What the options of every method have in common: the name of their group."""

    group: ClassVar[str]


@dataclass(frozen=True)
class OnlineOptions(MethodOptions):
    """Of Online ST."""

    group: ClassVar[str] = "online"

    epochs: int = option(20, "passes over the unlabeled images")
    threshold: float = option(0.9, "images or pixels at or below this confidence are ignored")

    def __post_init__(self) -> None:
        require("online.epochs", self.epochs, self.epochs >= 1, "at least 1")
        require("online.threshold", self.threshold, 0 <= self.threshold < 1, "at least 0 and below 1")


@dataclass(frozen=True)
class CBSTOptions(MethodOptions):
    """Of CBST."""

    group: ClassVar[str] = "cbst"

    renormalized: bool = option(
        False, "images: choose labels by probability over the class's threshold, as its authors do"
    )


@dataclass(frozen=True)
class GraphOptions(MethodOptions):
    """Of graph labels."""

    group: ClassVar[str] = "graph_labels"

    neighbors: int = option(50, "nearest images of each, by the teacher's features, that labels spread to")
    reach: float = option(0.99, "how far labels spread: how much of an image's label comes from its neighbors (0 to 1)")

    def __post_init__(self) -> None:
        require("graph_labels.neighbors", self.neighbors, self.neighbors >= 1, "at least 1")
        require("graph_labels.reach", self.reach, 0 <= self.reach < 1, "at least 0 and below 1")


Options = TypeVar("Options", bound=MethodOptions)


@dataclass(frozen=True)
class Groups:
    """The options of single methods, asked for by their class: ``groups[OnlineOptions].threshold``.

    Only what differs from its defaults is held, so that equal options are equal groups, whatever groups there are.
    """

    changed: frozenset[MethodOptions] = frozenset()

    @classmethod
    def of(cls, *options: MethodOptions) -> "Groups":
        """Groups of which these differ from their defaults."""
        return cls(frozenset(each for each in options if each != type(each)()))

    def __getitem__(self, kind: type[Options]) -> Options:
        return next((each for each in self.changed if isinstance(each, kind)), kind())

    def replace(self, *options: MethodOptions) -> "Groups":
        """These instead of what there was of their kinds."""
        kinds = {type(each) for each in options}
        return Groups.of(*(each for each in self.changed if type(each) not in kinds), *options)
