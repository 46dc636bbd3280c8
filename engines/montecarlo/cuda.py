"""Compiled sources on a GPU: NVRTC through CuPy, one thread a path."""

from __future__ import annotations

from collections.abc import Callable

from engines.backend import cupy
from engines.errors import UnsupportedError
from engines.montecarlo.results import PathArrays

OPTIONS = ("-std=c++17", "--fmad=false", "-diag-suppress=177,550")
"""Contraction of multiplications and additions would make other paths than the CPU's. No warnings
of functions and variables that a model has no use for."""

BLOCK = 128
_BLOCKS_PER_MULTIPROCESSOR = 16
_SHARE = 1 << 20
"""Paths of one launch, at the most; their answers are kept on the device until it has ended."""


class CudaPaths:
    """Paths sampled by one GPU, the one that CuPy's current device is.

    Parameters
    ----------
    text
        The source.

    Raises
    ------
    UnsupportedError
        If there is no usable GPU, or NVRTC refuses the source; with what it says.
    """

    def __init__(self, text: str) -> None:
        xp = cupy()
        try:
            module = xp.RawModule(code=text, options=OPTIONS)
            self._kernel = module.get_function("sample_paths")
        except xp.cuda.compiler.CompileException as error:
            raise UnsupportedError(f"NVRTC did not compile the model: {error}"[:2000]) from error
        properties = xp.cuda.runtime.getDeviceProperties(xp.cuda.Device().id)
        self._most_blocks = properties["multiProcessorCount"] * _BLOCKS_PER_MULTIPROCESSOR

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
        xp = cupy()
        for begin in range(0, arrays.num_paths, _SHARE):
            count = min(_SHARE, arrays.num_paths - begin)
            booleans = xp.empty((max(len(arrays.booleans), 1), count), dtype=xp.uint8)
            rewards = xp.empty((max(len(arrays.rewards), 1), count), dtype=xp.float64)
            lengths = xp.empty(count, dtype=xp.int64)
            taken = xp.zeros(1, dtype=xp.uint64)
            blocks = min(self._most_blocks, -(-count // BLOCK))
            numbers = (seed, arrays.first_path + begin, count)
            self._kernel(
                (blocks,),
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
            here = slice(begin, begin + count)
            arrays.lengths[here] = lengths.get()
            if len(arrays.booleans):
                arrays.booleans[:, here] = booleans.get()
            if len(arrays.rewards):
                arrays.rewards[:, here] = rewards.get()
            if progress is not None:
                progress(count)
