"""The progress of a simulation, on a terminal only: paths, an estimate, and paths a second."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.montecarlo.cluster_options import ClusterReport
from engines.montecarlo.compile import Compiled
from engines.montecarlo.questions import RewardQuestion
from engines.montecarlo.results import PathArrays, joined
from prism_hooks.exit_gate import GATE
from prism_hooks.simulation_device import DeviceSampler
from prism_hooks.sweep_bar import terminal_size


@dataclass(frozen=True)
class ProgressTuning:
    """When a simulation shows its progress, and in which parts it is sampled for that.

    Parameters
    ----------
    quiet_s
        What is over by then shows no progress.
    part_s
        Paths between two estimates take about as long.
    first_part_paths
        Of the first part; each part that took less time is followed by one twice as large.
    """

    quiet_s: float = 1.0
    part_s: float = 0.5
    first_part_paths: int = 1 << 14


class SamplingProgress:
    """Counts the paths of a simulation; what a sampler calls, and a display.

    Parameters
    ----------
    visible
        Whether anybody is watching.
    tuning
        When something is shown.
    """

    def __init__(self, *, visible: bool, tuning: ProgressTuning = ProgressTuning()) -> None:
        self.visible, self.tuning = visible, tuning
        self._count = 0
        self._mean = self._squares = 0.0
        self._due = 0.0
        self._shown = 0
        self._workers = ""
        self._bar: Any = None

    @contextmanager
    def batch(self, first_path: int) -> Iterator[None]:
        """Show the paths that are sampled while the body runs.

        Parameters
        ----------
        first_path
            How many paths there are before.
        """
        self._shown = first_path
        self._due = time.perf_counter() + self.tuning.quiet_s
        try:
            yield
        finally:
            if self._bar is not None:
                # PRISM's own line goes on where the bar was.
                self._bar.close()
                self._bar = None

    def __call__(self, num_paths: int) -> None:
        """Take note that more paths are done."""
        GATE.stop_if_ending()
        if not self.visible:
            return
        self._shown += num_paths
        if self._bar is not None:
            self._bar.update(num_paths)
        elif time.perf_counter() >= self._due:
            from tqdm import tqdm

            look = {"leave": False, **terminal_size()}
            self._bar = tqdm(unit=" paths", initial=self._shown, file=sys.stderr, **look)
            self._show_estimate()

    def on_cluster(self, num_paths: int, report: ClusterReport) -> None:
        """Take note of how many paths there are, and of the workers.

        Parameters
        ----------
        num_paths
            All that have come in order; fewer than before where some were withdrawn.
        report
            What happened so far.
        """
        self._workers = f"{report.workers} workers"
        if report.trouble:
            self._workers += f" ({report.trouble})"
        self(num_paths - self._shown)
        self._show_estimate()

    def estimate(self, values: NDArray[Any]) -> None:
        """Take the answers of more paths into the estimate that is shown.

        Parameters
        ----------
        values
            Of shape (paths,); numbers, or 0 and 1.
        """
        if not self.visible or not len(values):
            return
        count, mean = len(values), float(np.mean(values))
        total, apart = self._count + count, mean - self._mean
        self._squares += float(np.var(values)) * count + apart**2 * self._count * count / total
        self._mean += apart * count / total
        self._count = total
        self._show_estimate()

    @property
    def text(self) -> str:
        """The estimate and its interval; empty without paths."""
        if self._count == 0:
            return ""
        # Of a normal distribution 99 % lie within: a look, not a result.
        half_width = 2.5758 * math.sqrt(self._squares / self._count / self._count)
        return f"about {self._mean:.6g} +/- {half_width:.2g}"

    def _show_estimate(self) -> None:
        if self._bar is not None:
            words = ", ".join(filter(None, (self.text, self._workers)))
            self._bar.set_postfix_str(words, refresh=False)


def sampling_progress() -> SamplingProgress:
    """Return a display of progress, which shows nothing where nobody is watching."""
    return SamplingProgress(visible=sys.stderr.isatty())


def sample_in_view(
    sampler: DeviceSampler, first_path: int, num_paths: int, progress: SamplingProgress
) -> PathArrays:
    """Sample consecutive paths; where somebody watches, in parts between which the estimate moves.

    Parameters
    ----------
    sampler
        Samples them.
    first_path, num_paths
        Which; at least one.
    progress
        The display.

    Returns
    -------
    PathArrays
        The same, whatever the parts.
    """
    with progress.batch(first_path):
        if not progress.visible:
            return sampler.sample(first_path, num_paths, progress)
        parts, done, size = [], 0, progress.tuning.first_part_paths
        while done < num_paths:
            started = time.perf_counter()
            begin, number = first_path + done, min(size, num_paths - done)
            part = sampler.sample(begin, number, progress)
            progress.estimate(next(answers(sampler.compiled, part)))
            parts.append(part)
            done += part.num_paths
            if time.perf_counter() - started < progress.tuning.part_s:
                size *= 2
        return joined(parts)


def answers(
    compiled: Compiled, arrays: PathArrays
) -> Iterator[NDArray[np.uint8] | NDArray[np.float64]]:
    """Return what consecutive paths answered, question by question, of shape (paths,) each."""
    for question, row in zip(compiled.questions, compiled.rows, strict=True):
        is_reward = isinstance(question, RewardQuestion)
        yield arrays.rewards[row] if is_reward else arrays.booleans[row]
