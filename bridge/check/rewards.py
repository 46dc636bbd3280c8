"""R: expected rewards; and S."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bridge.check.accuracy import Bounded
from bridge.check.bounds import steps, time
from bridge.check.outcome import Outcome
from bridge.check.paths import has_temporal, ltl_formula
from bridge.language.ast import (
    Bound,
    Cumulative,
    Expression,
    Instantaneous,
    LongRun,
    Parentheses,
    Reward,
    SteadyState,
    Temporal,
)
from bridge.model import NamedRewards, UnexploredStates
from engines.arrays import MaskArray
from engines.errors import InvalidModelError, UnsupportedError
from engines.model.explicit import ModelKind, RewardStructure
from engines.systems.one_sided import Direction

if TYPE_CHECKING:
    from bridge.check.checker import Checker


def expected_reward(checker: Checker, reward: Reward, direction: Direction | None) -> Outcome:
    """Return the expected reward in every state.

    Parameters
    ----------
    checker
        Evaluates what is in the operator.
    reward
        The operator, without its threshold.
    direction
        MDPs: minimum or maximum.

    Raises
    ------
    InvalidModelError
        When there is no such reward structure, or one with a reward that no engine takes.
    UnsupportedError
        For ratios of rewards, and for path formulas that are not co-safe or have bounds.
    """
    if reward.divisor is not None:
        raise UnsupportedError(f"{reward}: ratios of rewards are not supported")
    structure = reward_structure(checker, reward.structure)
    _refuse_fault(checker, structure)
    if checker.unexplored is not None:
        return _with_unexplored(checker, structure, reward.body, direction, checker.unexplored)
    match reward.body:
        case Cumulative(bound=None):
            return _total(checker, structure, direction)
        case Cumulative() as body:
            return _cumulative(checker, structure, body, direction)
        case Instantaneous() as body:
            return _instantaneous(checker, structure, body, direction)
        case LongRun():
            return _long_run(checker, structure)
        case path:
            return _reachability(checker, structure, path, direction)


def _with_unexplored(
    checker: Checker,
    structure: NamedRewards,
    body: Cumulative | Instantaneous | LongRun | Expression,
    direction: Direction | None,
    unexplored: UnexploredStates,
) -> Outcome:
    """Return the expected rewards where unexplored states count as lost, or as won."""
    most = structure.most_instantaneous if isinstance(body, Instantaneous) else structure.most
    endless = isinstance(body, Cumulative) and body.bound is None
    infinite = unexplored.won and (endless or not np.isfinite(most))
    earned = most if unexplored.won and not infinite else 0.0
    counted = NamedRewards(
        structure.name,
        unexplored.earning(structure.expected, earned),
        np.where(unexplored.states, earned, structure.instantaneous),
    )
    match body:
        case Cumulative() | Instantaneous():
            if isinstance(body, Instantaneous):
                outcome = _instantaneous(checker, counted, body, direction)
            elif endless:
                outcome = _total(checker, counted, direction)
            else:
                outcome = _cumulative(checker, counted, body, direction)
            return _infinite_from(checker, outcome, unexplored.states) if infinite else outcome
        case Temporal("F", None, _, None):
            # Where a target may never be reached, the reward is infinite.
            return _reachability(checker, counted, body, direction, unexplored)
    raise UnsupportedError(f"R [ {body} ]: -gputruncate bounds rewards of C, I and F alone")


def _infinite_from(checker: Checker, outcome: Outcome, states: MaskArray) -> Outcome:
    """Return values that are infinite wherever some states may be reached."""
    from engines.graph.prob01 import prob0

    model = checker.engine_model
    any_way = Direction.MAXIMISE if model.kind is ModelKind.MDP else None
    everywhere = np.ones(model.num_states, dtype=bool)
    never = prob0(model, everywhere, states, any_way, environment=checker.environment)
    return Outcome(np.where(never, outcome.numbers, np.inf), outcome.accuracy)


def long_run_probability(checker: Checker, operator: SteadyState) -> Outcome:
    """Return S in every state; the parameters are those of `expected_reward`."""
    from engines.questions.long_run import long_run_probabilities

    _refuse_mdp(checker, "The S operator")
    return checker.solved(
        long_run_probabilities(
            checker.engine_model,
            checker.mask(operator.operand),
            checker.environment,
            progress=checker.progress,
        )
    )


def reward_structure(checker: Checker, named: str | Expression | None) -> NamedRewards:
    """Return the reward structure that an operator names.

    Parameters
    ----------
    checker
        Has the model.
    named
        A name, an expression for a number counted from 1, or None for the first.

    Raises
    ------
    InvalidModelError
        When there is none.
    """
    structures = checker.model.rewards
    if isinstance(named, str):
        for structure in structures:
            if structure.name == named:
                return structure
        known = ", ".join(structure.name for structure in structures if structure.name)
        raise InvalidModelError(
            f'Invalid reward structure index "{named}"; the model has {known or "none with a name"}'
        )
    if not structures:
        raise InvalidModelError("Model has no rewards specified")
    number = 1 if named is None else checker.integer(named)
    if not 1 <= number <= len(structures):
        raise InvalidModelError(f'Invalid reward structure index "{number}"')
    return structures[number - 1]


def _refuse_fault(checker: Checker, structure: NamedRewards) -> None:
    fault = structure.fault
    if fault is None:
        return
    if fault.words:
        raise InvalidModelError(fault.words)
    number = next(i for i, item in enumerate(checker.model.rewards, start=1) if item is structure)
    shown = f'"{structure.name}"' if structure.name else str(number)
    what = f"negative ({fault.value})" if np.isfinite(fault.value) else "not finite"
    raise InvalidModelError(
        f"Reward structure {shown} is {what} at state {checker.model.state_line(fault.state)}"
    )


def _refuse_mdp(checker: Checker, what: str) -> None:
    if checker.engine_model.kind is ModelKind.MDP:
        raise UnsupportedError(f"{what} cannot be used for MDPs")


def _long_run(checker: Checker, structure: NamedRewards) -> Outcome:
    from engines.questions.long_run import long_run_rewards

    _refuse_mdp(checker, "Steady-state reward properties")
    return checker.solved(
        long_run_rewards(
            checker.engine_model,
            structure.expected,
            checker.environment,
            progress=checker.progress,
        )
    )


def _total(checker: Checker, structure: NamedRewards, direction: Direction | None) -> Outcome:
    from engines.questions.total_rewards import total_rewards

    return checker.solved(
        total_rewards(
            checker.engine_model,
            structure.expected,
            checker.environment,
            direction=direction,
            progress=checker.progress,
        )
    )


def _cumulative(
    checker: Checker, structure: NamedRewards, body: Cumulative, direction: Direction | None
) -> Outcome:
    assert body.bound is not None
    model, environment = checker.engine_model, checker.environment
    if model.kind is ModelKind.CTMC:
        from engines.questions.time_bounded import cumulative_rewards_until

        limit = time(checker, body.bound, body)
        return checker.solved(
            cumulative_rewards_until(
                model, structure.expected, limit, environment, progress=checker.progress
            ),
            Bounded.TIME,
        )
    from engines.questions.bounded import cumulative_rewards

    return checker.solved(
        cumulative_rewards(
            model,
            structure.expected,
            steps(checker, body.bound, body.strict, body),
            environment,
            direction=direction,
            progress=checker.progress,
        ),
        Bounded.STEPS,
    )


def _instantaneous(
    checker: Checker, structure: NamedRewards, body: Instantaneous, direction: Direction | None
) -> Outcome:
    model, environment = checker.engine_model, checker.environment
    of_states = RewardStructure(structure.name, structure.instantaneous)
    if model.kind is ModelKind.CTMC:
        from engines.questions.time_bounded import instantaneous_rewards_at

        return checker.solved(
            instantaneous_rewards_at(
                model,
                of_states,
                time(checker, body.time, body),
                environment,
                progress=checker.progress,
            ),
            Bounded.TIME,
        )
    from engines.questions.bounded import instantaneous_rewards

    return checker.solved(
        instantaneous_rewards(
            model,
            of_states,
            steps(checker, body.time, False, body),
            environment,
            direction=direction,
            progress=checker.progress,
        ),
        Bounded.STEPS,
    )


def _reachability(
    checker: Checker,
    structure: NamedRewards,
    path: Expression,
    direction: Direction | None,
    unexplored: UnexploredStates | None = None,
) -> Outcome:
    from engines.questions.reachability_rewards import reachability_rewards

    while isinstance(path, Parentheses):
        path = path.operand
    match path:
        case Temporal("F", None, target, None) if not has_temporal(target):
            targets = checker.mask(target)
            if unexplored is not None:
                targets = unexplored.targets(targets, not unexplored.won)
            return checker.solved(
                reachability_rewards(
                    checker.engine_model,
                    structure.expected,
                    targets,
                    checker.environment,
                    direction=direction,
                    progress=checker.progress,
                    want_strategy=checker.want_strategy,
                )
            )
        case Temporal(bound=Bound()):
            raise UnsupportedError(f"R [ {path} ]: bounds are for C and I")
        case _:
            return _cosafe(checker, structure, path, direction)


def _cosafe(
    checker: Checker, structure: NamedRewards, path: Expression, direction: Direction | None
) -> Outcome:
    from engines.questions.cosafe_rewards import cosafe_rewards

    atoms: dict[str, MaskArray] = {}
    formula = ltl_formula(checker, path, atoms)
    return checker.solved(
        cosafe_rewards(
            checker.engine_model,
            structure.expected,
            formula,
            atoms,
            checker.environment,
            direction=direction,
            progress=checker.progress,
        )
    )
