"""Arrays cross between Java and NumPy as they are, short or long."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from prism_hooks import crossing
from prism_hooks.crossing import (
    copy_back,
    java_doubles,
    java_flags,
    java_integers,
    numpy_array,
    overwrite,
)

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
    flags = rng.random(size) < 0.5
    java = java_integers(integers), java_doubles(doubles), java_flags(flags)
    assert [type(array).__name__ for array in java] == ["int[]", "double[]", "boolean[]"]
    np.testing.assert_array_equal(numpy_array(java[0], np.int32), integers.astype(np.int32))
    found = numpy_array(java[1], np.float64)
    np.testing.assert_array_equal(found.view(np.int64), doubles.view(np.int64))
    assert [bool(flag) for flag in java[2][:]] == flags.tolist()
    longs = jvm.JArray(jvm.JLong)(size)
    overwrite(longs, integers)
    np.testing.assert_array_equal(numpy_array(longs, np.int64), integers)


@pytest.mark.prism
@pytest.mark.parametrize("size", [SHORT, LONG, IN_PIECES])
@pytest.mark.usefixtures("jvm")
def test_arrays_of_any_layout_and_kind_cross(size):
    every = np.arange(2.0 * size)
    every.setflags(write=False)
    for given in (every[::2], every[:size], np.arange(size), np.arange(size, dtype=np.int32)):
        java = java_doubles(given)
        np.testing.assert_array_equal(numpy_array(java, np.float64), given)
        twice = np.zeros(2 * size)
        copy_back((java, java), (twice[::2], twice[1::2]))
        np.testing.assert_array_equal(twice, np.repeat(given, 2))
        own = np.zeros(size)
        copy_back((java,), (own,))
        np.testing.assert_array_equal(own, given)
    # Of another type it is made from: nothing is read as what it is not.
    assert numpy_array(java_integers(np.arange(size)), np.float64).tolist() == list(range(size))


@pytest.mark.prism
@pytest.mark.usefixtures("jvm")
def test_an_array_that_has_crossed_is_not_kept():
    class Watched(np.ndarray):
        pass

    given = np.arange(float(LONG)).view(Watched)
    gone = weakref.ref(given)
    java = java_doubles(given)
    del given
    gc.collect()
    assert gone() is None
    for first in (1.0, 7.0):
        overwrite(java, np.arange(first, LONG + first))
        np.testing.assert_array_equal(numpy_array(java, np.float64), np.arange(first, LONG + first))


@pytest.mark.prism
@pytest.mark.usefixtures("jvm")
def test_threads_do_not_meet_on_the_stage():
    def crossed(number):
        given = np.full(IN_PIECES, float(number))
        return all((numpy_array(java_doubles(given), np.float64) == number).all() for _ in range(5))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(crossed, range(8)))
