"""What a user waits for: torch is loaded when something needs it, and never to print help."""

import os
import subprocess
import sys

import pytest

import dmt

HEAVY = ("torch", "torchvision", "timm", "numpy", "sklearn", "PIL")

COMMAND = f"""
import sys
from dmt.cli import main
sys.argv[0] = "dmt"
try:
    main()
finally:
    print(*{set(HEAVY)!r} & set(sys.modules), file=sys.stderr)
"""


def python(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)


def loaded(done: subprocess.CompletedProcess[str]) -> str:
    """Its last line of standard error: heavy packages that were loaded."""
    return done.stderr.splitlines()[-1]


HELP_OF_EVERY_VERB = f"""
import sys, typer
from dmt.cli.app import app
for verb in typer.main.get_command(app).commands:
    app(args=[verb, "--help"], standalone_mode=False)
    print("told of", verb)
print(*{set(HEAVY)!r} & set(sys.modules), file=sys.stderr)
"""


def test_help_of_every_verb_is_printed_without_torch() -> None:
    done = python(HELP_OF_EVERY_VERB)
    assert done.stdout.count("Usage") == done.stdout.count("told of") > 10
    assert loaded(done) == ""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--help"], 0),
        (["--version"], 0),
        ([], 2),
        (["fitt"], 2),
        (["fit", "digits", "--metod", "dmt"], 2),
        (["score", "runs/a", "--seed", "one"], 2),
    ],
)
def test_help_version_and_mistakes_are_answered_without_torch(words: list[str], code: int) -> None:
    done = python(COMMAND, *words)
    assert done.returncode == code, done.stderr
    assert loaded(done) == ""


def test_the_check_of_loaded_packages_can_fail() -> None:
    assert "torch" in loaded(python(COMMAND, "list", "nets")).split()


def test_importing_the_library_loads_no_torch_but_its_names_are_there() -> None:
    code = f"import sys, dmt; assert not {set(HEAVY)!r} & set(sys.modules); assert set(dmt.__all__) <= set(dir(dmt))"
    assert python(code).stderr == ""
    for name in dmt.__all__:
        assert getattr(dmt, name) is not None
    assert dmt.losses.__name__ == "dmt.core.losses"
    assert not hasattr(dmt, "fitt")


def test_idle_threads_are_told_to_sleep_before_torch_is_loaded() -> None:
    told = "import os, dmt, sys; assert 'torch' not in sys.modules; print(os.environ['OMP_WAIT_POLICY'])"
    environment = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
    for given, expected in (({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "active"}, "active")):
        words = [sys.executable, "-c", told]
        done = subprocess.run(words, env=environment | given, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == expected
