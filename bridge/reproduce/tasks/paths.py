"""Sampled paths of dining philosophers: the case of the APMC paper's Figures 3 and 5."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from bridge.reproduce.worker import Partial, Record
from engines.model.environment import DeviceChoice
from engines.montecarlo.questions import Monitor
from engines.montecarlo.reference import sample_path
from engines.montecarlo.sampler import DEFAULT_PATH_LIMIT, Sampler
from engines.montecarlo.tally import BooleanOutcomes
from engines.program.expressions import Binary, BinaryOperator, Expression, Literal, Type
from engines.program.expressions import Variable as VariableValue
from engines.program.program import (
    Assignment,
    Command,
    ModelKind,
    Module,
    Program,
    Update,
    VariableDeclaration,
)

COMPARED = 5
"""Paths that are compared with the plain interpreter's before any is timed."""
SEED = 1
THINKS, DRAWS, WAITS_LEFT, WAITS_RIGHT, HAS_LEFT, HAS_RIGHT, EATS = range(7)


def measure(parameters: Mapping[str, Any], partial: Partial) -> Record:
    """Return seconds and the estimate, after a look at the answers of the first paths.

    Parameters
    ----------
    parameters
        "philosophers", "paths", "steps", "device"; "threads" of the CPU, 0 for one a core.
    partial
        Unused.

    Raises
    ------
    ValueError
        If a path's answer or length is not the interpreter's.
    """
    del partial
    n, paths, steps = (int(parameters[name]) for name in ("philosophers", "paths", "steps"))
    threads = int(parameters["threads"])
    program, question = philosophers(n), both_eat(steps)
    begun = time.perf_counter()
    device = DeviceChoice.CPU if threads else DeviceChoice(parameters["device"])
    sampler = Sampler(program, [question], SEED, device, threads=threads or None)
    arrays = sampler.sample(0, COMPARED)
    compiled = time.perf_counter() - begun
    for i in range(COMPARED):
        path = sample_path(sampler.compiled.plan, [question], SEED, i, DEFAULT_PATH_LIMIT)
        if path.answers[0] != arrays.booleans[0][i] or path.length != arrays.lengths[i]:
            raise ValueError(f"path {i} of {n} philosophers differs from the interpreter's")
    sampler.run(0, min(paths, 20_000))
    begun = time.perf_counter()
    batch = sampler.run(0, paths)
    seconds = time.perf_counter() - begun
    outcome = batch.outcomes[0]
    assert isinstance(outcome, BooleanOutcomes)
    return {
        "on": "gpu" if sampler.on_gpu else "cpu",
        "compile_seconds": compiled,
        "sample_seconds": seconds,
        "steps_per_second": batch.lengths.total / seconds,
        "estimate": outcome.num_true / paths,
        "compared": COMPARED,
    }


def philosophers(n: int) -> Program:
    """Return the program of `n` philosophers."""
    modules = []
    for i in range(n):
        own = VariableValue(i, Type.INT)
        left, right = ((i + by) % n for by in (-1, 1))
        left_is_free = _compare(left, BinaryOperator.LESS, HAS_RIGHT)
        left_is_taken = _compare(left, BinaryOperator.GREATER_EQUAL, HAS_RIGHT)
        right_is_free = _both(
            _compare(right, BinaryOperator.NOT_EQUAL, HAS_LEFT),
            _compare(right, BinaryOperator.NOT_EQUAL, EATS),
        )
        right_is_taken = Binary(
            BinaryOperator.OR,
            _compare(right, BinaryOperator.EQUAL, HAS_LEFT),
            _compare(right, BinaryOperator.EQUAL, EATS),
        )
        moves: list[tuple[int, Expression | None, tuple[int, ...]]] = [
            (THINKS, None, (DRAWS,)),
            (DRAWS, None, (WAITS_LEFT, WAITS_RIGHT)),
            (WAITS_LEFT, left_is_free, (HAS_LEFT,)),
            (WAITS_RIGHT, right_is_free, (HAS_RIGHT,)),
            (HAS_LEFT, right_is_free, (EATS,)),
            (HAS_LEFT, right_is_taken, (DRAWS,)),
            (HAS_RIGHT, left_is_free, (EATS,)),
            (HAS_RIGHT, left_is_taken, (DRAWS,)),
            (EATS, None, (THINKS,)),
        ]
        commands = []
        for source, condition, targets in moves:
            here: Expression = Binary(BinaryOperator.EQUAL, own, Literal(source))
            weight = Literal(1.0 / len(targets))
            updates = tuple(Update((Assignment(i, Literal(x)),), weight) for x in targets)
            commands.append(Command(here if condition is None else _both(here, condition), updates))
        modules.append(Module(f"Philosopher{i + 1}", tuple(commands)))
    variables = tuple(VariableDeclaration(f"p{i + 1}", Type.INT, 0, 6, 0) for i in range(n))
    return Program(ModelKind.DTMC, variables, tuple(modules))


def _compare(philosopher: int, operator: BinaryOperator, state: int) -> Expression:
    return Binary(operator, VariableValue(philosopher, Type.INT), Literal(state))


def _both(first: Expression, second: Expression) -> Expression:
    return Binary(BinaryOperator.AND, first, second)


def both_eat(steps: int) -> Monitor:
    """Return whether the first eats within so many steps, and then or later the second."""
    atoms = tuple(_compare(i, BinaryOperator.EQUAL, EATS) for i in (0, 1))
    transitions = ((0, 1, 0, 2), (1, 1, 2, 2), (2, 2, 2, 2))
    return Monitor(atoms, transitions, (2, 2, 1), (False, False, True), 0, steps + 1)
