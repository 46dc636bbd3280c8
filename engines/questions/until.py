"""Until probabilities: what the graph decides, and a solve of the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray, MaskArray
from engines.graph.mec import maximal_end_components
from engines.graph.prob01 import prob0, prob1
from engines.graph.quotient import collapse
from engines.methods.strategy import expanded_strategy, until_strategy
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.progress import Progress
from engines.model.result import SolveResult
from engines.questions.reachability import solve_reachability
from engines.systems.one_sided import Direction


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
    made.

    Parameters
    ----------
    model
        A DTMC, a CTMC or an MDP.
    remain, target
        States that a path may pass, and states that it must reach, each of shape (states,).
    environment
        Method, termination, limits, device.
    direction
        MDPs: minimum or maximum probability.
    progress
        Called after each batch of sweeps.
    want_strategy
        MDPs: whether the result shall have an optimal strategy.

    Returns
    -------
    The result; its values have shape (states,).

    Raises
    ------
    ValueError
        For an MDP without a direction.
    UnsupportedError
        For a method that does not fit the model.

    Notes
    -----
    A maximum over end components has more than one fixed point: value iteration from 0 still
    tends to the least one, the right one, but a small change of a sweep then says little. With a
    method of our choice each maximal end component of the unknown states is therefore made one
    state (de Alfaro 1997; Haddad and Monmege 2014), and the sweeps contract. A named value
    iteration sweeps the model as it is, as PRISM does. A minimum needs no quotient: a strategy
    that stays in an end component for ever never reaches the target, so those states have
    probability 0.
    """
    if model.kind is not ModelKind.MDP:
        direction = None
    elif direction is None:
        raise ValueError("an MDP needs a direction: minimise or maximise")
    no = prob0(model, remain, target, direction, environment=environment)
    yes = prob1(model, remain, target, direction, never=no, environment=environment)
    unknown = ~(yes | no)
    start = yes.astype(np.float64)
    if not unknown.any():
        result = SolveResult.exact(start, environment.method)
    elif direction is Direction.MAXIMISE and environment.automatic:
        result = _solve_without_end_components(
            model, unknown, start, environment, progress, want_strategy
        )
    else:
        result = solve_reachability(
            model,
            unknown,
            start,
            environment,
            direction=direction,
            progress=progress,
            want_strategy=want_strategy,
        )
    if not want_strategy or direction is None:
        return result
    strategy = until_strategy(model, target, yes, no, direction)
    if result.strategy is not None:
        strategy = np.where(unknown, result.strategy, strategy)
    return replace(result, strategy=strategy)


def _solve_without_end_components(
    model: ExplicitModel,
    unknown: MaskArray,
    start: FloatArray,
    environment: SolverEnvironment,
    progress: Progress | None,
    want_strategy: bool,
) -> SolveResult:
    direction = Direction.MAXIMISE
    components = maximal_end_components(model, unknown, environment=environment)
    if components.count == 0:
        return solve_reachability(
            model,
            unknown,
            start,
            environment,
            direction=direction,
            progress=progress,
            want_strategy=want_strategy,
        )
    quotient = collapse(model, components)
    size = quotient.model.num_states
    # All states of a component are unknown, so they agree on what is written here.
    unknown_there = np.zeros(size, dtype=np.bool_)
    unknown_there[quotient.state_of] = unknown
    start_there = np.zeros(size)
    start_there[quotient.state_of] = start
    result = solve_reachability(
        quotient.model,
        unknown_there,
        start_there,
        environment,
        direction=direction,
        progress=progress,
        want_strategy=want_strategy,
    )
    if result.strategy is not None:
        strategy = expanded_strategy(model, components, quotient, result.strategy)
        result = replace(result, strategy=strategy)
    return result.of_parts(quotient.state_of)
