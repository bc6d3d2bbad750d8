"""Where nets start from: parsed, found, remembered by content, and asked for again only when needed."""

import shutil
from pathlib import Path

import pytest
import torch

import dmt
from dmt import config as configuration
from dmt import files, presets
from dmt.config import Config
from dmt.data.pixels.segment_sets import SegmentSet
from dmt.errors import ConfigError, RunError
from dmt.models import build
from dmt.results.report import Report
from dmt.runs import starting, stopping
from dmt.runs.folder import Folder
from dmt.runs.progress import Silent
from dmt.tasks import opening
from tests.conftest import TINY_PIXELS
from tests.fitting.test_run import StopAt, nets, saved

HEAD = "body.head.weight"


@pytest.fixture
def config(tiny_pixels: dict[str, object]) -> Config:
    return configuration.override(presets.get("scenes").config, tiny_pixels)


def write_start(path: Path, config: Config, seed: int, net: str = "fcn-4") -> Path:
    """Parameters of a net of ours, of this seed."""
    files.write_tensors(path, build.build(opening.net_spec(config.data, net), seed).state_dict())
    return path


@pytest.fixture
def starts(config: Config, tmp_path: Path) -> tuple[Path, Path]:
    return write_start(tmp_path / "a.safetensors", config, 11), write_start(tmp_path / "b.safetensors", config, 22)


def fit(out: Path, start: dict[str, str] | str | None, method: str = "baseline", **options: object) -> Report:
    options = {"settings": TINY_PIXELS, "watcher": Silent()} | options
    return dmt.fit("scenes", out=out, method=method, start=start, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("texts", "given"),
    [
        ([], {}),
        (["random"], {"A": "random", "B": "random"}),
        (["A=x.pth"], {"A": "x.pth"}),
        (["A=x.pth", "B=y.pth"], {"A": "x.pth", "B": "y.pth"}),
        (["timm", "B=y.pth"], {"A": "timm", "B": "y.pth"}),
        (["A=dir/with=sign.pth#unit"], {"A": "dir/with=sign.pth#unit"}),
        (["with=sign.pth"], {"A": "with=sign.pth", "B": "with=sign.pth"}),
    ],
)
def test_parse(texts: list[str], given: dict[str, str]) -> None:
    assert starting.parse(texts) == given


@pytest.mark.parametrize("preset", [name for name, preset in presets.PRESETS.items() if preset.start is None])
@pytest.mark.parametrize("given", [{}, {"A": "random"}])
def test_a_preset_that_needs_a_start_says_what_to_give(preset: str, given: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        starting.find(given, presets.get(preset).config, None, None)
    text = str(caught.value)
    assert ("--start A=FILE" in text) == (not given)
    assert "--start B=FILE" in text
    assert "--start random" in text
    assert "\n" not in text


def test_nothing_is_read_or_written_before_a_start_is_given(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="or --start random"):
        dmt.fit("voc-1of20", out=tmp_path / "run", data_folder=tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_random_is_what_embedded_data_start_from(config: Config) -> None:
    for given in ({}, starting.parse(["random"])):
        found = starting.find(given, config, presets.get("scenes").start, None)
        assert found.known == starting.RANDOM
        net = build.build(opening.net_spec(config.data, "fcn-4"), seed=1)
        before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
        assert found.fill(net, opening.net_spec(config.data, "fcn-4"), "A") is None
        assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())


def test_a_chain_needs_one_start_only(starts: tuple[Path, Path], config: Config) -> None:
    chain = configuration.override(config, {"shape": "chain", "share": "none"})
    found = starting.find({"A": str(starts[0])}, chain, None, None)
    assert found.digests["A"] == found.digests["B"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"C": "random"}, "line A or B, not 'C'"),
        ({"A": "imagenet"}, "give random, timm, wheel or a file ending in"),
        ({"A": "no.pth"}, "there is no file no.pth"),
        ({"A": "timm"}, "needs a net with an encoder of timm, not 'fcn-4'"),
        ({"A": ""}, "give random, timm, wheel or a file"),
    ],
)
def test_what_is_no_start_is_one_line(given: dict[str, str], says: str, config: Config) -> None:
    with pytest.raises(ConfigError) as caught:
        starting.find(given, config, "random", None)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_lines_start_from_their_own_files(starts: tuple[Path, Path], config: Config, tmp_path: Path) -> None:
    """With a learning rate of almost nothing, the trained parameters are those of the files."""
    still = TINY_PIXELS | {"rate": 1e-12, "weight_decay": 0.0}
    first, second = starts
    fit(tmp_path / "run", {"A": str(first), "B": str(second)}, settings=still)
    for line, path in (("A", first), ("B", second)):
        torch.testing.assert_close(saved(tmp_path / "run", f"{line}0")[HEAD], files.read_tensors(path)[HEAD])
    known = Folder(tmp_path / "run").manifest()["starts"]
    assert [known[line]["name"] for line in "AB"] == ["a.safetensors", "b.safetensors"]
    assert known["A"]["digest"] != known["B"]["digest"]


