"""Who is right: each engine's values against the truth, or against one another's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from bridge.regress.answers import Answer, Cell, Kind, ModelFacts, Record
from bridge.regress.compare import (
    Distance,
    Tolerance,
    Values,
    claimed_of,
    distance,
    numbers_in,
    slack_of,
)
from bridge.regress.solvers import EXACT, Solver
from bridge.regress.vectors import States, order_of, read_states
from bridge.regress.verdicts import Finding, Standing, Verdict
from engines.arrays import FloatArray

_LACKS = re.compile(
    r"\bnot (?:currently |yet )*(?:supported|handled|implemented)"
    r"|does not (?:currently |yet )*(?:support|handle)"
    r"|^PRISM failed: |^Overflow in Fox-Glynn"
)
"""Errors of PRISM's that tell of itself, its crashes among them, not of the question."""
_OTHER_STATES = "its states are not those of the other engines"


@dataclass(frozen=True)
class Built:
    """One engine's build of a model, as far as the comparison of values needs it.

    Parameters
    ----------
    states
        Its states; None where PRISM has no list of them.
    order
        Where the states of the first build are in this one, shape (states,); None where they are
        not the same states.
    continuous_time
        Whether it is a CTMC.
    """

    states: States | None
    order: np.ndarray | None
    continuous_time: bool


def builds_of(model: int, records: Mapping[Solver, Record]) -> dict[Solver, Built]:
    """Return the engines' builds of a model, their states in the order of the first.

    Parameters
    ----------
    model
        The model's number.
    records
        What each engine told.
    """
    found: dict[Solver, Built] = {}
    first: States | None = None
    for solver, record in records.items():
        facts = record.models.get(model)
        if facts is None or facts.message:
            continue
        states = read_states(facts.states) if facts.states is not None else None
        if states is not None and first is None:
            first = states
        order = order_of(states, first) if states is not None and first is not None else None
        found[solver] = Built(states, order, facts.type == "CTMC")
    return found


