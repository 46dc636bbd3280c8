"""What workers sample: paths of a program, as batches or answer by answer."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.cuda.driver import cupy, gpu_refusal
from engines.model.environment import DeviceChoice
from engines.montecarlo.cluster_work import PathSampler
from engines.montecarlo.plan import SynchronisationStrategy
from engines.montecarlo.questions import Question
from engines.montecarlo.results import PathArrays
from engines.montecarlo.sampler import Sampler
from engines.montecarlo.tally import BooleanOutcomes, Outcomes, PathBatch, RewardOutcomes
from engines.program.program import Program


class Content(StrEnum):
    """What a worker sends back of its paths."""

    COUNTS = "counts"
    """Counts and sums."""
    OUTCOMES = "outcomes"
    """Single outcomes too."""
    ANSWERS = "answers"
    """Answers and lengths path by path, those of paths that failed included."""


@dataclass(frozen=True)
class PathsSpec:
    """Makes the sampler of a worker; a `SamplerSpec`.

    Parameters
    ----------
    program, questions, seed, device, path_limit, deadlocks_fixed, threads, strategy
        As `engines.montecarlo.sampler.Sampler` has them.
    device_number
        Which GPU, unless workers of one machine share several out among them.
    content
        What batches hold.
    """

    program: Program
    questions: tuple[Question, ...]
    seed: int
    device: DeviceChoice
    device_number: int
    path_limit: int
    deadlocks_fixed: bool
    threads: int | None
    content: Content = Content.OUTCOMES
    strategy: SynchronisationStrategy = SynchronisationStrategy.AUTO

    def __call__(self) -> PathSampler:
        """Compile the program and return what samples its paths."""
        return _WorkerPaths(self)


class _WorkerPaths:
    def __init__(self, spec: PathsSpec) -> None:
        self._content = spec.content
        self._device_number: int | None = None
        if spec.device is not DeviceChoice.CPU:
            self._device_number = _own_device(spec.device_number)
        no_gpu = spec.device is DeviceChoice.AUTO and self._device_number is None
        with self._on_device():
            self._sampler = Sampler(
                spec.program,
                spec.questions,
                spec.seed,
                DeviceChoice.CPU if no_gpu else spec.device,
                spec.path_limit,
                strategy=spec.strategy,
                deadlocks_fixed=spec.deadlocks_fixed,
                threads=spec.threads,
            )

    def _on_device(self) -> AbstractContextManager[Any]:
        if self._device_number is None:
            return nullcontext()
        return cupy().cuda.Device(self._device_number)  # type: ignore[no-any-return]

    def run(self, first_path: int, num_paths: int) -> PathBatch:
        """Sample consecutive paths; raises as `Sampler.run` does, unless answers are wanted."""
        with self._on_device():
            if self._content is Content.ANSWERS:
                return _batch_of(self._sampler.sample(first_path, num_paths))
            batch = self._sampler.run(first_path, num_paths)
        if self._content is Content.COUNTS:
            return replace(batch, outcomes=tuple(map(_counted, batch.outcomes)))
        return batch


def _own_device(asked: int) -> int | None:
    """Return the number of this process's GPU; None where there is no such one.

    The workers of one machine have the numbers 0, 1, … as names, and its GPUs in turn.
    """
    if gpu_refusal(asked) is not None:
        return None
    try:
        from distributed import get_worker

        name = get_worker().name
    except (ImportError, ValueError):
        return asked
    return name % int(cupy().cuda.runtime.getDeviceCount()) if isinstance(name, int) else asked


def _counted(outcomes: Outcomes) -> Outcomes:
    if isinstance(outcomes, BooleanOutcomes):
        return replace(outcomes, outcomes=None)
    return replace(outcomes, values=None)


def _batch_of(arrays: PathArrays) -> PathBatch:
    """Return answers as a batch whose last outcome is the lengths, negative where a path failed."""
    outcomes: list[Outcomes] = [BooleanOutcomes.of(row) for row in arrays.booleans]
    outcomes += [RewardOutcomes.of(row) for row in arrays.rewards]
    outcomes.append(RewardOutcomes.of(arrays.lengths.astype(np.float64)))
    return PathBatch(arrays.first_path, arrays.num_paths, tuple(outcomes))


class GatheredPaths:
    """Keeps the answers of consecutive paths; a `PathTaker` for batches of `Content.ANSWERS`.

    Parameters
    ----------
    first_path, num_paths
        Which.
    num_booleans, num_rewards
        How many questions there are of either kind.
    """

    needs_order = False

    def __init__(
        self, first_path: int, num_paths: int, num_booleans: int, num_rewards: int
    ) -> None:
        self._first_path, self._end = first_path, first_path + num_paths
        self._num_booleans = num_booleans
        self.num_questions = num_booleans + num_rewards + 1
        self._rows: list[list[NDArray[Any]]] = []
        self.num_paths = first_path

    @property
    def finished(self) -> bool:
        """Whether all paths are there."""
        return self.num_paths >= self._end

    @property
    def stops(self) -> list[int]:
        """The end."""
        return [self._end]

    def feed(self, batch: PathBatch) -> None:
        """Take the next paths."""
        self._rows.append([_each(outcomes) for outcomes in batch.outcomes])
        self.num_paths = batch.end

    def start_over(self) -> None:
        """Forget all paths."""
        self._rows.clear()
        self.num_paths = self._first_path

    def arrays(self) -> PathArrays:
        """Return what all paths answered; only once finished."""
        rows = [np.concatenate(parts) for parts in zip(*self._rows, strict=True)]
        count = self._end - self._first_path
        booleans, rewards = rows[: self._num_booleans], rows[self._num_booleans : -1]
        return PathArrays(
            self._first_path,
            np.array(booleans, dtype=np.uint8).reshape(len(booleans), count),
            np.array(rewards, dtype=np.float64).reshape(len(rewards), count),
            rows[-1].astype(np.int64),
        )


def _each(outcomes: Outcomes) -> NDArray[Any]:
    each = outcomes.outcomes if isinstance(outcomes, BooleanOutcomes) else outcomes.values
    if each is None:
        raise ValueError("a batch without single answers was given where they are wanted")
    return each
