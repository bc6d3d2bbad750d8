import shutil
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dmt.data.folders import photos, survey
from dmt.data.folders.contents import FolderContents, Photo
from dmt.data.folders.survey import Survey
from tests.data.folders import photo_layout


def seen(root: Path) -> Survey:
    return survey.survey(photos.open_folder(root))


def plain_contents(root: Path, unlabeled: Iterable[Photo] = ()) -> FolderContents:
    return FolderContents(root, "made by hand", False, ("a", "b"), (), tuple(unlabeled))


def problems(found: Survey, part: str) -> dict[str, str]:
    return {look.id: look.problem or "" for look in found.unreadable(part)}


def test_every_photo_is_seen_in_its_part_and_order(tmp_path: Path) -> None:
    contents = photos.open_folder(photo_layout.write_classes(tmp_path, labeled=2, unlabeled=100, test=1))
    heard: list[tuple[int, int]] = []
    found = survey.survey(contents, lambda done, of: heard.append((done, of)))
    assert heard == [(number, 109) for number in range(1, 110)]
    for name, part in contents.parts():
        assert [look.id for look in found.part(name)] == [photo.id for photo in part]
        assert [look.label for look in found.part(name)] == [photo.label for photo in part]
    assert found.images("labeled") == [2, 2, 2]
    assert found.images("test") == [1, 1, 1]
    assert found.images("unlabeled") == [0, 0, 0]
    assert {look.size for look in found.looks} == {(48, 64)}
    assert len({look.digest for look in found.looks}) == 109
    assert found.duplicates == survey.Duplicates((), ())


def test_dimensions(tmp_path: Path) -> None:
    contents = plain_contents(tmp_path)
    assert survey.survey(contents).dimensions is None
    named = []
    for number, (height, width) in enumerate([(20, 20), (30, 60), (40, 10)]):
        path = photo_layout.save(Image.new("RGB", (width, height)), tmp_path / f"{number}.png")
        named.append(Photo(path.name, path))
    (tmp_path / "bad.png").write_text("")
    named.append(Photo("bad.png", tmp_path / "bad.png"))
    found = survey.survey(plain_contents(tmp_path, named))
    assert found.dimensions == survey.Dimensions((20, 30, 40), (10, 20, 60), (1, 2, 4))


