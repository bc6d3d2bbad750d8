import io
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmt.data import safe_pickle
from dmt.errors import DataError
from tests.data.images.cifar_layout import python2_array


def load(raw: bytes) -> Any:
    return safe_pickle.load(io.BytesIO(raw), "some.file")


def refused(raw: bytes, match: str = "refuses") -> None:
    with pytest.raises(DataError, match=match) as caught:
        load(raw)
    text = str(caught.value)
    assert text.startswith("some.file: ")
    assert "\n" not in text


class Call:
    """Pickles into the call of a function."""

    def __init__(self, function: Callable[..., object], *args: object) -> None:
        self.call = (function, args)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_plain_data_and_arrays_come_through_unchanged(protocol: int) -> None:
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    data = {
        b"data": array,
        "name": [1, 2.5, None, True, (b"raw\xff", "text")],
        3: {"nested": [array]},
        b"": b"",
    }
    got = load(pickle.dumps(data, protocol))
    np.testing.assert_array_equal(got.pop(b"data"), array)
    np.testing.assert_array_equal(got.pop(3)["nested"][0], array)
    assert got == {"name": [1, 2.5, None, True, (b"raw\xff", "text")], b"": b""}


@pytest.mark.parametrize("dtype", ["bool", "i8", ">i4", "<f4", ">f8", "c16"])
def test_numbers_of_every_kind_and_byte_order_keep_their_values(dtype: str) -> None:
    array = np.asfortranarray(np.arange(6).reshape(2, 3).astype(dtype))
    got = load(pickle.dumps(array, 2))
    assert got.dtype == array.dtype.newbyteorder("=")  # numpy turns them to the order of this machine
    np.testing.assert_array_equal(got, array)


def test_strings_of_python_2_are_bytes() -> None:
    array = python2_array(struct.pack(">3h", 1, 2, 300), (3,), code=b"i2", order=b">")
    got = load(b"\x80\x02}U\x04data" + array + b"s.")
    assert list(got) == [b"data"]
    assert np.asarray(got[b"data"]).tolist() == [1, 2, 300]


def test_a_call_is_refused_and_never_made(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    script = f"open({str(marker)!r}, 'w').close()"
    calls = [
        Call(os.system, f"touch {marker}"),
        Call(eval, script),
        Call(exec, script),
        Call(marker.touch),
        Call(np.save, str(marker), 0),
        Call(__import__, "os"),
        Call(getattr, {}, "clear"),
    ]
    for call in calls[:4]:  # the attack itself is real: an ordinary unpickler makes it
        pickle.loads(pickle.dumps(call, 2))
        assert marker.exists()
        marker.unlink()
    for call in calls:
        for protocol in (0, 2, 4):
            refused(pickle.dumps([1, {"deep": call}], protocol))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name",
    [
        b"cos\nsystem\n",
        b"cposix\nsystem\n",
        b"c__builtin__\neval\n",
        b"cbuiltins\ngetattr\n",
        b"cbuiltins\nbytes\n",
        b"cnumpy\nload\n",
        b"cnumpy.core.multiarray\nscalar\n",
        b"cdmt.data.safe_pickle\n_ADMITTED\n",
        b"\x8c\x05numpy\x8c\x10ndarray.__base__\x93",  # a dotted name, which protocol 4 would walk down
        b"\x8c\x05numpy\x8c\x0ddtype\n.x\nyzzz\x93",  # line breaks, which must not reach the message
    ],
)
def test_any_other_name_is_refused_even_uncalled(name: bytes) -> None:
    refused(b"\x80\x04" + name + b".")


NDARRAY, DTYPE, ENCODE = b"cnumpy\nndarray\n", b"cnumpy\ndtype\n", b"c_codecs\nencode\n"
RECONSTRUCT = b"cnumpy.core.multiarray\n_reconstruct\n"
EMPTY_ARRAY = RECONSTRUCT + NDARRAY + b"K\x00\x85U\x01b\x87R"


@pytest.mark.parametrize(
    "raw",
    [
        DTYPE + b"U\x01OK\x00K\x01\x87R.",  # objects
        DTYPE + b"U\x02|OK\x00K\x01\x87R.",
        DTYPE + b"U\x04O,u1K\x00K\x01\x87R.",  # a record with objects
        DTYPE + b"]\x85R.",
        DTYPE + b"U\x02V8K\x00K\x01\x87R(K\x03U\x01|NNNJ\x08\x00\x00\x00K\x01K\x00tb.",
        DTYPE + b"U\x02u1\x85R(K\x03U\x01|NU\x01a}tb.",  # fields slipped in through the state
        DTYPE + b"U\x02u1\x85R(K\x03U\x01!NNNtb.",
        DTYPE + b"U\x02u1\x85R}U\x05plainNsb.",  # attributes instead of a state
        NDARRAY + b"K\x05\x85R.",  # an array of whatever lies in memory
        RECONSTRUCT + DTYPE + b"K\x00\x85U\x01b\x87R.",
        EMPTY_ARRAY + b"}b.",
        EMPTY_ARRAY + b"(K\x01(K\x04t" + DTYPE + b"U\x02u1\x85R\x89U\x03abctb.",  # three bytes for four sites
        EMPTY_ARRAY + b"(K\x01(J\xff\xff\xff\xfft" + DTYPE + b"U\x02u1\x85R\x89U\x03abctb.",
        EMPTY_ARRAY + b"(K\x01(K\x01t" + DTYPE + b"U\x02u1\x85R\x89]K\x01atb.",  # a list, as of objects
        ENCODE + b"X\x01\x00\x00\x00aX\x03\x00\x00\x00hex\x86R.",
        ENCODE + b"U\x01aX\x06\x00\x00\x00latin1\x86R.",
        ENCODE + b"N}U\x0c__defaults__)s\x86b.",  # setting an attribute of the function itself
        RECONSTRUCT + b"}U\x05_callNsb.",
    ],
)
def test_tricks_with_the_admitted_names_are_refused(raw: bytes) -> None:
    refused(b"\x80\x02" + raw)


def test_arrays_of_objects_are_refused_as_numpy_writes_them() -> None:
    refused(pickle.dumps(np.array([1, "a", None], dtype=object), 2), "refuses an array of 'O")
    refused(pickle.dumps(np.zeros(2, dtype=[("a", "u1"), ("b", "O")]), 2))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"garbage",
        b"\x1f\x8b\x08 a gzip file",
        b"\x80\x02}",
        b"\x80\xff.",
        b"\x80\x02h\x07.",
        b"\x80\x02c__builtin__\nbytes\nK\x05\x85R.",  # bytes, but not the empty ones
        b"\x80\x02" + NDARRAY + b")\x81.",
        b"P1\n.",  # a persistent id
        b"\x80\x02\x82\x01.",  # the extension registry
    ],
)
def test_garbage_is_an_error_of_one_line(raw: bytes) -> None:
    refused(raw, "not a readable pickle")


def test_every_truncation_is_an_error() -> None:
    raw = pickle.dumps({b"data": np.arange(5), b"labels": [1, 2]}, 2)
    for length in range(len(raw)):
        refused(raw[:length], "not a readable pickle")


def test_stand_ins_survive_an_attack() -> None:
    refused(b"\x80\x02" + ENCODE + b"N}U\x0c__defaults__)s\x86b.")
    assert load(pickle.dumps(b"still", 2)) == b"still"
