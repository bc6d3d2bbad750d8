"""The built wheel, installed where there is no checkout: a user's first four commands."""

import csv
import os
import subprocess
import sys
import venv
import zipfile
from importlib import metadata
from pathlib import Path
from shutil import copy, copytree, ignore_patterns

import pytest
import torch

from tests.data.folders import photo_layout

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
OLDEST_SETUPTOOLS = 77  # as in pyproject.toml
SHORT = ["net=resnet8-4", "size=32", "epochs=3", "epochs_round=1", "fractions=1", "batch_labeled=4", "batch_pseudo=8"]


def clean() -> dict[str, str]:
    """The environment without anything that would show the checkout to Python."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return kept | {"OMP_NUM_THREADS": "1"}


def run(words: list[str | Path], folder: Path) -> str:
    """What a command printed that has to succeed."""
    done = subprocess.run(words, cwd=folder, env=clean(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def setuptools_is_there() -> bool:
    try:
        return int(metadata.version("setuptools").split(".")[0]) >= OLDEST_SETUPTOOLS
    except metadata.PackageNotFoundError:
        return False


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: building writes beside the sources, and what an earlier build left there would get in."""
    place = tmp_path_factory.mktemp("wheel")
    source = place / "source"
    copytree(ROOT / "src", source / "src", ignore=ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        copy(ROOT / name, source / name)
    words = [sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--quiet", "--wheel-dir", str(place)]
    isolated = not setuptools_is_there()  # then pip fetches it
    words += [] if isolated else ["--no-build-isolation"]
    done = subprocess.run(words, cwd=source, env=clean(), capture_output=True, text=True, check=False)
    if isolated and done.returncode != 0:
        pytest.skip(f"no setuptools of {OLDEST_SETUPTOOLS} or later to build with, and none can be fetched")
    assert done.returncode == 0, done.stderr
    return next(place.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an empty environment with the wheel; what it needs is found where the tests have it."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin" / "python"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    run([*pip, "install", "--quiet", "--no-deps", "--no-index", wheel], place)
    # a folder named by a .pth file comes last, and .pth files in it, such as that of an editable dmt, are not read
    packages = next(place.glob("lib/python*/site-packages"))
    (packages / "torch_and_others.pth").write_text(f"{Path(torch.__file__).parent.parent}\n")
    return place / "bin"


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.startswith("dmt/")}
    ours = {path.relative_to(ROOT / "src") for path in (ROOT / "src" / "dmt").rglob("*") if path.is_file()}
    assert held == {path.as_posix() for path in ours if "__pycache__" not in path.parts}
    data = {name for name in held if not name.endswith(".py")}
    assert {"dmt/py.typed", "dmt/pages/page.css", "dmt/pages/page.js"} < data
    assert sum(name.startswith("dmt/data/pixels/ids/") for name in data) == 4


def test_check_fit_predict_export(installed: Path, tmp_path: Path) -> None:
    where = run([installed / "python", "-c", "import dmt; print(dmt.__file__)"], tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parent)
    photos = photo_layout.write_classes(tmp_path / "photos", labeled=6, unlabeled=12)
    dmt = installed / "dmt"
    assert "12 unlabeled" in run([dmt, "check", photos, "--no-time"], tmp_path)
    options = [word for pair in SHORT for word in ("--set", pair)]
    assert "Baseline" in run([dmt, "fit", photos, "--out", "run", *options], tmp_path)
    run([dmt, "predict", "run", photos / "unlabeled", "--out", "pred.csv"], tmp_path)
    with (tmp_path / "pred.csv").open(newline="") as file:
        assert {row["class"] for row in csv.DictReader(file)} <= set(photo_layout.SHAPES)
    run([dmt, "export", "run", "--to", "safetensors", "--out", "net.safetensors"], tmp_path)
    code = "from dmt.use import exporting; print(*exporting.load('net.safetensors').classes)"
    assert run([installed / "python", "-c", code], tmp_path).split() == list(photo_layout.SHAPES)
