"""Arrays that go to the device and back through pinned memory."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from engines.cuda import transfer
from engines.cuda.driver import cupy
from engines.cuda.modules import stream

PART = transfer.PART_BYTES
SIZES = [0, 1, PART // 8, transfer.LEAST_BYTES // 8 - 1, transfer.LEAST_BYTES // 8, 9_000_001]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("types", [("i8", "i4"), ("f8", "f8"), ("?", "u1"), ("i4", "i8")])
def test_there_and_back(size, types):
    rng = np.random.default_rng(size)
    array = rng.integers(0, 2 if types[0] == "?" else 1 << 30, size).astype(types[0])
    copy = transfer.to_device(array, np.dtype(types[1]))
    wanted = array.astype(types[1])
    array[:] = 0  # The copy must not be looked at any more.
    back = transfer.to_host(copy)
    assert back.dtype == wanted.dtype
    assert np.array_equal(back, wanted)


def test_every_second_element_and_a_table():
    array = np.arange(12_000_000, dtype=np.int64)
    assert np.array_equal(transfer.to_host(transfer.to_device(array[::2], np.int64)), array[::2])
    table = array.reshape(3000, 4000)
    for part in (table, table[:, ::2], table.T):
        copy = transfer.to_device(part, np.float64)
        assert np.array_equal(transfer.to_host(copy), part)
        assert np.array_equal(transfer.to_host(copy[::2]), part[::2])


def test_in_the_order_of_the_stream():
    """What is queued before a copy is seen by it, and it by what is queued after."""
    cp = cupy()
    array = np.random.default_rng(0).random(8_000_000)
    with stream(0):
        for _ in range(5):
            copy = transfer.to_device(array, np.float64)
            for _ in range(20):
                copy = cp.sqrt(copy)
            expected = array.copy()
            for _ in range(20):
                expected = np.sqrt(expected)
            assert np.allclose(transfer.to_host(copy), expected, rtol=1e-12)
            # Memory that the stream still works on, given out anew.
            del copy


def test_several_threads_at_once():
    arrays = [np.random.default_rng(seed).random(5_000_000) for seed in range(4)]
    found = [None] * len(arrays)

    def there_and_back(number):
        with stream(0):
            found[number] = transfer.to_host(transfer.to_device(arrays[number], np.float64))

    threads = [threading.Thread(target=there_and_back, args=(i,)) for i in range(len(arrays))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for array, back in zip(arrays, found, strict=True):
        assert np.array_equal(array, back)
