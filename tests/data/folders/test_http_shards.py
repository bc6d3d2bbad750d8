"""Shards at a real HTTP server, one that sends parts of files and one that does not."""

from pathlib import Path

import fsspec
import pytest

from dmt.data.folders import shard_streams, shards, tar_places
from dmt.errors import ConfigError, DataError
from tests.data.folders import http_server, photo_layout, shard_layout


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """Two shards, the first larger than what fsspec reads at a time."""
    paths = photo_layout.write_images(tmp_path / "made", ("disk", "square", "triangle") * 2, ending="png")
    members = [(path.name, path.read_bytes()) for path in paths]
    shard_layout.write_tar(tmp_path / "served" / "0.tar", [*members[:2], ("more.txt", bytes(6_000_000)), *members[2:4]])
    shard_layout.write_tar(tmp_path / "served" / "1.tar", members[4:])
    return tmp_path / "served"


@pytest.mark.usefixtures("by_http")
def test_images_are_read_one_by_one(served: Path) -> None:
    names = ["0.tar", "1.tar"]
    here = shards.index([str(served / name) for name in names], names)
    with http_server.serving(served) as url:
        found = shards.index([f"{url}/{name}" for name in names], names)
        assert [photo.id for photo in found] == [photo.id for photo in here]
        for one, other in zip(found, here, strict=True):
            assert not isinstance(one.path, Path)
            assert not isinstance(other.path, Path)
            assert one.path.read() == other.path.read()
        with pytest.raises(DataError, match=r"cannot read http.*2\.tar .*; check the name and that it is allowed"):
            shards.index([f"{url}/2.tar"], ["2.tar"])
    with pytest.raises(DataError, match="cannot read http"):  # nobody is there any more
        shards.index([f"{url}/1.tar"], ["1.tar"])


@pytest.mark.usefixtures("by_http")
@pytest.mark.parametrize("name", ["0.tar", "1.tar"])
def test_a_server_of_whole_files_is_refused_in_a_line(served: Path, name: str) -> None:
    with http_server.serving(served, http_server.WholeFiles) as url:
        assert not tar_places.sends_parts(f"{url}/{name}")
        with pytest.raises(DataError, match=r"sends whole files only, .* copy the shards to this machine"):
            shards.index([f"{url}/{name}"], [name])


@pytest.mark.usefixtures("by_http")
@pytest.mark.parametrize("kind", [http_server.Parts, http_server.WholeFiles])
def test_streams_take_any_server(served: Path, kind: type[http_server.WholeFiles]) -> None:
    with http_server.serving(served, kind) as url:
        for name in ("0.tar", "1.tar"):
            found = [each.read() for each in shard_streams.stream(f"{url}/{name}", pytest.fail)]
            assert found == [each.read() for each in shard_streams.stream(str(served / name), pytest.fail)]


@pytest.mark.parametrize(("place", "package"), [("https://host/0.tar", "http"), ("s3://bucket/0.tar", "s3")])
def test_what_is_not_installed_is_named(place: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(place: str) -> None:
        raise ImportError("it requires something")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(ConfigError, match=rf"it requires something; pip install 'fsspec\[{package}\]', or copy"):
        tar_places.stamp(place)
