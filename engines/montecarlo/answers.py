"""The answers of one path as its states come, one question at a time: PRISM's samplers.

Part of the oracle of the compiled source; `engines.montecarlo.asking` writes the same as C.

Source: PRISM's package `simulator.sampler`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from engines.montecarlo.questions import (
    CumulativeReward,
    InstantaneousReward,
    Monitor,
    Next,
    Question,
    ReachabilityReward,
    RewardQuestion,
    Until,
    is_bounded,
)
from engines.program.evaluate import holds
from engines.program.program import ModelKind, Program, State


@dataclass(frozen=True)
class Arrival:
    """A path has come to a state.

    Parameters
    ----------
    state
        The state.
    steps, time
        Since the path began.
    stay
        Time in the state before.
    looping
        Whether some step was certain and led from a state to itself.
    """

    state: State
    steps: int
    time: float
    stay: float
    looping: bool


class Answers:
    """The answers of one path.

    Parameters
    ----------
    program, questions
        Who is asked, and what.
    """

    def __init__(self, program: Program, questions: Sequence[Question]) -> None:
        self._timed = program.kind is ModelKind.CTMC
        self._questions = list(questions)
        self._found: list[float | None] = [None] * len(self._questions)
        self._monitors = [q.initial if isinstance(q, Monitor) else 0 for q in questions]
        self._right_before = [False] * len(self._questions)
        count = len(program.reward_structures)
        self._gathered, self._rewards, self._before = ([0.0] * count for _ in range(3))
        self._last = [0.0] * count
        self._here = Arrival((), 0, 0.0, 0.0, False)

    @property
    def all_known(self) -> bool:
        """Whether every question is answered."""
        return all(answer is not None for answer in self._found)

    @property
    def some_bounded(self) -> bool:
        """Whether a question that ends of itself is open."""
        found = zip(self._questions, self._found, strict=True)
        return any(answer is None and is_bounded(question) for question, answer in found)

    def values(self, undecided: float) -> list[float]:
        """Return the answers; `undecided` or not-a-number where there is none."""
        return [
            (math.nan if isinstance(question, RewardQuestion) else undecided)
            if answer is None
            else answer
            for question, answer in zip(self._questions, self._found, strict=True)
        ]

    def arrive(
        self, here: Arrival, rewards: Sequence[float], transition_rewards: Sequence[float]
    ) -> None:
        """Take note of a state.

        Parameters
        ----------
        here
            The state.
        rewards
            Its rewards, one a structure.
        transition_rewards
            Those of the step that led to it.
        """
        if here.steps > 0:
            for s, reward in enumerate(self._rewards):
                rate = reward * here.stay if self._timed else reward
                self._gathered[s] += rate + transition_rewards[s]
        self._here, self._before, self._rewards = here, self._rewards, list(rewards)
        self._last = list(transition_rewards)
        for i, question in enumerate(self._questions):
            if self._found[i] is None:
                self._found[i] = self._ask(i, question)

    def stay(self) -> None:
        """Take note that the state is never left."""
        for i, question in enumerate(self._questions):
            if self._found[i] is None:
                self._found[i] = self._ask_for_ever(i, question)

    def _ask(self, i: int, question: Question) -> float | None:
        here = self._here
        match question:
            case Until(bounds=None):
                return self._until(question, 0.0, here.looping)
            case Until() if self._timed:
                return self._timed_until(i, question)
            case Until(bounds=bounds):
                assert bounds is not None
                if bounds.last_step is not None and here.steps > bounds.last_step:
                    return float(question.negated)
                return self._until(question, bounds.first_step - here.steps, False)
            case Next(target=target, negated=negated):
                return float(holds(target, here.state) is not negated) if here.steps == 1 else None
            case Monitor():
                answer = self._read(i, question)
                if answer is None and here.looping:
                    return self._ask_for_ever(i, question)
                return answer
            case CumulativeReward(structure=s, bound=bound):
                return self._cumulative(s, bound)
            case InstantaneousReward(structure=s, time=time):
                if not self._timed:
                    return self._rewards[s] if here.steps == time else None
                if here.time < time:
                    return None
                return (self._before if here.time > time else self._rewards)[s]
            case ReachabilityReward(structure=s, target=target):
                return self._gathered[s] if holds(target, here.state) else None

    def _until(self, question: Until, wait: float, stuck: bool) -> float | None:
        if wait <= 0.0 and holds(question.right, self._here.state):
            return float(not question.negated)
        if not holds(question.left, self._here.state) or stuck:
            return float(question.negated)
        return None

    def _timed_until(self, i: int, question: Until) -> float | None:
        here, bounds = self._here, question.bounds
        assert bounds is not None
        right = holds(question.right, here.state)
        before, self._right_before[i] = self._right_before[i], right
        left = holds(question.left, here.state)
        yes, no = float(not question.negated), float(question.negated)
        if here.steps == 0:
            if bounds.lower == 0.0 and right:
                return yes
            return None if left else no
        if here.time > bounds.upper:
            return yes if before else no
        if here.time <= bounds.lower:
            return None if left else no
        if right:
            return yes
        if not left:
            return no
        return yes if here.time - here.stay <= bounds.lower and before else None

    def _read(self, i: int, monitor: Monitor) -> float | None:
        letter = sum(holds(atom, self._here.state) << j for j, atom in enumerate(monitor.atoms))
        state = self._monitors[i] = monitor.transitions[self._monitors[i]][letter]
        verdict = monitor.verdicts[state]
        if verdict == 2 and self._here.steps + 1 < monitor.length:
            return None
        accepted = bool(monitor.final[state] if verdict == 2 else verdict)
        return float(accepted is not monitor.negated)

    def _cumulative(self, s: int, bound: float) -> float | None:
        here = self._here
        if not self._timed:
            return self._gathered[s] if here.steps == bound else None
        if here.time < bound:
            return None
        value, excess = self._gathered[s], here.time - bound
        if excess > 0.0:
            value -= self._before[s] * excess
            value -= self._last[s]
        return value

    def _ask_for_ever(self, i: int, question: Question) -> float | None:
        here = self._here
        match question:
            case Until(bounds=bounds):
                waits = bounds is not None and (
                    here.time <= bounds.lower if self._timed else here.steps < bounds.first_step
                )
                right = waits and holds(question.right, here.state)
                return float(right is not question.negated)
            case Next(target=target, negated=negated):
                return float(holds(target, here.state) is not negated)
            case Monitor():
                answer, steps = None, here.steps
                while answer is None:
                    before, steps = self._monitors[i], steps + 1
                    self._here = replace(here, steps=steps)
                    answer = self._read(i, question)
                    if self._monitors[i] == before:
                        # The letter moves it no more: only the end is missing.
                        steps = question.length
                self._here = here
                return answer
            case CumulativeReward(structure=s, bound=bound):
                left = bound - (here.time if self._timed else here.steps)
                return self._gathered[s] + self._rewards[s] * left
            case InstantaneousReward(structure=s):
                return self._rewards[s]
            case ReachabilityReward():
                return None
