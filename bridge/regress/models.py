"""Comparing the builds of a model: its size, its states, and the states of each label."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bridge.regress.answers import ModelFacts, Record
from bridge.regress.judge import Built, facts_message
from bridge.regress.solvers import Solver
from bridge.regress.vectors import read_labels
from bridge.regress.verdicts import Finding, Standing, Verdict


def model_verdict(
    case: str, model: int, records: Mapping[Solver, Record], builds: Mapping[Solver, Built]
) -> Verdict | None:
    """Compare the engines' builds of a model; None when no two engines were asked for one.

    Every build has the states and labels of the first, or differs. Ours is wrong where it alone
    differs; where PRISM's engines differ among themselves, nothing is decided. Transitions are
    counted against PRISM's engine of the same kind: the exact one counts others.

    Parameters
    ----------
    case
        The case's name.
    model
        The model's number.
    records
        What each engine told.
    builds
        The builds with their orders of states.
    """
    facts = {solver: item for solver in records if (item := records[solver].models.get(model))}
    if len(facts) < 2:
        return None
    first = next((solver for solver in builds if not solver.ours), None) or next(iter(builds), None)
    messages = {
        solver: _difference(solver, first, facts, builds)
        for solver in facts
        if solver in builds and first is not None
    }
    split = any(message for solver, message in messages.items() if not solver.ours)
    peers = {solver.name: solver for solver in facts}
    findings = []
    for solver, item in facts.items():
        if item.message:
            standing, message = _without_model(solver, item, facts, peers)
        else:
            message = messages.get(solver, "")
            peer = peers.get(solver.peer)
            if not message and peer is not None and not facts[peer].message:
                message = facts_message(item, facts[peer])
            standing = Standing.AGREES
            if message:
                standing = Standing.WRONG if solver.ours and not split else Standing.DIFFERS
        findings.append(Finding(solver.name, solver.ours, standing, message, None, item.seconds))
    constants = next((item.constants for item in facts.values()), "")
    title = f"model [{constants}]" if constants else "model"
    size = max(item.num_states for item in facts.values())
    return Verdict(case, title, tuple(findings), num_states=size)


def _without_model(
    solver: Solver,
    item: ModelFacts,
    facts: Mapping[Solver, ModelFacts],
    peers: Mapping[str, Solver],
) -> tuple[Standing, str]:
    """Judge an engine that built nothing."""
    peer = peers.get(solver.peer)
    prisms = [facts[other] for other in facts if not other.ours]
    others = [facts[peer]] if peer else prisms
    # A model without states is built by PRISM's explicit engine alone.
    empty = not any(other.num_states for other in prisms)
    if solver.ours and empty and any(other.message == item.message for other in prisms):
        return Standing.REFUSED, item.message
    if solver.ours and any(not other.message for other in others):
        return Standing.MISSING, f"{item.message}, where PRISM builds the model"
    if solver.ours and any(other.message == item.message for other in others):
        return Standing.REFUSED, item.message
    return Standing.NOTHING if solver.ours else Standing.REFUSED, item.message


def _difference(
    solver: Solver,
    first: Solver,
    facts: Mapping[Solver, ModelFacts],
    builds: Mapping[Solver, Built],
) -> str:
    """Return how a build differs from the first in states or labels; empty if it does not."""
    one, other = facts[solver], facts[first]
    mine, theirs = builds[solver], builds[first]
    if solver == first or theirs.states is None:
        return ""
    if one.num_states != other.num_states:
        return f"states: {one.num_states} for {other.num_states} of {first.name}"
    if mine.states is None or mine.order is None or theirs.order is None:
        return f"its states are not those of {first.name}"
    if one.labels is None or other.labels is None:
        return "" if one.labels is other.labels else f"labels: only one of it and {first.name}"
    ours = read_labels(one.labels, one.num_states)
    prisms = read_labels(other.labels, other.num_states)
    if ours.keys() != prisms.keys():
        odd = sorted(ours.keys() ^ prisms.keys())
        return f'labels: "{odd[0]}" is in one of it and {first.name} only'
    for name, mask in ours.items():
        wrong = mask[mine.order] != prisms[name][theirs.order]
        if wrong.any():
            state = int(theirs.order[int(np.argmax(wrong))])
            has = "has" if prisms[name][state] else "does not have"
            return (
                f'label "{name}": {int(wrong.sum())} states differ from {first.name}, which says '
                f"that state {state} ({theirs.states.describe(state)}) {has} it"
            )
    return ""