def test_a_start_that_does_not_fit_is_told_before_anything_is_written(
    starts: tuple[Path, Path], config: Config, tmp_path: Path
) -> None:
    """Of line B too, whose turn would come when line A has trained for hours."""
    wide = write_start(tmp_path / "wide.safetensors", config, 1, net="fcn-6")
    with pytest.raises(ConfigError, match=r"'wide.safetensors' fills .* of net 'fcn-4'"):
        fit(tmp_path / "run", {"A": str(starts[0]), "B": str(wide)})
    assert not (tmp_path / "run").exists()
    assert fit(tmp_path / "run", {"A": str(starts[0]), "B": str(wide)}, settings=TINY_PIXELS | {"net_b": "fcn-6"}).jobs


def test_content_decides_not_the_path(starts: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = starts
    fit(tmp_path / "run", {"A": str(first), "B": str(second)})
    moved = tmp_path / "elsewhere.safetensors"
    first.rename(moved)
    before = nets(tmp_path / "run")
    fit(tmp_path / "run", {"A": str(moved), "B": str(second)})
    assert nets(tmp_path / "run") == before  # nothing was trained anew
    fit(tmp_path / "other", {"A": str(moved), "B": str(second)})
    assert nets(tmp_path / "other") == before
    assert Folder(tmp_path / "run").manifest()["starts"]["A"]["name"] == "a.safetensors"


def test_another_start_is_refused_on_a_run_that_goes_on(starts: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = starts
    fit(tmp_path / "run", {"A": str(first), "B": str(second)})
    for other, name in ((str(second), "b.safetensors"), ("random", "random"), (f"{first}#unit", "a.safetensors#unit")):
        with pytest.raises(RunError, match=rf"line A starting from a.safetensors, not {name}; give another --out"):
            fit(tmp_path / "run", {"A": other})
    with pytest.raises(RunError, match=r"line B starting from b.safetensors, not a.safetensors"):
        fit(tmp_path / "run", {"B": str(first)})
    fit(tmp_path / "fresh", None)
    with pytest.raises(RunError, match=r"line A starting from random, not a.safetensors"):
        fit(tmp_path / "fresh", {"A": str(first)})


def test_a_start_is_asked_for_again_only_if_it_is_still_needed(
    starts: tuple[Path, Path], config: Config, tmp_path: Path, few_scenes: SegmentSet
) -> None:
    given = {"A": str(starts[0]), "B": str(starts[1])}
    fit(tmp_path / "whole", given, "dmt", baseline=False)
    with pytest.raises(stopping.Stopped):  # in line A's first stage
        fit(tmp_path / "run", given, "dmt", baseline=False, watcher=StopAt(1))
    for path in starts:
        shutil.move(path, path.with_suffix(".away"))
    with pytest.raises(ConfigError) as caught:  # A goes on from its checkpoint; B has none
        fit(tmp_path / "run", None, "dmt", baseline=False)
    assert str(caught.value) == "line B has yet to start from b.safetensors; give it again with --start B=FILE"
    shutil.move(starts[1].with_suffix(".away"), starts[1])
    with pytest.raises(stopping.Stopped):  # line A is done, B began
        fit(tmp_path / "run", {"B": str(starts[1])}, "dmt", baseline=False, watcher=StopAt(1))
    starts[1].unlink()
    assert fit(tmp_path / "run", None, "dmt", baseline=False).jobs[0].finished
    assert nets(tmp_path / "run") == nets(tmp_path / "whole")


def test_a_preset_that_needs_a_start_goes_on_without(starts: tuple[Path, Path], config: Config) -> None:
    given = {"A": str(starts[0]), "B": str(starts[1])}
    recorded = starting.find(given, config, None, None).known
    again = starting.find({}, config, None, recorded)
    assert again.known == recorded
    assert again.files == {}


def test_nets_that_start_alike_get_a_word_of_advice(starts: tuple[Path, Path], config: Config) -> None:
    first, second = map(str, starts)

    def alike(given: dict[str, str], **changes: object) -> bool:
        changed = configuration.override(config, changes)
        return starting.alike(starting.find(given, changed, None, None), changed)

    assert alike({"A": first, "B": first}, share="none")
    assert not alike({"A": first, "B": first}, share=0.8)
    assert not alike({"A": first, "B": second}, share="none")
    assert not alike({"A": "random", "B": "random"}, share="none")
    assert not alike({"A": first, "B": first}, share="none", shape="chain")
    notes: list[str] = []

    class Listening(Silent):
        def note(self, text: str) -> None:
            notes.append(text)

    folder = starts[0].parent / "run"
    settings = TINY_PIXELS | {"share": "none"}
    dmt.fit("scenes", out=folder, method="baseline", settings=settings, start=first, watcher=Listening())
    assert any("consider --set share=0.8" in note for note in notes)
    assert any(note.startswith("A0: all ") and "a.safetensors" in note for note in notes)
