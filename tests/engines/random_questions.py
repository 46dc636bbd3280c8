"""Every question of the engines, asked of a random model, with its exact answer beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from engines.model.environment import SolverEnvironment
from engines.model.explicit import ModelKind
from engines.model.result import SolveResult
from engines.questions import bounded, time_bounded
from engines.questions.long_run import long_run_probabilities, long_run_rewards
from engines.questions.long_run_distribution import steady_state_distribution
from engines.questions.reachability_rewards import reachability_rewards
from engines.questions.total_rewards import total_rewards
from engines.questions.until import until_probabilities
from engines.systems.one_sided import Direction
from tests.engines import random_oracles as oracle
from tests.engines.random_models import RandomModel

DTMC, CTMC, MDP = ModelKind.DTMC, ModelKind.CTMC, ModelKind.MDP
Ask = Callable[[RandomModel, SolverEnvironment, Direction | None], SolveResult]
Answer = Callable[[RandomModel, Direction | None], oracle.Values]


@dataclass(frozen=True)
class Question:
    """A question, how the engines are asked, and how fractions answer.

    Parameters
    ----------
    text
        The question in PRISM's words.
    kinds
        The models that it can be asked of.
    ask, answer
        The engines and the exact answer; shape (states,) each.
    strategy
        Whether it can be asked for a strategy.
    """

    text: str
    kinds: tuple[ModelKind, ...]
    ask: Ask
    answer: Answer
    strategy: bool = False

    def __str__(self) -> str:
        return self.text


def directions(case: RandomModel) -> Sequence[Direction | None]:
    """Return what may be asked of a model: of a chain there is neither minimum nor maximum."""
    return tuple(Direction) if case.kind is MDP else (None,)


def _until(
    case: RandomModel, environment: SolverEnvironment, direction: Direction | None, **more: bool
) -> SolveResult:
    sides = case.remain_mask, case.target_mask
    return until_probabilities(case.model, *sides, environment, direction=direction, **more)


def _reachability_reward(
    case: RandomModel, environment: SolverEnvironment, direction: Direction | None, **more: bool
) -> SolveResult:
    what = case.model, case.rewards, case.target_mask
    return reachability_rewards(*what, environment, direction=direction, **more)


def _total_reward(
    case: RandomModel, environment: SolverEnvironment, direction: Direction | None, **more: bool
) -> SolveResult:
    return total_rewards(case.model, case.rewards, environment, direction=direction, **more)


UNBOUNDED = (
    Question("P [ U ]", (DTMC, CTMC, MDP), _until, oracle.until, strategy=True),
    Question(
        "R [ F ]",
        (DTMC, CTMC, MDP),
        _reachability_reward,
        oracle.reachability_reward,
        strategy=True,
    ),
)
TOTAL = Question("R [ C ]", (DTMC, CTMC, MDP), _total_reward, oracle.total_reward, strategy=True)

LONG_RUN = (
    Question(
        "S",
        (DTMC, CTMC),
        lambda case, environment, _: long_run_probabilities(
            case.model, case.target_mask, environment
        ),
        lambda case, _: oracle.long_run(case, [Fraction(int(hit)) for hit in case.target_mask]),
    ),
    Question(
        "R [ S ]",
        (DTMC, CTMC),
        lambda case, environment, _: long_run_rewards(case.model, case.rewards, environment),
        lambda case, _: oracle.long_run(case, case.state_rewards),
    ),
    Question(
        "-ss",
        (DTMC, CTMC),
        lambda case, environment, _: steady_state_distribution(
            case.model, case.initial_vector, environment
        ),
        lambda case, _: oracle.steady_state(case),
    ),
)


def _hit(case: RandomModel) -> list[Fraction]:
    return [Fraction(int(state in case.target)) for state in range(case.size)]


def _bounded(lower: Callable[[RandomModel], int], upper: Callable[[RandomModel], int]) -> Ask:
    def ask(
        case: RandomModel, environment: SolverEnvironment, direction: Direction | None
    ) -> SolveResult:
        return bounded.bounded_until(
            case.model,
            case.remain_mask,
            case.target_mask,
            upper(case),
            environment,
            direction=direction,
            lower=lower(case),
        )

    return ask


STEPS = (
    Question(
        "P [ X ]",
        (DTMC, CTMC, MDP),
        lambda case, environment, direction: bounded.next_probabilities(
            case.model, case.target_mask, environment, direction=direction
        ),
        lambda case, direction: oracle.sweeps(case, direction, _hit(case), 1),
    ),
    Question(
        "P [ U<=k ]",
        (DTMC, MDP),
        _bounded(lambda _: 0, lambda case: case.steps),
        lambda case, direction: oracle.bounded_until(case, direction, 0, case.steps),
    ),
    Question(
        "P [ U[j,k] ]",
        (DTMC, MDP),
        _bounded(lambda case: case.lower, lambda case: case.steps),
        lambda case, direction: oracle.bounded_until(case, direction, case.lower, case.steps),
    ),
    Question(
        "P [ U=k ]",
        (DTMC, MDP),
        _bounded(lambda case: case.steps, lambda case: case.steps),
        lambda case, direction: oracle.bounded_until(case, direction, case.steps, case.steps),
    ),
    Question(
        "P [ U>=k ]",
        (DTMC, MDP),
        lambda case, environment, direction: bounded.after(
            case.model,
            case.remain_mask,
            _floats(oracle.until(case, direction)),
            case.lower,
            environment,
            direction=direction,
        ),
        lambda case, direction: oracle.remaining(
            case, direction, _fractions(oracle.until(case, direction)), case.lower
        ),
    ),
    Question(
        "R [ C<=k ]",
        (DTMC, MDP),
        lambda case, environment, direction: bounded.cumulative_rewards(
            case.model, case.rewards, case.steps, environment, direction=direction
        ),
        lambda case, direction: oracle.sweeps(
            case, direction, [Fraction(0)] * case.size, case.steps, earned=True
        ),
    ),
    Question(
        "R [ I=k ]",
        (DTMC, MDP),
        lambda case, environment, direction: bounded.instantaneous_rewards(
            case.model, case.rewards, case.steps, environment, direction=direction
        ),
        lambda case, direction: oracle.sweeps(case, direction, case.state_rewards, case.steps),
    ),
    Question(
        "-tr k",
        (DTMC,),
        lambda case, environment, _: bounded.distribution_after(
            case.model, case.initial_vector, case.steps, environment
        ),
        lambda case, _: oracle.distribution_after(case),
    ),
)


def _floats(values: oracle.Values) -> np.ndarray:
    return np.array([float(value) for value in values])


def _fractions(values: oracle.Values) -> list[Fraction]:
    """Return the values as the engines get them."""
    return [Fraction(float(value)) for value in values]


def _timed(lower: Callable[[RandomModel], float], upper: Callable[[RandomModel], float]) -> Ask:
    def ask(case: RandomModel, environment: SolverEnvironment, _: Direction | None) -> SolveResult:
        return time_bounded.time_bounded_until(
            case.model, case.remain_mask, case.target_mask, lower(case), upper(case), environment
        )

    return ask


TIMES = (
    Question(
        "P [ U<=t ]",
        (CTMC,),
        _timed(lambda _: 0.0, lambda case: case.times[1]),
        lambda case, _: oracle.timed_until(case, 0.0, case.times[1]),
    ),
    Question(
        "P [ U[s,t] ]",
        (CTMC,),
        _timed(lambda case: case.times[0], lambda case: case.times[1]),
        lambda case, _: oracle.timed_until(case, *case.times),
    ),
    Question(
        "P [ U[t,t] ]",
        (CTMC,),
        _timed(lambda case: case.times[0], lambda case: case.times[0]),
        lambda case, _: oracle.timed_until(case, case.times[0], case.times[0]),
    ),
    Question(
        "P [ U>=t ]",
        (CTMC,),
        lambda case, environment, _: time_bounded.time_bounded_until(
            case.model,
            case.remain_mask,
            case.target_mask,
            case.times[0],
            math.inf,
            environment,
            values=_floats(oracle.until(case, None)),
        ),
        lambda case, _: oracle.remaining_until(
            case, case.times[0], _fractions(oracle.until(case, None))
        ),
    ),
    Question(
        "R [ C<=t ]",
        (CTMC,),
        lambda case, environment, _: time_bounded.cumulative_rewards_until(
            case.model, case.rewards, case.times[1], environment
        ),
        lambda case, _: oracle.earned_until(case, case.times[1]),
    ),
    Question(
        "R [ I=t ]",
        (CTMC,),
        lambda case, environment, _: time_bounded.instantaneous_rewards_at(
            case.model, case.rewards, case.times[1], environment
        ),
        lambda case, _: oracle.at_time(case, case.times[1], case.state_rewards),
    ),
    Question(
        "-tr t",
        (CTMC,),
        lambda case, environment, _: time_bounded.distribution_at(
            case.model, case.initial_vector, case.times[1], environment
        ),
        lambda case, _: oracle.distribution_at(case, case.times[1]),
    ),
)


def with_strategy(
    question: Question, case: RandomModel, environment: SolverEnvironment, direction: Direction
) -> SolveResult:
    """Return the result of a question of an MDP, with a strategy."""
    ask = {"P [ U ]": _until, "R [ F ]": _reachability_reward, "R [ C ]": _total_reward}
    return ask[question.text](case, environment, direction, want_strategy=True)


def of_chain(question: Question, case: RandomModel, picked: Sequence[int]) -> oracle.Values:
    """Return the exact answer of the chain that a strategy leaves of an MDP."""
    left = replace(
        case,
        choices=tuple((rows[k],) for rows, k in zip(case.choices, picked, strict=True)),
        choice_rewards=tuple(
            paid[k] - of_state
            for paid, k, of_state in zip(case.payments, picked, case.state_rewards, strict=True)
        ),
    )
    return question.answer(left, Direction.MINIMISE)
