"""Loops that stand in for numba: when they are used, that values stay, and when numba goes on."""

from __future__ import annotations

import numpy as np
import pytest

from engines.cpu import (
    engine,
    host_loops,
    warm_up,
)
from engines.cpu.engine import CpuEngine
from engines.diagrams import expand, points, walks
from engines.diagrams.diagram import ZERO
from engines.diagrams.survey import Survey
from engines.environment import Method, SolverEnvironment
from engines.errors import InvalidModelError
from engines.formats.choice import Format
from engines.long_run import long_run_rewards
from engines.model import RewardStructure
from engines.reachability import solve_reachability
from engines.system import Direction, Scaling, SweepSystem
from engines.time_bounded import distribution_at
from tests.engines import models
from tests.engines.diagrams.random_diagrams import diagram_of, numbering_of, random_model
from tests.engines.stand_in import StandIn


@pytest.fixture
def stand_in(monkeypatch):
    """Register a stand-in, for systems of any size, in a process that has not loaded numba."""
    monkeypatch.setattr(warm_up, "_loaded", [])
    monkeypatch.setattr(warm_up, "_loaded_all", [])
    monkeypatch.setattr(warm_up, "MET", warm_up.ModelsMet())
    monkeypatch.setattr(host_loops, "FEWEST_ENTRIES", 1)
    monkeypatch.setattr(host_loops, "FEWEST_ENTRIES_WITH_CHOICES", 1)
    monkeypatch.setattr(host_loops, "FEWEST_ENTRIES_OF_SUMS", 1)
    monkeypatch.setattr(engine, "NUMBA_ENTRIES", 10**12)
    found = StandIn()
    host_loops.register(found)
    return found


def chain(size=60):
    model = models.recurrent(5, size)
    start = np.full(size, 1.0 / size)
    return SweepSystem(model.matrix, start, scaling=Scaling.BALANCE, omega=0.9)


def choices(size=60):
    model = models.random_mdp(4, size)
    groups, start = model.row_group_offsets, np.random.default_rng(6).random(size)
    return SweepSystem(model.matrix, start, group_offsets=groups, direction=Direction.MAXIMISE)


def swept(system, matrix_format=Format.AUTO):
    sweeper = CpuEngine(matrix_format).sweeper(system, -1.0, True)
    changes = np.concatenate([sweeper.run(20), sweeper.run(13)])
    return sweeper, changes


