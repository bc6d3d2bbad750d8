"""Images in tar files: found by their headers, read by their places, and told apart whatever their names are."""

import functools
from pathlib import Path

import numpy as np
import pytest
import torch

from dmt.data import buffers
from dmt.data.folders import doctor, photo_files, photo_pools, photo_sets, photos, shards, survey, tar_places
from dmt.data.folders.contents import Photo
from dmt.data.sets import UnlabeledSet
from dmt.data.squares import Squares
from dmt.data.texts import Texts
from dmt.errors import ConfigError, DataError, UnreachableError
from dmt.use import predict_inputs
from tests.data.folders import photo_layout, shard_layout


@pytest.fixture
def pictures(tmp_path: Path) -> list[bytes]:
    paths = photo_layout.write_images(tmp_path / "made", ("disk", "square", "triangle") * 2, ending="png")
    return [path.read_bytes() for path in paths]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return photo_layout.write_classes(tmp_path / "photos", labeled=5, unlabeled=9)


def ids(photos: object) -> list[str]:
    assert isinstance(photos, photo_pools.Pool | shards.Shards)
    return [photo.id for photo in photos]


def test_texts() -> None:
    said = ["a", "", "ünï\ncöde", "d" * 300]
    held = Texts.of(said)
    assert list(held) == said
    assert held[-1] == said[-1]
    assert held[1:3] == said[1:3]
    assert list(held.take(np.array([3, 0]))) == [said[3], said[0]]
    with pytest.raises(IndexError):
        held[4]


def test_members_are_found_whatever_their_names(tmp_path: Path, pictures: list[bytes]) -> None:
    names = ["a.png", "deep/er/a.png", "b.v1.0.PNG", "same.png", "same.png", "ünï, cöde.png"]
    others = [("a.cls", b"2"), ("readme", b""), (".hidden.png", b""), ("__MACOSX/._a.txt", b"")]
    long = "x" * 300 + ".png"  # does not fit into a header
    tar = shard_layout.write_tar(
        tmp_path / "0.tar", [*others, *zip(names, pictures, strict=True), (long, pictures[0]), *others]
    )
    second = shard_layout.write_tar(tmp_path / "1.tar", [("same.png", pictures[1])])
    found = shards.index([str(tar), str(second)], ["0.tar", "1.tar"])
    expected = ["a.png", "deep/er/a.png", "b.v1.0.PNG", "same.png", "same.png#2", "ünï, cöde.png", long]
    assert ids(found) == [*(f"0.tar/{name}" for name in expected), "1.tar/same.png"]
    for photo, content in zip(found, [*pictures, pictures[0], pictures[1]], strict=True):
        assert not isinstance(photo.path, Path)
        assert photo.path.read() == content
    assert [each.id for each in found.every(3)] == [f"0.tar/{expected[at]}" for at in (0, 3, 6)]
    assert not found.notes


def test_an_index_is_kept_until_a_shard_changes(
    tmp_path: Path, pictures: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    tar = shard_layout.write_tar(tmp_path / "0.tar", [("a.png", pictures[0]), ("a.png", pictures[1])])
    look = functools.partial(shards.index, [str(tar)], ["0.tar"], tmp_path / "cache")
    found = look()
    shards._read.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(shards, "_members", functools.partial(pytest.fail, "it was read again"))
        again = look()
    assert ids(again) == ids(found) == ["0.tar/a.png", "0.tar/a.png#2"]
    assert [each.path for each in again] == [each.path for each in found]
    file = next((tmp_path / "cache").glob("*.safetensors"))
    file.write_bytes(file.read_bytes()[:-1] + b"x")  # damaged
    assert ids(look()) == ids(found)
    shard_layout.write_tar(tar, [("b.png", pictures[0])])
    assert ids(look()) == ["0.tar/b.png"]


def test_what_is_no_shard_is_refused_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "text.tar").write_text("no tar file" * 100)
    with pytest.raises(DataError, match=r"text\.tar is not a tar file, or a compressed one"):
        shards.index([str(tmp_path / "text.tar")], ["x"])
    with pytest.raises(DataError, match=r"cannot read .*none\.tar"):
        shards.index([str(tmp_path / "none.tar")], ["x"])
    empty = shard_layout.write_tar(tmp_path / "empty.tar", [("a.txt", b"")])
    with pytest.raises(DataError, match="there are no images in"):
        shards.index([str(empty)], ["x"])
    for place in ("pipe:cat x.tar", "nothing://here/x.tar"):
        with pytest.raises(ConfigError, match="cannot be read"):
            shards.index([place], ["x"])


def test_parts_of_urls_are_read(tmp_path: Path, pictures: list[bytes]) -> None:
    tar = shard_layout.write_tar(tmp_path / "0.tar", [("a.png", pictures[0]), ("b.png", pictures[1])])
    found = shards.index([f"file://{tar}"], ["0.tar"])
    assert [photo.path.read() for photo in found if not isinstance(photo.path, Path)] == pictures[:2]
    assert tar_places.is_url("https://host/x.tar")
    assert not tar_places.is_url(str(tar))


