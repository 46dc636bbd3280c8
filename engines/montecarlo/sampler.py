"""Sampling of paths: a program and questions, compiled for the CPU or a GPU.

Path i of a seed is the same on either, in a batch of any size, on any machine; so are the answers
and their sums, digit for digit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engines.errors import UnsupportedError
from engines.model.environment import DeviceChoice
from engines.montecarlo.compile import Compiled, compile_program
from engines.montecarlo.cuda import CudaPaths
from engines.montecarlo.failure import PathFailure
from engines.montecarlo.native import NativePaths
from engines.montecarlo.plan import SynchronisationStrategy
from engines.montecarlo.questions import Question
from engines.montecarlo.reference import sample_path
from engines.montecarlo.results import PathArrays
from engines.montecarlo.tally import PathBatch
from engines.program.program import Program

DEFAULT_PATH_LIMIT = 10_000
"""PRISM's, of its switch `-simpathlen`."""


class Sampler:
    """Samples paths of a program and asks questions of them.

    Parameters
    ----------
    program
        The model.
    questions
        What is asked of each path, at least one.
    seed
        Of 64 bits.
    device
        Where; `AUTO` takes a GPU if there is one.
    path_limit
        After so many steps only questions that end of themselves are pursued; the others are
        undecided.
    strategy
        How commands that synchronise are brought together.
    deadlocks_fixed
        Whether a deadlock is a state that is never left, as it is unless PRISM is told
        `-nofixdl`; else it is an error.
    threads
        Threads of the CPU; None for one a core.
    devices
        Numbers of the GPUs that share the paths; by default CuPy's current device alone.

    Raises
    ------
    InvalidModelError
        If a question does not fit the program.
    UnsupportedError
        If what is asked cannot be done here, or there is neither a GPU nor a C compiler; the
        message says what to do.
    """

    def __init__(
        self,
        program: Program,
        questions: Sequence[Question],
        seed: int,
        device: DeviceChoice = DeviceChoice.AUTO,
        path_limit: int = DEFAULT_PATH_LIMIT,
        strategy: SynchronisationStrategy = SynchronisationStrategy.AUTO,
        deadlocks_fixed: bool = True,
        threads: int | None = None,
        devices: Sequence[int] = (),
    ) -> None:
        if not 0 <= seed < 2**64:
            raise ValueError(f"the seed {seed} is not a number of 64 bits")
        if path_limit < 0:
            raise ValueError(f"the path limit {path_limit} is negative")
        self._arguments = (
            *(program, tuple(questions), seed, device),
            *(path_limit, strategy, deadlocks_fixed, threads, tuple(devices)),
        )
        self._compiled = compile_program(program, questions, strategy, deadlocks_fixed)
        self._seed, self._path_limit = seed, path_limit
        self._deadlocks_fixed = deadlocks_fixed
        self._paths = _open(self._compiled, device, threads, devices)

    def __reduce__(self) -> tuple[type[Sampler], tuple[object, ...]]:
        # a sampler that is sent to another process is compiled anew there
        return Sampler, self._arguments

    @property
    def compiled(self) -> Compiled:
        """The source that is run, and its plan."""
        return self._compiled

    @property
    def on_gpu(self) -> bool:
        """Whether paths are sampled by a GPU."""
        return isinstance(self._paths, CudaPaths)

    @property
    def num_devices(self) -> int:
        """How many GPUs share the paths; 0 on the CPU."""
        return self._paths.num_devices if isinstance(self._paths, CudaPaths) else 0

    def run(
        self, first_path: int, num_paths: int, progress: Callable[[int], None] | None = None
    ) -> PathBatch:
        """Sample consecutive paths.

        Parameters
        ----------
        first_path, num_paths
            Which; at least one.
        progress
            Called with numbers of paths as they are done.

        Returns
        -------
        PathBatch
            One entry a question; the outcomes of single paths are with them.

        Raises
        ------
        PathFailure
            If a path meets an error: the first that does. The paths before it can be asked for.
        ValueError
            If there is no such path.
        """
        arrays = self.sample(first_path, num_paths, progress)
        failed = arrays.first_failed
        if failed is not None:
            raise self._explain(failed)
        return arrays.batch(self._compiled.questions)

    def sample(
        self, first_path: int, num_paths: int, progress: Callable[[int], None] | None = None
    ) -> PathArrays:
        """Sample consecutive paths and return their answers one by one, errors included."""
        if num_paths < 1 or not 0 <= first_path <= 2**64 - num_paths:
            raise ValueError(f"there are no paths {first_path} to {first_path + num_paths - 1}")
        arrays = PathArrays.empty(first_path, num_paths, self._compiled.questions)
        self._paths.sample(arrays, self._seed, self._path_limit, progress)
        return arrays

    def _explain(self, path: int) -> PathFailure:
        """Return what went wrong on a path, found by taking it one step at a time."""
        try:
            sample_path(
                self._compiled.plan,
                self._compiled.questions,
                self._seed,
                path,
                self._path_limit,
                self._deadlocks_fixed,
            )
        except PathFailure as failure:
            return failure
        raise RuntimeError(
            f"path {path} of seed {self._seed} failed in the compiled source alone: report it"
        )


def _open(
    compiled: Compiled, device: DeviceChoice, threads: int | None, devices: Sequence[int]
) -> NativePaths | CudaPaths:
    if device is DeviceChoice.CPU:
        return NativePaths(compiled.text, threads)
    try:
        return CudaPaths(compiled.text, devices)
    except UnsupportedError:
        if device is DeviceChoice.GPU:
            raise
        return NativePaths(compiled.text, threads)
