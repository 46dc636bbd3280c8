"""Sweeps that share another sweeper's matrix: the same as sweeps prepared anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.devices.choice import choose_engine
from engines.devices.colours import GaussSeidelScheme
from engines.host import engine as cpu_engine
from engines.host import layouts
from engines.host.colours import Order
from engines.methods.confirmation import AutomaticSweeps
from engines.model.choice import Format
from engines.model.environment import DeviceChoice, SolverEnvironment
from engines.systems.one_sided import Direction, HasTwin, Scaling, SweepSystem
from tests.engines import models

SIZE = 60
SWEEPS = 7


def chain(scaling):
    """A chain's system with that scaling, with rewards and a relaxation where it takes them."""
    rng = np.random.default_rng(3)
    if scaling is Scaling.BALANCE:
        rates = models.recurrent(5, SIZE).matrix
        return SweepSystem(rates, rng.random(SIZE), scaling=scaling, omega=0.75)
    model = models.random_dtmc(8, SIZE)
    states = np.flatnonzero(rng.random(SIZE) < 0.8).astype(np.int32)
    rows = model.matrix.select_rows(states)
    return SweepSystem(rows, rng.random(SIZE), rng.random(len(states)), states, scaling=scaling)


def choices():
    model = models.random_mdp(4, SIZE)
    start = np.random.default_rng(6).random(SIZE)
    groups = model.row_group_offsets
    return SweepSystem(model.matrix, start, group_offsets=groups, direction=Direction.MAXIMISE)


SYSTEMS = {
    "DIAGONAL": chain(Scaling.DIAGONAL),
    "BALANCE": chain(Scaling.BALANCE),
    "NONE": chain(Scaling.NONE),
    "choices": choices(),
}
FORMATS = [Format.AUTO, Format.CSR, Format.VALUES, Format.PATTERNS]


def swept(sweeper, sweeps=SWEEPS):
    changes = [np.array(sweeper.run(1)) for _ in range(sweeps)]
    return np.concatenate(changes), np.array(sweeper.values()), sweeper.residual()


@pytest.mark.parametrize("matrix_format", FORMATS, ids=str)
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_twin_sweeps_as_if_prepared_anew_and_leaves_the_first_alone(device, name, matrix_format):
    system = SYSTEMS[name]
    on_gpu = device is DeviceChoice.GPU
    environment = SolverEnvironment(device=device, matrix_format=matrix_format)
    engine, _ = choose_engine(environment, system)
    first = engine.sweeper(system, -1.0, True)
    assert on_gpu == first.cost.engine.startswith("GPU")
    first.run(3)
    before = np.array(first.values())
    start = np.random.default_rng(11).random(SIZE)
    anew = engine.sweeper(replace(system, start=start), -1.0, True)
    twin = first.twin(start, -1.0)
    assert twin.cost.format == anew.cost.format
    for found, expected in zip(swept(twin), swept(anew), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(first.values(), before)
    # The first goes on as one that has no twin.
    alone = engine.sweeper(system, -1.0, True)
    alone.run(3)
    for found, expected in zip(swept(first), swept(alone), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_twin_has_a_threshold_of_its_own(device):
    system = SYSTEMS["DIAGONAL"]
    engine, _ = choose_engine(SolverEnvironment(device=device), system)
    first = engine.sweeper(system, -1.0, True)
    twin = first.twin(system.start, 1e-3)
    assert len(first.run(500)) == 500
    changes = twin.run(500)
    assert len(changes) < 500
    assert changes[-1] < 1e-3 <= changes[-2]


def test_a_twin_of_sweeps_that_turned_to_patterns_sweeps_by_patterns(monkeypatch):
    """Sweeps in CSR that have gone on for long are followed by others, of a matrix of runs."""
    system = replace(
        SweepSystem(models.birth_death(400).matrix, np.ones(400), scaling=Scaling.BALANCE),
        omega=0.9,
    )
    first = cpu_engine.CpuEngine(Format.PATTERNS).sweeper(system, -1.0, False)
    monkeypatch.setattr(layouts, "lay_out", None)
    twin = first.twin(system.start, -1.0)
    assert twin.cost.format == first.cost.format == "patterns"
    for found, expected in zip(swept(twin), swept(first), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_confirmations_prepare_the_matrix_once(device):
    system = SYSTEMS["BALANCE"]
    environment = SolverEnvironment(device=device)
    engine, _ = choose_engine(environment, system)
    sweeper = engine.sweeper(system, -1.0, False)
    made = AutomaticSweeps(sweeper, None, system, environment, None, None)._prepared(system)
    assert type(made) is type(sweeper)
    assert made is not sweeper


def test_sweeps_in_colours_have_no_twin_and_are_prepared_anew(device):
    system = SYSTEMS["DIAGONAL"]
    environment = SolverEnvironment(device=device)
    engine = GaussSeidelScheme(choose_engine(environment, system)[0], Order.FORWARDS)
    sweeper = engine.sweeper(system, -1.0, False)
    assert not isinstance(sweeper, HasTwin)
    made = AutomaticSweeps(sweeper, engine, system, environment, None, None)._prepared(system)
    assert type(made) is type(sweeper)
