"""Sampled paths of dining philosophers: the case of the APMC paper's Figures 3 and 5."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from bridge.check.path_program import program_and_question
from bridge.reproduce.families import philosophers_text
from bridge.reproduce.worker import Partial, Record
from engines.model.environment import DeviceChoice
from engines.montecarlo.questions import Question
from engines.montecarlo.reference import sample_path
from engines.montecarlo.sampler import DEFAULT_PATH_LIMIT, Sampler
from engines.montecarlo.tally import BooleanOutcomes
from engines.program.program import Program
from prism_hooks.simulation import STRATEGIES

COMPARED = 5
"""Paths that are compared with the plain interpreter's before any is timed."""
SEED = 1
BOTH_EAT = 'P=? [ F ("first_eats" & (F "second_eats")) ]'
"""The paper's double accessibility, which is asked of the first states of paths."""


def measure(parameters: Mapping[str, Any], partial: Partial) -> Record:
    """Return seconds and the estimate, after a look at the answers of the first paths.

    Parameters
    ----------
    parameters
        "philosophers", "paths", "steps", "device"; "threads" of the CPU, 0 for the device; and
        "synchronisation", a value of `-gpusimsync` or empty for a choice.
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
    program, question = philosophers(n, steps)
    strategy = STRATEGIES[parameters["synchronisation"]]
    begun = time.perf_counter()
    device = DeviceChoice.CPU if threads else DeviceChoice(parameters["device"])
    sampler = Sampler(program, [question], SEED, device, strategy=strategy, threads=threads or None)
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


def philosophers(n: int, steps: int) -> tuple[Program, Question]:
    """Return the paper's model and property, as the product reads them.

    Parameters
    ----------
    n
        How many philosophers.
    steps
        The first eats within so many, and then or later the second.
    """
    return program_and_question(philosophers_text(n), BOTH_EAT, steps + 1)