def test_files_that_end_early_are_found(tmp_path: Path) -> None:
    photo_layout.write_classes(tmp_path, labeled=1, unlabeled=3)
    for name, ending in (("cut", "png"), ("cut", "jpg")):
        whole = photo_layout.save(photo_layout.scene("disk", 5)[0], tmp_path / f"unlabeled/{name}.{ending}")
        whole.write_bytes(whole.read_bytes()[: whole.stat().st_size * 2 // 3])
    (tmp_path / "unlabeled" / "text.jpg").write_text("not an image")
    (tmp_path / "labeled" / "disk" / "empty.png").write_bytes(b"")
    found = seen(tmp_path)
    assert set(problems(found, "unlabeled")) == {"unlabeled/cut.png", "unlabeled/cut.jpg", "unlabeled/text.jpg"}
    assert set(problems(found, "labeled")) == {"labeled/disk/empty.png"}
    assert len(found.usable("unlabeled")) == 3
    assert found.images("labeled") == [1, 1, 1]
    for look in found.unreadable("unlabeled"):
        assert look.size is None
        assert look.digest is None
        assert "\n" not in (look.problem or "")


def test_an_error_nobody_foresaw_is_a_problem_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(path: Path) -> np.ndarray:
        raise MemoryError("so\nlarge")

    monkeypatch.setattr("dmt.data.folders.photo_files.read_photo", fails)
    look = survey.look(Photo("x.png", tmp_path / "x.png"), plain_contents(tmp_path))
    assert look.problem == f"{tmp_path}/x.png cannot be read (MemoryError: so\\nlarge); leave it out"


def test_masks_are_checked_and_counted(tmp_path: Path) -> None:
    photo_layout.write_masks(tmp_path, labeled=4, unlabeled=2)
    photo_layout.write_names(tmp_path / "classes.txt")
    plane = np.zeros((48, 64), np.uint8)
    plane[:12], plane[12:24] = 255, 2
    masks = tmp_path / "labeled" / "masks"
    photo_layout.save(Image.fromarray(plane), masks / "0000.png")
    photo_layout.save(Image.fromarray(plane[:, :-1]), masks / "0001.png")
    plane[0, 0] = 9
    photo_layout.save(Image.fromarray(plane), masks / "0002.png")
    found = seen(tmp_path)
    first, other_size, out_of_range, _ = found.part("labeled")
    assert first.counts == (48 * 64 // 2, 0, 48 * 64 // 4, 0)
    assert first.ignored == 0.25
    assert first.present == [0, 2]
    assert "0001.png has 48×63 pixels but its image 48×64" in (other_size.problem or "")
    assert "0002.png has the class 9" in (out_of_range.problem or "")
    assert out_of_range.size == (48, 64)
    assert len(found.usable("labeled")) == 2
    assert found.images("labeled") == [2, 1, 1, 0]
    assert sum(found.shares("labeled")) == pytest.approx(1)
    assert found.shares("test") == [0, 0, 0, 0]


def test_copies_are_found_whatever_their_files_are(tmp_path: Path) -> None:
    photo_layout.write_classes(tmp_path, labeled=2, unlabeled=4, test=2)
    shutil.copy(tmp_path / "labeled/disk/0000.jpg", tmp_path / "test/square/same.jpg")
    with Image.open(tmp_path / "labeled/disk/0000.jpg") as image:
        image.save(tmp_path / "unlabeled/same.png")
        image.resize((128, 96), Image.Resampling.BICUBIC).save(tmp_path / "unlabeled/larger.jpg", quality=90)
    found = seen(tmp_path).duplicates
    (exact,), ((first, second),) = found.exact, found.near
    names = {"labeled/disk/0000.jpg", "test/square/same.jpg", "unlabeled/same.png"}
    assert {look.id for look in exact} == names
    assert {look.truth for look in exact} == {0, 1, None}
    assert {look.id for look in (*first, *second)} == {*names, "unlabeled/larger.jpg"}
    assert found.shared("labeled", "test") == {"test/square/same.jpg": "labeled/disk/0000.jpg"}
    assert found.shared("test", "unlabeled", near=True) == {"unlabeled/larger.jpg": "test/square/same.jpg"}
    assert found.within("unlabeled") == []
    assert [len(group) for group in found.within("unlabeled", near=True)] == [2]
    assert found.within("labeled", near=True) == []


def test_photos_of_one_scene_are_no_copies_but_are_looked_at_again(tmp_path: Path) -> None:
    for number in range(4):
        photo_layout.save(photo_layout.of_one_scene(number), tmp_path / f"{number}.png")
    photo_layout.save(photo_layout.of_one_scene(1).resize((96, 96)), tmp_path / "again.jpg")
    contents = plain_contents(tmp_path, [Photo(path.name, path) for path in sorted(tmp_path.iterdir())])
    heard: list[tuple[int, int]] = []
    found = survey.survey(contents, lambda done, of: heard.append((done, of)))
    assert len({look.likeness for look in found.looks}) < 5
    assert [{look.id for group in pair for look in group} for pair in found.duplicates.near] == [{"1.png", "again.jpg"}]
    assert heard[-1] == (10, 10)


def test_a_picture_that_is_gone_before_the_second_look_is_no_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = photo_layout.of_one_scene(1)
    photo_layout.save(image, tmp_path / "a.png")
    photo_layout.save(image.resize((96, 96)), tmp_path / "b.png")
    contents = plain_contents(tmp_path, [Photo(path.name, path) for path in sorted(tmp_path.iterdir())])
    assert len(survey.survey(contents).alike) == 1
    looks = survey.survey(contents).looks
    (tmp_path / "a.png").unlink()
    monkeypatch.setattr(survey, "look", lambda photo, *rest: next(each for each in looks if each.id == photo.id))
    assert survey.survey(contents).alike == ()


def test_plain_pictures_are_near_nothing(tmp_path: Path) -> None:
    named = []
    for gray in range(0, 200, 10):
        path = photo_layout.save(Image.new("RGB", (20, 20), (gray, gray, gray)), tmp_path / f"{gray}.png")
        named.append(Photo(path.name, path))
    assert survey.survey(plain_contents(tmp_path, named)).duplicates.near == ()


def test_memory_holds_a_few_pictures_only(tmp_path: Path) -> None:
    image, _ = photo_layout.scene("disk", 0, size=(600, 800))  # 1.4 MB decoded
    path = photo_layout.save(image, tmp_path / "one.jpg")
    contents = plain_contents(tmp_path, (Photo(f"{number}.jpg", path) for number in range(100)))
    survey.survey(contents)  # imports and tables
    tracemalloc.start()
    found = survey.survey(contents)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.looks) == 100
    assert peak < 60e6  # all of them decoded would be 144 MB
