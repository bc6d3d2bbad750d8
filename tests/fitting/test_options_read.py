"""Which options a run reads, found by changing them."""

from pathlib import Path
from typing import Any

import pytest

import dmt
from dmt import config as configuration
from dmt import presets
from dmt.fitting import options_read
from dmt.methods import catalogue
from dmt.runs.progress import Silent
from tests import command
from tests.conftest import TINY

DIGITS = presets.get("digits").config


@pytest.mark.parametrize("name", [name for name, method in catalogue.METHODS.items() if method.options is not None])
def test_every_method_reads_its_own_options(name: str) -> None:
    method = catalogue.get(name)
    config = DIGITS if "images" in method.serves else presets.get("scenes").config
    own = [key for key in configuration.flat(config) if key.startswith(f"{method.options.group}.")]  # type: ignore[union-attr]
    assert own
    assert options_read.note([name], config, own) == ()


def test_no_option_is_read_by_nobody() -> None:
    unread = [options_read.unread_by(name, DIGITS) for name in ("dmt", "oracle")]
    assert set.intersection(*unread) == set()
    assert "epochs_oracle" in unread[0]
    assert {"gamma", "stop_rounds", "epochs_round", "share"} <= unread[1]
    assert {"gamma", "gamma_ramp", "weight_every"} <= options_read.unread_by("cl", DIGITS)


@pytest.mark.parametrize(
    ("methods", "settings", "unread"),
    [
        (["fixmatch", "baseline"], {"gamma": 9, "epochs": 5, "teachers": 2}, "gamma, teachers"),
        (["dmt", "baseline"], {"cbst.renormalized": True}, "cbst.renormalized"),
        (["dmt"], {"fixmatch.threshold": 0.9}, "fixmatch.threshold"),
        (["dmt"], {"online_stage": "fixmatch", "fixmatch.threshold": 0.9}, ""),
        (["cl", "dmt"], {"gamma": 9, "labels": 50, "net": "mlp-8", "stop_rounds": 1, "fractions": (0.5,)}, ""),
        (["baseline"], {"stop_rounds": 1}, "stop_rounds"),
        (["dmt"], {"gamma": 4.0, "epochs_pretrain": 5}, "epochs_pretrain"),
        (["dmt"], {"pretrain": "rotation", "epochs_pretrain": 5}, ""),
    ],
)
def test_what_nothing_reads_is_named(methods: list[str], settings: dict[str, Any], unread: str) -> None:
    said = options_read.note(methods, configuration.override(DIGITS, settings), settings)
    assert said == ((f"note: nothing that is trained here reads {unread}",) if unread else ())


def test_fit_and_plan_say_it(tmp_path: Path) -> None:
    notes: list[str] = []

    class Noting(Silent):
        def note(self, text: str) -> None:
            notes.append(text)

    settings = TINY | {"gamma": 9, "epochs": 1}
    dmt.fit("digits", out=tmp_path / "run", method="baseline", settings=settings, watcher=Noting(), device="cpu")
    unread = "epochs_oracle, epochs_round, fractions, batch_pseudo, batch_labeled, gamma"
    assert notes[0] == f"note: nothing that is trained here reads {unread}"
    _, said, _ = command.run("plan", "digits", "--method", "fixmatch", "--set", "gamma=9", "--no-time")
    assert "note: nothing that is trained here reads gamma" in said
