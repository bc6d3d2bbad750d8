"""The command in this process, as a user meets it."""

import contextlib
import io
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

from dmt.cli import app


def run(*words: object, codes: Sequence[int] = (0, 2)) -> tuple[int, str, str]:
    """Exit code, standard output, standard error; a failure must be one line that is no mistake of ours."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch("sys.argv", ["dmt", *map(str, words)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            app.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    said = err.getvalue()
    assert code in codes, (code, said)
    if code == 2:
        assert said.count("dmt: error: ") == 1, said
        assert said.splitlines()[-1].startswith("dmt: error: "), said
        assert "unexpected" not in said, said
    return code, out.getvalue(), said


def refused(*words: object) -> str:
    """Its one line."""
    code, _, said = run(*words)
    assert code == 2, said
    return said.splitlines()[-1]


def held(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
