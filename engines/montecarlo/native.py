"""Paths sampled on the CPU: the compiled sources of models, and threads."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from engines.errors import UnsupportedError
from engines.montecarlo.results import PathArrays
from engines.process.cores import num_cores
from engines.program.native import NoCompilerError, load

_SHARE = 1024
"""Paths that a thread takes at a time, at the most."""


@functools.lru_cache(maxsize=64)
def _entry(text: str) -> Any:
    """Return the entry of a source's library."""
    try:
        entry = load(text).sample_paths
    except NoCompilerError as error:
        raise UnsupportedError(f"paths are sampled by compiled code, and {error}") from None
    whole, pointer = ctypes.c_uint64, ctypes.c_void_p
    entry.restype = None
    entry.argtypes = [
        *(whole, whole, whole, whole, ctypes.c_int64),
        *(pointer, pointer, pointer, whole),
    ]
    return entry


class NativePaths:
    """Paths sampled by threads of this process, which hold no lock meanwhile.

    Parameters
    ----------
    text
        The source.
    threads
        How many; None for one a core that the process may use.
    """

    def __init__(self, text: str, threads: int | None = None) -> None:
        self._entry = _entry(text)
        self.threads = threads or num_cores()

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
        count = arrays.num_paths
        share = max(1, min(_SHARE, -(-count // (4 * self.threads))))

        def work(begin: int) -> int:
            end = min(begin + share, count)
            self._entry(
                *(seed, arrays.first_path, begin, end, path_limit),
                *(array.ctypes.data for array in (arrays.booleans, arrays.rewards, arrays.lengths)),
                count,
            )
            return end - begin

        begins = range(0, count, share)
        if self.threads == 1 or len(begins) == 1:
            done = map(work, begins)
            for number in done:
                if progress is not None:
                    progress(number)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            for number in pool.map(work, begins):
                if progress is not None:
                    progress(number)
