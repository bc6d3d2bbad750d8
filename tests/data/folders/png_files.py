"""PNG files of kinds that Pillow does not write."""

import struct
import zlib
from pathlib import Path

GRAY, RGB, RGBA = 0, 2, 6


def write_row(path: Path, row: bytes, width: int, bits: int, kind: int = GRAY) -> Path:
    """Write one row of pixels."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, 1, bits, kind, 0, 0, 0))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0" + row)) + chunk(b"IEND", b""))
    return path
