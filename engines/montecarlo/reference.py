"""Paths one step at a time in plain Python: the oracle of the compiled source.

It carries out the same plan with the same draws, so that its paths are those of the compiled
source, state by state. It also finds out what went wrong on a path that the compiled source
reports as failed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from engines.montecarlo.answers import Answers, Arrival
from engines.montecarlo.failure import Failure, FailureKind, PathFailure
from engines.montecarlo.philox import Stream, positive_unit, split, unit
from engines.montecarlo.plan import (
    FAN_OUT,
    Factor,
    Plan,
    PlannedCommand,
    PlannedUpdate,
    Unit,
)
from engines.montecarlo.questions import Question
from engines.montecarlo.tally import UNDECIDED
from engines.program.arithmetic import EvaluationError, logarithm
from engines.program.evaluate import evaluate, holds, number
from engines.program.expressions import Expression
from engines.program.faults import weights_in_order
from engines.program.program import ModelKind, State, StateReward, TransitionReward


@dataclass
class ReferencePath:
    """A path and its answers.

    Parameters
    ----------
    states
        From the initial one on.
    delays
        Time spent in each state that was left, of a CTMC.
    answers
        0, 1 or `UNDECIDED` for Boolean questions; the reward, or not-a-number, for others.
    length
        Steps as PRISM counts them.
    """

    states: list[State]
    delays: list[float]
    answers: list[float]
    length: int


@dataclass
class _Walk:
    plan: Plan
    path: int
    stream: Stream
    state: State
    steps: int = 0
    blame: tuple[int, int] | None = None
    deterministic: bool = False
    written: dict[int, int] = field(default_factory=dict)

    def failure(self, kind: FailureKind, **details: object) -> PathFailure:
        return PathFailure(
            Failure(kind, self.path, self.steps, self.state, self.blame, **details)  # type: ignore[arg-type]
        )


def sample_path(
    plan: Plan,
    questions: Sequence[Question],
    seed: int,
    path: int,
    path_limit: int,
    deadlocks_fixed: bool = True,
) -> ReferencePath:
    """Sample one path.

    Parameters
    ----------
    plan, questions
        As the compiled source takes them.
    seed, path
        Which path.
    path_limit
        After so many steps only bounded questions are pursued.
    deadlocks_fixed
        Whether a deadlock is a state that is never left; else it is an error.

    Raises
    ------
    PathFailure
        If an error is met.
    """
    program = plan.program
    stream = Stream(seed, path)
    initial = program.default_state
    if program.initial_states is not None:
        which = 0
        if len(program.initial_states) > 1:
            which, _ = split(stream.draw(), len(program.initial_states))
        initial = program.initial_states[which]
    walk = _Walk(plan, path, stream, initial)
    answers = Answers(program, questions)
    states, delays = [initial], []
    arrival = Arrival(initial, 0, 0.0, 0.0, False)
    rewards = _state_rewards(walk)
    transition_rewards = [0.0] * len(rewards)
    try:
        while True:
            answers.arrive(arrival, rewards, transition_rewards)
            if answers.all_known and deadlocks_fixed:
                break
            weights = [] if plan.lazy else [_unit_weight(walk, u) for u in plan.units]
            if not (_any_enabled(walk) if plan.lazy else any(weights)):
                if not deadlocks_fixed:
                    raise walk.failure(FailureKind.DEADLOCK)
                answers.stay()
                break
            if answers.all_known or (walk.steps >= path_limit and not answers.some_bounded):
                break
            chosen = _move(walk, weights)
            delay = 1.0
            if program.kind is ModelKind.CTMC:
                delay = -logarithm(positive_unit(stream.draw())) / _total(plan, weights)
            transition_rewards = _transition_rewards(walk, chosen)
            before = walk.state
            walk.state = _applied(walk)
            walk.steps += 1
            loops = arrival.looping or (walk.deterministic and walk.state == before)
            arrival = Arrival(walk.state, walk.steps, arrival.time + delay, delay, loops)
            rewards = _state_rewards(walk)
            states.append(walk.state)
            delays.append(delay)
    except EvaluationError as error:
        raise walk.failure(FailureKind.EVALUATION, reason=str(error)) from error
    length = walk.steps if answers.all_known else max(walk.steps, path_limit)
    return ReferencePath(states, delays, answers.values(UNDECIDED), length)


def weights_at(plan: Plan, state: State) -> list[Sequence[float]] | None:
    """Return the units' weights in a state, the sums of their groups, the sums of those, ….

    None if one of them is an error.
    """
    walk = _Walk(plan, 0, Stream(0, 0), state)
    try:
        return _sums([_unit_weight(walk, unit_) for unit_ in plan.units])
    except (PathFailure, EvaluationError):
        return None


def _weights(walk: _Walk, expressions: Sequence[Expression]) -> list[float]:
    """Return the weights of one enabled command, after PRISM's checks."""
    plan, values = walk.plan, []
    for expression in expressions:
        value = number(expression, walk.state)
        if value != value or abs(value) == float("inf"):
            raise walk.failure(FailureKind.NOT_FINITE, value=value)
        if value < 0.0:
            raise walk.failure(FailureKind.NEGATIVE, value=value)
        values.append(value)
    total = 0.0
    for value in values:
        total += value
    if total == 0.0:
        raise walk.failure(FailureKind.ZERO, value=total)
    if plan.counted and not weights_in_order(values, summed=True):
        raise walk.failure(FailureKind.SUM, value=total)
    return values


