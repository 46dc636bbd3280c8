"""Until probabilities: what the graph decides, and a solve of the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from engines.arrays import FloatArray, MaskArray
from engines.graph.mec import EndComponents, maximal_end_components
from engines.graph.prob01 import prob0, prob1
from engines.graph.quotient import collapse
from engines.methods.strategy import expanded_strategy, until_strategy
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel
from engines.model.progress import Progress
from engines.model.result import SolveResult
from engines.questions.reachability import refuse_bounds, solve_reachability
from engines.systems.one_sided import Direction
from engines.systems.plain import direction_of
from engines.systems.two_sided import slack_of_quotient


def until_probabilities(
    model: ExplicitModel,
    remain: MaskArray,
    target: MaskArray,
    environment: SolverEnvironment,
    *,
    direction: Direction | None = None,
    progress: Progress | None = None,
    want_strategy: bool = False,
) -> SolveResult:
    """Compute P(remain U target) of every state.

    Probabilities 0 and 1 come from the graph, without rounding. Where they are all, no sweep is
    made. Parameters and errors that all questions have in common are described here.

    Parameters
    ----------
    model
        A DTMC, a CTMC or an MDP.
    remain, target
        States that a path may pass, and states that it must reach, each of shape (states,).
    environment
        Method, termination, limits, device, and whether the result shall have bounds. Of those
        epsilon is the width, relative or absolute; chains are swept by the power method or Jacobi,
        and `Method.OPTIMISTIC` asks for optimistic value iteration.
    direction
        MDPs: minimum or maximum probability.
    progress
        Called after each batch of sweeps; for bounds, with their width.
    want_strategy
        MDPs: whether the result shall have an optimal strategy.

    Returns
    -------
    The result; its values have shape (states,). With `bounds`, which hold whatever the rounding,
    its error estimate is a bound.

    Raises
    ------
    ConvergenceError
        For bounds that cross, or sweeps that are not monotonic where that is checked.
    ValueError
        For an MDP without a direction.
    UnsupportedError
        For a method that does not fit the model; for bounds with a strategy.

    Notes
    -----
    A maximum over end components has more than one fixed point: value iteration from 0 still
    tends to the least one, the right one, but a small change of a sweep then says little, and
    upper values would never leave 1. With bounds, or a method of our choice, each maximal end
    component of the unknown states is therefore made one state (de Alfaro 1997; Haddad and Monmege
    2014), and the sweeps contract. A named value iteration sweeps the model as it is, as PRISM
    does. A minimum needs no quotient: a strategy that stays in an end component for ever never
    reaches the target, so those states have probability 0.

    Bounds: Haddad and Monmege (2018), Interval iteration algorithm for MDPs and IMDPs; Brázdil et
    al. (2014), Verification of Markov decision processes using learning algorithms.
    """
    refuse_bounds(model, environment, want_strategy)
    direction = direction_of(model, direction)
    no = prob0(model, remain, target, direction, environment=environment)
    yes = prob1(model, remain, target, direction, never=no, environment=environment)
    unknown = ~(yes | no)
    start = yes.astype(np.float64)
    solve = partial(
        solve_reachability,
        environment=environment,
        direction=direction,
        progress=progress,
        want_strategy=want_strategy,
    )
    contracts = environment.automatic or environment.two_sided
    if not unknown.any():
        result = SolveResult.exact(start, environment.method, two_sided=environment.two_sided)
    elif direction is Direction.MAXIMISE and contracts:
        components = maximal_end_components(model, unknown, environment=environment)
        result = _of_quotient(model, unknown, start, components, solve)
    else:
        result = solve(model, unknown, start)
    if not want_strategy or direction is None:
        return result
    strategy = until_strategy(model, target, yes, no, direction)
    if result.strategy is not None:
        strategy = np.where(unknown, result.strategy, strategy)
    return replace(result, strategy=strategy)


def _of_quotient(
    model: ExplicitModel,
    unknown: MaskArray,
    start: FloatArray,
    components: EndComponents,
    solve: Callable[..., SolveResult],
) -> SolveResult:
    """Solve with end components of unknown states made one state each."""
    if components.count == 0:
        return solve(model, unknown, start)
    quotient = collapse(model, components)
    result = solve(
        quotient.model,
        quotient.moved(unknown),
        quotient.moved(start),
        slack=slack_of_quotient(model.matrix),
    )
    if result.strategy is not None:
        strategy = expanded_strategy(model, components, quotient, result.strategy)
        result = replace(result, strategy=strategy)
    return result.of_parts(quotient.state_of)
