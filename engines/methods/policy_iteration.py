"""Policy iteration: solve the chain of a strategy, improve the strategy, until it is optimal.

Howard (1960), Dynamic Programming and Markov Processes; Puterman (1994), section 7.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray, ranges
from engines.graph.distances import distances
from engines.host.elimination import TooDearError
from engines.host.gains import gains_of_choices
from engines.methods import direct
from engines.methods.direct import ChainSolution
from engines.methods.elimination import MOST_OPERATIONS
from engines.methods.strategy import (
    first_rows_of,
    groups_of,
    known_states,
    optimal_rows,
    states_of_groups,
)
from engines.systems.one_sided import Direction, SweepSystem
from engines.systems.two_sided import UNIT_ROUNDOFF

DIGITS = 32.0 * UNIT_ROUNDOFF
"""Relative error taken of double values where choices are compared. What elimination leaves is far
less than its bound, and nearly the same in states that lead to each other."""


class ImproperPolicyError(RuntimeError):
    """A policy whose chain never ends, and that earns for ever or never reaches its target."""


@dataclass(frozen=True)
class _Policy:
    """A policy and what it is worth.

    Parameters
    ----------
    rows
        The row of each group, shape (groups,).
    solution
        The values of its chain.
    wide
        Whether they were computed in quadruple precision.
    """

    rows: IndexArray
    solution: ChainSolution
    wide: bool


@dataclass(frozen=True)
class PolicyTuning:
    """How far policies are pursued.

    Parameters
    ----------
    wide_states, wide_operations
        Up to this many states and multiplications a policy is solved in quadruple precision where
        double precision cannot tell its choices from others: 0.2 s at most.
    open_error
        Relative error allowed for where no single choice was seen to better a policy, and their
        steps leave it open whether several would together.
    most_policies
        Policy iteration takes a dozen; more than this means that something leads it about.
    """

    wide_states: int = 2_000
    wide_operations: float = 4e6
    open_error: float = 1e-10
    most_policies: int = 1_000


class DirectPolicyIteration:
    """Policy iteration whose chains are solved by elimination without subtraction.

    It starts from the strategy that values so far suggest, among whose choices some lead to the
    known states (`engines.methods.strategy.optimal_rows`). A choice is changed only where another
    is better for certain, whatever rounding has done. If the first policy is proper, so are then
    all others: in a set that a policy never leaves, a changed choice would have to gain on average,
    which it cannot. Where double precision leaves it open which of several choices is the best, the
    policy is solved in quadruple precision; what that leaves open counts as error.

    A maximum of probabilities may have end components: the fixed point of a policy that earns its
    values is the least one. A minimum of rewards over proper policies is what a reachability
    reward asks for. A minimum of probabilities must have no end components; the caller sees to
    that, by leaving out the states of probability 0.

    Parameters
    ----------
    system
        A system with groups and a direction, before any scaling.
    most_operations
        Multiplications that the elimination of a policy may take.
    prove
        Whether the optimal policy is to be proven so, and not just beyond reasonable doubt.
    tuning
        How far policies are pursued.
    """

    def __init__(
        self,
        system: SweepSystem,
        most_operations: float = MOST_OPERATIONS,
        *,
        prove: bool = False,
        tuning: PolicyTuning = PolicyTuning(),
    ) -> None:
        self._prove, self._tuning = prove, tuning
        self._system = system
        self._most_operations = most_operations
        self._groups = groups_of(system)
        self._states = states_of_groups(system)
        self._may_rest = system.offset is None or system.direction is Direction.MAXIMISE
        """Whether to stay where nothing is earned is worth 0; else it is to miss the target."""
        self.rows: IndexArray | None = None
        """The optimal row of each group, once `solve` has found it."""
        self.policies = 0
        """How many policies were solved."""
        self.proven = False
        """Whether that was asked for, and each other choice is worse for certain, or the same."""
        self._may_widen = len(self._states) <= self._tuning.wide_states

    @property
    def fits(self) -> bool:
        """Whether the chain of a policy may be small and sparse enough for elimination.

        How far the factors fill up is found out when they are needed.
        """
        if self._system.num_updates > direct.LARGEST_SYSTEM:
            return False
        chain = self._system.matrix.select_rows(self._groups[:-1])
        return direct.fits(chain)

    @cached_property
    def _known(self) -> MaskArray:
        return known_states(self._system)

    @cached_property
    def _group_of_row(self) -> IndexArray:
        return np.repeat(np.arange(len(self._states)), np.diff(self._groups))

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
        policy = self._evaluated(optimal_rows(self._system, x, self.ends(x)), wide=False)
        while self.policies < self._tuning.most_policies:
            self.policies += 1
            gained = self._gained(policy)
            better, open_gains = self._improved(policy, *gained)
            if better is not None:
                policy = self._evaluated(better, wide=policy.wide)
                continue
            proven = not open_gains.any()
            if not proven and not policy.wide and self._may_widen:
                policy = self._evaluated(policy.rows, wide=True)
                continue
            missed = self._still_to_gain(policy, open_gains)
            doubtful = not proven and policy.wide and not self._prove
            together = self._gained_together(policy, *gained) if doubtful else np.inf
            if together <= self._tuning.open_error:
                missed = together
            elif not proven and policy.wide:
                tried, judged, proven = self._tried(policy, *gained)
                if tried is not None:
                    policy = tried
                    continue
                missed = min(missed, self._tuning.open_error) if judged else missed
            self.rows, self.proven = policy.rows, self._prove and proven
            return policy.solution.values, policy.solution.error + missed
        raise RuntimeError(f"{self._tuning.most_policies} policies have not settled")

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

    def _evaluated(self, rows: IndexArray, *, wide: bool, trials: int = 1) -> _Policy:
        """Return a policy with its values, in quadruple precision if so many policies may be."""
        chain = self.chain(rows)
        ends = self._known | self._earning_nothing(chain)
        if not _reach(chain, ends).all():
            raise ImproperPolicyError("a strategy never ends, and earns for ever")
        start = np.where(self._known, chain.start, 0.0)
        inner = np.flatnonzero(~ends[self._states])
        if len(inner) == 0:
            return _Policy(rows, ChainSolution(start, np.zeros(len(start)), 0.0, 0.0), True)
        part = SweepSystem(
            chain.matrix.select_rows(inner),
            start,
            None if chain.offset is None else chain.offset[inner],
            self._states[inner],
        )
        if wide:
            try:
                most = self._tuning.wide_operations / trials
                solved = direct.solved_chain(part, wide=True, most_operations=most)
                return _Policy(rows, solved, True)
            except TooDearError:
                self._may_widen &= trials > 1
        solved = direct.solved_chain(part, most_operations=self._most_operations)
        return _Policy(rows, solved, False)

    def _earning_nothing(self, chain: SweepSystem) -> MaskArray:
        """Return the unknown states from which a policy earns exactly 0, shape (states,)."""
        if not self._may_rest:
            return np.zeros(chain.num_states, dtype=np.bool_)
        earning = self._known & (chain.start > 0.0)
        if chain.offset is not None:
            earning[self._states[chain.offset > 0.0]] = True
        return ~_reach(chain, earning) & ~self._known

    def _tried(
        self, policy: _Policy, more: FloatArray, doubt: FloatArray
    ) -> tuple[_Policy | None, bool, bool]:
        """Return a policy with one other choice that is better, or None.

        And whether no single choice was seen to better it, and whether each is worse for certain:
        a policy that no single choice betters is optimal.
        """
        open_rows = np.flatnonzero(more + doubt > 0.0)
        open_rows = open_rows[policy.rows[self._group_of_row[open_rows]] != open_rows]
        # A few choices that a step's gain does not judge even in quadruple precision are judged by
        # what the policies that take them are worth, which elimination finds to the last digit.
        most_trials = 64
        if len(open_rows) > most_trials:
            return None, False, False
        proven = True
        for row in open_rows:
            group = self._group_of_row[row]
            rows = policy.rows.copy()
            rows[group] = row
            try:
                other = self._evaluated(rows, wide=True, trials=len(open_rows))
            except ImproperPolicyError:
                continue
            if not other.wide:
                return None, False, False
            difference, rounding = self._difference(other, policy, int(self._states[group]))
            if difference > rounding:
                return other, False, False
            proven &= difference < -rounding
        return None, True, proven

    def _difference(self, other: _Policy, policy: _Policy, state: int) -> tuple[float, float]:
        """Return by how much another policy is better in a state, and the rounding of that."""
        one, two = policy.solution, other.solution
        high, low = two.values[state] - one.values[state], two.rest[state] - one.rest[state]
        sign = 1.0 if self._system.direction is Direction.MAXIMISE else -1.0
        off = two.rounding * two.values[state] + one.rounding * one.values[state]
        rounding = off + 4.0 * UNIT_ROUNDOFF * (abs(high) + abs(low))
        return float(sign * (high + low)), float(rounding)

    def _improved(
        self, policy: _Policy, more: FloatArray, doubt: FloatArray
    ) -> tuple[IndexArray | None, FloatArray]:
        """Return a policy that is better for certain, or None; and what other choices may gain.

        The latter has shape (groups,): 0 where every other choice is no better for certain.
        """
        certain = more > doubt
        if certain.any():
            ranked = np.where(certain, more, -np.inf)
            best = np.maximum.reduceat(ranked, self._groups[:-1])
            first = first_rows_of(
                self._group_of_row,
                certain & (ranked == best[self._group_of_row]),
                len(self._states),
            )
            return np.where(first >= 0, first, policy.rows).astype(policy.rows.dtype), doubt
        open_gains = np.maximum(more + doubt, 0.0)
        open_gains[policy.rows] = 0.0
        return None, np.maximum.reduceat(open_gains, self._groups[:-1])

    def _gained(self, policy: _Policy) -> tuple[FloatArray, FloatArray]:
        """Return how much more than its own choice a step of another one gains, and the doubt.

        Both have shape (rows,).
        """
        solution = policy.solution
        exact = policy.wide or self._prove
        digits = solution.rounding if exact else min(DIGITS, solution.rounding)
        gains, rounding = gains_of_choices(
            self._system.matrix,
            self._states[self._group_of_row],
            self._system.offset,
            solution.values,
            solution.rest,
            digits,
        )
        possible = np.isfinite(gains)
        gains = np.where(possible, gains, 0.0)
        own = policy.rows[self._group_of_row]
        sign = 1.0 if self._system.direction is Direction.MAXIMISE else -1.0
        # Whatever may be infinite is avoided by a minimum, and is not left to a maximum.
        more = np.where(possible, sign * (gains - gains[own]), -np.inf)
        doubt = rounding + rounding[own]
        alike = self._alike(own)
        more[alike], doubt[alike] = 0.0, 0.0
        return more, doubt

    def _alike(self, own: IndexArray) -> MaskArray:
        """Return which rows have the same numbers as another row each, shape (rows,)."""
        matrix, offset = self._system.matrix, self._system.offset
        lengths = matrix.row_lengths()
        alike = lengths == lengths[own]
        if offset is not None:
            alike &= offset == offset[own]
        rows = np.flatnonzero(alike)
        one = ranges(matrix.row_offsets[rows], lengths[rows])
        two = ranges(matrix.row_offsets[own[rows]], lengths[rows])
        differs = matrix.columns[one] != matrix.columns[two]
        differs |= matrix.values[one] != matrix.values[two]
        alike[np.repeat(rows, lengths[rows])[differs]] = False
        found: MaskArray = alike
        return found

    def _still_to_gain(self, policy: _Policy, gains: FloatArray) -> float:
        """Return what choices that may be better add up to, relative to the values.

        A gain of δ in each step adds up to (I − P)⁻¹ δ, where P is that of the policy in hand: a
        choice that takes far more steps is found by trying it.
        """
        if not gains.any():
            return 0.0
        chain = self.chain(policy.rows)
        resting = self._earning_nothing(chain)[self._states]
        if (gains[resting] > 0.0).any():
            return float("inf")
        inner = np.flatnonzero(~resting)
        left, _ = direct.solve_chain(
            SweepSystem(
                chain.matrix.select_rows(inner),
                np.zeros(chain.num_states),
                gains[inner],
                self._states[inner],
            ),
            most_operations=self._most_operations,
        )
        return self._relative(left, policy, inner)

    def _gained_together(self, policy: _Policy, more: FloatArray, doubt: FloatArray) -> float:
        """Return what choices left open add up to at most, however they are combined, relative.

        Of all policies that take the one in hand's choices or open ones, that which gains most is
        found by policy iteration: its gain is (I − P)⁻¹ δ, with its own P. Infinite where that
        finds none.
        """
        gains = np.maximum(more + doubt, 0.0)
        gains[policy.rows] = 0.0
        kept = gains > 0.0
        kept[policy.rows] = True
        rows = np.flatnonzero(kept)
        counts = np.bincount(self._group_of_row[rows], minlength=len(self._states))
        open_ones = SweepSystem(
            self._system.matrix.select_rows(rows),
            np.zeros(self._system.num_states),
            gains[rows],
            self._states,
            group_offsets=np.concatenate([[0], np.cumsum(counts)]),
            direction=Direction.MAXIMISE,
        )
        solver = DirectPolicyIteration(open_ones, self._most_operations)
        solver._may_widen = False
        try:
            left, error = solver.solve(open_ones.start)
        except (RuntimeError, MemoryError):
            return float("inf")
        return self._relative(left, policy, np.arange(len(self._states))) * (1.0 + error)

    def _relative(self, gains: FloatArray, policy: _Policy, groups: IndexArray) -> float:
        """Return the largest gain relative to the policy's value, of the states of groups."""
        states = self._states[groups]
        more, scale = gains[states], np.abs(policy.solution.values[states])
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
