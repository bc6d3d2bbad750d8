import hashlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dmt.data import download
from dmt.errors import DataError

BODY = bytes(range(256)) * 4096  # 1 MiB
MD5 = hashlib.md5(BODY).hexdigest()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        if self.path != "/unsized":
            self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY[:1000] if self.path == "/short" else BODY)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "*")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def failure(url: str, to: Path, md5: str = MD5) -> str:
    with pytest.raises(DataError) as caught:
        download.fetch(url, to, md5, lambda _: None, timeout=5)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("page", ["good", "unsized"])
def test_a_good_file_arrives_alone_in_a_new_folder(address: str, tmp_path: Path, page: str) -> None:
    to = tmp_path / "new" / "folder" / "file"
    download.fetch(f"{address}/{page}", to, MD5, lambda _: None, timeout=5)
    assert to.read_bytes() == BODY
    assert list(to.parent.iterdir()) == [to]


def test_progress_is_told_only_now_and_then(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    download.fetch(f"{address}/good", tmp_path / "file", MD5, notes.append, timeout=5)
    assert notes == [f"downloading {address}/good"]  # over before the first line of progress is due
    monkeypatch.setattr(download, "NOTE_EVERY", 0.0)
    download.fetch(f"{address}/good", tmp_path / "file", MD5, notes.append, timeout=5)
    assert notes[-1] == "file: 1 of 1 MB"
    assert len(notes) > 3


def test_a_wrong_checksum_leaves_nothing(address: str, tmp_path: Path) -> None:
    wrong = "0" * 32
    text = failure(f"{address}/good", tmp_path / "file", wrong)
    assert f"{address}/good" in text
    assert MD5 in text
    assert wrong in text
    assert not list(tmp_path.iterdir())


def test_a_failed_download_keeps_the_file_that_was_there(address: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    failure(f"{address}/good", tmp_path / "file", "0" * 32)
    failure(f"{address}/short", tmp_path / "file")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_a_broken_connection_leaves_nothing(address: str, tmp_path: Path) -> None:
    assert f"1000 of {len(BODY)} bytes" in failure(f"{address}/short", tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_a_missing_page_makes_no_folder(address: str, tmp_path: Path) -> None:
    assert "404" in failure(f"{address}/missing", tmp_path / "new" / "file")
    assert not list(tmp_path.iterdir())


def test_a_refused_connection_makes_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with socket.socket() as bound:  # bound but not listening: nobody else gets the port, and nobody answers
        bound.bind(("127.0.0.1", 0))
        text = failure(f"http://127.0.0.1:{bound.getsockname()[1]}/file", tmp_path / "new" / "file")
    assert "cannot be reached" in text
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_told(address: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_bytes(b"a file")
    assert "broke off" in failure(f"{address}/good", tmp_path / "taken" / "file")
    assert (tmp_path / "taken").read_bytes() == b"a file"


def test_an_interrupted_download_leaves_nothing(address: str, tmp_path: Path) -> None:
    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download.fetch(f"{address}/good", tmp_path / "file", MD5, interrupt, timeout=5)
    assert not list(tmp_path.iterdir())
