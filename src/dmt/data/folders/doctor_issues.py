"""What the doctor reports."""

from dataclasses import dataclass

SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Issue:
    """A problem that the user should know about.

    Attributes:
        severity: "error" if it makes a run meaningless, "warning" if it makes it worse, otherwise "note".
        text: one line that says what to do.
        details: further lines, one per file.
    """

    severity: str
    text: str
    details: tuple[str, ...] = ()
