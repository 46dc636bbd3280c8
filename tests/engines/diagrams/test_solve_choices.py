"""What is decided before a solve without a matrix: whether, how, and whether there is room."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engines.cuda import driver
from engines.diagrams.survey import survey
from engines.diagrams.system import DiagramSystem
from engines.errors import UnsupportedError
from engines.host.engine import CpuEngine
from engines.host.expansion import room
from engines.host.expansion.expand import expanded_bytes
from engines.host.expansion.room import Room, available_host_bytes, fits_expanded
from engines.methods import coloured_rest
from engines.methods.stretches import Stretches
from engines.model.choice import Format
from engines.model.environment import (
    Convention,
    DeviceChoice,
    Method,
    Precision,
    SolverEnvironment,
)
from engines.model.events import Kind
from engines.model.result import Status
from engines.questions import without_matrix as solve
from engines.questions.steady_state import solve_steady_state
from engines.questions.without_matrix import (
    solve_reachability_without_matrix,
    solve_steady_state_without_matrix,
)
from engines.solve import stages
from engines.solve.ladder import nothing_swept
from engines.systems.one_sided import SweepSystem
from tests.engines import models
from tests.engines.diagrams.expansion import expand_matrix, hybrid_matrix
from tests.engines.diagrams.queue_diagrams import QueueDiagrams
from tests.engines.diagrams.random_diagrams import as_diagram

MODEL = QueueDiagrams(2, 5)
DIAGRAM, NUMBERING = MODEL.diagram(), MODEL.numbering()
SIZE = NUMBERING.num_states
UNKNOWN = np.arange(SIZE) > 0
START = (np.arange(SIZE) == 0).astype(np.float64)
AUTO = SolverEnvironment()
ON_CPU = replace(AUTO, device=DeviceChoice.CPU)


@pytest.fixture
def some_gpu(monkeypatch):
    """Pretend that there is one; nothing here gets as far as it."""
    monkeypatch.setattr(driver, "gpu_refusal", lambda _: None)


def reachability(environment):
    return solve_reachability_without_matrix(DIAGRAM, NUMBERING, UNKNOWN, START, environment)


def steady_state(environment):
    return solve_steady_state_without_matrix(DIAGRAM, NUMBERING, environment)


both = pytest.mark.parametrize("question", [reachability, steady_state])
OF_BOTH = (Method.AUTO, *solve.STEADY_STATE_METHODS)
NO_CHOICE_OF_OURS = [
    method for method in Method if method not in (*OF_BOTH, *solve.REACHABILITY_METHODS)
]


@both
@pytest.mark.usefixtures("some_gpu")
@pytest.mark.parametrize("method", NO_CHOICE_OF_OURS)
def test_methods_that_need_the_matrix_are_refused(question, method):
    with pytest.raises(UnsupportedError, match=f"{method} needs an expanded matrix"):
        question(replace(AUTO, method=method))


@pytest.mark.usefixtures("some_gpu")
def test_the_power_method_is_for_reachability_alone():
    with pytest.raises(UnsupportedError, match=r"Power method needs .* solved by Jacobi or JOR or"):
        steady_state(replace(AUTO, method=Method.POWER))
    with pytest.raises(UnsupportedError, match="explicit engine is its power method"):
        steady_state(replace(AUTO, method=Method.JACOBI, convention=Convention.EXPLICIT))


@both
@pytest.mark.usefixtures("some_gpu")
def test_formats_and_orders_that_need_the_matrix_are_refused(question):
    for matrix_format in Format:
        if matrix_format not in (Format.AUTO, Format.PATTERNS, Format.HYBRID):
            with pytest.raises(UnsupportedError, match=f"the format {matrix_format} needs"):
                question(replace(AUTO, matrix_format=matrix_format))
    with pytest.raises(UnsupportedError, match="component after the other needs"):
        question(replace(AUTO, topological=True))


@both
def test_a_gpu_that_was_asked_for_and_cannot_be_used_is_an_error(question, monkeypatch):
    monkeypatch.setattr(driver, "gpu_refusal", lambda number: f"no device {number} in this test")
    with pytest.raises(UnsupportedError, match="no GPU can be used: no device 3 in this test"):
        question(replace(AUTO, device=DeviceChoice.GPU, device_number=3))


@both
def test_the_cpu_sweeps_where_there_is_no_gpu_and_says_so(question, monkeypatch):
    monkeypatch.setattr(driver, "gpu_refusal", lambda number: f"no device {number} in this test")
    for present, remark in ((True, "GPU not used: no device 0 in this test"), (False, "")):
        monkeypatch.setattr(driver, "driver_present", lambda present=present: present)
        result = question(AUTO)
        assert (result.cost.engine, result.cost.format) == ("CPU", "hybrid")
        assert result.note == remark
    with pytest.raises(UnsupportedError, match="patterns are found by a GPU"):
        question(replace(AUTO, device=DeviceChoice.CPU, matrix_format=Format.PATTERNS))


def test_sweeps_of_our_choice_go_on_where_a_matrix_would_be_solved_directly():
    model = models.gamblers_ruin(60)
    problem = models.until(model, models.mask(61, [60]))
    parts = (*as_diagram(model.matrix), problem.unknown, problem.start)
    result = solve_reachability_without_matrix(*parts, ON_CPU)
    assert (result.status, result.method) == (Status.CONVERGED, Method.JACOBI)
    assert (result.finished_by, result.events) == ("", ())
    np.testing.assert_allclose(result.values, np.arange(61) / 60, rtol=ON_CPU.epsilon)
    chain = models.recurrent(1, 60)
    found = solve_steady_state_without_matrix(*as_diagram(chain.matrix), ON_CPU)
    assert (found.status, found.method, found.events) == (Status.CONVERGED, Method.JOR, ())
    exact = solve_steady_state(chain, np.ones(60, np.bool_), ON_CPU)
    np.testing.assert_allclose(found.values, exact.values, rtol=ON_CPU.epsilon)


def test_what_takes_a_matrix_apart_does_not_take_over():
    system = DiagramSystem(hybrid_matrix(DIAGRAM, NUMBERING), START)
    matrix = expand_matrix(DIAGRAM, NUMBERING)
    for given, takes_over in ((SweepSystem(matrix, START), True), (system, False)):
        stretches = Stretches(given, AUTO, None, 1.0)
        stretches.allow(CpuEngine().sweeper(SweepSystem(matrix, START), -1.0, True), np.inf)
        assert stretches.are_due(10**6) is takes_over
        assert stages.Levels(given, True, print).takes_over(10**6, np.inf) is takes_over
        assert stages.Levels(given, True, print).is_due(nothing_swept()) is takes_over
        assert coloured_rest.repays(given, 10**6, np.inf) is takes_over


@pytest.mark.parametrize("precision", [Precision.SINGLE, Precision.MIXED])
def test_other_precisions_are_not_used_and_that_is_said(precision):
    result = steady_state(replace(ON_CPU, precision=precision))
    assert [event.kind for event in result.events] == [Kind.DOUBLE_INSTEAD]
    assert result.rounding == 0.0
    np.testing.assert_array_equal(result.values, steady_state(ON_CPU).values)


@both
@pytest.mark.usefixtures("some_gpu")
def test_a_host_that_cannot_hold_the_blocks_is_named(question, monkeypatch):
    monkeypatch.setattr(solve, "available_host_bytes", lambda: 100)
    with pytest.raises(MemoryError, match=r"take \d+ bytes on the host, and 100 bytes are free"):
        question(AUTO)


@pytest.mark.usefixtures("some_gpu")
def test_more_states_than_32_bits_number_are_refused():
    many = replace(NUMBERING, counts=NUMBERING.counts * 2**31)
    with pytest.raises(UnsupportedError, match=r"77309411328 states: .* 32 bits"):
        solve_steady_state_without_matrix(DIAGRAM, many, AUTO)


@pytest.mark.usefixtures("some_gpu")
def test_vectors_of_another_length_are_refused():
    nothing = np.zeros(SIZE, np.bool_)
    with pytest.raises(ValueError, match="no state is unknown"):
        solve_reachability_without_matrix(DIAGRAM, NUMBERING, nothing, START, AUTO)
    with pytest.raises(ValueError, match="start has 35 values for 36 states"):
        solve_reachability_without_matrix(DIAGRAM, NUMBERING, UNKNOWN, START[1:], AUTO)
    with pytest.raises(ValueError, match="rewards has 1 values for 36 states"):
        solve_reachability_without_matrix(
            DIAGRAM, NUMBERING, UNKNOWN, START, AUTO, rewards=np.ones(1)
        )


@pytest.mark.usefixtures("some_gpu")
def test_a_single_state_needs_no_sweep():
    alone = QueueDiagrams(1, 0)
    # A queue of capacity 0 has no bits, and its number of states is 1.
    assert alone.numbering().num_states == 1
    result = solve_steady_state_without_matrix(alone.diagram(), alone.numbering(), AUTO)
    np.testing.assert_array_equal(result.values, [1.0])
    assert result.iterations == 0


def test_expanding_is_weighed_against_four_fifths_of_the_free_memory():
    surveyed = survey(DIAGRAM, NUMBERING)
    need = expanded_bytes(surveyed)
    assert fits_expanded(surveyed, 2 * need) == Room(need, 2 * need)
    assert fits_expanded(surveyed, 2 * need).fits
    assert fits_expanded(800, 1000).fits
    assert not fits_expanded(801, 1000).fits
    assert not fits_expanded(surveyed, need).fits
    assert Room(10**15, None).fits
    assert fits_expanded(1).available == pytest.approx(available_host_bytes(), rel=0.5)


@pytest.fixture
def system_files(tmp_path, monkeypatch):
    """The files that tell of memory, none of which is there to begin with."""
    monkeypatch.setattr(room, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(room, "OWN_CGROUPS", tmp_path / "own")
    monkeypatch.setattr(room, "CGROUPS", tmp_path / "groups")
    monkeypatch.setattr(room, "_free_pages", lambda: 5_000_000)
    return tmp_path


def group(folder, limit, usage, idle, names=("memory.max", "memory.current")):
    folder.mkdir(parents=True, exist_ok=True)
    for name, number in zip(names, (limit, usage), strict=True):
        (folder / name).write_text(f"{number}\n")
    (folder / "memory.stat").write_text(f"anon 1\ninactive_file {idle}\nactive_file 7\n")


def test_the_least_of_what_the_system_and_the_groups_leave_is_free(system_files, monkeypatch):
    assert available_host_bytes() == 5_000_000
    (system_files / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable:   4000 kB\n")
    assert available_host_bytes() == 4_096_000
    (system_files / "own").write_text("0::/jobs/mine\n")
    groups = system_files / "groups"
    group(groups / "jobs" / "mine", "max", 10, 0)
    assert available_host_bytes() == 4_096_000
    # The limit of the group around it counts as well.
    group(groups / "jobs", 3_000_000, 2_000_000, 500_000)
    assert available_host_bytes() == 1_500_000
    group(groups / "jobs" / "mine", 1_000, 2_000, 0)
    assert available_host_bytes() == 0
    monkeypatch.setattr(room, "_free_pages", lambda: None)
    for name in ("meminfo", "own"):
        (system_files / name).unlink()
    assert available_host_bytes() is None


def test_groups_of_the_first_version_and_those_of_containers(system_files):
    (system_files / "own").write_text("7:cpu,cpuacct:/\n4:memory:/of/the/host\n0::/\n")
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
    group(system_files / "groups" / "memory", 2_000_000, 600_000, 0, names)
    assert available_host_bytes() == 1_400_000
