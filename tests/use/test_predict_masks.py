"""Pixels through the command: fit, score, predict, splits, plan, list, and mistakes in one line."""

import csv
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from dmt.cli import app
from dmt.data.folders import photo_files
from dmt.data.pixels import palettes
from dmt.data.pixels.segment_sets import SegmentSet
from dmt.errors import ConfigError, DataError, RunError
from dmt.results import reading
from dmt.results.report import Report
from dmt.runs.folder import Folder
from dmt.use import predict, predict_masks, scoring
from dmt.use.scoring import Shipped
from tests.conftest import TINY_PIXELS
from tests.data.pixels import segment_layout

SETTINGS = [word for key, value in TINY_PIXELS.items() for word in ("--set", f"{key}={value}")]
CPU = torch.device("cpu")
Command = Callable[..., tuple[str, str]]


@pytest.fixture
def dmt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process, so that it finds the few scenes; returns what it printed."""

    def run(*words: object, code: int = 0) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["dmt", *map(str, words)])
        with pytest.raises(SystemExit) as caught:
            app.main()
        printed, error = capsys.readouterr()
        assert (caught.value.code or 0) == code, error
        return printed, error

    return run


@pytest.fixture(scope="module")
def run(few_scenes: SegmentSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished comparison, made by the command."""
    out = tmp_path_factory.mktemp("runs") / "cmp"
    words = ["dmt", "fit", "scenes", "--compare", "baseline,dmt", "--out", str(out), *SETTINGS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as caught:
            app.main()
    assert not caught.value.code
    return out


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Images of odd sizes and kinds."""
    folder = tmp_path / "photos"
    (folder / "deep").mkdir(parents=True)
    numbers = np.random.default_rng(0)
    Image.fromarray(numbers.integers(0, 256, (37, 61, 3), dtype=np.uint8)).save(folder / "a.png")
    Image.fromarray(numbers.integers(0, 256, (1, 5), dtype=np.uint8)).save(folder / "gray.png")
    Image.fromarray(numbers.integers(0, 256, (64, 96, 4), dtype=np.uint8), "RGBA").save(folder / "deep" / "a.png")
    Image.new("RGB", (33, 32), (9, 200, 90)).save(folder / "a.jpg")
    return folder


def test_fit_prints_both_lines_and_says_what_comes_next(run: Path, dmt: Command) -> None:
    printed, _ = dmt("fit", "scenes", "--compare", "baseline,dmt", "--out", run, *SETTINGS)
    for word in ("mean IoU of pixels", "both", "final", "Baseline", "DMT", "gain", "least kept class", "dmt report"):
        assert word in printed
    assert "Baseline on scenes [1], by stage" not in printed  # it has no rounds


def test_score_agrees_with_the_report(run: Path, dmt: Command) -> None:
    printed, _ = dmt("score", run, "--method", "dmt")
    job = Report.read([run]).jobs[1]
    row = next(line for line in printed.splitlines() if "mean IoU" in line and "│" in line)
    for stage in job.stages[-2:]:
        assert f"{stage.name} raw" in printed
        assert f"{stage.score('test', 'raw'):.2f}" in row
    assert "pixel accuracy" in printed
    assert all(f"class {name}" in printed for name in ("background", *"0123456789"))
    assert "ema" not in printed
    on_validation, _ = dmt("score", run, "--on", "validation")
    assert on_validation.count("validation pixels") == 2


def test_predict_gives_masks_overlays_and_a_legend(
    run: Path, dmt: Command, photos: Path, tmp_path: Path, few_scenes: SegmentSet
) -> None:
    printed, _ = dmt("predict", run, photos, "--out", tmp_path / "pred")
    assert "4 images segmented by" in printed
    names = ["a-2.png", "a-3.png", "a.png", "gray.png"]  # one stem in three files: none is overwritten
    assert sorted(path.name for path in (tmp_path / "pred" / "masks").iterdir()) == names
    assert sorted(path.name for path in (tmp_path / "pred" / "overlays").iterdir()) == names
    shipped = scoring.shipped_net(run, None, None, CPU)
    taken: list[str] = []
    for path in predict.find([photos]):
        count = taken.count(path.stem) + 1
        taken.append(path.stem)
        name = f"{path.stem}-{count}.png" if count > 1 else f"{path.stem}.png"
        image = photo_files.read_photo(path)
        with (
            Image.open(tmp_path / "pred" / "masks" / name) as mask,
            Image.open(tmp_path / "pred" / "overlays" / name) as over,
        ):
            assert (mask.mode, over.mode) == ("P", "RGB")
            assert mask.size == over.size == (image.shape[1], image.shape[0])
            labels = np.asarray(mask)
            assert np.array_equal(labels, predict_masks.label(shipped, image))
            assert labels.max() < 11
            colors, shown = np.asarray(mask.convert("RGB")), np.asarray(over)
            assert np.array_equal(shown[labels == 0], image[labels == 0])
            half = (image.astype(int) + colors) // 2
            assert np.array_equal(shown[labels != 0], half[labels != 0])
    with (tmp_path / "pred" / "classes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["class"] for row in rows] == list(few_scenes.classes)
    assert [int(row["value"]) for row in rows] == list(range(11))
    colors_told = tuple((int(row["red"]), int(row["green"]), int(row["blue"])) for row in rows)
    assert colors_told == few_scenes.palette[:11]


def test_predictions_are_those_of_the_test(run: Path, few_scenes: SegmentSet) -> None:
    """A scene through `label` scores as in the run: no resizing, no other scale of colors."""
    shipped = scoring.shipped_net(run, "baseline", 1, CPU)
    _, test = few_scenes.read(Path(), print, lambda done, of: None)
    right = total = 0
    for position in range(len(test)):
        truth = test.labels.image(position).numpy()
        right += int((predict_masks.label(shipped, test.images.image(position).numpy()) == truth).sum())
        total += truth.size
    job = Report.read([run]).jobs[0]
    assert 100 * right / total == pytest.approx(job.shipped().scores["test"]["accuracy"])
    assert shipped.name == "baseline seed 1, the mean of A0 raw and B0 raw"


def test_the_shipped_net_is_that_of_its_line(few_scenes: SegmentSet, dmt: Command, tmp_path: Path) -> None:
    """Lines of different nets: each can be loaded, and both as one."""
    dmt("fit", "scenes", "-m", "baseline", "--out", tmp_path, *SETTINGS, "--set", "net_b=fcn-6")
    for line, names in (("A", ["fcn-4"]), ("B", ["fcn-6"]), ("both", ["fcn-4", "fcn-6"])):
        shipped = scoring.shipped_net(tmp_path, None, None, CPU, line)
        assert [spec.name for spec in (shipped.spec, shipped.second) if spec is not None] == names
        assert predict_masks.label(shipped, np.zeros((40, 50, 3), np.uint8)).shape == (40, 50)


def test_the_palette_has_room_for_every_number() -> None:
    flat = palettes.flat(((1, 2, 3), (4, 5, 6)))
    assert len(flat) == 768
    assert flat[:9] == [1, 2, 3, 4, 5, 6, 0, 0, 0]
    assert flat[-3:] == [224, 224, 224]
    image = palettes.indexed(np.array([[0, 1, 255]], np.uint8), ((1, 2, 3), (4, 5, 6)))
    assert np.asarray(image).tolist() == [[0, 1, 255]]
    assert np.asarray(image.convert("RGB"))[0].tolist() == [[1, 2, 3], [4, 5, 6], [224, 224, 224]]


def test_a_file_in_the_place_of_the_folder_stays(run: Path, tmp_path: Path) -> None:
    shipped: Shipped = scoring.shipped_net(run, None, None, CPU)
    (tmp_path / "pred").write_text("precious")
    with pytest.raises(DataError, match="is a file; give a folder"):
        predict_masks.write(shipped, [], tmp_path / "pred", lambda done: None)
    assert (tmp_path / "pred").read_text() == "precious"


def test_another_table_in_the_place_of_the_legend_stays(run: Path, tmp_path: Path) -> None:
    shipped: Shipped = scoring.shipped_net(run, None, None, CPU)
    (tmp_path / "classes.csv").write_text("precious")
    with pytest.raises(RunError, match=r"classes\.csv is there already and is not a legend of dmt predict"):
        predict_masks.write(shipped, [], tmp_path, lambda done: None)
    assert (tmp_path / "classes.csv").read_text() == "precious"
    assert not (tmp_path / "masks").exists()


def test_splits_are_the_published_ones(dmt: Command, tmp_path: Path) -> None:
    printed, _ = dmt("splits", "voc", "--split", 1, "--out", tmp_path / "lists")
    assert "14 lists" in printed
    found = hashlib.md5((tmp_path / "lists" / "20_labeled_1.txt").read_bytes()).hexdigest()
    assert (found[:8], found[-4:]) == ("144dd8dc", "cd63")
    printed, _ = dmt("splits", "cityscapes", "--out", tmp_path / "city")
    assert "10 lists" in printed


def test_splits_can_be_checked_against_a_folder(dmt: Command, tmp_path: Path) -> None:
    segment_layout.write_voc(tmp_path / "voc")
    segment_layout.write_cityscapes(tmp_path / "city")
    for name, folder, says in (
        ("voc", "voc", "lacks 10,57"),
        ("cityscapes", "city", "lacks 2,97"),
        ("voc", "nowhere", "no PASCAL VOC in"),
        ("coco", "voc", "unknown data set with published splits 'coco'"),
    ):
        _, error = dmt("splits", name, "--data", tmp_path / folder, "--out", tmp_path / "lists", code=2)
        assert says in error
        assert error.count("\n") == 1
    assert not (tmp_path / "lists").exists()


def test_plan_needs_neither_data_nor_start(dmt: Command, few_scenes: SegmentSet) -> None:
    printed, _ = dmt("plan", "scenes", *SETTINGS, "--no-time")
    assert "10 labeled and 24 unlabeled images, net fcn-4" in printed
    for word in ("A0", "B0", "A2", "B2", "labels, B1", "dynamic", "6 + 2"):
        assert word in printed
    # ⌈530 / 8⌉ · 134 and 4 · ⌈9,952 / 7⌉: every unlabeled image teaches in every round
    printed, _ = dmt("plan", "voc-1of20", "--net", "fcn-4", "--no-time")
    assert "8,978" in printed
    assert "5,688" in printed
    assert "530 labeled and 9,952 unlabeled images" in printed


def test_plan_forecasts_a_time(dmt: Command, few_scenes: SegmentSet) -> None:
    printed, _ = dmt("plan", "scenes", "--method", "baseline", *SETTINGS)
    assert "on this machine" in printed


def test_list_names_presets_nets_and_options(dmt: Command) -> None:
    printed, _ = dmt("list", "pixel-options")
    for line in ("crop ", "scale ", "split ", "threshold ", "net_b ", "[64,64]", "[0.75,1.25]", "[pair]"):
        assert line in printed
    printed, _ = dmt("list")
    pixels = ("scenes", "voc-1of20", "voc-sbd", "voc-small-1of50", "voc-small-sbd", "cityscapes-1of30")
    for name in (*pixels, "cbst", "online", "fcn-W"):
        assert printed.count(f"\n  {name} ") == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["fit", "scenes", "--set", "per_class=false"], "pixels are ranked within each class; leave per_class=true"),
        (["fit", "scenes", "--net", "wrn-28-2"], "net 'wrn-28-2' labels images, this task labels pixels; use"),
        (["fit", "digits", "--net", "fcn-4"], "net 'fcn-4' labels pixels, this task labels images; use"),
        (["fit", "scenes", "--net", "fnc-4"], "unknown net 'fnc-4'"),
        (["fit", "scenes", "--set", "net_b=wrn-28-2"], "net 'wrn-28-2' labels images"),
        (["fit", "scenes", "--set", "labels=1/8"], "labels must be a number above 0"),
        (["fit", "scenes", "--set", "crop=32"], "crop must be two whole numbers"),
        (["fit", "scenes", "--set", "dataset=voc"], "name another preset"),
        (["fit", "voc-1of20"], "give --start A=FILE --start B=FILE"),
        (["fit", "voc-1of20", "--start", "random", "--data", "nowhere"], "no PASCAL VOC in nowhere"),
        (["fit", "cityscapes-1of8", "--start", "random", "--data", "nowhere"], "no Cityscapes in nowhere"),
        (["fit", "voc-small-1of50", "--start", "random", "--data", "nowhere"], "nowhere"),
        (["fit", "scenes", "--start", "B=no.pth"], "there is no file no.pth"),
        (["plan", "scenes", "--net", "resnet8-4", "--no-time"], "labels images, this task labels pixels"),
        (["plan", "scenes", "--set", "net_b=foo", "--no-time"], "unknown net 'foo'"),
        (["splits", "voc", "--split", "3"], "there is no published split 3; choose 0, 1 or 2"),
        (["splits", "coco"], "unknown data set with published splits 'coco'"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_mistakes_are_one_line(
    words: list[str], says: str, dmt: Command, tmp_path: Path, few_scenes: SegmentSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tiny = SETTINGS if words[1] == "scenes" else []
    out = ["--out", "x"] if words[0] == "fit" else []
    _, error = dmt(*words[:2], *tiny, *words[2:], *out, code=2)
    assert says in error
    assert error.startswith("dmt: error: ")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_run_of_pixels_is_known_as_such(run: Path) -> None:
    manifest = Folder(run).manifest()
    assert manifest["data"] == "scenes"
    assert manifest["config"]["crop"] == [32, 32]
    config = reading.configuration_of(Folder(run))
    assert config.data.sizes.pixels
    with pytest.raises(ConfigError, match="--on takes"):
        scoring.Finished(run, Path(), CPU, print).score(Report.read([run]).jobs[0], "train")
