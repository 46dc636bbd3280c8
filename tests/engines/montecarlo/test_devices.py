"""How paths are shared out among GPUs, with a CuPy that computes on the CPU."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from engines.errors import UnsupportedError
from engines.model.environment import DeviceChoice
from engines.montecarlo import cuda, native
from engines.montecarlo.cuda import CudaPaths, device_numbers
from engines.montecarlo.results import PathArrays
from engines.montecarlo.sampler import Sampler
from engines.program.native import compiler
from tests.engines.montecarlo import programs

NAME, PROGRAM, QUESTIONS = next(iter(programs.cases()))
LIMIT = 500


class Array(np.ndarray):
    """An array on the device."""

    def get(self, out):
        assert out.flags.c_contiguous
        out[...] = self


class FakeCuPy:
    """Three devices; kernels run at once, by the C compiler, and are counted."""

    uint64 = staticmethod(int)
    int64 = staticmethod(int)
    uint8, float64 = np.uint8, np.float64

    def __init__(self):
        self.current, self.launches = 0, Counter()
        runtime = SimpleNamespace(
            getDeviceCount=lambda: 3,
            getDeviceProperties=lambda _: {"multiProcessorCount": 2},
        )
        compiler = SimpleNamespace(CompileException=ArithmeticError)
        self.cuda = SimpleNamespace(runtime=runtime, compiler=compiler, Device=self.device)

    @contextmanager
    def device(self, number):
        before, self.current = self.current, number
        yield
        self.current = before

    def empty(self, shape, dtype):
        return np.full(shape, 77).astype(np.int64 if dtype is self.int64 else dtype).view(Array)

    zeros = empty

    def RawModule(self, code, options):  # noqa: N802
        assert "--fmad=false" in options
        paths, device = native.NativePaths(code, threads=1), self.current

        def launch(grid, block, arguments):
            assert self.current == device
            assert grid[0] * block[0] > 0
            seed, first, count, limit, booleans, rewards, lengths, _ = arguments
            self.launches[device] += count
            paths.sample(PathArrays(first, booleans, rewards, lengths), seed, limit)

        return SimpleNamespace(get_function=lambda _: launch)


@pytest.fixture
def fake(monkeypatch):
    try:
        compiler()
    except UnsupportedError as error:
        pytest.skip(str(error))
    made = FakeCuPy()
    monkeypatch.setattr(cuda, "cupy", lambda: made)
    return made


@pytest.mark.parametrize("devices", [(0,), (2, 0), (0, 1, 2), (1, 1)])
@pytest.mark.parametrize("share", [100, 1 << 20])
def test_paths_are_the_same_whoever_samples_them(fake, monkeypatch, devices, share):
    monkeypatch.setattr(cuda, "_SHARE", share)
    expected = Sampler(PROGRAM, QUESTIONS, 5, DeviceChoice.CPU, LIMIT)
    shared = CudaPaths(expected.compiled.text, devices)
    assert shared.num_devices == len(devices)
    found, done = PathArrays.empty(40, 1001, QUESTIONS), []
    shared.sample(found, 5, LIMIT, done.append)
    whole = expected.sample(40, 1001)
    assert np.array_equal(found.booleans, whole.booleans)
    assert np.array_equal(found.rewards, whole.rewards, equal_nan=True)
    assert np.array_equal(found.lengths, whole.lengths)
    assert sum(done) == fake.launches.total() == 1001
    assert set(fake.launches) == set(devices)
    assert max(fake.launches.values()) <= 1001 * 1.3 * max(Counter(devices).values()) / len(devices)


@pytest.mark.usefixtures("fake")
def test_devices_are_counted_from_the_first_that_is_named():
    assert device_numbers(0, 2) == (0, 1)
    assert device_numbers(1, 0) == (1, 2)
    for first, wanted in ((0, 4), (2, 2), (3, 0)):
        with pytest.raises(UnsupportedError, match=f"from number {first} on, not {wanted}"):
            device_numbers(first, wanted)
