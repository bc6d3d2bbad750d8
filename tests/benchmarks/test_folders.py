"""Draws of labels from real folders, what judges them, and the tables that come of it."""

import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

import dmt
from benchmarks import folder_draws, folder_rivals, folders
from benchmarks.folders import Case, Outcome
from dmt.data.folders import photos
from dmt.runs.progress import Silent
from tests.data.folders import photo_layout
from tests.own.test_fine_tuning import SMALL, start_file

ARGUMENTS = ["--folders", "archives", "--out", "results"]


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    """One folder of images with the truth of its unlabeled ones, and one of masks."""
    place = tmp_path / "archives"
    place.mkdir()
    made = tmp_path / "made"
    photo_layout.write_classes(made / "papsmear", labeled=2, unlabeled=24, test=1)
    names = sorted(path.name for path in (made / "papsmear/unlabeled").iterdir())
    rows = [(name, photo_layout.SHAPES[number % 3]) for number, name in enumerate(names)]
    photo_layout.write_table(place, [("file", "class"), *rows], "papsmear.truth.csv")
    photo_layout.write_masks(made / "polyps", labeled=6, unlabeled=9, test=2)
    for folder in made.iterdir():
        with tarfile.open(place / f"{folder.name}.tar.gz", "w:gz") as archive:
            archive.add(folder, arcname=folder.name)
    return place


def classes(archives: Path, place: Path) -> tuple[dict[Path, str], dict[Path, str]]:
    return folder_draws.classes_of(archives, folder_draws.unpack(archives, "papsmear", place))


def bench(archives: Path, place: Path) -> folders.Bench:
    return folders.Bench(archives, place, torch.device("cpu"), (), folders.Clock(None))


# --- draws ---


def test_a_draw_has_other_labels_and_as_many(archives: Path, tmp_path: Path) -> None:
    labeled, unlabeled = classes(archives, tmp_path)
    drawn, rest = folder_draws.images(labeled, unlabeled, seed=1)
    assert Counter(drawn.values()) == Counter(labeled.values())
    assert drawn | rest == labeled | unlabeled  # every image once, with its own class
    assert not drawn.keys() & rest.keys()
    assert drawn.keys() & unlabeled.keys()
    assert list(folder_draws.images(labeled, unlabeled, seed=1)[0].items()) == list(drawn.items())
    assert folder_draws.images(labeled, unlabeled, seed=2)[0] != drawn


def test_folders_of_a_draw_are_read_as_a_users(archives: Path, tmp_path: Path) -> None:
    made = bench(archives, tmp_path / "work")
    images = photos.open_folder(made._folder(Case("papsmear", 1), tmp_path / "images"))
    assert (len(images.labeled), len(images.unlabeled), len(images.test)) == (6, 24, 3)
    masks = photos.open_folder(made._folder(Case("polyps", 1), tmp_path / "masks"))
    assert masks.pixels
    assert (len(masks.labeled), len(masks.unlabeled), len(masks.test)) == (4, 9 + 2, 2)


def test_skewed_classes_fall_to_a_tenth() -> None:
    every = {Path(f"{name}{number}"): name for name in "abc" for number in range({"a": 300, "b": 200, "c": 90}[name])}
    counts = Counter(folder_draws.skewed(every, seed=1).values())
    assert counts == {"a": 300, "b": 94, "c": 30}


def test_a_third_of_a_dirty_pool_is_foreign(archives: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "CHOOSING", ("papsmear", "polyps"))
    folder = bench(archives, tmp_path / "work")._folder(Case("papsmear", 1, "foreign"), tmp_path / "case")
    sources = [path.resolve() for path in (folder / "unlabeled").iterdir()]
    foreign = [path for path in sources if "polyps" in path.parts]
    assert len(sources) == 24 + len(foreign)
    assert len(foreign) == 9  # all there are; 12 would be a third
    assert len(folder_draws.foreign(4, [tmp_path / "work/sources/polyps"], seed=1)) == 2


# --- which are run ---