class Judge:
    """The comparison of the engines' answers to questions about one model.

    Parameters
    ----------
    builds
        The engines' builds.
    tolerance
        What is allowed on top of the engines' claims.
    """

    def __init__(self, builds: Mapping[Solver, Built], tolerance: Tolerance) -> None:
        self._builds = builds
        self._tolerance = tolerance
        self._states = next((item.states for item in builds.values() if item.states), None)

    def verdict(
        self,
        case: str,
        cell: Cell,
        answers: Mapping[Solver, Answer],
        arbiters: Mapping[Solver, Answer],
    ) -> Verdict:
        """Judge the answers to one question.

        Parameters
        ----------
        case
            The case's name.
        cell
            The question.
        answers
            Of the engines that are compared.
        arbiters
            Of those that were asked to decide; empty at first.
        """
        values = {solver: self._values(solver, answer) for solver, answer in answers.items()}
        known = {solver: item for solver, item in values.items() if isinstance(item, Values)}
        truth = next((solver for solver in known if solver.exact), None)
        deciding = {
            solver: item
            for solver, answer in arbiters.items()
            if isinstance(item := self._values(solver, answer), Values)
        }
        judge, against = "", None
        findings: dict[Solver, Finding] = {}
        if truth is not None:
            judge, against = truth.name, known[truth]
        elif deciding and (agreed := self._agreed(deciding)):
            judge, against = " and ".join(item.name for item in agreed), _best(agreed)
        for solver, answer in answers.items():
            findings[solver] = self._finding(solver, answer, values[solver], against, judge)
        if against is None:
            self._compare_all(known, findings, conflict=bool(deciding))
        self._compare_results(answers, findings)
        for solver, answer in answers.items():
            if solver.ours:
                findings[solver] = _against_peer(solver, answer, answers, findings[solver])
        off = any(item.standing in (Standing.WRONG, Standing.WITHIN) for item in findings.values())
        size = max((item.values.size for item in known.values()), default=0)
        return Verdict(case, cell.name, tuple(findings.values()), judge if off else "", size)

    def _values(self, solver: Solver, answer: Answer) -> Values | str | None:
        """Return an answer's values in the common order, or why they cannot be compared."""
        if answer.kind is not Kind.VALUES:
            return None
        build = self._builds.get(solver)
        if answer.vector is None:
            return None
        loaded: FloatArray = np.load(answer.vector)
        if build is not None and build.states is not None:
            if build.order is None or loaded.size != build.order.size:
                return _OTHER_STATES
            loaded = loaded[build.order]
        elif self._states is not None:
            return _OTHER_STATES
        continuous = build is not None and build.continuous_time
        return _with_errors(solver, answer, loaded, continuous)

    def _finding(
        self,
        solver: Solver,
        answer: Answer,
        values: Values | str | None,
        truth: Values | None,
        judge: str,
    ) -> Finding:
        base = Finding(
            solver.name,
            solver.ours,
            _standing_of(answer),
            answer.message,
            seconds=answer.seconds,
            by_prism=answer.by_prism,
        )
        if isinstance(values, str):
            return replace(base, standing=Standing.DIFFERS, message=values)
        if values is None or truth is None:
            return base
        if values.values.shape != truth.values.shape:
            return replace(base, standing=Standing.DIFFERS, message=_OTHER_STATES)
        found = distance(values, truth, self._tolerance)
        if found.agrees:
            return replace(base, distance=found)
        return replace(
            base,
            standing=Standing.WITHIN if found.within_claims else Standing.WRONG,
            distance=found,
            message=self.describe(found, judge, answer),
        )

    def _agreed(self, deciding: Mapping[Solver, Values]) -> dict[Solver, Values]:
        """Return those that decide: none where our bounds differ, or nobody of PRISM's has them."""
        if self._consistent(deciding):
            return dict(deciding)
        sound = {solver: item for solver, item in deciding.items() if solver.ours}
        if not sound or not self._consistent(sound):
            return {}
        with_sound = (
            {**sound, solver: item} for solver, item in deciding.items() if not solver.ours
        )
        return next(filter(self._consistent, with_sound), {})

    def _consistent(self, deciding: Mapping[Solver, Values]) -> bool:
        return all(
            first.values.shape == second.values.shape
            and distance(first, second, self._tolerance).agrees
            for first, second in combinations(deciding.values(), 2)
        )

    def _compare_all(
        self, known: Mapping[Solver, Values], findings: dict[Solver, Finding], *, conflict: bool
    ) -> None:
        """Compare each engine with each other, where there is no truth."""
        for (one, first), (other, second) in combinations(known.items(), 2):
            if first.values.shape != second.values.shape:
                for solver in (one, other):
                    findings[solver] = replace(
                        findings[solver], standing=Standing.DIFFERS, message=_OTHER_STATES
                    )
                continue
            found = distance(first, second, self._tolerance)
            turned = replace(found, first=found.second, second=found.first)
            for solver, peer, gap in ((one, other, found), (other, one, turned)):
                before = findings[solver]
                worst = before.distance
                if worst is not None and _rank(worst) >= _rank(gap):
                    findings[solver] = replace(before, distance=_widened(worst, gap))
                    continue
                standing, message = before.standing, before.message
                if not gap.agrees:
                    standing = Standing.DIFFERS
                    message = self.describe(gap, peer.name, None)
                    if gap.within_claims:
                        message += "; what both claim explains it"
                    if conflict:
                        message += "; those that were to decide differ too"
                wide = gap if worst is None else _widened(gap, worst)
                findings[solver] = replace(
                    before, standing=standing, distance=wide, message=message
                )

    def _compare_results(
        self, answers: Mapping[Solver, Answer], findings: dict[Solver, Finding]
    ) -> None:
        """Compare what is printed as the result, which a filter may have made of the values."""
        good = [
            (solver, answer)
            for solver, answer in answers.items()
            if answer.kind is Kind.VALUES
            and not solver.exact
            and findings[solver].standing in (Standing.AGREES, Standing.WITHIN)
        ]
        for (one, first), (other, second) in combinations(good, 2):
            words, numbers = numbers_in(first.value)
            other_words, other_numbers = numbers_in(second.value)
            gap = None
            if words == other_words and numbers.shape == other_numbers.shape:
                gap = distance(
                    self._alone(one, first, numbers),
                    self._alone(other, second, other_numbers),
                    self._tolerance,
                )
                loose = Standing.WITHIN in (findings[one].standing, findings[other].standing)
                if gap.within_claims if loose else gap.agrees:
                    continue
            message = f"result {first.value} of {one.name}, {second.value} of {other.name}"
            for solver in (one, other):
                findings[solver] = replace(
                    findings[solver], standing=Standing.DIFFERS, message=message
                )

    def _alone(self, solver: Solver, answer: Answer, numbers: FloatArray) -> Values:
        build = self._builds.get(solver)
        continuous = build is not None and build.continuous_time
        return _with_errors(solver, replace(answer, boolean=False), numbers, continuous)

    def describe(self, found: Distance, other: str, answer: Answer | None) -> str:
        """Return the worst state with its variables, its values and how far they are apart.

        Parameters
        ----------
        found
            The distance.
        other
            What the values were compared with.
        answer
            Of the engine that is described, for what it claims; None to leave that out.
        """
        state = f"state {found.state}"
        if self._states is not None and 0 <= found.state < len(self._states.lines):
            state += f" ({self._states.describe(found.state)})"
        gap = abs(found.first - found.second)
        larger = max(abs(found.first), abs(found.second))
        text = (
            f"{found.apart} states differ from {other}; worst in {state}: {found.first!r} for "
            f"{found.second!r}, off by {gap:.3g}"
        )
        if np.isfinite(gap) and larger > 0.0:
            text += f", relative {gap / larger:.3g}"
        if answer is not None and answer.claim.level in ("BOUNDED", "ESTIMATED_BOUNDED"):
            kind = "absolute" if answer.claim.absolute else "relative"
            text += f"; it claims {answer.claim.error:.3g} {kind}"
        return text


