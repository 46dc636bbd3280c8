"""Expected rewards until a path has satisfied a co-safe formula of linear temporal logic.

The product of the model with the deterministic automaton that follows the formula (Lacerda, Parker
and Hawes 2015); in it, the rewards until the automaton accepts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engines.arrays import FloatArray, MaskArray
from engines.automata import ltl
from engines.automata.ldba import ACCEPTED, REJECTED, LimitDeterministicAutomaton
from engines.automata.ltl import Formula, Operator
from engines.errors import UnsupportedError
from engines.graph.product import build_product
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from engines.model.progress import Progress
from engines.model.result import SolveResult
from engines.model.step_rewards import step_rewards
from engines.questions.ltl import letters_of, with_probabilities_above_zero
from engines.questions.reachability_rewards import reachability_rewards
from engines.systems.one_sided import Direction


def cosafe_rewards(
    model: ExplicitModel,
    rewards: RewardStructure,
    formula: Formula,
    atoms: Mapping[str, MaskArray],
    environment: SolverEnvironment,
    *,
    direction: Direction | None = None,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute the expected reward until a formula is satisfied, for every state.

    Parameters
    ----------
    model
        A DTMC, a CTMC, or an MDP.
    rewards
        As in `engines.questions.reachability_rewards.reachability_rewards`.
    formula
        The formula; in negation normal form it has no release.
    atoms
        The states where each atom holds, shape (states,). Constants inside X should be atoms too:
        ``X true`` takes a step, which an automaton for infinite words need not wait for.
    environment, direction, progress
        As in `engines.questions.until.until_probabilities`.

    Returns
    -------
    The result; infinite where the formula may never be satisfied, as for ``F``.

    Raises
    ------
    UnsupportedError
        For a formula that is not co-safe.
    """
    if ltl.subformulas(formula, Operator.RELEASE):
        raise UnsupportedError("rewards until an LTL formula holds need a co-safe one: no G, W, R")
    size = model.num_states
    automaton = LimitDeterministicAutomaton(formula)
    if automaton.initial in (REJECTED, ACCEPTED):
        decided = np.full(size, 0.0 if automaton.initial == ACCEPTED else np.inf)
        return SolveResult.exact(decided, environment.method, two_sided=True)
    steps = with_probabilities_above_zero(model)
    earned = _rewards_of_steps(model, rewards)
    letters = letters_of(automaton.atoms, atoms, size)
    first = np.full(size, automaton.initial)
    product = build_product(steps, letters, automaton.initial_part, np.arange(size), first)
    # Nodes where the automaton has decided stay for ever, and earn nothing.
    earned = np.append(earned, 0.0)[product.model_rows]
    nodes = len(product.states)
    if model.kind is ModelKind.MDP:
        structure = RewardStructure(rewards.name, np.zeros(nodes), earned)
    else:
        structure = RewardStructure(rewards.name, earned)
    result = reachability_rewards(
        product.model,
        structure,
        product.accepted,
        environment,
        direction=direction,
        progress=progress,
    )
    # The first nodes are those of the states.
    return result.of_parts(np.arange(size))


def _rewards_of_steps(model: ExplicitModel, rewards: RewardStructure) -> FloatArray:
    """Return the reward of a step from each row; a CTMC earns during the mean time in a state."""
    earned = step_rewards(model, rewards)
    if model.kind is not ModelKind.CTMC:
        return earned
    exits = model.exit_rates
    return np.divide(earned, exits, out=earned.astype(np.float64), where=exits > 0.0)