def test_named_shards_are_found_from_any_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.tar", "b.tar", "with, comma.tar"):
        (tmp_path / name).touch()
    assert tar_places.named("a.tar") == (f"{tmp_path}/a.tar",)
    assert tar_places.named("a.tar, b.tar") == (f"{tmp_path}/a.tar", f"{tmp_path}/b.tar")
    assert tar_places.named("with, comma.tar") == (f"{tmp_path}/with, comma.tar",)
    assert tar_places.named(["with, comma.tar", "a.tar"]) == (f"{tmp_path}/with, comma.tar", f"{tmp_path}/a.tar")
    assert tar_places.named("{a,b}.tar,s3://x/{a,b}.tar") == (f"{tmp_path}/{{a,b}}.tar", "s3://x/{a,b}.tar")
    assert tar_places.named("") == ()
    assert tar_places.named(f"{tmp_path}/gone.tar") == (f"{tmp_path}/gone.tar",)  # told when it is opened
    with pytest.raises(ConfigError, match=r"there is no with; in shards=… commas separate files: .* --unlabeled"):
        tar_places.named("a.tar,with, comma.tar")
    assert len(tar_places.named(",".join(["a.tar"] * 2000))) == 2000


def test_braces_that_do_not_match_are_told() -> None:
    pytest.importorskip("braceexpand")
    with pytest.raises(ConfigError, match=r"the braces of x\{0..3.tar do not match"):
        tar_places.expanded(["x{0..3.tar"])


def test_a_folder_may_hold_files_and_shards(folder: Path) -> None:
    names = sorted(path.name for path in (folder / "unlabeled").iterdir())
    shard_layout.pack(folder / "unlabeled", 4, 0)
    (folder / "unlabeled" / "001.tar").unlink()  # an empty one
    photo_layout.write_images(folder / "unlabeled" / "loose", ("disk",))
    (folder / "labeled" / "not-read.tar").write_text("")
    contents = photos.open_folder(folder)
    first = [f"unlabeled/000.tar/{name}" for name in names[:4]]
    assert ids(contents.unlabeled) == [
        "unlabeled/loose/0000.jpg",
        *first,
        *(f"unlabeled/002.tar/{name}" for name in names[4:]),
    ]
    assert "9 unlabeled images in 2 shards" in contents.notes
    assert isinstance(contents.unlabeled[1], Photo)
    assert [each.id for each in contents.unlabeled[:3]] == ids(contents.unlabeled)[:3]


def test_shards_beside_a_table_of_labels_are_unlabeled(tmp_path: Path, pictures: list[bytes]) -> None:
    """Those in ``unlabeled/`` are; images in other tar files may be the labeled ones or those held out."""
    root = tmp_path / "pile"
    for name, content in zip(("a.png", "b.png", "c.png", "unlabeled/d.png"), pictures, strict=False):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    photo_layout.write_table(root, [("file", "label"), ("a.png", "cat"), ("b.png", "dog")])
    shard_layout.write_tar(root / "unlabeled" / "more" / "0.tar", [("e.png", pictures[4]), ("f.png", pictures[5])])
    shard_layout.write_tar(root / "all.tar", [("a.png", pictures[0])])
    contents = photos.open_folder(root)
    assert ids(contents.unlabeled) == [
        "c.png", "unlabeled/d.png", "unlabeled/more/0.tar/e.png", "unlabeled/more/0.tar/f.png",
    ]  # fmt: skip
    assert contents.layout == "a folder of images with labels.csv and shards in unlabeled/: images of 2 classes"
    assert "2 unlabeled images in 1 shard" in contents.notes
    assert "files that are not images of a known kind were left out: 1 .tar" in contents.notes


def test_shards_in_hidden_folders_are_left_out_as_images_are(folder: Path, pictures: list[bytes]) -> None:
    place = folder / "unlabeled"
    for part in ("", ".trash", "__MACOSX"):
        (place / part).mkdir(exist_ok=True)
        shard_layout.write_tar(place / part / "0.tar", [("a.png", pictures[0])])
        (place / part / "seen.png").write_bytes(pictures[1])
    found = ids(photos.open_folder(folder).unlabeled)
    assert [name for name in found if name.endswith(("0.tar/a.png", "seen.png"))] == [
        "unlabeled/seen.png", "unlabeled/0.tar/a.png"
    ]  # fmt: skip
    assert predict_inputs.inputs([place]).shards == (str(place / "0.tar"),)