@pytest.mark.parametrize("system", [chain(), choices()], ids=["chain", "choices"])
def test_a_stand_in_sweeps_what_numba_would(stand_in, system):
    sweeper, changes = swept(system)
    assert sweeper.cost.kernel == "Stand-in, threads 1"
    host_loops.register(None)
    plain, as_before = swept(system)
    assert plain.cost.kernel == "NumPy"
    np.testing.assert_allclose(changes, as_before, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(sweeper.values(), plain.values(), rtol=1e-12)
    assert sweeper.residual() == pytest.approx(plain.residual(), abs=1e-14)
    assert stand_in.asked == ["sweeps"]


def test_nothing_stands_in_unless_it_is_the_sooner_way(stand_in, monkeypatch):
    entries = chain().matrix.num_entries
    assert host_loops.stand_in(host_loops.MOST_ENTRIES) is stand_in
    assert host_loops.stand_in(host_loops.MOST_ENTRIES + 1) is None
    monkeypatch.setattr(host_loops, "FEWEST_ENTRIES", entries + 1)
    monkeypatch.setattr(host_loops, "LATE_SECONDS", 1e9)
    assert swept(chain())[0].cost.kernel == "NumPy"
    monkeypatch.setattr(host_loops, "FEWEST_ENTRIES_WITH_CHOICES", 10**12)
    assert swept(choices())[0].cost.kernel == "NumPy"
    monkeypatch.setattr(host_loops, "FEWEST_ENTRIES", 1)
    for named in (Format.VALUES, Format.PATTERNS, Format.HYBRID):
        assert "Stand-in" not in swept(chain(), named)[0].cost.kernel
    monkeypatch.setattr(warm_up, "_loaded", ["sweeps"])
    assert "Stand-in" not in swept(chain())[0].cost.kernel
    assert stand_in.asked == []


def test_a_stand_in_sweeps_while_numba_is_on_its_way(stand_in, monkeypatch):
    """What is too small for a stand-in by itself must not wait until numba is loaded."""
    monkeypatch.setattr(host_loops, "FEWEST_ENTRIES", 10**12)
    monkeypatch.setattr(engine, "repays_numba", lambda _entries: True)
    assert swept(chain())[0].cost.kernel.startswith("Stand-in")
    assert stand_in.asked == ["sweeps"]


def test_a_small_solve_goes_on_with_a_stand_in_once_it_has_taken_long(stand_in, monkeypatch):
    monkeypatch.setattr(host_loops, "FEWEST_ENTRIES", 10**12)
    monkeypatch.setattr(host_loops, "LATE_SECONDS", 1e9)
    plain, changes = swept(chain())
    assert stand_in.asked == []
    monkeypatch.setattr(host_loops, "LATE_SECONDS", 0.0)
    sweeper, going_on = swept(chain())
    assert sweeper.cost.kernel == "Stand-in, threads 1"
    assert stand_in.asked == ["sweeps"]
    np.testing.assert_allclose(going_on, changes, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(sweeper.values(), plain.values(), rtol=1e-12)


def test_without_room_for_a_copy_all_is_as_before(stand_in):
    stand_in.room = False
    assert swept(chain())[0].cost.kernel == "NumPy"
    assert stand_in.asked == ["sweeps"]


@pytest.mark.parametrize("system", [chain(), choices()], ids=["chain", "choices"])
def test_a_long_solve_goes_on_with_numba_once_it_is_loaded(stand_in, monkeypatch, system):
    expected = swept(system)[0].values()
    monkeypatch.setattr(host_loops, "STAY_SECONDS", -1.0)
    monkeypatch.setattr(host_loops, "LEAVE_SECONDS", 1e9)
    assert "Stand-in" in swept(system)[0].cost.kernel
    assert not warm_up.MET._long_solve.is_set()
    monkeypatch.setattr(host_loops, "ENTRIES_TO_LEAVE", 1)
    monkeypatch.setattr(host_loops, "ENTRIES_PER_THREAD", 1)
    monkeypatch.setattr(host_loops, "MOST_THREADS", 3)
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: range(8), raising=False)
    stand_in.threads.clear()
    sweeper, _ = swept(system)
    assert "Stand-in" in sweeper.cost.kernel
    assert warm_up.MET._long_solve.is_set()
    assert set(stand_in.threads) == {2}, "no core is left to what loads"
    monkeypatch.setattr(warm_up, "_loaded_all", ["all"])
    made = len(stand_in.threads)
    sweeper.run(1)
    assert sweeper.cost.kernel.startswith("numba")
    assert len(stand_in.threads) == made
    np.testing.assert_array_equal(swept(system)[0].values(), expected)


def test_a_solve_that_nothing_is_loaded_beside_loads_numba_itself(stand_in, monkeypatch):
    monkeypatch.setattr(host_loops, "STAY_SECONDS", -1.0)
    monkeypatch.setattr(host_loops, "LEAVE_SECONDS", -1.0)
    monkeypatch.setattr(host_loops, "ENTRIES_TO_LEAVE", 1)
    assert swept(chain())[0].cost.kernel.startswith("numba")
    assert stand_in.asked == ["sweeps"]


def test_one_thread_sweeps_where_several_are_slower(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: range(8), raising=False)
    threads = host_loops.Threads(10 * host_loops.ENTRIES_PER_THREAD)
    assert threads.most == host_loops.MOST_THREADS == 4
    paces, chosen = {4: 3.0, 1: 2.0}, []
    for _ in range(host_loops.COMPARED_AGAIN - 1):
        chosen.append(threads.now())
        threads.note(chosen[-1], 10, paces[chosen[-1]])
    assert chosen == [4, 4, 1, *[1] * (host_loops.COMPARED_AGAIN - 4)]
    paces[4] = 1.0
    for expected in (4, 1, 4, 4):
        now = threads.now()
        threads.note(now, 10, paces[now])
        assert now == expected
    assert host_loops.Threads(host_loops.ENTRIES_PER_THREAD).most == 1
    # Rows of two entries take about twice as long as they do.
    assert host_loops.Threads(host_loops.ENTRIES_PER_THREAD, host_loops.ENTRIES_PER_THREAD).most > 1


def test_one_call_that_was_held_up_changes_nothing_and_two_do(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: range(8), raising=False)
    threads = host_loops.Threads(10 * host_loops.ENTRIES_PER_THREAD)
    chosen = []
    for seconds in (9.0, 1.0, 2.0, 1.0, 9.0, 1.0, 9.0, 9.0):
        chosen.append(threads.now())
        threads.note(chosen[-1], 1, seconds)
    assert chosen == [4, 4, 1, 4, 4, 4, 4, 4]
    assert threads.now() == 1


@pytest.mark.parametrize(("cores", "expected"), [(2, [1, 2, 2]), (4, [3, 4, 4]), (8, [4, 4, 4])])
def test_the_first_sweeps_leave_a_core_to_what_compiles_them(monkeypatch, cores, expected):
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: range(cores), raising=False)
    threads = host_loops.Threads(10 * host_loops.ENTRIES_PER_THREAD)
    assert [threads.now() for _ in expected] == expected


