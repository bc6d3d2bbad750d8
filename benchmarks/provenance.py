"""Removal of private paths from the commands in committed records."""

import re
from collections.abc import Iterable

_FOLDERS = re.compile(r"^(|.*[=:])/(?!/)(?:.*/)?")
"""The folders of an absolute path, alone or after ``key=`` or ``best:``; URLs do not match."""


def command(words: Iterable[str]) -> str:
    """Return a command as it was typed, with the folders of absolute paths replaced by an ellipsis."""
    return " ".join(map(public, words))


def public(word: str) -> str:
    """Return a word of a command, with the folders of an absolute path replaced by an ellipsis."""
    return _FOLDERS.sub(r"\1…/", word)
