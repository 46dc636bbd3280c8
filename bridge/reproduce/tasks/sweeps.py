"""Time of a sweep of Jacobi against the number of states, in double and in single precision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bridge.reproduce.tasks.models import built
from bridge.reproduce.worker import Partial, Record
from engines.devices.choice import choose_engine
from engines.errors import UnsupportedError
from engines.model.choice import Format
from engines.model.environment import DeviceChoice, SolverEnvironment
from engines.systems.one_sided import HasSingle, Scaling, Sweeper, SweepSystem

REPEATS = 7


def measure(parameters: Mapping[str, Any], partial: Partial) -> Record:
    """Return microseconds a sweep of a chain's balance equations.

    Parameters
    ----------
    parameters
        "family", "size" (a CTMC), "device", "front_end".
    partial
        Unused.
    """
    del partial
    model = built(parameters["family"], parameters["size"], parameters["front_end"])
    size = model.num_states
    start = np.full(size, 1.0 / size)
    system = SweepSystem(model.matrix, start, scaling=Scaling.BALANCE, omega=1.0)
    settings = SolverEnvironment(device=DeviceChoice(parameters["device"]))
    times, held = sweep_times(system, settings)
    return {"states": size, "transitions": model.matrix.num_entries, "format": held, **times}


def sweep_times(system: SweepSystem, settings: SolverEnvironment) -> tuple[dict[str, float], str]:
    """Return microseconds a sweep in "double" and in "single" precision, and the format.

    Parameters
    ----------
    system
        What is swept.
    settings
        The device and the format; CSR takes the place of one that has no single precision.
    """
    engine, _ = choose_engine(settings, system)
    double = engine.sweeper(system, -1.0, False)
    assert isinstance(double, HasSingle)
    try:
        single = double.in_single(-1.0, system.scaling is Scaling.BALANCE)
    except UnsupportedError:
        if settings.matrix_format is Format.CSR:
            raise
        return sweep_times(system, replace(settings, matrix_format=Format.CSR))
    times = {"single": median_microseconds(single), "double": median_microseconds(double)}
    return times, double.cost.format


def median_microseconds(sweeper: Sweeper) -> float:
    """Return the time of a sweep, by the clock of what makes them.

    Parameters
    ----------
    sweeper
        Warm or not: some sweeps are made before any is timed.
    """
    sweeper.run(64)
    before = sweeper.seconds
    sweeper.run(64)
    each = max((sweeper.seconds - before) / 64, 1e-7)
    # About 20 ms are timed at a time.
    count = int(min(max(64, 0.02 / each), 4096)) // 64 * 64
    taken = []
    for _ in range(REPEATS):
        before = sweeper.seconds
        made = len(sweeper.run(count))
        taken.append((sweeper.seconds - before) / made)
    return sorted(taken)[REPEATS // 2] * 1e6
