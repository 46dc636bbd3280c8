"""Policy iteration: solve the chain of a strategy, improve the strategy, until it is optimal.

Howard (1960), Dynamic Programming and Markov Processes; Puterman (1994), section 7.2.
"""

from __future__ import annotations

import numpy as np

from engines.formats.csr import FloatArray, IndexArray, MaskArray
from engines.graph.distances import distances
from engines.linear import direct
from engines.strategy import (
    best_of_groups,
    first_rows_of,
    groups_of,
    known_states,
    optimal_rows,
    row_values,
    states_of_groups,
)
from engines.system import Direction, SweepSystem

GAIN = 1e-14
"""A choice is better if it gains this much, relative to the value; less is rounding."""

ROUNDING = 1e-8
"""Gains that add up to less than this, relative to the value, may all be rounding."""

MOST_POLICIES = 1_000
"""Policy iteration takes a dozen policies; far more of them means that rounding leads it about."""


class ImproperPolicyError(RuntimeError):
    """A policy whose chain never ends, and that earns for ever or never reaches its target."""


class DirectPolicyIteration:
    """Policy iteration whose chains are solved by LU.

    It starts from the strategy that values so far suggest, among whose choices some lead to the
    known states (`engines.strategy.optimal_rows`). A choice is changed only where another is
    strictly better. If the first policy is proper, so are then all others: in a set that a policy
    never leaves, a changed choice would have to gain on average, which it cannot.

    A maximum of probabilities may have end components: the fixed point of a policy that earns its
    values is the least one. A minimum of rewards over proper policies is what a reachability
    reward asks for. A minimum of probabilities must have no end components; the caller sees to
    that, by leaving out the states of probability 0.

    Parameters
    ----------
    system
        A system with groups and a direction, before any scaling.
    """

    def __init__(self, system: SweepSystem) -> None:
        self._system = system
        self._groups = groups_of(system)
        self._states = states_of_groups(system)
        self._known = known_states(system)
        self._group_of_row = np.repeat(np.arange(len(self._states)), np.diff(self._groups))
        self._may_rest = system.offset is None or system.direction is Direction.MAXIMISE
        """Whether to stay where nothing is earned is worth 0; else it is to miss the target."""
        self.rows: IndexArray | None = None
        """The optimal row of each group, once `solve` has found it."""
        self.policies = 0
        """How many policies were solved."""

    @property
    def fits(self) -> bool:
        """Whether the chain of a policy may be small and sparse enough for LU.

        How far the factors fill up is looked at when they are needed.
        """
        chain = self._system.matrix.select_rows(self._groups[:-1])
        return direct.fits(chain)

    def solve(self, x: FloatArray) -> tuple[FloatArray, float]:
        """Return the optimal values and their estimated relative error.

        Parameters
        ----------
        x
            An approximation, shape (states,), from which the first policy is taken.

        Raises
        ------
        RuntimeError
            If a policy's chain cannot be solved, or the policies do not settle.
        """
        rows = optimal_rows(self._system, x, self.ends(x))
        values, error = self._evaluate(rows)
        while True:
            self.policies += 1
            better = self._improved(rows, values)
            if better is None:
                break
            try:
                new_values, new_error = self._evaluate(better)
            except ImproperPolicyError:
                # Rounding can make a strict improvement improper; else the values are infinite.
                if self._still_to_gain(rows, values) > ROUNDING:
                    raise
                break
            moved = np.abs(new_values - values)[self._states] > GAIN * np.abs(values)[self._states]
            rows, values, error = better, new_values, new_error
            if not moved.any():
                break
            if self.policies >= MOST_POLICIES:
                raise RuntimeError(f"{MOST_POLICIES} policies have not settled")
        self.rows = rows
        return values, max(error, self._still_to_gain(rows, values))

    def ends(self, x: FloatArray) -> MaskArray:
        """Return where a policy may end: known states, and others that it need not leave.

        Parameters
        ----------
        x
            Values of all states, shape (states,).
        """
        if not self._may_rest:
            return self._known
        if self._system.offset is not None:
            worthless: MaskArray = x == 0.0
            return self._known | worthless
        if self._system.direction is Direction.MINIMISE:
            # Who stays among the unknown states for ever does not reach the target.
            return np.ones(len(x), dtype=np.bool_)
        return self._known

    def is_proper(self, rows: IndexArray) -> bool:
        """Return whether the chain of a policy ends for sure, or rests where it earns nothing.

        Parameters
        ----------
        rows
            A row of each group, shape (groups,).
        """
        chain = self.chain(rows)
        return bool(_reach(chain, self._known | self._earning_nothing(chain)).all())

    def chain(self, rows: IndexArray) -> SweepSystem:
        """Return the equations of a policy's chain.

        Parameters
        ----------
        rows
            A row of each group, shape (groups,).
        """
        system = self._system
        return SweepSystem(
            system.matrix.select_rows(rows),
            system.start,
            None if system.offset is None else system.offset[rows],
            self._states,
        )

    def _evaluate(self, rows: IndexArray) -> tuple[FloatArray, float]:
        """Return the values of a policy, shape (states,), and their estimated relative error."""
        chain = self.chain(rows)
        ends = self._known | self._earning_nothing(chain)
        if not _reach(chain, ends).all():
            raise ImproperPolicyError("a strategy never ends, and earns for ever")
        start = np.where(self._known, chain.start, 0.0)
        inner = np.flatnonzero(~ends[self._states])
        if len(inner) == 0:
            return start, 0.0
        offset = None if chain.offset is None else chain.offset[inner]
        matrix = chain.matrix.select_rows(inner)
        return direct.solve_reachability_system(
            SweepSystem(matrix, start, offset, self._states[inner])
        )

    def _earning_nothing(self, chain: SweepSystem) -> MaskArray:
        """Return the unknown states from which a policy earns exactly 0, shape (states,)."""
        if not self._may_rest:
            return np.zeros(chain.num_states, dtype=np.bool_)
        earning = self._known & (chain.start > 0.0)
        if chain.offset is not None:
            earning[self._states[chain.offset > 0.0]] = True
        return ~_reach(chain, earning) & ~self._known

    def _improved(self, rows: IndexArray, values: FloatArray) -> IndexArray | None:
        """Return the policy with strictly better choices, or None if there are none."""
        worth = row_values(self._system, values)
        best = best_of_groups(self._system, worth)
        gain = np.abs(best - worth[rows])
        # What a policy's own equation leaves is rounding, and no gain of others.
        noise = np.abs(worth[rows] - values[self._states])
        changed = gain > np.maximum(GAIN * np.abs(best), 4.0 * noise)
        if not changed.any():
            return None
        first_best = first_rows_of(
            self._group_of_row, worth == best[self._group_of_row], len(self._states)
        )
        return np.where(changed, first_best, rows).astype(rows.dtype)

    def _still_to_gain(self, rows: IndexArray, values: FloatArray) -> float:
        """Return what the gains that were left as rounding may add up to, relative to the values.

        A gain of δ in each step adds up to (I − P)⁻¹ δ.
        """
        worth = row_values(self._system, values)
        gain = np.abs(best_of_groups(self._system, worth) - values[self._states])
        chain = self.chain(rows)
        resting = self._earning_nothing(chain)[self._states]
        if (gain[resting] > 0.0).any():
            return float("inf")
        if not gain.any():
            return 0.0
        inner = np.flatnonzero(~resting)
        left, _ = direct.solve_reachability_system(
            SweepSystem(
                chain.matrix.select_rows(inner),
                np.zeros(chain.num_states),
                gain[inner],
                self._states[inner],
            )
        )
        more, scale = left[self._states[inner]], np.abs(values[self._states[inner]])
        gaining = more > 0.0
        with np.errstate(divide="ignore"):
            return float(np.max(more[gaining] / scale[gaining], initial=0.0))


def _reach(chain: SweepSystem, goal: MaskArray) -> MaskArray:
    """Return which states of a chain reach the goal with positive probability, shape (states,)."""
    matrix, states = chain.matrix, chain.states
    present = matrix.values != 0.0
    row = matrix.row_of_entry()[present]
    sources = row if states is None else states[row]
    return np.isfinite(distances(sources, matrix.columns[present], goal))
