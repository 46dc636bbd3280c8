"""Paths of a simulation from the workers of a cluster; the result is that of one machine."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from engines.errors import UnsupportedError
from engines.montecarlo.cluster import run_on_cluster
from engines.montecarlo.cluster_client import OpenCluster
from engines.montecarlo.cluster_options import ClusterError, ClusterOptions, ClusterReport
from engines.montecarlo.cluster_paths import Content, GatheredPaths, PathsSpec
from engines.montecarlo.failure import PathFailure
from engines.montecarlo.methods import SamplingMethod, SeveralMethods
from engines.montecarlo.questions import RewardQuestion
from engines.montecarlo.results import PathArrays
from engines.montecarlo.tally import PathBatch, PathLengths, merged_lengths
from prism_hooks.simulation_device import DeviceSampler
from prism_hooks.simulation_methods import hand_over
from prism_hooks.simulation_progress import SamplingProgress, answers


@dataclass(frozen=True)
class BatchTuning:
    """How many paths a batch of a worker has.

    Parameters
    ----------
    pilot_paths
        Sampled here to see how long a path takes.
    batch_s
        How long a batch should take.
    most_paths, most_unforeseen_paths
        Of a batch, and where nobody knows how many paths are needed.
    batches_a_worker
        At the least, where the number of paths is known.
    """

    pilot_paths: int = 64
    batch_s: float = 0.5
    most_paths: int = 1 << 16
    most_unforeseen_paths: int = 1 << 13
    batches_a_worker: int = 4


def open_cluster(address: str) -> OpenCluster:
    """Return the cluster of an address.

    Parameters
    ----------
    address
        As `OpenCluster` has it.

    Raises
    ------
    ClusterError
        If it cannot be had; nobody else may do its work in silence.
    """
    try:
        return OpenCluster(address)
    except UnsupportedError as error:
        raise ClusterError(str(error)) from error


class ClusterSampling:
    """The paths of one simulation, sampled by a cluster.

    Parameters
    ----------
    cluster
        The workers.
    spec
        Makes their samplers.
    sampler
        Samples the same paths in this process.
    progress
        The display.
    tuning
        How large batches are.
    """

    def __init__(
        self,
        cluster: OpenCluster,
        spec: PathsSpec,
        sampler: DeviceSampler,
        progress: SamplingProgress,
        tuning: BatchTuning = BatchTuning(),
    ) -> None:
        self._tuning = tuning
        self._cluster, self._spec = cluster, spec
        self._sampler, self._progress = sampler, progress
        self._path_s = 0.0
        self.trouble: list[str] = []
        """What went wrong with workers, in words."""

    def gather(self, first_path: int, num_paths: int) -> PathArrays:
        """Return what consecutive paths answered, those that failed included.

        Parameters
        ----------
        first_path, num_paths
            Which; at least one.

        Raises
        ------
        ClusterError
            If no worker is left.
        """
        asked = self._sampler.compiled.questions
        num_rewards = sum(isinstance(question, RewardQuestion) for question in asked)
        taken = GatheredPaths(first_path, num_paths, len(asked) - num_rewards, num_rewards)
        options = self._options(num_paths)
        spec = replace(self._spec, content=Content.ANSWERS)
        with self._progress.batch(first_path):
            report = run_on_cluster(
                *(spec, taken, self._cluster, options),
                progress=self._progress.on_cluster,
                first_path=first_path,
            )
        self._note(report)
        arrays = taken.arrays()
        self._progress.estimate(next(answers(self._sampler.compiled, arrays)))
        return arrays

    def judge(self, methods: SeveralMethods, sampling: Any) -> None:
        """Sample until the methods have enough paths, and fill in what they make of them.

        Parameters
        ----------
        methods
            One a question, without any path.
        sampling
            The `prismgpu.Sampling`.

        Raises
        ------
        ClusterError, PathFailure, UndecidedPathError
            If no worker is left, or as `prism_hooks.simulation_methods.judge` does.
        """
        measured = MeasuredMethods(methods.methods)
        ordered = methods.needs_order
        options = self._options(None if ordered else methods.paths_wanted_next(2**62))
        spec = replace(self._spec, content=Content.OUTCOMES if ordered else Content.COUNTS)
        percent = 0
        sampling.failure = sampling.failedIn = None

        def look(num_paths: int, report: ClusterReport) -> None:
            nonlocal percent
            self._progress.on_cluster(num_paths, report)
            reached = min(method.progress() for method in measured.methods)
            if percent < reached < 100:
                percent = reached
                sampling.showProgress(percent)

        try:
            with self._progress.batch(0):
                report = run_on_cluster(spec, measured, self._cluster, options, look)
            self._note(report)
        except PathFailure as error:
            self._feed_up_to(measured, error)
        finally:
            sampling.numGood = measured.num_paths
        hand_over(measured, measured.lengths(self._sampler), sampling)

    def _feed_up_to(self, methods: SeveralMethods, error: PathFailure) -> None:
        """Feed the paths before a failure, which may be enough; else raise it."""
        while not methods.finished:
            first = methods.num_paths
            number = min(error.failure.path - first, self._tuning.most_paths)
            if number <= 0:
                raise error
            methods.feed(self._sampler.run(first, number))

    def _options(self, num_paths: int | None) -> ClusterOptions:
        """Choose the size of batches; the result does not depend on it."""
        tuning = self._tuning
        if not self._path_s:
            started = time.perf_counter()
            self._sampler.sample(0, tuning.pilot_paths)
            self._path_s = (time.perf_counter() - started) / tuning.pilot_paths
        most = max(1, min(tuning.most_paths, int(tuning.batch_s / self._path_s)))
        if num_paths is None:
            return ClusterOptions(batch_paths=min(most, tuning.most_unforeseen_paths))
        shares = tuning.batches_a_worker * max(1, self._cluster.num_workers)
        return ClusterOptions(batch_paths=min(most, -(-num_paths // shares)))

    def _note(self, report: ClusterReport) -> None:
        if report.trouble:
            self.trouble.append(report.trouble)


class MeasuredMethods(SeveralMethods):
    """Methods that remember the lengths of their paths.

    Parameters
    ----------
    methods
        One a question.
    """

    def __init__(self, methods: tuple[SamplingMethod, ...]) -> None:
        super().__init__(methods)
        self._fed: list[PathBatch] = []

    def feed(self, batch: PathBatch) -> None:
        """Give each unfinished method its answers."""
        super().feed(batch)
        self._fed.append(replace(batch, outcomes=()))

    def start_over(self) -> None:
        """Replace each method by one of the same parameters that has seen no path."""
        super().start_over()
        self._fed.clear()

    def lengths(self, sampler: DeviceSampler) -> PathLengths:
        """Return the lengths of the paths that were used; part of a batch is sampled again."""
        used = [batch for batch in self._fed if batch.end <= self.num_paths]
        end = used[-1].end if used else 0
        if end < self.num_paths:
            used.append(sampler.run(end, self.num_paths - end))
        return merged_lengths(used)
