"""What a solve returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray, extremes
from engines.errors import ConvergenceError
from engines.model.decided import ROUNDING_OF_COMPLEMENTS, decided_complements
from engines.model.events import Events, told


class Exactly(NamedTuple):
    """Values of some states from rational arithmetic.

    Parameters
    ----------
    values
        One of each state.
    off
        How far off they may be, because numbers of the model stand for no simple ones, and may be
        rounded; 0 where all do.
    """

    values: list[Fraction]
    off: Fraction


ExactValues = Callable[[IndexArray], Exactly | None]
"""Returns the exact values of some states, by their numbers; None where that takes too long."""


def of_complements(exactly: ExactValues | None) -> ExactValues | None:
    """Return what computes 1 minus the exact values, if anything computes these."""
    if exactly is None:
        return None

    def values(states: IndexArray) -> Exactly | None:
        found = exactly(states)
        return found and found._replace(values=[1 - value for value in found.values])

    return values


LEAST = 2.0**-1074
"""The least double: what smaller values round to, or to 0."""

NEGLIGIBLE = 1e-20
"""A relative error that is less than any rounding."""


class Status(StrEnum):
    """How a solve ended."""

    CONVERGED = "converged"
    """The test that the method uses was met."""
    CHANGE_ONLY = "change only"
    """The change a sweep makes is below epsilon, but the estimated error is not."""
    NOT_CONVERGED = "not converged"
    DIVERGED = "diverged"

    @property
    def severity(self) -> int:
        """Return 0 for the best end of a solve, more for worse ones."""
        return list(Status).index(self)


@dataclass(frozen=True)
class SweepCost:
    """What a sweep moved and took, for the log.

    Parameters
    ----------
    gpus
        The numbers of the GPUs that swept; empty for none.
    kernel, format
        Which kernel and matrix layout did the sweeps.
    bytes_per_sweep
        Fewest bytes a sweep must move: matrix, right-hand side and vectors once each.
    events
        Why the layout is not the one that was asked for, and who shares it.
    estimates
        What the layout was chosen by, in one line; empty where nothing was to choose.
    cpu_as_well
        Whether the CPU has made some of the sweeps beside those of the GPUs.
    """

    gpus: tuple[int, ...]
    kernel: str
    format: str
    bytes_per_sweep: int
    events: Events = ()
    estimates: str = ""
    cpu_as_well: bool = False

    @property
    def on_cpu(self) -> bool:
        """Whether the CPU made all sweeps."""
        return not self.gpus

    @property
    def engine(self) -> str:
        """Where the sweeps were made, as the log names it: "CPU", "GPU 0+1", "CPU and GPU 0"."""
        if self.on_cpu:
            return "CPU"
        gpus = "GPU " + "+".join(map(str, self.gpus))
        return f"CPU and {gpus}" if self.cpu_as_well else gpus


NOTHING_SWEPT = SweepCost((), "none", "none", 0)
"""What no sweep moves."""


@dataclass(frozen=True)
class SolveResult:
    """The outcome of a solve; a caller must look at `status`.

    Parameters
    ----------
    values
        Shape (states,).
    status
        How the solve ended.
    method
        The method that was run, as PRISM's log names it.
    iterations
        Sweeps made.
    change
        Largest change of the last sweep, relative or absolute as the environment asked.
    residual
        Largest absolute value of ``b + A x - x`` over the states solved for.
    error_estimate
        Estimated largest error, in the measure of `change`: the change of the last sweep times
        ρ / (1 − ρ), ρ the observed contraction; infinite where none was observed. One-sided
        methods have an estimate, never a bound.
    seconds, setup_seconds
        Wall-clock seconds of the whole solve, and of what came before the first sweep.
    sweeping_seconds
        Seconds spent in sweeps, by the clock of the engine that made them: a GPU's own events.
    cost
        What the sweeps moved.
    events
        What happened, for the log.
    two_sided
        Whether lower and upper bounds were computed; then `error_estimate` is a bound.
    bounds
        Lower and upper bounds, each of shape (states,), of a two-sided method; else None.
    strategy
        Shape (states,): the row that an optimal strategy chooses in each state, −1 where any choice
        will do; None where no strategy was asked for.
    remedy
        What the log advises where the estimated error is above epsilon.
    rounding
        The part of `error_estimate` that bounds what roundings in single precision have made of the
        values; 0 in double precision, which leaves its own out.
    trusted_above
        Where `error_estimate` is relative: the value below which it does not hold, because digits
        were lost at the end of a range; there a value may be off by twice this. 0 for none.
    finished_by
        The direct method that took over from sweeps that contract too slowly; empty for none.
    unrounded
        Whether every value is the exact one: no operation has rounded.
    decided
        Values without any error in every state that has them, such as the 0, the 1 and the infinity
        of states that the graph decides. Other states may have an error.
    possible
        States whose exact values are above 0, even where the doubles are 0, shape (states,); None
        where that is not known.
    exactly
        Computes exact values where the rounded ones do not decide a question; None for no way.
    error_known
        Whether `error_estimate` is more than what the last changes let expect of a named method.
    absolute
        Whether `error_estimate` is absolute whatever the environment asked for.
    what_iterates
        What PRISM's error calls the method that did not converge.
    failed_after
        The iterations of the solve that did not converge where there were several; None for all.
    """

    values: FloatArray
    status: Status
    method: str
    iterations: int
    change: float
    residual: float
    error_estimate: float
    seconds: float
    setup_seconds: float
    sweeping_seconds: float
    cost: SweepCost
    events: Events = ()
    two_sided: bool = False
    bounds: tuple[FloatArray, FloatArray] | None = None
    strategy: IndexArray | None = None
    remedy: str = "a smaller -epsilon may help"
    rounding: float = 0.0
    trusted_above: float = 0.0
    finished_by: str = ""
    unrounded: bool = False
    decided: tuple[float, ...] = ()
    possible: MaskArray | None = None
    exactly: ExactValues | None = None
    error_known: bool = True
    absolute: bool = False
    what_iterates: str = "Iterative method"
    failed_after: int | None = None

    @classmethod
    def exact(cls, values: FloatArray, method: str, *, two_sided: bool = False) -> SolveResult:
        """Return the result of a question that needed no sweep.

        Parameters
        ----------
        values
            Shape (states,).
        method
            The method that would have been run.
        two_sided
            Whether it shall have bounds, which are the values.
        """
        values = np.asarray(values, dtype=np.float64)
        return cls(
            values=values,
            status=Status.CONVERGED,
            method=method,
            iterations=0,
            change=0.0,
            residual=0.0,
            error_estimate=0.0,
            seconds=0.0,
            setup_seconds=0.0,
            sweeping_seconds=0.0,
            cost=NOTHING_SWEPT,
            two_sided=two_sided,
            bounds=(values, values.copy()) if two_sided else None,
            unrounded=True,
        )

    @classmethod
    def combined(
        cls, values: FloatArray, parts: Sequence[SolveResult], error_estimate: float
    ) -> SolveResult:
        """Return the result of a question that took several solves.

        Sweeps and seconds add up; change and residual are the largest of the parts, each of its
        own system; the status is the worst. Methods and events are listed; the cost
        is that of the part with the most sweeps.

        Parameters
        ----------
        values
            Shape (states,).
        parts
            The solves, at least one.
        error_estimate
            Estimated largest error of `values`: how the errors of the parts enter it depends on
            the question.
        """
        worst = max(parts, key=lambda part: part.status.severity)
        return cls(
            values=np.asarray(values, dtype=np.float64),
            status=worst.status,
            method=" and ".join(dict.fromkeys(part.method for part in parts)),
            iterations=sum(part.iterations for part in parts),
            # Unlike Python's, NumPy's maximum is NaN if any part is.
            change=float(np.max([part.change for part in parts])),
            residual=float(np.max([part.residual for part in parts])),
            error_estimate=error_estimate,
            seconds=sum(part.seconds for part in parts),
            setup_seconds=sum(part.setup_seconds for part in parts),
            sweeping_seconds=sum(part.sweeping_seconds for part in parts),
            cost=max(parts, key=lambda part: part.iterations).cost,
            events=tuple(event for part in parts for event in part.events),
            two_sided=all(part.two_sided for part in parts),
            error_known=all(part.error_known for part in parts),
            absolute=any(part.absolute for part in parts),
            remedy=worst.remedy,
            rounding=max(part.rounding for part in parts),
            trusted_above=max(part.trusted_above for part in parts),
            finished_by=" and ".join(
                dict.fromkeys(part.finished_by for part in parts if part.finished_by)
            ),
            failed_after=worst.iterations if worst.failed_after is None else worst.failed_after,
        )

    @property
    def note(self) -> str:
        """What the log says of the events; empty for none."""
        return told(self.events)

    @property
    def sweep_seconds(self) -> float:
        """Mean seconds of a sweep."""
        return self.sweeping_seconds / self.iterations if self.iterations else 0.0

    def error_of_mean(self, weights: FloatArray, mean: float) -> float:
        """Return the estimated relative error of a weighted sum of the values.

        Parameters
        ----------
        weights
            Not negative, shape (states,).
        mean
            The sum.

        Returns
        -------
        The error; infinite where all that the weights count was too small for a double.
        """
        heaviest = extremes(weights)[1]
        if heaviest <= 0.0:
            return self.error_estimate
        if mean == 0.0:
            return np.inf
        lost = 2.0 * max(self.trusted_above, LEAST)
        if lost * heaviest * len(weights) <= NEGLIGIBLE * mean:
            return self.error_estimate
        return self.error_estimate + lost * float(weights.sum()) / mean

    def raise_unless_converged(self) -> SolveResult:
        """Return the result itself if it may be used.

        Raises
        ------
        ConvergenceError
            With PRISM's own text, when the method did not converge or left the finite numbers; and
            if a value is not a number.
        """
        if self.status in (Status.NOT_CONVERGED, Status.DIVERGED):
            diverged = self.status is Status.DIVERGED
            happened = "diverged after" if diverged else "did not converge within"
            after = self.iterations if self.failed_after is None else self.failed_after
            raise ConvergenceError(
                f"{self.what_iterates} {happened} {after} iterations.\n"
                "Consider using a different numerical method or increasing "
                "the maximum number of iterations"
            )
        return self.require_numbers()

    def require_numbers(self) -> SolveResult:
        """Return the result itself if every value is a number.

        Raises
        ------
        ConvergenceError
            Naming the first state whose value is not.
        """
        # The least of values one of which is no number is none; it takes no array of comparisons.
        if np.isnan(extremes(self.values)[0]):
            state = int(np.argmax(np.isnan(self.values)))
            raise ConvergenceError(
                f"{self.method}: the value of state {state} is not a number (NaN): rates, "
                "probabilities or rewards of the model are too large or too far apart"
            )
        return self

    def at_most(self, ceiling: float) -> SolveResult:
        """Return the same result without what rounding has put above the largest possible value.

        Parameters
        ----------
        ceiling
            No exact value is larger.
        """
        upper = () if self.bounds is None else self.bounds[1:]
        if all((numbers <= ceiling).all() for numbers in (self.values, *upper)):
            return self
        return self.mapped(lambda values: np.minimum(values, ceiling))

    def mapped(self, change: Callable[[FloatArray], FloatArray]) -> SolveResult:
        """Return the same result with its values, and its bounds if any, all changed alike.

        Parameters
        ----------
        change
            Takes and returns an array; the greater of two numbers must not become the smaller one.
        """
        bounds = self.bounds and (change(self.bounds[0]), change(self.bounds[1]))
        return replace(self, values=change(self.values), bounds=bounds)

    def with_values(self, values: FloatArray) -> SolveResult:
        """Return the same result with other values, after a normalisation or an embedding.

        What is known of the values before, such as bounds, is dropped.
        """
        return replace(
            self,
            values=np.asarray(values, dtype=np.float64),
            bounds=None,
            unrounded=False,
            decided=(),
            possible=None,
            exactly=None,
        )

    def of_parts(self, part_of: IndexArray) -> SolveResult:
        """Return the result of states each of which has the value of one of the states here.

        Parameters
        ----------
        part_of
            The number here of each state, shape (states,); as of a quotient or a product.
        """
        exactly = self.exactly
        possible = None if self.possible is None else self.possible[part_of]
        mapped = self.mapped(lambda values: values[part_of])
        result = replace(mapped, possible=possible, exactly=None)
        if exactly is None:
            return result

        def of_states(states: IndexArray) -> Exactly | None:
            return exactly(part_of[states])

        return replace(result, exactly=of_states)

    def complement(self) -> SolveResult:
        """Return the result of the complementary probabilities, without bounds.

        An error relative to the probabilities says nothing of the complement's relative error; it
        is an absolute one of at most the same size, because no probability exceeds 1. The
        subtraction rounds.
        """
        values = 1.0 - self.values
        return replace(
            self.with_values(np.clip(values, 0.0, 1.0)),
            error_estimate=self.error_estimate + ROUNDING_OF_COMPLEMENTS,
            unrounded=self.unrounded and bool(np.all(1.0 - values == self.values)),
            absolute=True,
            decided=decided_complements(self.values, self.decided),
            exactly=of_complements(self.exactly),
        )
