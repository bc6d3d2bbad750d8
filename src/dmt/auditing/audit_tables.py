"""The lists of an audit as CSV files."""

from collections.abc import Iterable, Sequence

from dmt import csv_tables
from dmt.auditing.label_next import Candidate
from dmt.auditing.suspects import Suspect

SUSPECTS = ("file", "given", "suggested", "suspicious", "score", "share",
            "given_1", "suggested_1", "given_2", "suggested_2", "learned_by")  # fmt: skip
CANDIDATES = ("rank", "file", "class", "doubt", "disagreement", "says_1", "confidence_1", "says_2", "confidence_2")


def suspects(found: Iterable[Suspect], classes: Sequence[str]) -> bytes:
    """Return a CSV with one row per label; given_1 … suggested_2 are probabilities of the first and second net."""
    return csv_tables.table(SUSPECTS, (_suspect(each, classes) for each in found))


def candidates(found: Iterable[Candidate], classes: Sequence[str]) -> bytes:
    """Return a CSV with one row per image, the one to label first at the top."""
    return csv_tables.table(CANDIDATES, (_candidate(rank, each, classes) for rank, each in enumerate(found, start=1)))


def _suspect(each: Suspect, classes: Sequence[str]) -> list[str]:
    nets = [f"{value:.4f}" for pair in each.nets for value in pair]
    nets += [""] * (4 - len(nets))
    names = [_name(label, classes) for label in (each.given, each.suggested)]
    said = "yes" if each.suspicious else "no"
    return [each.file, *names, said, f"{each.score:.4f}", f"{each.share:.4f}", *nets, each.source]


def _candidate(rank: int, each: Candidate, classes: Sequence[str]) -> list[str]:
    nets = [cell for label, sure in each.nets for cell in (_name(label, classes), f"{sure:.4f}")]
    nets += [""] * (4 - len(nets))
    return [str(rank), each.file, classes[each.label], f"{each.doubt:.4f}", f"{each.disagreement:.4f}", *nets]


def _name(label: int, classes: Sequence[str]) -> str:
    return classes[label] if label >= 0 else ""