def test_the_loader_waits_for_a_long_solve_or_its_time():
    met = warm_up.ModelsMet()
    met.meet(1)
    met.wait_for_long_solve(0.01)
    met.meet_long_solve()
    met.wait_for_long_solve(1e6)
    met.wait_while_small()


@pytest.mark.parametrize("limit", ["HOST_STEPS", "HOST_STEPS_OF_LONG_PATHS"])
@pytest.mark.parametrize("seed", range(4))
def test_a_matrix_of_long_paths_is_expanded_by_the_host(stand_in, monkeypatch, seed, limit):
    model = random_model(seed, 4)
    expected = expand.expand_matrix(model.diagram, model.numbering)
    assert stand_in.asked == []
    monkeypatch.setattr(expand, limit, 1)
    monkeypatch.setattr(expand, "HOST_STEPS_AN_ENTRY", 0)
    found = expand.expand_matrix(model.diagram, model.numbering)
    assert stand_in.asked == (["expanded"] if expected.num_entries else [])
    for name in ("row_offsets", "columns", "values"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        assert getattr(found, name).dtype == getattr(expected, name).dtype


@pytest.mark.parametrize("room", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_choices_of_many_paths_are_expanded_by_the_host(stand_in, monkeypatch, seed, room):
    model = random_model(seed, 4, choice_variables=2)
    words = (model.diagram, model.numbering, model.choice_variables)
    expected = expand.expand_choices(*words)
    assert stand_in.asked == []
    monkeypatch.setattr(expand, "HOST_STEPS", 1)
    stand_in.room = room
    found = expand.expand_choices(*words)
    assert stand_in.asked == (["expanded choices"] if expected.matrix.num_entries else [])
    for name in ("row_offsets", "columns", "values"):
        one, other = getattr(found.matrix, name), getattr(expected.matrix, name)
        np.testing.assert_array_equal(one, other)
    for name in ("row_group_offsets", "choice_numbers", "roots", "assignments"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize("by_arrays", [True, False])
def test_a_line_is_walked_along_by_the_host(stand_in, monkeypatch, by_arrays):
    monkeypatch.setattr(host_loops, "FEWEST_ENTRIES", 10**9 if by_arrays else 1)
    size = 2_500
    rows = [{k + 1: 0.5, size + 1: 0.5} for k in range(size)]
    model = models.dtmc([*rows, {size: 1.0}, {size + 1: 1.0}])
    goal = models.mask(size + 2, [size])
    result = solve_reachability(
        model, models.mask(size + 2, range(size)), goal.astype(float), SolverEnvironment()
    )
    assert stand_in.asked == ["sweeps", "substitution"]
    assert result.finished_by == "substitution"
    assert result.cost.kernel == "Stand-in"
    np.testing.assert_allclose(result.values[:size], 0.5 ** np.arange(size, 0.0, -1.0), rtol=1e-12)


@pytest.mark.parametrize("reason", ["", "no room", "few points", "numba is loaded", "none"])
def test_values_of_many_points_are_read_by_the_host(stand_in, monkeypatch, reason):
    monkeypatch.setattr(points, "HOST_POINTS", 9 if reason == "few points" else 8)
    monkeypatch.setattr(points, "kernels_ready", lambda: reason == "numba is loaded")
    stand_in.room = reason != "no room"
    if reason == "none":
        host_loops.register(None)
    values = np.arange(8.0)
    diagram = diagram_of(values.reshape((2, 2, 2)), [1, 3, 5])
    numbering = numbering_of(np.ones((2, 2, 2), bool), [1, 3, 5], [2, 4, 6])
    found = points.read_points(diagram, numbering, np.arange(8), np.full(8, diagram.root))
    np.testing.assert_array_equal(found, values)
    assert stand_in.asked == (["points"] if reason in ("", "no room") else [])


@pytest.mark.parametrize("levels", [1, 4])
@pytest.mark.parametrize("seed", range(6))
def test_the_host_follows_the_paths_of_a_small_matrix_of_many_levels(
    stand_in, monkeypatch, seed, levels
):
    model = random_model(seed, levels)
    expected = expand.expand_matrix(model.diagram, model.numbering)
    assert stand_in.asked == []
    monkeypatch.setattr(walks, "DEEP", levels)
    monkeypatch.setattr(walks, "ENTRIES_A_STATE", 2**levels)
    found = walks.surveyed_or_walked(model.diagram, model.numbering)
    assert isinstance(found, walks.Walked) == bool(stand_in.asked)
    assert stand_in.asked == ([] if model.diagram.root == ZERO else ["expanded"])
    assert found.num_entries == expected.num_entries
    for name in ("row_offsets", "columns", "values"):
        one, other = getattr(expand.expand_surveyed(found), name), getattr(expected, name)
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


@pytest.mark.parametrize("reason", ["many entries", "many steps", "few levels", "no room", "none"])
def test_else_a_matrix_is_surveyed(stand_in, monkeypatch, reason):
    model = random_model(1, 4, density=0.9)
    monkeypatch.setattr(walks, "DEEP", 5 if reason == "few levels" else 4)
    monkeypatch.setattr(walks, "ENTRIES_A_STATE", 1 if reason == "many entries" else 16)
    if reason == "many steps":
        monkeypatch.setattr(walks, "MOST_STEPS", 4 * model.numbering.num_states - 1)
    stand_in.room = reason != "no room"
    if reason == "none":
        host_loops.register(None)
    found = walks.surveyed_or_walked(model.diagram, model.numbering)
    assert isinstance(found, Survey)
    assert stand_in.asked == (["expanded"] if reason in ("many entries", "no room") else [])


def test_a_foreign_variable_is_an_error_of_small_matrices_too(stand_in, monkeypatch):
    monkeypatch.setattr(walks, "DEEP", 1)
    diagram = diagram_of(np.arange(8.0).reshape(2, 2, 2) + 1.0, [1, 2, 7])
    numbering = numbering_of(np.ones(2, bool), [1], [2])
    with pytest.raises(InvalidModelError, match="depends on variable 7"):
        walks.surveyed_or_walked(diagram, numbering)
    assert stand_in.asked == ["expanded"]


@pytest.mark.usefixtures("stand_in")
def test_sums_of_powers_are_those_of_numba_and_go_on_there(monkeypatch):
    model = models.recurrent(3, 300)
    initial = np.full(300, 1 / 300)
    monkeypatch.setattr("engines.cpu.uniformise.NUMBA_BATCH_ENTRIES", 1)

    def distribution():
        return distribution_at(model, initial, 20.0, SolverEnvironment())

    by_host = distribution()
    assert by_host.cost.kernel == "Stand-in, threads 1"
    monkeypatch.setattr(host_loops, "STAY_SECONDS", -1.0)
    monkeypatch.setattr(host_loops, "LEAVE_SECONDS", -1.0)
    monkeypatch.setattr(host_loops, "ENTRIES_TO_LEAVE", 1)
    going_on = distribution()
    assert going_on.cost.kernel.startswith("numba")
    host_loops.register(None)
    monkeypatch.setattr(engine, "NUMBA_ENTRIES", 0)
    by_numba = distribution()
    assert by_numba.cost.kernel.startswith("numba")
    for result in (by_host, going_on):
        assert result.iterations == by_numba.iterations
        np.testing.assert_array_equal(result.values, by_numba.values)


def test_a_long_run_is_found_without_numba(stand_in):
    model = models.recurrent(7, 200)
    rewards = np.random.default_rng(1).random(200)
    environment = SolverEnvironment(method=Method.JOR, omega=0.9, epsilon=1e-10)
    result = long_run_rewards(model, RewardStructure("", rewards), environment)
    assert set(stand_in.asked) == {"sweeps"}
    assert "Stand-in" in result.cost.kernel
