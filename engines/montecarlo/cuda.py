"""Compiled sources on GPUs: NVRTC through CuPy, one thread a path."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engines.cuda.driver import cupy
from engines.errors import UnsupportedError
from engines.model.environment import ALL_DEVICES
from engines.montecarlo.results import PathArrays

OPTIONS = ("-std=c++17", "--fmad=false", "-diag-suppress=177,550")
"""Contraction of multiplications and additions would make other paths than the CPU's. No warnings
of functions and variables that a model has no use for."""

BLOCK = 128
_SHARE = 1 << 20
"""Paths of one launch, at the most; their answers are kept on the device until it has ended."""


def device_numbers(first: int, wanted: int) -> tuple[int, ...]:
    """Return the numbers of the GPUs that share paths.

    Parameters
    ----------
    first
        The first.
    wanted
        How many; 0 for all from there on.

    Raises
    ------
    UnsupportedError
        If there are fewer.
    """
    there = int(cupy().cuda.runtime.getDeviceCount()) - first
    if not 0 < max(wanted, 1) <= there:
        raise UnsupportedError(f"there are {there} GPUs from number {first} on, not {wanted}")
    return tuple(range(first, first + (there if wanted == ALL_DEVICES else wanted)))


@dataclass(frozen=True)
class _Launched:
    """Answers of paths that a device is sampling."""

    device: int
    begin: int
    booleans: Any
    rewards: Any
    lengths: Any


class CudaPaths:
    """Paths sampled by one GPU, or by several in turn.

    Parameters
    ----------
    text
        The source.
    devices
        Numbers of the GPUs, one of which may come several times; by default CuPy's current device.

    Raises
    ------
    UnsupportedError
        If there is no usable GPU, or NVRTC refuses the source; with what it says.
    """

    def __init__(self, text: str, devices: Sequence[int] = ()) -> None:
        xp = cupy()
        self._kernels = [_Kernel(text, number) for number in devices or (int(xp.cuda.Device().id),)]

    @property
    def num_devices(self) -> int:
        """How many GPUs share the paths."""
        return len(self._kernels)

    def sample(
        self,
        arrays: PathArrays,
        seed: int,
        path_limit: int,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Sample the paths that the arrays are for, into them.

        Parameters
        ----------
        arrays
            Where the answers go.
        seed, path_limit
            As `engines.montecarlo.sampler.Sampler` has them.
        progress
            Called with numbers of paths as they are done.
        """
        share = min(_SHARE, -(-arrays.num_paths // self.num_devices))
        under_way: deque[_Launched] = deque()

        def take() -> None:
            done = under_way.popleft()
            number = _fetch(done, arrays)
            if progress is not None:
                progress(number)

        for i, begin in enumerate(range(0, arrays.num_paths, share)):
            if len(under_way) == self.num_devices:
                take()
            kernel = self._kernels[i % self.num_devices]
            count = min(share, arrays.num_paths - begin)
            under_way.append(kernel.launch(arrays, begin, count, seed, path_limit))
        while under_way:
            take()


class _Kernel:
    """The compiled source on one device."""

    def __init__(self, text: str, device: int) -> None:
        xp = cupy()
        self._device = device
        try:
            with xp.cuda.Device(device):
                module = xp.RawModule(code=text, options=OPTIONS)
                self._kernel = module.get_function("sample_paths")
        except xp.cuda.compiler.CompileException as error:
            raise UnsupportedError(f"NVRTC did not compile the model: {error}"[:2000]) from error
        properties = xp.cuda.runtime.getDeviceProperties(device)
        blocks_per_multiprocessor = 16
        self._most_blocks = properties["multiProcessorCount"] * blocks_per_multiprocessor

    def launch(
        self, arrays: PathArrays, begin: int, count: int, seed: int, path_limit: int
    ) -> _Launched:
        """Begin to sample some of the paths of arrays."""
        xp = cupy()
        with xp.cuda.Device(self._device):
            booleans = xp.empty((max(len(arrays.booleans), 1), count), dtype=xp.uint8)
            rewards = xp.empty((max(len(arrays.rewards), 1), count), dtype=xp.float64)
            lengths = xp.empty(count, dtype=xp.int64)
            taken = xp.zeros(1, dtype=xp.uint64)
            numbers = (seed, arrays.first_path + begin, count)
            self._kernel(
                (min(self._most_blocks, -(-count // BLOCK)),),
                (BLOCK,),
                (
                    *(xp.uint64(number) for number in numbers),
                    xp.int64(path_limit),
                    booleans,
                    rewards,
                    lengths,
                    taken,
                ),
            )
        return _Launched(self._device, begin, booleans, rewards, lengths)


def _fetch(launched: _Launched, arrays: PathArrays) -> int:
    """Copy answers to the host when they are there; return how many paths they are of."""
    count = int(launched.lengths.size)
    here = slice(launched.begin, launched.begin + count)
    with cupy().cuda.Device(launched.device):
        launched.lengths.get(out=arrays.lengths[here])
        # On the device there is a row at least, whether or not anything is asked.
        for row, answers in zip(arrays.booleans, launched.booleans, strict=False):
            answers.get(out=row[here])
        for row, answers in zip(arrays.rewards, launched.rewards, strict=False):
            answers.get(out=row[here])
    return count
