"""What a committed record may say of the machine it was made on."""

import re
from collections.abc import Iterable

_FOLDERS = re.compile(r"^(|.*[=:])/(?!/)(?:.*/)?")
"""Of an absolute path, alone or after ``key=`` or ``best:``, all but its last name; an address is none."""


def command(words: Iterable[str]) -> str:
    """A command as it was typed, without the folders of the machine."""
    return " ".join(map(public, words))


def public(word: str) -> str:
    """A word of it."""
    return _FOLDERS.sub(r"\1…/", word)
