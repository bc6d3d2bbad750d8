"""Tiny CIFAR-10 folders as the original files are laid out, written without the code that reads them."""

import struct
from pathlib import Path

import torch

TRAIN = [f"data_batch_{number}" for number in range(1, 6)]


def random_set(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Images uint8 (N, 3, 32, 32) and labels int64 (N,)."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8, generator=generator)
    return images, torch.arange(count) % 10


def write_python(
    folder: Path,
    train_images: torch.Tensor,
    train_labels: torch.Tensor,
    test_images: torch.Tensor,
    test_labels: torch.Tensor,
) -> Path:
    """cifar-10-batches-py in `folder`; the training set is cut into five batches of nearly equal size."""
    home = folder / "cifar-10-batches-py"
    home.mkdir(parents=True)
    for name, images, labels in _batches(train_images, train_labels, test_images, test_labels):
        (home / name).write_bytes(python_batch(images, labels))
    return home


def write_binary(
    folder: Path,
    train_images: torch.Tensor,
    train_labels: torch.Tensor,
    test_images: torch.Tensor,
    test_labels: torch.Tensor,
) -> Path:
    """cifar-10-batches-bin in `folder`."""
    home = folder / "cifar-10-batches-bin"
    home.mkdir(parents=True)
    for name, images, labels in _batches(train_images, train_labels, test_images, test_labels):
        (home / f"{name}.bin").write_bytes(binary_batch(images, labels))
    return home


def binary_batch(images: torch.Tensor, labels: torch.Tensor) -> bytes:
    rows = images.flatten(1).numpy()  # (n, 3072)
    return b"".join(bytes([int(label)]) + row.tobytes() for label, row in zip(labels, rows, strict=True))


def python_batch(images: torch.Tensor, labels: torch.Tensor) -> bytes:
    """The pickle that Python 2 wrote, opcode by opcode: today's pickle module cannot write its str."""
    numbers = b"(" + b"".join(b"K" + bytes([int(label)]) for label in labels) + b"e"
    entries = _string(b"batch_label") + _string(b"a tiny batch")
    entries += _string(b"labels") + b"]" + numbers
    entries += _string(b"data") + python2_array(images.flatten(1).numpy().tobytes(), (len(images), 3072))
    return b"\x80\x02}(" + entries + b"u."


def python2_array(raw: bytes, shape: tuple[int, ...], code: bytes = b"u1", order: bytes = b"|") -> bytes:
    """_reconstruct(ndarray, (0,), "b") with the state (1, shape, dtype(code, 0, 1), False, raw)."""
    empty = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + _string(b"b") + b"\x87R"
    sizes = b"(" + b"".join(b"J" + struct.pack("<i", size) for size in shape) + b"t"
    dtype = b"cnumpy\ndtype\n" + _string(code) + b"K\x00K\x01\x87R"
    dtype += b"(K\x03" + _string(order) + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    return empty + b"(K\x01" + sizes + dtype + b"\x89" + _string(raw) + b"tb"


def _string(text: bytes) -> bytes:
    """A Python 2 str: opcode BINSTRING."""
    return b"T" + struct.pack("<i", len(text)) + text


def _batches(
    train_images: torch.Tensor,
    train_labels: torch.Tensor,
    test_images: torch.Tensor,
    test_labels: torch.Tensor,
) -> list[tuple[str, torch.Tensor, torch.Tensor]]:
    train = zip(TRAIN, train_images.tensor_split(5), train_labels.tensor_split(5), strict=True)
    return [*train, ("test_batch", test_images, test_labels)]