def test_the_doctor_tells_of_damaged_shards(folder: Path, pictures: list[bytes]) -> None:
    members = [("a.png", pictures[0]), ("broken.png", b"no image"), ("b.png", pictures[1]), ("c.png", pictures[2])]
    cut = shard_layout.write_tar(folder / "unlabeled" / "0.tar", members)
    blocks = 512 * sum(1 + -(-len(content) // 512) for _, content in members[:3])
    cut.write_bytes(cut.read_bytes()[: blocks + 512 + len(pictures[2]) // 2])
    contents = photos.open_folder(folder)
    said = doctor.examine(contents, survey.survey(contents)).text
    assert "2 of 13 unlabeled images cannot be read and will be skipped" in said
    assert "unlabeled/0.tar/broken.png is not an image" in said
    assert "unlabeled/0.tar/c.png is truncated: its end is missing" in said
    assert "0.tar is damaged or its end is missing" in said
    parts = photo_sets.read_squares(contents, 8, None, lambda done, of: None)
    assert len(parts.unlabeled) == 11
    assert len(parts.skipped) == 2


def test_a_header_in_the_middle_that_is_damaged_is_noticed(tmp_path: Path, pictures: list[bytes]) -> None:
    tar = shard_layout.write_tar(tmp_path / "0.tar", [("a.png", pictures[0]), ("b.png", pictures[1])])
    held = bytearray(tar.read_bytes())
    second = 512 + -(-len(pictures[0]) // 512) * 512
    held[second : second + 512] = b"?" * 512
    tar.write_bytes(held)
    found = shards.index([str(tar)], ["0.tar"])
    assert ids(found) == ["0.tar/a.png"]
    assert "damaged" in found.notes[0]


def test_pools_are_decoded_when_they_are_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = photo_sets.read_squares(photos.open_folder(folder), 8, None, lambda done, of: None).unlabeled
    shard_layout.pack(folder / "unlabeled", 4)
    shard_layout.write_tar(folder / "unlabeled" / "002.tar", [("broken.png", b"no image")])
    monkeypatch.setattr(buffers, "MEMORY", 0)
    parts = photo_sets.read_squares(photos.open_folder(folder), 8, None, lambda done, of: None)
    found: UnlabeledSet[Squares] = parts.unlabeled  # type: ignore[assignment]
    assert isinstance(found.images, Squares)
    assert found.images.shape == held.images.shape
    assert len(parts.skipped) == 1
    assert list(found.digests or ()) == list(held.digests or ())
    assert [each.rpartition("/")[2] for each in found.ids] == [each.rpartition("/")[2] for each in held.ids]
    assert found.ids[2:4] == [found.ids[2], found.ids[3]]
    places = held.images[[8, 0, 3]]  # type: ignore[index]
    assert torch.equal(found.images[torch.tensor([8, 0, 3])], places)
    assert torch.equal(found.take(torch.tensor([8, 0, 3])).images[:], places)
    assert torch.equal(found.images[3], held.images[3])
    assert torch.equal(torch.cat(list(found.images.split(4))), held.images[:])


def test_the_doctor_looks_at_a_part_of_a_large_pool(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard_layout.pack(folder / "unlabeled")
    contents = photos.open_folder(folder)
    assert photo_pools.thinned(contents) is contents
    monkeypatch.setattr(photo_pools, "LOOKED_AT", 4)
    some = photo_pools.thinned(contents)
    assert len(some.unlabeled) == 3
    assert "of 9 unlabeled images, one of every 3 in shards was checked" in some.notes
    assert photo_files.read_photo(some.unlabeled[2].path).shape == (48, 64, 3)


def test_images_whose_pixels_get_labels(tmp_path: Path) -> None:
    folder = photo_layout.write_masks(tmp_path, labeled=2, unlabeled=5)
    held = photo_sets.read_planes(photos.open_folder(folder), 40, None, lambda done, of: None).unlabeled
    shard_layout.pack(folder / "unlabeled", 2)
    found = photo_sets.read_planes(photos.open_folder(folder), 40, None, lambda done, of: None).unlabeled
    assert len(found) == 5
    assert found.images.digests == held.images.digests
    assert torch.equal(found.images.pixels, held.images.pixels)


@pytest.mark.parametrize("place", ["zip://x.tar", "tar://a.tar", "reference://x", "nothing://x.tar"])
def test_urls_that_look_into_other_files_are_refused_in_one_line(place: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        tar_places.read(place, 0, 10)


def test_more_than_was_asked_for_is_no_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tar_places, "read", lambda tar, offset, size: b"0" * (size + 1))
    with pytest.raises(OSError, match="does not support range requests"):
        shards.Member("http://host/0.tar", "a.png", 0, 10).read()


def test_what_does_not_answer_is_asked_again_and_counts_as_no_bad_image(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Busy:
        def cat_file(self, path: str, start: int, end: int) -> bytes:
            asked.append(start)
            raise TimeoutError("no answer")

    monkeypatch.setattr(tar_places, "_system", lambda place: (Busy(), place))
    monkeypatch.setattr(tar_places, "PAUSE", 0.0)
    image = shards.Member("http://host/0.tar", "a.png", 5, 10)
    with pytest.raises(UnreachableError, match=r"0.tar cannot be reached \(no answer\); repeat the command later"):
        photo_files.read_photo(image)
    assert asked == [5] * tar_places.ATTEMPTS
