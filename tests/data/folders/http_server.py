"""Shards at a real HTTP server on this machine."""

import contextlib
import functools
import re
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class WholeFiles(SimpleHTTPRequestHandler):
    """Sends whole files, whatever part is asked for."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer waits for the other side to have its head

    def log_message(self, format: str, *args: object) -> None:
        """Not on standard error."""


class Parts(WholeFiles):
    """Sends the parts that are asked for."""

    def send_head(self) -> None:
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            return self.send_error(404)
        content = path.read_bytes()
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        begin, end = (0, len(content)) if asked is None else (int(asked[1]), int(asked[2] or len(content) - 1) + 1)
        part = content[begin:end]
        self.send_response(200 if asked is None else 206)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(part)))
        if asked is not None:
            self.send_header("Content-Range", f"bytes {begin}-{begin + len(part) - 1}/{len(content)}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(part)
        return None


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever had enough of a whole file closes the connection."""


@contextlib.contextmanager
def serving(folder: Path, kind: type[WholeFiles] = Parts) -> Iterator[str]:
    """The URL of a folder while it is served."""
    server = _Server(("127.0.0.1", 0), functools.partial(kind, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
