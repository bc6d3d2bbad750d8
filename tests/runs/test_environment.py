from pathlib import Path

import pytest
import torch

from dmt.core.execution import Execution
from dmt.errors import ConfigError
from dmt.models.build import NetSpec
from dmt.runs import environment, forecast, trial
from dmt.types import Normalization

CPU = torch.device("cpu")


def test_description_can_be_written_as_json() -> None:
    import json

    described = json.loads(json.dumps(environment.describe(CPU)))
    assert described["torch"] == torch.__version__
    assert described["hardware"]["cores"] >= 1
    checkout = (Path(__file__).parents[2] / ".git").exists()
    assert checkout == (described["git"] is not None)


def test_devices() -> None:
    assert environment.pick_device("cpu") == CPU
    assert environment.pick_device("auto").type in ("cpu", "cuda")
    for name in ("quantum", "meta", "cuda:99"):
        with pytest.raises(ConfigError, match="device"):
            environment.pick_device(name)


def test_tiny_images_get_one_thread_and_the_caller_keeps_his() -> None:
    with environment.threads(2):
        assert environment.fitting_threads((1, 8, 8)) == 1
        assert environment.fitting_threads((3, 32, 32)) == 2
        with environment.threads(1):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2


def test_a_missing_compiler_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> object:
        raise RuntimeError("no compiler found\nand a long story")

    trial.compiles(Execution(CPU))  # plain execution needs none
    monkeypatch.setattr("torch.compile", broken)
    with pytest.raises(ConfigError, match=r"cannot be compiled here \(no compiler found\); use --plain"):
        trial.compiles(Execution(CPU, fast=True))


def test_forecast_measures_a_rate() -> None:
    spec = NetSpec("resnet8-4", 10, (1, 8, 8), Normalization((0.3,), (0.4,)))
    assert forecast.passes_per_second(spec, 64, Execution(CPU), patience=0.05) > 0


def test_memory_is_kept_where_the_library_can(monkeypatch: pytest.MonkeyPatch) -> None:
    environment.keep_freed_memory()
    asked: list[tuple[int, int]] = []

    class Library:
        def mallopt(self, option: int, value: int) -> int:
            asked.append((option, value))
            return 1

    monkeypatch.setattr("ctypes.CDLL", lambda name: Library())
    environment.keep_freed_memory()
    assert asked == [(-3, 1 << 30), (-1, 1 << 30)]
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())  # another library than glibc
    environment.keep_freed_memory()
