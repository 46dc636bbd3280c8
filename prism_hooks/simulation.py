"""Paths for PRISM's simulator: what `-sim` asks for, sampled by the engines.

PRISM's methods judge the outcomes in Java, path by path; here batches of paths are sampled and
handed over. A method of ours samples and judges here as a whole.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.cuda.driver import gpu_refusal
from engines.errors import InvalidModelError, UnsupportedError
from engines.model.environment import DeviceChoice
from engines.montecarlo.cluster_client import OpenCluster
from engines.montecarlo.cluster_options import ClusterError
from engines.montecarlo.cluster_paths import PathsSpec
from engines.montecarlo.cuda import device_numbers
from engines.montecarlo.failure import Failure, FailureKind, PathFailure
from engines.montecarlo.methods import MethodError, SeveralMethods, UndecidedPathError
from engines.montecarlo.plan import SynchronisationStrategy
from engines.montecarlo.questions import Question
from engines.montecarlo.results import PathArrays
from engines.montecarlo.sampler import Sampler
from engines.montecarlo.standalone import standalone
from engines.montecarlo.tally import UNDECIDED
from engines.program.program import Program
from prism_hooks.exit_gate import GATE
from prism_hooks.failure import unexpected
from prism_hooks.options import SYNCHRONISATIONS, HookOptions
from prism_hooks.path_questions import read_questions
from prism_hooks.program import read_program
from prism_hooks.simulation_cluster import ClusterSampling, open_cluster
from prism_hooks.simulation_device import DeviceSampler, PlaceTuning, device_for
from prism_hooks.simulation_growing import NAME as GROWING
from prism_hooks.simulation_growing import GrowingLengths, OpenSampler, read_prefix_questions
from prism_hooks.simulation_methods import judge, methods_of, switches_of
from prism_hooks.simulation_progress import (
    SamplingProgress,
    answers,
    sample_in_view,
    sampling_progress,
)

STRATEGIES = {
    "": SynchronisationStrategy.AUTO,
    "compile": SynchronisationStrategy.COMPILE_TIME,
    "runtime": SynchronisationStrategy.RUN_TIME,
    "lazy": SynchronisationStrategy.LAZY,
}
"""The values of `-gpusimsync`."""

UNDECIDED_PATH = "undecided"
"""How a path failed that met the path limit first."""


Sample = Callable[[int, int], PathArrays]
"""From the first path and the number of paths to what each answered."""


@dataclass(frozen=True)
class _Prepared:
    number: int
    program: Program
    sampler: DeviceSampler
    progress: SamplingProgress
    cluster: ClusterSampling | None
    growing: GrowingLengths | None

    @property
    def sample(self) -> Sample:
        if self.cluster is not None:
            return self.cluster.gather
        return partial(sample_in_view, self.sampler, progress=self.progress)

    @property
    def remark(self) -> str:
        """What is to be told when all is over."""
        trouble = [] if self.cluster is None else self.cluster.trouble
        workers = f"of the workers, {'; '.join(trouble)}" if trouble else ""
        sampler = self.sampler if self.growing is None else self.growing
        return "; ".join(filter(None, (sampler.remark, workers)))


class Simulation:
    """Answers PRISM's simulator.

    Parameters
    ----------
    options
        What the command line says about the engines.
    places
        When a GPU is sooner.
    """

    def __init__(self, options: HookOptions, places: PlaceTuning = PlaceTuning()) -> None:
        self.options, self._places = options, places
        self._current: _Prepared | None = None
        self._cluster: OpenCluster | None = None
        self._sources = 0

    def sample(self, sampling: Any) -> None:
        """Sample the paths of a `prismgpu.Sampling`; fill in outcomes, a refusal or an error.

        Parameters
        ----------
        sampling
            The Java object; with no paths wanted, only what it takes to sample is made ready.
        """
        try:
            self._sample(sampling)
        except (UnsupportedError, InvalidModelError) as error:
            options = self.options
            wanted = options.device is DeviceChoice.GPU
            if wanted and gpu_refusal(options.device_number) is not None:
                sampling.error = str(error)
            else:
                sampling.refusal = str(error)
        except ClusterError as error:
            sampling.error = f"the cluster {self.options.simulation_cluster} cannot sample: {error}"
        except MemoryError as error:
            sampling.error = f"prism-gpu ran out of memory: {error}"
        except Exception as error:
            # A wrong number would be worse than no number: nothing is handed back in silence.
            sampling.error = unexpected(error)

    def _sample(self, sampling: Any) -> None:
        try:
            self._devices()
        except UnsupportedError as error:
            # Fewer GPUs than were named; neither the CPU nor PRISM takes their place in silence.
            sampling.error = str(error)
            return
        number = int(sampling.id)
        if self._current is None or self._current.number != number:
            self._current = self._prepared(number, sampling)
        current = self._current
        if sampling.numPaths == 0:
            return
        if sampling.methods is None:
            sample_batch(current.program, current.sampler, current.sample, sampling)
        else:
            self._judge(current, sampling)
        sampling.remark = current.remark

    def _judge(self, current: _Prepared, sampling: Any) -> None:
        try:
            if current.growing is not None:
                current.growing.judge(sampling, current.progress)
                return
            methods = self._methods(sampling)
            if current.cluster is None:
                judge(methods, current.sampler, current.progress, sampling)
            else:
                current.cluster.judge(methods, sampling)
        except PathFailure as error:
            fail(current.program, error.failure, sampling)
        except UndecidedPathError:
            sampling.failure = UNDECIDED_PATH

    def _prepared(self, number: int, sampling: Any) -> _Prepared:
        program = read_program(str(sampling.program))
        seed, path_limit = self._seed(sampling), int(sampling.pathLimit)
        num_paths = int(sampling.numWanted)
        options = self.options
        fixed = not sampling.endsInDeadlocks

        def open_sampler(questions: tuple[Question, ...]) -> DeviceSampler:
            def make(device: DeviceChoice) -> Sampler:
                return Sampler(
                    *(program, questions, seed, device, path_limit),
                    strategy=STRATEGIES[options.simulation_sync],
                    deadlocks_fixed=fixed,
                    devices=self._devices(),
                )

            return DeviceSampler(
                *(make, options.device, options.device_number, num_paths),
                on_cluster=bool(options.simulation_cluster),
                tuning=self._places,
            )

        growing = None
        if options.simulation_method == GROWING:
            growing = self._growing(program, lambda asked: open_sampler((asked,)), sampling)
            questions: tuple[Question, ...] = growing.first_questions
        else:
            states = options.simulation_states
            questions = read_questions(str(sampling.questions), program, states)
            if sampling.methods is not None:
                methods = self._methods(sampling)
                num_paths = 0 if methods.needs_order else methods.paths_wanted_next(2**62)
        sampler = open_sampler(questions)
        self._show_source(sampler, path_limit)
        progress = sampling_progress()
        progress.visible &= options.show_progress
        cluster, place = None, sampler.place
        if options.simulation_cluster:
            workers = self._workers()
            spec = PathsSpec(
                program,
                tuple(questions),
                seed,
                device_for(options.device, num_paths, self._places, on_cluster=True),
                options.device_number,
                path_limit,
                strategy=STRATEGIES[options.simulation_sync],
                deadlocks_fixed=fixed,
                threads=workers.threads,
            )
            cluster = ClusterSampling(workers, spec, sampler, progress)
            place = f"by the workers of {options.simulation_cluster}"
        GATE.stop_if_ending()
        sampling.say(f"prism-gpu: paths of seed {seed}, sampled {place}{self._how()}")
        return _Prepared(number, program, sampler, progress, cluster, growing)

    def _how(self) -> str:
        """Return what the user named of how paths are sampled and asked."""
        found = ""
        if self.options.simulation_states is not None:
            found += f", asked of their first {self.options.simulation_states} states"
        if self.options.simulation_sync:
            found += f", {SYNCHRONISATIONS[self.options.simulation_sync]}"
        return found

    def _growing(
        self, program: Program, open_sampler: OpenSampler, sampling: Any
    ) -> GrowingLengths:
        if self.options.simulation_cluster:
            raise UnsupportedError("growing path lengths are sampled by this process alone")
        if self.options.simulation_states is not None:
            raise UnsupportedError("growing path lengths are no fixed number of states")
        questions = read_prefix_questions(str(sampling.questions), program)
        switches = switches_of(dict(self.options.simulation))
        try:
            growing = GrowingLengths(questions, open_sampler, switches, int(sampling.pathLimit))
            growing.introduce(sampling)
        except MethodError as error:
            raise InvalidModelError(str(error)) from error
        return growing

    def _devices(self) -> tuple[int, ...]:
        """Return the GPUs that share the paths; none where one does, or there is none."""
        options = self.options
        alone = options.num_devices == 1 or options.device is DeviceChoice.CPU
        if alone or gpu_refusal(options.device_number) is not None:
            return ()
        return device_numbers(options.device_number, options.num_devices)

    def _workers(self) -> OpenCluster:
        """Return the cluster, which stays open until the process ends."""
        if self._cluster is None:
            self._cluster = open_cluster(self.options.simulation_cluster)
            GATE.close_at_end(self._cluster.close)
        return self._cluster

    def _methods(self, sampling: Any) -> SeveralMethods:
        words = {**dict(self.options.simulation), "simmethod": self.options.simulation_method}
        return methods_of(sampling, switches_of(words))

    def _seed(self, sampling: Any) -> int:
        if self.options.simulation_seed is not None:
            return self.options.simulation_seed
        # Java's int may be negative.
        return secrets.randbits(63) if sampling.seed is None else int(sampling.seed) % 2**64

    def _show_source(self, sampler: DeviceSampler, path_limit: int) -> None:
        """Write what the model was compiled to, where it is wanted: each program a file."""
        if self.options.simulation_source is None:
            return
        path = Path(self.options.simulation_source)
        if self._sources:
            path = path.with_stem(f"{path.stem}-{self._sources + 1}")
        try:
            path.write_text(standalone(sampler.compiled, path_limit), encoding="utf-8")
        except OSError as error:
            raise UnsupportedError(f"{path} cannot be written: {error.strerror}") from error
        self._sources += 1


def sample_batch(program: Program, sampler: DeviceSampler, sample: Sample, sampling: Any) -> None:
    """Sample a batch and fill in what its paths answered, up to the first that failed.

    Parameters
    ----------
    program
        The model.
    sampler
        Tells how a path failed.
    sample
        Samples the paths.
    sampling
        The `prismgpu.Sampling` that says which paths.
    """
    first, wanted = int(sampling.firstPath), int(sampling.numPaths)
    arrays = sample(first, wanted)
    sampling.failure = sampling.failedIn = None
    good = num_good(arrays)
    if good < wanted:
        fail_at(program, sampler, arrays, good, sampling)
    sampling.numGood = good
    counted = bool(sampling.counted)
    for k, values in enumerate(answers(sampler.compiled, arrays)):
        if values.dtype == np.float64:
            sampling.setValues(k, values)
        elif counted:
            sampling.setCount(k, int(np.count_nonzero(values[:good])))
        else:
            sampling.setTruths(k, values.view(np.int8))
    lengths = arrays.lengths
    if not counted:
        sampling.lengths = lengths
    elif good:
        lengths = lengths[:good]
        sampling.setLengths(int(lengths.sum()), int(lengths.min()), int(lengths.max()))


def num_good(arrays: PathArrays) -> int:
    """Return how many paths there are before the first that failed or has an answer missing.

    Parameters
    ----------
    arrays
        Answers of consecutive paths.
    """
    if (
        arrays.lengths.min(initial=0) >= 0
        and arrays.booleans.max(initial=0) != UNDECIDED
        and bool(np.isfinite(arrays.rewards).all())
    ):
        return arrays.num_paths
    return int(np.flatnonzero(undecided(arrays) | (arrays.lengths < 0))[0])


def undecided(arrays: PathArrays) -> NDArray[np.bool_]:
    """Return which paths have no answer to some question.

    Parameters
    ----------
    arrays
        Answers of consecutive paths. A reward that is infinite, because the path never ends, is
        none.

    Returns
    -------
    array of bool
        Of shape (paths,).
    """
    missing: NDArray[np.bool_] = np.any(arrays.booleans == UNDECIDED, axis=0)
    missing |= np.any(~np.isfinite(arrays.rewards), axis=0)
    return missing


def fail_at(
    program: Program, sampler: DeviceSampler, arrays: PathArrays, place: int, sampling: Any
) -> None:
    """Fill in how a path failed.

    Parameters
    ----------
    program, sampler, arrays
        The model, and paths of it.
    place
        The first bad path among them.
    sampling
        The `prismgpu.Sampling`.
    """
    if arrays.lengths[place] >= 0:
        sampling.failure = UNDECIDED_PATH
        return
    try:
        sampler.run(arrays.first_path + place, 1)
    except PathFailure as error:
        fail(program, error.failure, sampling)


def fail(program: Program, failure: Failure, sampling: Any) -> None:
    """Fill in an error on a path."""
    sampling.failure = failure_text(program, failure)
    sampling.failedIn = list(failure.state)


def failure_text(program: Program, failure: Failure) -> str:
    """Return what went wrong on a path, for the case that PRISM has no words of its own for it.

    Parameters
    ----------
    program
        The model.
    failure
        The error.
    """
    if failure.kind is FailureKind.DEADLOCK:
        return str(failure.kind.value)
    if failure.kind is FailureKind.OUT_OF_RANGE and failure.variable is not None:
        variable = program.variables[failure.variable]
        value = 0 if failure.value is None else int(failure.value)
        return (
            f"Value {value} out of range {variable.low}..{variable.high} for variable "
            f"{variable.name}, assigned"
        )
    details = failure.reason or ("" if failure.value is None else str(failure.value))
    return f"Error while sampling a path ({failure.kind.value} {details})".replace(" )", ")")
