"""Read pickles of plain data from untrusted files.

A pickle is a program: `pickle.load` calls whatever the file names. CIFAR-10 is published as pickles, so they
are read here by an unpickler that replaces every admitted name by a stand-in of our own. Plain containers,
numbers, strings, bytes and numeric arrays can be loaded; any other name is refused without being called.
"""

import math
import pickle
import re
from collections.abc import Callable
from typing import Any, BinaryIO, Never

import numpy as np

from dmt.errors import DataError

_NUMBER = re.compile(r"[biufc][0-9]{1,2}")  # the codes of numeric dtypes: u1, i8, f4, ...; "O" for objects is not one


class _RefusedError(Exception):
    """The pickle asked for something that is not allowed; the message names it."""


class _StandIn:
    """The object that a pickle gets for one of the few admitted names.

    It is an object without attributes rather than a function, since a pickle may also set attributes of the objects
    it gets (opcode BUILD). On a function it could replace the default arguments for the whole process.
    """

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., object]) -> None:
        self._call = call

    def __call__(self, *args: object) -> object:
        return self._call(*args)

    def __setstate__(self, state: object) -> Never:
        raise _RefusedError("to change a function")


class _Dtype:
    """A numeric dtype under construction: the pickle first gives its type code, then its byte order."""

    __slots__ = ("plain",)

    def __init__(self, code: object, *_options: object) -> None:
        text = code.decode("latin-1") if isinstance(code, bytes) else str(code)
        if not _NUMBER.fullmatch(text):
            raise _RefusedError(f"an array of {_short(text)}")
        self.plain: np.dtype[Any] = np.dtype(text)

    def __setstate__(self, state: object) -> None:
        # (version, byte order, subarray, names, fields, size, alignment, flags); only the byte order is used
        if not isinstance(state, tuple) or len(state) < 5 or any(part is not None for part in state[2:5]):
            raise _RefusedError("an array of records")
        order = state[1].decode("latin-1") if isinstance(state[1], bytes) else state[1]
        if order not in ("|", "<", ">", "="):
            raise _RefusedError("an array of unknown byte order")
        self.plain = np.dtype(order + self.plain.str[1:])


class _Array(np.ndarray[Any, np.dtype[Any]]):
    """An array that validates its pickled state before numpy uses it."""

    def __setstate__(self, state: object) -> None:
        match state:
            case (int(), tuple(shape), _Dtype(plain=dtype), int(fortran), bytes(raw)):
                pass
            case _:
                raise _RefusedError("an array with a state that is not its shape, dtype and bytes")
        if not all(isinstance(size, int) and size >= 0 for size in shape):
            raise _RefusedError("an array with an impossible shape")
        if math.prod(shape) * dtype.itemsize != len(raw):
            raise _RefusedError("an array whose bytes do not fill its shape")
        super().__setstate__((1, shape, dtype, bool(fortran), raw))  # type: ignore[arg-type]  # numpy takes a bool


def _short(text: str) -> str:
    """Quote text from the file, shortened to fit into a one-line error."""
    return repr(text if len(text) <= 60 else text[:60] + "...")


def _ndarray(*_args: object) -> Never:
    raise _RefusedError("to build an array other than through its state")


def _reconstruct(kind: object, _shape: object, _code: object) -> _Array:
    """Return an empty array. The pickle sets its state next, so shape and type code do not matter here."""
    if kind is not _NDARRAY:
        raise _RefusedError("a subclass of an array")
    return _Array((0,), np.uint8)


def _encode(text: object, encoding: object) -> bytes:
    """Return bytes that pickle protocol 2 stores as a str of the same code points plus a call that encodes it."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise _RefusedError("an encoding other than latin-1")
    return text.encode("latin-1")


def _empty_bytes() -> bytes:
    """Return b"", which pickle protocol 2 stores as a call of bytes. A call with arguments fails."""
    return b""


_NDARRAY = _StandIn(_ndarray)
_ADMITTED = {
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _StandIn(_Dtype),
    ("numpy.core.multiarray", "_reconstruct"): _StandIn(_reconstruct),
    ("numpy._core.multiarray", "_reconstruct"): _StandIn(_reconstruct),
    ("_codecs", "encode"): _StandIn(_encode),
    ("__builtin__", "bytes"): _StandIn(_empty_bytes),
}


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> _StandIn:
        try:
            return _ADMITTED[module, name]
        except KeyError:
            raise _RefusedError(_short(f"{module}.{name}")) from None


def load(stream: BinaryIO, name: str = "pickle") -> object:
    """Load the plain data of a pickle.

    Strings of Python 2 are returned as bytes. Arrays are instances of a subclass of numpy.ndarray; `numpy.asarray`
    gives a plain view.

    Args:
        stream: the pickle.
        name: of the file, for error messages.

    Raises:
        DataError: if the pickle is damaged or holds anything but plain data.
    """
    try:
        return _PlainUnpickler(stream, encoding="bytes").load()
    except _RefusedError as refusal:
        raise DataError(
            f"{name}: the reader refuses {refusal}, since only plain data may be in it; get the original file"
        ) from None
    except Exception as error:  # a damaged pickle can fail in any way: EOFError, KeyError, ValueError, MemoryError, ...
        raise DataError(
            f"{name}: not a readable pickle ({type(error).__name__}); get the original file again"
        ) from error