def _check_command(walk: _Walk, command: PlannedCommand) -> None:
    for walk.blame, weights in zip(command.origins, command.weights, strict=True):
        _weights(walk, weights)
    walk.blame = None


def _update_weights(walk: _Walk, command: PlannedCommand) -> list[float]:
    return [number(update.weight, walk.state) for update in command.updates]


def _command_weight(walk: _Walk, command: PlannedCommand) -> float:
    if walk.plan.counted:
        return 1
    total = 0.0
    for weight in _update_weights(walk, command):
        total += weight
    return total


def _enabled(walk: _Walk, factor: Factor) -> list[PlannedCommand]:
    found = []
    for command in factor.commands:
        walk.blame = command.origins[0]
        if holds(command.guard, walk.state):
            found.append(command)
    walk.blame = None
    return found


def _unit_weight(walk: _Walk, planned: Unit) -> float:
    enabled = [_enabled(walk, factor) for factor in planned.factors]
    if not all(enabled):
        return 0
    for command in itertools.chain.from_iterable(enabled):
        _check_command(walk, command)
    weight: float | None = None
    for commands in enabled:
        part: float = 0 if walk.plan.whole else 0.0
        for command in commands:
            part += _command_weight(walk, command)
        weight = part if weight is None else weight * part
    assert weight is not None
    return weight


def _any_enabled(walk: _Walk) -> bool:
    return any(_enabled(walk, planned.factors[0]) for planned in walk.plan.units)


def _sums(weights: Sequence[float]) -> list[Sequence[float]]:
    """Return the weights, the sums of their groups, the sums of those, …"""
    levels = [weights]
    while len(levels[-1]) > FAN_OUT:
        below = levels[-1]
        sums = []
        for first in range(0, len(below), FAN_OUT):
            total = below[first]
            for weight in below[first + 1 : first + FAN_OUT]:
                total += weight
            sums.append(total)
        levels.append(sums)
    return levels


def _total(plan: Plan, weights: Sequence[float]) -> float:
    top = _sums(weights)[-1]
    total: float = 0 if plan.whole else 0.0
    for weight in top:
        total += weight
    return total


def _scan(weights: Sequence[float], x: float) -> tuple[int, float]:
    """Return where x falls among weights laid end to end, and how far into that one.

    Rounding may let x reach the end; then it is the last weight that is not 0.
    """
    last, rest = 0, x
    for i, weight in enumerate(weights):
        if weight > 0:
            if x < weight:
                return i, x
            last, rest = i, x
            x -= weight
    return last, rest


def _pick_unit(walk: _Walk, weights: Sequence[float]) -> tuple[int, float, int]:
    """Return a unit, how far into it the draw falls, and 64 bits that are left of the draw."""
    plan, bits = walk.plan, walk.stream.draw()
    total = _total(plan, weights)
    x, left = split(bits, int(total)) if plan.whole else (unit(bits) * total, 0)
    group = 0
    place: float = x
    for level in reversed(_sums(weights)):
        first = group * FAN_OUT
        found, place = _scan(level[first : first + FAN_OUT], place)
        group = first + found
    return group, place, left


