"""Arrays cross from Java to NumPy and back as they are, short or long."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from prism_hooks import crossing
from prism_hooks.crossing import java_array, numpy_array

SHORT, LONG = 5, crossing.FEWEST_BYTES // 4 + 1
IN_PIECES = 2 * crossing.STAGE_BYTES // 8 + 3


def test_what_is_no_java_array_is_made_one_of_numpy_s():
    for given in ([1, 2], np.array([1, 2]), (1, 2)):
        found = numpy_array(given, np.int64)
        assert found.tolist() == [1, 2]
        assert found.dtype == np.int64


@pytest.fixture(scope="module")
def jvm(prism_install):
    """Return JPype, its machine running."""
    import jpype

    import bridge

    model = prism_install.beside("prism-examples")
    if model is None:
        pytest.skip(f"needs PRISM's examples: there is no prism-examples by {prism_install.root}")
    path = model / "simple" / "dice" / "dice.pm"
    with bridge.open(path, device="cpu", prism_dir=str(prism_install.root)):
        yield jpype


@pytest.mark.prism
@pytest.mark.parametrize("size", [0, SHORT, LONG, IN_PIECES])
def test_numbers_come_back_as_they_went(jvm, size):
    rng = np.random.default_rng(size)
    integers = rng.integers(-(2**31), 2**31, size)
    doubles = rng.random(size) * 10.0 ** rng.integers(-300, 300, size)
    if size:
        doubles[0], doubles[-1] = np.inf, np.nan
    java = jvm.JArray(jvm.JInt)(integers.astype(np.int32))
    np.testing.assert_array_equal(numpy_array(java, np.int32), integers.astype(np.int32))
    found = numpy_array(jvm.JArray(jvm.JDouble)(doubles), np.float64)
    np.testing.assert_array_equal(found.view(np.int64), doubles.view(np.int64))
    longs = jvm.JArray(jvm.JLong)(integers)
    np.testing.assert_array_equal(numpy_array(longs, np.int64), integers)


@pytest.mark.prism
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
@pytest.mark.parametrize("size", [0, SHORT, LONG, IN_PIECES])
def test_numbers_arrive_as_they_left(jvm, size, dtype):
    rng = np.random.default_rng(size)
    bits = rng.integers(0, 256, size * np.dtype(dtype).itemsize, dtype=np.uint8)
    numbers = bits.view(dtype)
    java = java_array(numbers)
    kinds = {np.int32: jvm.JInt, np.int64: jvm.JLong, np.float64: jvm.JDouble}
    assert isinstance(java, jvm.JArray(kinds[dtype]))
    np.testing.assert_array_equal(np.asarray(java).view(np.uint8), bits)


@pytest.mark.prism
@pytest.mark.parametrize("number", [np.float64(0.1), np.int32(-7), np.int64(1 << 40)])
@pytest.mark.parametrize("size", [0, SHORT, LONG, IN_PIECES])
def test_a_repeated_number_arrives_everywhere(jvm, size, number):
    java = java_array(np.broadcast_to(number, size))
    assert isinstance(java, jvm.JArray)
    found = np.asarray(java)
    assert found.dtype == number.dtype
    np.testing.assert_array_equal(found, np.full(size, number))


@pytest.mark.prism
@pytest.mark.parametrize("size", [SHORT, LONG, IN_PIECES])
def test_nothing_is_read_as_what_it_is_not(jvm, size):
    java = jvm.JArray(jvm.JInt)(np.arange(size, dtype=np.int32))
    assert numpy_array(java, np.float64).tolist() == list(range(size))


@pytest.mark.prism
def test_threads_do_not_meet_on_the_stage(jvm):
    def crossed(number):
        java = jvm.JArray(jvm.JDouble)(np.full(IN_PIECES, float(number)))
        return all((numpy_array(java, np.float64) == number).all() for _ in range(5))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(crossed, range(8)))
