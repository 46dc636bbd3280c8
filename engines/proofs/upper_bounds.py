"""Upper bounds of expected reachability rewards, from the graph and one pass over the matrix."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray, offsets_of, sums_by_row
from engines.errors import ConvergenceError, UnsupportedError
from engines.graph.components import sccs
from engines.graph.mec import end_component_states
from engines.host import reward_bounds
from engines.host.products import transposed
from engines.model.csr import CsrMatrix
from engines.model.environment import BoundMethod
from engines.model.explicit import ExplicitModel, ModelKind
from engines.systems.one_sided import Direction, SweepSystem
from engines.systems.two_sided import ROUNDING_SLACK, UNIT_ROUNDOFF, rounding_of_rows

SolveChain = Callable[[SweepSystem], FloatArray]
"""Returns the values of a chain, shape (states,), or raises `RuntimeError`."""


@dataclass(frozen=True)
class UpperBound:
    """A bound of the expected rewards of the states solved for.

    Parameters
    ----------
    values
        Shape (states,): a bound of each state, 0 where nothing is solved for.
    method
        How it was found, for the log.
    """

    values: FloatArray
    method: str

    @property
    def largest(self) -> float:
        """One bound for all states."""
        return float(np.max(self.values, initial=0.0))


def upper_bound(
    model: ExplicitModel,
    unknown: MaskArray,
    system: SweepSystem,
    method: BoundMethod,
    slack: int = ROUNDING_SLACK,
    solve: SolveChain | None = None,
) -> UpperBound:
    """Bound expected rewards from above.

    Parameters
    ----------
    model
        The model, for its graph.
    unknown
        States whose rewards are finite and are solved for, shape (states,). For the maximum every
        strategy leaves them with probability 1, for the minimum some strategy.
    system
        The equations of these states, as `plain_system` returns them.
    method
        Which bound; the default is PRISM's.
    slack
        As in `TwoSidedSystem`.
    solve
        Solves a chain whose rewards DS-MPI does not bound; None for no way.

    Raises
    ------
    UnsupportedError
        For DS-MPI with a maximum, and for the others where a strategy may stay for ever.
    ConvergenceError
        Where the bound lies beyond the floating-point numbers.

    Notes
    -----
    A bound must not suffer from rounding. That of DS-MPI is an upper bound because one sweep does
    not raise it; the rewards are taken a little greater than they are, so that this can be checked
    in floating-point numbers, and it is. So is what a solution of a chain says. The others are sums
    and products of positive numbers, and made greater by the rounding of these.
    """
    maximise = system.direction is Direction.MAXIMISE
    if method is BoundMethod.DEFAULT:
        method = BoundMethod.VARIANT_2 if maximise else BoundMethod.DSMPI
    if method is BoundMethod.DSMPI:
        if maximise:
            raise UnsupportedError(
                "DS-MPI follows one strategy and bounds no maximum; use boundmethod=variant-2"
            )
        return _dsmpi(model, unknown, system, slack, solve)
    graph = _Graph.of(model, unknown, system)
    visits = _visits_by_return(graph) if method is BoundMethod.VARIANT_2 else _visits(graph, method)
    return _from_visits(graph, visits, method, slack)


@dataclass(frozen=True)
class _Graph:
    """The equations with what the loops need beside them."""

    model: ExplicitModel
    unknown: MaskArray
    system: SweepSystem
    states: IndexArray
    groups: IndexArray
    owner: IndexArray
    into: CsrMatrix

    @classmethod
    def of(cls, model: ExplicitModel, unknown: MaskArray, system: SweepSystem) -> _Graph:
        matrix = system.matrix
        states = np.flatnonzero(unknown)
        groups = system.group_offsets
        if groups is None:
            groups = np.arange(len(states) + 1)
        owner = np.repeat(states, np.diff(groups))
        return cls(model, unknown, system, states, groups, owner, transposed(matrix, matrix.values))

    @property
    def rewards(self) -> FloatArray:
        """The reward of each row, shape (rows,)."""
        offset = self.system.offset
        return np.zeros(self.system.matrix.num_rows) if offset is None else offset

    @property
    def greatest_rewards(self) -> FloatArray:
        """The greatest reward of each state solved for, shape (unknown states,)."""
        greatest: FloatArray = np.maximum.reduceat(self.rewards, self.groups[:-1])
        return greatest


def _from_visits(graph: _Graph, visits: FloatArray, method: str, slack: int) -> UpperBound:
    rewards = graph.greatest_rewards
    paying = rewards > 0.0
    with np.errstate(over="ignore"):
        total = float(np.sum(visits[paying] * rewards[paying]))
    # A product over a path of at most this many rows, and the sum over the states.
    longest = int(graph.system.matrix.row_lengths().max()) + slack
    total *= 1.0 + 2.0 * UNIT_ROUNDOFF * (len(graph.states) * (longest + 1) + 8)
    if not np.isfinite(total):
        raise ConvergenceError(
            f"no finite upper bound of the values was found ({method}); try another boundmethod, "
            "or give one with upper=<x>"
        )
    values = np.zeros(graph.model.num_states)
    values[graph.states] = total
    return UpperBound(values, method)


def _visits(graph: _Graph, method: BoundMethod) -> FloatArray:
    """Return bounds of the expected visits, variant 1 of Baier et al. (2017)."""
    components = sccs(graph.model, graph.unknown)
    matrix, labels = graph.system.matrix, components.labels
    row = matrix.row_of_entry()
    label = labels[graph.owner]
    inside = labels[matrix.columns] == label[row]
    leaving = sums_by_row(row[~inside], matrix.values[~inside], matrix.num_rows)
    leaves = np.bincount(row[~inside & (matrix.values > 0.0)], minlength=matrix.num_rows) > 0
    least_leaving = np.ones(components.count)
    np.minimum.at(least_leaving, label[leaves], leaving[leaves])
    present = matrix.values > 0.0
    smallest = np.ones(components.count)
    within = present & inside
    np.minimum.at(smallest, label[row[within]], matrix.values[within])
    loops = np.zeros(components.count, dtype=np.bool_)
    loops[label[row[within]]] = True
    if method is BoundMethod.VARIANT_1_COARSE:
        least_leaving[:] = np.min(leaving[leaves], initial=1.0)
        smallest[:] = np.min(matrix.values[present], initial=1.0)
    sizes = np.bincount(labels[graph.states], minlength=components.count)
    with np.errstate(divide="ignore", over="ignore"):
        of_component = 1.0 / (smallest ** (sizes - 1.0) * least_leaving)
    visits = np.where(loops, of_component, 1.0)[labels[graph.states]]
    _require_leaving(graph)
    return visits


def _require_leaving(graph: _Graph) -> None:
    """Refuse a graph where a strategy may stay in the unknown states for ever."""
    if graph.system.group_offsets is None or graph.system.direction is Direction.MAXIMISE:
        return
    if end_component_states(graph.model, graph.unknown).count:
        raise UnsupportedError(
            "some strategy never reaches the target, so visits have no bound; use boundmethod=dsmpi"
        )


def _visits_by_return(graph: _Graph) -> FloatArray:
    """Return bounds of the expected visits, variant 2 of Baier et al. (2017)."""
    _require_leaving(graph)
    labels = sccs(graph.model, graph.unknown).labels
    how = (graph.into, graph.owner, ~graph.unknown, labels, graph.system.matrix, graph.groups)
    never = reward_bounds.probability_of_no_return(*how)
    with np.errstate(divide="ignore", over="ignore"):
        visits: FloatArray = 1.0 / never[graph.states]
    return visits


def _dsmpi(
    model: ExplicitModel,
    unknown: MaskArray,
    system: SweepSystem,
    slack: int,
    solve: SolveChain | None,
) -> UpperBound:
    graph = _Graph.of(model, unknown, system)
    bound = _inductive(graph, functools.partial(_pessimistic, graph), slack)
    if bound is not None:
        return UpperBound(bound, BoundMethod.DSMPI)
    _, policy = _pessimistic(graph, graph.rewards)
    # The strategy that was found reaches the goal, and what it earns is no less than the minimum.
    chain = replace(
        system,
        matrix=system.matrix.select_rows(policy),
        offset=graph.rewards[policy],
        group_offsets=None,
        direction=None,
    )
    of_chain = "" if system.direction is None else " of a strategy"
    followed = _chain_of(model, chain, unknown)
    graph = _Graph.of(followed, unknown, chain)
    if solve is not None:
        rows = np.arange(chain.matrix.num_rows)
        solved = functools.partial(_solution, chain, rows, solve)
        bound = _inductive(graph, solved, slack)
        if bound is not None:
            return UpperBound(bound, f"the solution{of_chain}")
    return _from_visits(graph, _visits_by_return(graph), BoundMethod.VARIANT_2 + of_chain, slack)


def _solution(
    chain: SweepSystem, rows: IndexArray, solve: SolveChain, rewards: FloatArray
) -> tuple[FloatArray, IndexArray]:
    """Return what a chain with these rewards earns, and its rows."""
    try:
        return solve(replace(chain, offset=rewards)), rows
    except RuntimeError:
        return np.full(chain.num_states, np.inf), rows


def _inductive(
    graph: _Graph,
    bound_of: Callable[[FloatArray], tuple[FloatArray, IndexArray]],
    slack: int,
) -> FloatArray | None:
    """Return a bound that a sweep does not raise; None where none is found.

    Parameters
    ----------
    bound_of
        Returns what should bound such rewards of each row, and the row of each state that it
        follows.
    """
    rounding = float(rounding_of_rows(graph.system.matrix, slack).max())
    bound, _ = bound_of(graph.rewards)
    surcharge = 8.0 * rounding * float(np.max(bound))
    for _ in range(3):
        if not np.isfinite(surcharge):
            break
        bound, policy = bound_of(graph.rewards + surcharge)
        if _is_inductive(graph, bound, policy, slack):
            return bound
        surcharge *= 64.0
    return None


def _pessimistic(graph: _Graph, rewards: FloatArray) -> tuple[FloatArray, IndexArray]:
    """Return DS-MPI's bounds, shape (states,), and the chosen row of each state solved for."""
    matrix, size = graph.system.matrix, graph.model.num_states
    how = (graph.into, graph.owner, ~graph.unknown, rewards)
    reached, cost, chosen = reward_bounds.dijkstra_sweep(*how)
    policy = chosen[graph.states]
    rows = matrix.select_rows(policy)
    row = rows.row_of_entry()
    mine = reached[graph.states]
    progress = sums_by_row(row, rows.values * reached[rows.columns], rows.num_rows) - mine
    # Costs that overflow are no bound, which the rate tells.
    with np.errstate(over="ignore", invalid="ignore"):
        excess = rewards[policy]
        excess = excess + sums_by_row(row, rows.values * cost[rows.columns], rows.num_rows)
        excess -= cost[graph.states]
    # Smaller differences of probabilities are rounding, not progress towards the goal.
    moving = progress > 1e-14
    # λ of McMahan et al.: what a unit of probability not yet accounted for may cost.
    rate = float(np.max(excess[moving] / progress[moving], initial=0.0))
    bound = np.zeros(size)
    bound[graph.states] = cost[graph.states] + rate * np.maximum(1.0 - mine, 0.0)
    return bound, policy


def _is_inductive(graph: _Graph, bound: FloatArray, policy: IndexArray, slack: int) -> bool:
    """Return whether a sweep under the policy, rounded up, raises no value of the bound."""
    rows = graph.system.matrix.select_rows(policy)
    after = sums_by_row(rows.row_of_entry(), rows.values * bound[rows.columns], rows.num_rows)
    after = (after + graph.rewards[policy]) * (1.0 + rounding_of_rows(rows, slack))
    return bool(np.all(after <= bound[graph.states]))


def _chain_of(model: ExplicitModel, chain: SweepSystem, unknown: MaskArray) -> ExplicitModel:
    """Return the chain of the given rows, where all other states stay."""
    size, states = model.num_states, np.flatnonzero(unknown)
    lengths = np.ones(size, dtype=np.int64)
    lengths[states] = chain.matrix.row_lengths()
    of_chain = np.repeat(unknown, lengths)
    columns = np.repeat(np.arange(size), lengths)
    columns[of_chain] = chain.matrix.columns
    values = np.ones(len(columns))
    values[of_chain] = chain.matrix.values
    return ExplicitModel(ModelKind.DTMC, CsrMatrix(offsets_of(lengths), columns, values, size))