def _move(walk: _Walk, weights: Sequence[float]) -> int:
    """Draw a transition into `walk.written`; return the unit it belongs to."""
    plan = walk.plan
    walk.written = {}
    if plan.lazy:
        return _move_lazily(walk)
    chosen, place, left = _pick_unit(walk, weights)
    factors = plan.units[chosen].factors
    single = _total(plan, weights) == 1
    if len(factors) == 1 and (plan.whole or not plan.counted):
        commands = _enabled(walk, factors[0])
        if plan.counted:
            command = commands[int(place)]
            sure = _take(walk, command, unit(left))
        else:
            _take_by_rate(walk, commands, place)
            sure = False
        walk.deterministic = single and sure
        return chosen
    sure = single
    for factor in factors:
        commands = _enabled(walk, factor)
        if not plan.counted:
            sum_ = 0.0
            for command in commands:
                sum_ += _command_weight(walk, command)
            _take_by_rate(walk, commands, unit(walk.stream.draw()) * sum_)
            sure = False
            continue
        which = split(walk.stream.draw(), len(commands))[0] if len(commands) > 1 else 0
        command = commands[which]
        many = len(command.updates) > 1
        sure &= _take(walk, command, unit(walk.stream.draw()) if many else 0.0)
    walk.deterministic = sure
    return chosen


def _move_lazily(walk: _Walk) -> int:
    every = [
        (u, command)
        for u, planned in enumerate(walk.plan.units)
        for command in planned.factors[0].commands
    ]
    while True:
        which, left = split(walk.stream.draw(), len(every))
        chosen, command = every[which]
        walk.blame = command.origins[0]
        if holds(command.guard, walk.state):
            break
    _check_command(walk, command)
    sure = _take(walk, command, unit(left))
    count = sum(len(_enabled(walk, planned.factors[0])) for planned in walk.plan.units)
    walk.deterministic = sure and count == 1
    return chosen


def _take(walk: _Walk, command: PlannedCommand, x: float) -> bool:
    """Draw an update; return whether it was the only possible one."""
    weights = _update_weights(walk, command)
    which, _ = _scan(weights, x)
    _write(walk, command, command.updates[which])
    return sum(weight > 0.0 for weight in weights) == 1


def _take_by_rate(walk: _Walk, commands: Sequence[PlannedCommand], x: float) -> None:
    which, rest = _scan([_command_weight(walk, command) for command in commands], x)
    command = commands[which]
    found, _ = _scan(_update_weights(walk, command), rest)
    _write(walk, command, command.updates[found])


def _write(walk: _Walk, command: PlannedCommand, update: PlannedUpdate) -> None:
    """Compute what an update assigns, from the values before."""
    walk.blame = command.origins[-1]
    for assignment in update.assignments:
        declared = walk.plan.program.variables[assignment.variable]
        value = int(evaluate(assignment.value, walk.state))
        if not declared.low <= value <= declared.high:
            raise walk.failure(
                FailureKind.OUT_OF_RANGE, variable=assignment.variable, value=float(value)
            )
        walk.written[assignment.variable] = value
    walk.blame = None


def _applied(walk: _Walk) -> State:
    return tuple(walk.written.get(i, value) for i, value in enumerate(walk.state))


def _gathered(
    walk: _Walk, structure: int, items: Sequence[StateReward | TransitionReward], first: int
) -> float:
    total = 0.0
    for i, item in enumerate(items):
        if not holds(item.guard, walk.state):
            continue
        value = number(item.value, walk.state)
        if not -float("inf") < value < float("inf"):
            kind = FailureKind.REWARD_NOT_FINITE
            raise walk.failure(kind, structure=structure, item=first + i, value=value)
        if value < 0.0:
            kind = FailureKind.REWARD_NEGATIVE
            raise walk.failure(kind, structure=structure, item=first + i, value=value)
        total += value
    return total


def _state_rewards(walk: _Walk) -> list[float]:
    structures = walk.plan.program.reward_structures
    try:
        return [_gathered(walk, s, x.states, 0) for s, x in enumerate(structures)]
    except EvaluationError as error:
        raise walk.failure(FailureKind.EVALUATION, reason=str(error)) from error


def _transition_rewards(walk: _Walk, chosen: int) -> list[float]:
    action = walk.plan.units[chosen].action
    rewards = []
    for s, structure in enumerate(walk.plan.program.reward_structures):
        items = [item if item.action == action else None for item in structure.transitions]
        first, total = len(structure.states), 0.0
        for i, item in enumerate(items):
            if item is not None:
                total += _gathered(walk, s, (item,), first + i)
        rewards.append(total)
    return rewards
