"""Pixels through the command: fit, score, predict, splits, plan, list, and mistakes in one line."""

import csv
import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from dmt.cli import app
from dmt.data.folders import photo_files
from dmt.data.folders.contents import Photo
from dmt.data.pixels import palettes
from dmt.data.pixels.segment_sets import SegmentSet
from dmt.errors import ConfigError, DataError, RunError
from dmt.results import reading
from dmt.results.report import Report
from dmt.runs.folder import Folder
from dmt.use import mask_table, predict_masks, scoring
from dmt.use.scoring import Shipped
from tests import command
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


def mask_rows(folder: Path) -> dict[str, str]:
    """Image and mask of each row of the table in a folder."""
    with (folder / "pred.csv").open(newline="") as file:
        return {row["file"]: row["mask"] for row in csv.DictReader(file)}


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
    names = {"a.jpg": "a.png", "a.png": "a-2.png", "deep/a.png": "deep/a.png", "gray.png": "gray.png"}
    for kind in ("masks", "overlays"):
        assert set(command.held(tmp_path / "pred" / kind)) == set(names.values())
    assert mask_rows(tmp_path / "pred") == {str(photos / file): f"masks/{name}" for file, name in names.items()}
    shipped = scoring.shipped_net(run, None, None, CPU)
    for source, name in names.items():
        image = photo_files.read_photo(photos / source)
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


def test_force_replaces_what_an_earlier_call_wrote_and_nothing_else(
    run: Path, dmt: Command, photos: Path, tmp_path: Path
) -> None:
    out = tmp_path / "pred"
    dmt("predict", run, photos, "--out", out)
    for name in ("masks/mine.png", "overlays/deep/mine.png"):
        (out / name).write_bytes(b"drawn by hand")
    assert (
        "is not empty; give another --out, or --force" in dmt("predict", run, photos / "gray.png", "-o", out, code=2)[1]
    )
    dmt("predict", run, photos / "gray.png", "--out", out, "--force")
    assert mask_rows(out) == {str(photos / "gray.png"): "masks/gray.png"}
    assert set(command.held(out)) == {
        "pred.csv", "classes.csv", "masks/gray.png", "overlays/gray.png", "masks/mine.png", "overlays/deep/mine.png",
    }  # fmt: skip
    assert not (out / "masks/deep").exists()


@pytest.mark.parametrize(
    "table",
    [
        "file,mask\na.png,masks/../mine.png\n",
        "file,mask\na.png,mine.png\n",
        "file,mask\na.png,{root}/mine.png\n",
        "file,mask\na.png,masks/link/mine.png\n",
        "file,mask,more\na.png,masks/kept.png,\n",
        "file,mask\na.png,masks/kept.png,more\n",
        "file,mask\na.png,masks\nb.png,\n",
    ],
)
def test_a_table_cannot_have_other_files_removed(table: str, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "pred"
    (out / "masks").mkdir(parents=True)
    (out / "masks/link").symlink_to(tmp_path)
    for path in (tmp_path / "mine.png", out / "mine.png", out / "masks/kept.png"):
        path.write_bytes(b"drawn by hand")
    (out / "pred.csv").write_text(table.replace("{root}", str(tmp_path)))
    before = command.held(tmp_path)
    mask_table.remove_earlier(out)
    assert command.held(tmp_path) == before


def test_masks_stay_below_their_folder_and_find_their_places(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Member:
        name: str
        tar = "0.tar"

        def read(self) -> bytes:
            return b""

    def names(found: list[str | Path], *folders: str) -> list[str]:
        taken: set[str] = set()
        photos = [Photo(str(each), each if isinstance(each, Path) else Member(each)) for each in found]
        return [mask_table.new_name(photo, [Path(folder) for folder in folders], taken) for photo in photos]

    cams = [Path("cams/cam1/0.png"), Path("cams/cam2/0.png")]
    assert names([*cams], "cams") == ["cam1/0.png", "cam2/0.png"]
    assert names([*cams]) == names([*cams], "cams/cam1", "cams/cam2") == ["0.png", "0-2.png"]
    assert names([Path("../other/x/0.png")], ".", "../other") == ["x/0.png"]
    assert names([Path("../0.png"), Path("/x/1.png")], ".") == ["0.png", "1.png"]
    assert names(["deep/0.jpg", "./deep/1.jpg", "../2.jpg", "/etc/3.jpg"]) == [
        "deep/0.png",
        "deep/1.png",
        "2.png",
        "3.png",
    ]
    assert names([Path("in/a.jpg"), Path("in/a.png/b.jpg")], "in") == ["a.png", "a-png/b.png"]  # a file and a folder
    assert names([Path("in/A.jpg"), Path("in/a.jpg")], "in") == ["A.png", "a-2.png"]


def test_an_interrupted_call_says_what_it_wrote(run: Path, tmp_path: Path) -> None:
    def images() -> Iterator[tuple[Photo, np.ndarray]]:
        yield Photo("a.png", Path("a.png")), np.zeros((8, 8, 3), np.uint8)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict_masks.write(scoring.shipped_net(run, None, None, CPU), images(), tmp_path, lambda done: None)
    assert mask_rows(tmp_path) == {"a.png": "masks/a.png"}


def test_what_cannot_be_read_is_skipped(run: Path, dmt: Command, photos: Path, tmp_path: Path) -> None:
    (photos / "bad.png").write_bytes(b"no image")
    printed, said = dmt("predict", run, photos, "--out", tmp_path / "pred")
    assert "4 images segmented" in printed
    assert "1 skipped" in printed
    assert f"skipped: {photos / 'bad.png'} is not an image" in said
    before = command.held(tmp_path / "pred")
    _, said = dmt("predict", run, photos / "bad.png", "--out", tmp_path / "pred", "--force", code=2)
    assert f"error: {photos / 'bad.png'} is not an image" in said
    assert command.held(tmp_path / "pred") == before
    dmt("predict", run, photos / "bad.png", "--out", tmp_path / "new", code=2)
    assert not (tmp_path / "new").exists()


def test_the_mask_of_one_image_is_a_file(run: Path, dmt: Command, photos: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.png"
    printed, _ = dmt("predict", run, photos / "a.jpg", "--out", one)
    assert "1 image segmented by" in printed
    assert f"written to {one}" in printed
    with Image.open(one) as mask:
        expected = predict_masks.label(
            scoring.shipped_net(run, None, None, CPU), photo_files.read_photo(photos / "a.jpg")
        )
        assert np.array_equal(np.asarray(mask), expected)
    assert (
        "one.png is there already; give another --out, or --force"
        in dmt("predict", run, photos / "a.jpg", "--out", one, code=2)[1]
    )
    dmt("predict", run, photos / "a.jpg", "--out", one, "--force")
    for words, out, says in (
        (
            [photos],
            tmp_path / "new.png",
            "is a file for the mask of one image; for more give a folder, with / at its end",
        ),
        ([photos / "a.jpg"], tmp_path / "new.jpg", "masks are PNG files"),
        ([photos / "a.jpg"], tmp_path / "new.csv", "masks are PNG files"),
    ):
        assert says in dmt("predict", run, *words, "--out", out, code=2)[1]
        assert not out.exists()
    dmt("predict", run, photos / "a.jpg", "--out", f"{tmp_path}/folder.png/")
    assert (tmp_path / "folder.png/masks/a.png").is_file()
    dmt("predict", run, photos / "a.jpg", "--out", tmp_path / "folder.png", "--force")


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