@pytest.mark.parametrize("words", [["--judging"], ["--only", "wbc"], ["--only", "papsmear", "caltech40"]])
def test_what_judges_stays_closed(words: list[str]) -> None:
    with pytest.raises(SystemExit, match="--open-judging"):
        folders.chosen(folders.arguments().parse_args([*ARGUMENTS, *words]))
    assert folders.chosen(folders.arguments().parse_args([*ARGUMENTS, *words, "--open-judging"]))


def test_which_cases_are_run() -> None:
    def cases(*words: str) -> list[Case]:
        return folders.chosen(folders.arguments().parse_args([*ARGUMENTS, *words]))

    assert cases() == cases("--choosing") == [Case(name, draw) for name in folders.CHOOSING for draw in (1, 2, 3)]
    assert cases("--only", "polyps", "--draws", "2") == [Case("polyps", 2)]
    dirty = cases("--dirty", "--draws", "1")
    assert {(case.folder, case.variant) for case in dirty} == {
        (name, variant) for name in ("trashnet", "papsmear") for variant in folders.VARIANTS
    }


# --- beside and after ---


def test_rivals_learn_from_features() -> None:
    random = np.random.default_rng(0)
    centers = 4 * random.standard_normal((3, 16))

    def some(count: int) -> tuple[np.ndarray, np.ndarray]:
        labels = np.arange(count) % 3
        return centers[labels] + random.standard_normal((count, 16)), labels

    (known, labels), (pool, _), (test, truth) = some(12), some(90), some(60)
    found = folder_rivals.rivals(known, labels, pool, test)
    assert list(found) == ["logistic", "self_training", "label_spreading"]
    assert all((answer == truth).mean() > 0.9 for answer in found.values())
    assert list(folder_rivals.rivals(known, labels, pool[:0], test)) == ["logistic"]


def test_rivals_see_the_unlabeled_photos_of_a_run(tmp_path: Path) -> None:
    folder = photo_layout.write_classes(tmp_path / "photos", labeled=3, unlabeled=12, test=1)
    settings = {
        "net": f"frozen:{SMALL}", "size": 32, "stored_views": 1, "epochs": 1, "epochs_round": 1, "fractions": "1",
    }  # fmt: skip
    report = dmt.fit(
        folder, out=tmp_path / "run", method="dmt", baseline=False, settings=settings, folds=False, watcher=Silent(),
        start=start_file(tmp_path / "start.safetensors"),
    )  # fmt: skip
    found = folder_rivals.scores(tmp_path / "run", report.jobs[0], torch.device("cpu"))
    assert list(found) == ["logistic", "self_training", "label_spreading"]


def outcome(folder: str, draw: int, dmt: float, options: str = "", variant: str = "") -> Outcome:
    return Outcome(folder, draw, variant, options, "frozen:x", {"baseline": 50.0, "dmt": dmt}, 2.0, 0.01)


def test_tables_are_of_what_ran_with_nothing_set(tmp_path: Path) -> None:
    outcomes = [
        outcome("papsmear", 1, 60.0),
        outcome("papsmear", 2, 64.0),
        outcome("trashnet", 1, 72.0),
        outcome("trashnet", 1, 10.0, variant="skewed"),
        outcome("trashnet", 1, 99.0, "--set size=64"),
        outcome("polyps", 1, 33.0),
    ]
    about = {"hardware": {"device": "cpu", "cores": 2}, "torch": "2", "dmt": "0.3"}
    folders.write(tmp_path / "folders_cpu.json", outcomes, about)
    assert folders.read(tmp_path / "folders_cpu.json") == outcomes
    text = (tmp_path / "folders_cpu.md").read_text()
    assert "| papsmear | 2 | 50.0 ± 0.0 | 62.0 ± 2.8 | 2.0 | 1.0% |" in text
    assert "| trashnet, skewed | 1 | 50.0 | 10.0 |" in text
    assert "| **mean** |  | 50.0 | 67.0 |" in text  # over folders, without dirty ones
    assert "99.0" not in text
    assert text.index("Images, accuracy") < text.index("Masks, mean IoU") < text.index("| polyps | 1 |")