def needs_arbiter(verdict: Verdict) -> bool:
    """Return whether values differ and nothing has decided who is right."""
    return any(
        item.standing is Standing.DIFFERS and item.distance is not None and not item.distance.agrees
        for item in verdict.findings
    )


def needs_second_opinion(verdict: Verdict) -> bool:
    """Return whether nothing has decided, or ours are wrong by what one engine of PRISM's built."""
    blamed = any(item.ours and item.standing is Standing.WRONG for item in verdict.findings)
    return needs_arbiter(verdict) or (blamed and EXACT not in verdict.judge)


def _with_errors(
    solver: Solver, answer: Answer, values: FloatArray, continuous_time: bool
) -> Values:
    slack = slack_of(answer, values, ours=solver.ours, continuous_time=continuous_time)
    claimed = claimed_of(answer, values, continuous_time=continuous_time)
    return Values(values, slack, answer.boolean, claimed)


def _rank(found: Distance) -> tuple[int, int, float]:
    """Return what orders distances: those that no claim explains come before all others."""
    return found.beyond_claims, found.apart, found.relative


def _widened(worst: Distance, other: Distance) -> Distance:
    """Return the worse of two distances with the largest differences of both."""
    return replace(
        worst,
        absolute=max(worst.absolute, other.absolute),
        relative=max(worst.relative, other.relative),
    )


def _best(deciding: Mapping[Solver, Values]) -> Values:
    """Return the first of those that decide: the one that is sound comes first."""
    return next(iter(deciding.values()))


def _standing_of(answer: Answer) -> Standing:
    return {
        Kind.VALUES: Standing.AGREES,
        Kind.REFUSED: Standing.REFUSED,
        Kind.NOTHING: Standing.NOTHING,
        Kind.LEFT_OUT: Standing.LEFT_OUT,
    }[answer.kind]


def _against_peer(
    solver: Solver, answer: Answer, answers: Mapping[Solver, Answer], found: Finding
) -> Finding:
    """Judge refusals and missing answers of ours by PRISM's engine with the same code around it."""
    prisms = [(item, other) for item, other in answers.items() if not item.ours and not item.exact]
    peers = [(item, other) for item, other in prisms if item.name == solver.peer] or prisms
    if answer.kind is Kind.VALUES:
        refusals = [other.message for _, other in peers if other.kind is Kind.REFUSED]
        if refusals and len(refusals) == len(peers) and found.standing is Standing.AGREES:
            # What is wrong with a question must be said by all; what an engine lacks need not.
            lacks = all(_LACKS.search(message) for message in refusals)
            return replace(
                found,
                standing=Standing.BEYOND if lacks else Standing.DIFFERS,
                message=f"it answers what {peers[0][0].name} refuses: {refusals[0]}",
            )
        shown = [item.name for item, other in peers if other.vector is not None]
        if answer.vector is None and shown and found.standing is Standing.AGREES:
            message = f"it has no values of all states, where {shown[0]} has"
            return replace(found, standing=Standing.DIFFERS, message=message)
        return found
    answering = [item.name for item, other in peers if other.kind is Kind.VALUES]
    texts = [other.message for _, other in peers if other.kind is Kind.REFUSED]
    if answer.kind is Kind.REFUSED and answer.message not in texts:
        if answering:
            message = f"it refuses what {answering[0]} answers: {answer.message}"
            return replace(found, standing=Standing.WRONG, message=message)
        # Where no engine is named, its words may be those of PRISM's default one.
        elsewhere = any(other.message == answer.message for _, other in prisms)
        if texts and not elsewhere:
            message = f"error text {answer.message!r}, that of PRISM is {texts[0]!r}"
            return replace(found, standing=Standing.WRONG, message=message)
    if answer.kind is Kind.NOTHING and answering:
        message = f"{answer.message}, where {answering[0]} has an answer"
        return replace(found, standing=Standing.MISSING, message=message)
    return found


def facts_message(facts: ModelFacts, peer: ModelFacts) -> str:
    """Return how the sizes of two builds differ; empty if they do not."""
    for name, one, other in (
        ("type", facts.type, peer.type),
        ("states", facts.num_states, peer.num_states),
        ("transitions", facts.num_transitions, peer.num_transitions),
    ):
        if one != other:
            return f"{name}: {one} for {other}"
    return ""
