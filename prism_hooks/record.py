"""What a run leaves behind for a plot: the numbers of its sweeps, and the results of properties."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from engines.arrays import FloatArray
from engines.model.environment import SolverEnvironment
from engines.model.progress import Measure, SweepReport
from engines.model.result import SolveResult, Status

Constants = dict[str, str]
"""Values of constants, as texts."""


class SweepCurve:
    """The number of each sweep of a solve, thinned where they are many.

    Parameters
    ----------
    measure
        What the numbers are.
    absolute
        Whether they are absolute; else relative.
    most_points
        How many are kept; of more, every second one is dropped.
    """

    def __init__(self, measure: Measure, absolute: bool, most_points: int = 4096) -> None:
        self._most_points = most_points
        self.measure = measure
        self.absolute = absolute
        self.iterations = 0
        self._points = np.empty((2, 0))
        self._last = (0.0, 0.0)
        self._seen, self._stride = 0, 1

    def add(self, report: SweepReport) -> None:
        """Take in the sweeps of a report."""
        count = len(report.numbers)
        sweeps = np.arange(report.iterations - count + 1, report.iterations + 1, dtype=np.float64)
        kept = (self._seen + np.arange(count)) % self._stride == 0
        new = np.stack((sweeps[kept], report.numbers[kept]))
        self._points = np.concatenate((self._points, new), axis=1)
        self._seen += count
        while self._points.shape[1] > self._most_points:
            self._points, self._stride = self._points[:, ::2], 2 * self._stride
        self.iterations = report.iterations
        self._last = (float(report.iterations), report.number)

    def points(self) -> tuple[FloatArray, FloatArray]:
        """Return sweeps and numbers, of shape (points,) each; the first and the last are there."""
        sweeps, numbers = self._points
        if self._seen and sweeps[-1] != self._last[0]:
            return np.append(sweeps, self._last[0]), np.append(numbers, self._last[1])
        return sweeps, numbers


@dataclass(frozen=True, eq=False)
class SolveRecord:
    """A solve, and the curves of its parts.

    Parameters
    ----------
    question
        The property, with the values of its constants.
    curves
        One for each run of sweeps, in their order.
    method
        As PRISM's log names it.
    iterations
        Sweeps made in all.
    status
        How it ended.
    finished_by
        The direct method that took over from the sweeps; empty for none.
    epsilon
        The threshold of its test.
    """

    question: str
    curves: tuple[SweepCurve, ...]
    method: str
    iterations: int
    status: Status
    finished_by: str
    epsilon: float


@dataclass
class RunRecord:
    """What a run leaves behind.

    Parameters
    ----------
    constants
        Names of the constants that the user gave values, in their order; others are not kept.
    draw
        Makes the plot; called once, at the end of the run.
    solves, num_solves
        Those with the most sweeps, in their order; and how many there were.
    solves_kept
        How many are kept, at least, where there are many.
    """

    constants: tuple[str, ...] = ()
    draw: Callable[[RunRecord], None] | None = None
    solves: list[SolveRecord] = field(default_factory=list)
    num_solves: int = 0
    solves_kept: int = 32
    values: dict[str, list[tuple[Constants, float]]] = field(default_factory=dict)
    """By property: values of the constants, and the result, which is NaN where it is no number."""
    _question: str = ""
    _given: Constants = field(default_factory=dict)
    _curves: list[SweepCurve] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, question: str, constants: Iterable[tuple[str, str]]) -> None:
        """Note that a property is begun, or another question.

        Parameters
        ----------
        question
            Its text.
        constants
            Names and values of constants.
        """
        known = dict(constants)
        self._question = question
        self._given = {name: known[name] for name in self.constants if name in known}
        self._curves = []

    def sweeps(self, report: SweepReport) -> None:
        """Take in sweeps; see `engines.model.progress.Progress`."""
        if report.iterations == 0:
            return
        curve = self._curves[-1] if self._curves else None
        if (
            curve is None
            or report.iterations <= curve.iterations
            or report.measure is not curve.measure
        ):
            curve = SweepCurve(report.measure, report.absolute)
            self._curves.append(curve)
        curve.add(report)

    def solved(self, result: SolveResult, environment: SolverEnvironment) -> None:
        """Note that the solve is over whose sweeps were taken in.

        Parameters
        ----------
        result
            Its result.
        environment
            How it was solved.
        """
        if self._curves:
            self._append(
                str(result.method),
                result.iterations,
                result.status,
                result.finished_by,
                environment.epsilon,
            )

    def _append(
        self, method: str, iterations: int, status: Status, finished_by: str, epsilon: float
    ) -> None:
        given = ", ".join(f"{name}={value}" for name, value in self._given.items())
        question = f"{self._question}, {given}" if given else self._question
        curves, self._curves = tuple(self._curves), []
        self.solves.append(
            SolveRecord(question, curves, method, iterations, status, finished_by, epsilon)
        )
        self.num_solves += 1
        if len(self.solves) > 2 * self.solves_kept:
            by_length = sorted(self.solves, key=lambda solve: -solve.iterations)
            longest = by_length[: self.solves_kept]
            self.solves = [solve for solve in self.solves if solve in longest]

    def ended(self, value: object) -> None:
        """Note the result of the property that was begun last.

        Parameters
        ----------
        value
            A number, or anything else.
        """
        try:
            number = float(str(value))
        except ValueError:
            number = float("nan")
        rows = self.values.setdefault(self._question, [])
        rows[:] = [row for row in rows if row[0] != self._given]
        rows.append((dict(self._given), number))

    def finish(self) -> None:
        """Have the plot made, once; a second call waits for the first."""
        with self._lock:
            if self._curves:
                # The run was interrupted, or the solve failed.
                last = self._curves[-1].iterations
                self._append("unfinished", last, Status.NOT_CONVERGED, "", float("nan"))
            draw, self.draw = self.draw, None
            if draw is not None:
                draw(self)
