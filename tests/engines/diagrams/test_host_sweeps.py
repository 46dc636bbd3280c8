"""Sweeps on the CPU in the hybrid representation: plain loops are the oracle, to the last bit."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from engines.diagrams.system import DiagramSystem
from engines.errors import UnsupportedError
from engines.host import diagram_sweeps
from engines.host.colours import Order
from engines.host.compiled import shares
from engines.host.diagram_sweeper import CpuDiagramSweeper
from engines.host.diagram_sweeps import HostDiagramRows, HostDiagramSweeps
from engines.host.expansion.slices import SliceColours
from engines.host.hybrid import HostHybrid
from engines.model.choice import Format
from engines.model.environment import DeviceChoice, Method, SolverEnvironment
from engines.questions.reachability import solve_reachability
from engines.questions.steady_state import solve_steady_state
from engines.questions.without_matrix import (
    solve_reachability_without_matrix,
    solve_steady_state_without_matrix,
)
from engines.systems.one_sided import ROUNDING_OF_A_SUM, Direction, Scaling
from tests.engines import models
from tests.engines.diagrams.expansion import hybrid_matrix
from tests.engines.diagrams.random_diagrams import as_diagram
from tests.gpu.hybrids import listed, random_hybrid

CPU = SolverEnvironment(device=DeviceChoice.CPU, matrix_format=Format.CSR)

THREADS = pytest.mark.parametrize("threads", [1, 3])


@pytest.fixture
def with_threads(monkeypatch):
    """Let loops of any size have so many threads."""

    def let(threads):
        for module in (shares, diagram_sweeps):
            monkeypatch.setattr(module, "threads_for", lambda _entries: threads)

    return let


def random_system(seed, some_known, with_offset, scaling=Scaling.NONE):
    """A random system without its matrix."""
    hybrid = random_hybrid(seed)
    rng = np.random.default_rng(seed)
    size = hybrid.num_states
    states = np.flatnonzero(rng.random(size) < 0.7).astype(np.int32) if some_known else None
    rows = size if states is None else len(states)
    offset = rng.uniform(0.0, 1.0, rows) if with_offset else None
    return DiagramSystem(hybrid, rng.uniform(0.5, 1.5, size), offset, states, scaling=scaling)


def parts_of(row, state):
    """The entry on the diagonal, and the sum of the others."""
    on, off = 0.0, 0.0
    for column, value in row:
        if column == state:
            on += value
        else:
            off += value
    return on, off


def pivot_of(row, state):
    """What a row is divided by to take its diagonal out."""
    on, off = parts_of(row, state)
    pivot = off if on != 0.0 and abs(off + on - 1.0) <= ROUNDING_OF_A_SUM else 1.0 - on
    return pivot if pivot > 0.0 else 1.0


def change_of(before, after, absolute):
    """What counts as a change of one number."""
    change = abs(after - before)
    if absolute or change == 0.0:
        return change
    return math.inf if before == 0.0 else change / abs(before)


class PlainSweeps:
    """Sweeps of a system number by number."""

    def __init__(self, system, colours, omega, absolute):
        rows = {state: row for state, _, row in listed(system.matrix)}
        states = range(system.num_states) if system.states is None else system.states.tolist()
        self.divided = system.scaling is not Scaling.NONE
        self.rows = [(state, rows[state], self._divisor(system, rows, state)) for state in states]
        self.offset = None if system.offset is None else system.offset.tolist()
        self.colours = [0] * len(self.rows)
        if colours is not None:
            self.colours = colours.of_rows(np.arange(len(self.rows))).tolist()
        self.omega, self.absolute = omega, absolute
        self.x = system.start.tolist()

    @staticmethod
    def _divisor(system, rows, state):
        if system.scaling is Scaling.DIAGONAL:
            return pivot_of(rows[state], state)
        if system.scaling is Scaling.BALANCE:
            return {s: parts_of(row, s)[1] for s, _, row in listed(system.rates)}[state] or 1.0
        return None

    def _total(self, number, x):
        state, row, divisor = self.rows[number]
        total = 0.0
        for column, value in row:
            if not self.divided or column != state:
                total += value * x[column]
        if divisor is not None:
            total /= divisor
        if self.offset is not None:
            at = self.offset[number]
            total += at if divisor is None else at / divisor
        return total

    def sweep(self):
        """Make a sweep; return the largest change."""
        old, changes = list(self.x), [0.0]
        for colour in range(max(self.colours, default=0) + 1):
            begun = list(self.x)
            for number, (state, _, _) in enumerate(self.rows):
                if self.colours[number] != colour:
                    continue
                before, after = old[state], self._total(number, begun)
                if self.omega != 1.0:
                    after = (1.0 - self.omega) * before + self.omega * after
                self.x[state] = after
                changes.append(change_of(before, after, self.absolute))
        return max(changes)

    def residual(self):
        """Return the largest absolute value of b + A x − x."""
        return max(
            abs(self._total(number, self.x) - self.x[state])
            for number, (state, _, _) in enumerate(self.rows)
        )


def expect_sweeps_of_plain_loops(system, colours, omega, absolute):
    found = CpuDiagramSweeper(
        *(HostDiagramRows.of(system), system.start, omega, -1.0, absolute, colours)
    )
    plain = PlainSweeps(system, colours, omega, absolute)
    for sweeps in (5, 2):
        expected = [plain.sweep() for _ in range(sweeps)]
        np.testing.assert_array_equal(found.run(sweeps), expected)
        np.testing.assert_array_equal(found.values(), plain.x)
        # A residual between sweeps leaves the next ones as they are.
        assert found.residual() == plain.residual()


@THREADS
@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("scaling", [Scaling.NONE, Scaling.DIAGONAL])
@pytest.mark.parametrize("some_known", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_sweeps_without_colours(with_threads, threads, seed, some_known, scaling, absolute):
    with_threads(threads)
    system = random_system(seed, some_known, seed % 2 == 0, scaling)
    expect_sweeps_of_plain_loops(system, None, 1.0 if seed < 2 else 0.9, absolute)


@THREADS
@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize(
    ("slice_size", "count"), [(1, 2), (3, 4), (16, 3), (10**6, 1), (1, 40), (60, 9)]
)
@pytest.mark.parametrize("some_known", [False, True])
def test_sweeps_in_colours(with_threads, threads, some_known, slice_size, count, order):
    with_threads(threads)
    system = random_system(6, some_known, True, Scaling.DIAGONAL)
    colours = SliceColours(system.num_updates, slice_size, count, order)
    expect_sweeps_of_plain_loops(system, colours, 1.1, slice_size == 3)


@pytest.mark.parametrize("some_known", [False, True])
def test_colours_may_need_more_than_two_bytes(monkeypatch, some_known):
    monkeypatch.setattr(diagram_sweeps, "MOST_COLOURS", 3)
    system = random_system(6, some_known, True, Scaling.NONE)
    for count, wide in ((2, False), (3, True)):
        colours = SliceColours(system.num_updates, 5, count)
        sweeps = HostDiagramSweeps(HostDiagramRows.of(system), colours)
        assert bool(sweeps._slices.wide) == wide
        expect_sweeps_of_plain_loops(system, colours, 1.0, False)


@pytest.mark.parametrize("colours", [None, SliceColours(60, 7, 3)])
def test_balance_equations_are_divided_by_the_rates_out(colours):
    diagram, numbering = as_diagram(models.recurrent(4, 60).matrix)
    system = DiagramSystem(
        hybrid_matrix(diagram, numbering.transposed()),
        np.random.default_rng(1).random(60),
        scaling=Scaling.BALANCE,
        rates=hybrid_matrix(diagram, numbering),
    )
    expect_sweeps_of_plain_loops(system, colours, 0.95, False)


@THREADS
@pytest.mark.parametrize("seed", range(6))
def test_diagonals_and_walks_are_those_of_plain_loops(with_threads, threads, seed):
    with_threads(threads)
    hybrid = random_hybrid(seed)
    rows = [row for _, _, row in listed(hybrid)]
    host = HostHybrid.of(hybrid)
    expected = [parts_of(row, state) for state, row in enumerate(rows)]
    np.testing.assert_array_equal(np.transpose(host.row_parts()), expected)
    np.testing.assert_array_equal(host.exit_rates(), [off or 1.0 for _, off in expected])
    for state in range(0, len(rows), 29):
        queue = [state]
        for member in queue:
            queue += dict.fromkeys(column for column, _ in rows[member] if column not in queue)
        reached, farthest = host.reached_from(state)
        assert np.flatnonzero(reached).tolist() == sorted(queue)
        assert farthest == queue[-1]


@THREADS
def test_sweeps_end_with_the_first_small_change(with_threads, threads):
    with_threads(threads)
    system = random_system(8, False, True, Scaling.DIAGONAL)
    colours = SliceColours(system.num_updates, 4, 3)
    sweeper = CpuDiagramSweeper(
        *(HostDiagramRows.of(system), system.start, 1.0, 1e-6, True, colours)
    )
    assert sweeper.cost.kernel == f"compiled, threads {threads}"
    changes = sweeper.run(1000)
    assert 2 < len(changes) < 1000
    assert changes[-1] < 1e-6 <= changes[:-1].min()
    plain = PlainSweeps(system, colours, 1.0, True)
    np.testing.assert_array_equal(changes, [plain.sweep() for _ in changes])
    np.testing.assert_array_equal(sweeper.values(), plain.x)
    assert not len(sweeper.run(0))


@THREADS
def test_sweeps_that_compute_nothing_change_nothing(with_threads, threads):
    with_threads(threads)
    system = replace(random_system(1, False, False), states=np.zeros(0, np.int32))
    for colours in (None, SliceColours(0, 4, 1)):
        sweeper = CpuDiagramSweeper(
            *(HostDiagramRows.of(system), system.start, 1.0, -1.0, True, colours)
        )
        assert sweeper.run(3).tolist() == [0.0] * 3
        np.testing.assert_array_equal(sweeper.values(), system.start)
        assert sweeper.residual() == 0.0


def test_rows_of_choices_are_refused():
    hybrid = random_hybrid(1, choices=2)
    system = DiagramSystem(hybrid, np.ones(hybrid.num_states), direction=Direction.MAXIMISE)
    with pytest.raises(UnsupportedError, match="for chains, not for choices"):
        HostDiagramRows.of(system)


WRONG = {
    "strip_states": (lambda h: np.append(1, h.strip_states[1:]), "rise from 0"),
    "strip_jobs": (lambda h: np.append(h.strip_jobs, h.strip_jobs[-1]), "strips, but"),
    "block_rows": (lambda h: h.block_rows[:-1], "rise from 0"),
    "local_offsets": (lambda h: h.local_offsets + 1, "rise from 0"),
    "local_columns": (lambda h: h.local_columns[1:], "columns, but"),
    "job_blocks": (lambda h: h.job_blocks + 1, "do not lie in"),
    "job_columns": (lambda h: h.job_columns + h.num_columns, "a column is not one of"),
    "num_columns": (lambda h: h.num_columns - 1, "columns"),
}


@pytest.mark.parametrize("name", WRONG)
def test_blocks_that_do_not_fit_are_refused(name):
    hybrid = random_hybrid(3)
    wrong, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        HostHybrid.of(replace(hybrid, **{name: wrong(hybrid)}))


def test_blocks_of_another_height_or_with_columns_before_the_first_are_refused():
    hybrid = random_hybrid(3)
    heights = np.diff(hybrid.block_rows)
    other = np.flatnonzero(heights != heights[hybrid.job_blocks[0]])[0]
    blocks, columns = hybrid.job_blocks.copy(), hybrid.local_columns.copy()
    blocks[0], columns[0] = other, -1
    starts = hybrid.job_columns - 1 - hybrid.job_columns.min()
    with pytest.raises(ValueError, match="not as many rows as its strip"):
        HostHybrid.of(replace(hybrid, job_blocks=blocks))
    with pytest.raises(ValueError, match="a column is not one of"):
        HostHybrid.of(replace(hybrid, local_columns=columns))
    with pytest.raises(ValueError, match="a column is not one of"):
        HostHybrid.of(replace(hybrid, job_columns=starts))


def test_systems_that_do_not_fit_are_refused():
    system = random_system(2, True, True)
    size, rows = system.num_states, system.num_updates
    with pytest.raises(ValueError, match=f"{rows} rows, but an offset of {rows - 1}"):
        HostDiagramRows.of(replace(system, offset=system.offset[1:]))
    for states in (system.states[::-1], system.states - size, system.states + size):
        with pytest.raises(ValueError, match="computed states"):
            HostDiagramRows.of(replace(system, states=states))
    host = HostDiagramRows.of(system)
    with pytest.raises(ValueError, match=f"{rows} rows, but colours of {rows + 1}"):
        HostDiagramSweeps(host, SliceColours(rows + 1, 3, 2))
    with pytest.raises(ValueError, match=f"vectors of {size} and {size - 1}"):
        HostDiagramSweeps(host).repeat(
            np.empty(1), -1.0, 1.0, system.start, system.start[1:].copy(), True
        )


def expect_the_same(found, expected):
    assert (found.status, found.method) == (expected.status, expected.method)
    assert found.iterations == expected.iterations
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-11, atol=1e-290)
    # Another solution tells the error of a named method, and takes the matrix.
    assert expected.error_known
    assert not found.error_known


METHODS = (Method.POWER, Method.JACOBI, Method.JOR, Method.GAUSS_SEIDEL, Method.BACKWARDS_SOR)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["random DTMC", "gambler's ruin"])
def test_until_probabilities(name, method):
    problem = {
        "random DTMC": models.chain_problems()["random DTMC"],
        "gambler's ruin": models.until(models.gamblers_ruin(20), models.mask(21, [20])),
    }[name]
    environment = replace(CPU, method=method, slice_size=3, colours=4, max_iterations=5000)
    expected = solve_reachability(
        *(problem.model, problem.unknown, problem.start, environment), **problem.keywords
    )
    found = solve_reachability_without_matrix(
        *(*as_diagram(problem.model.matrix), problem.unknown, problem.start),
        replace(environment, matrix_format=Format.HYBRID),
    )
    expect_the_same(found, expected)
    if method in METHODS[3:]:
        assert found.cost.format == "hybrid by colours"
        assert "in 4 colours, slices of 3 states" in found.note
        assert found.note.split(";")[0] == expected.note.split(";")[0]


@pytest.mark.parametrize("method", [Method.JOR, Method.GAUSS_SEIDEL, Method.SOR])
@pytest.mark.parametrize("seed", range(3))
def test_steady_states(seed, method):
    model = models.recurrent(seed, 90)
    everywhere = np.ones(90, np.bool_)
    environment = replace(CPU, method=method, slice_size=5, omega=0.95, epsilon=1e-9)
    expected = solve_steady_state(model, everywhere, environment)
    found = solve_steady_state_without_matrix(
        *as_diagram(model.matrix), replace(environment, matrix_format=Format.HYBRID)
    )
    expect_the_same(found, expected)
    assert found.values.sum() == pytest.approx(1.0, abs=1e-12)


def test_sweeps_that_swing_go_on_otherwise_as_those_of_the_matrix():
    model = models.cycle(30, 1.0 + 0.5 * (np.arange(30) % 5))
    everywhere = np.ones(30, np.bool_)
    environment = replace(CPU, method=Method.BACKWARDS_GAUSS_SEIDEL, slice_size=1, colours=2)
    expected = solve_steady_state(model, everywhere, environment)
    found = solve_steady_state_without_matrix(
        *as_diagram(model.matrix), replace(environment, matrix_format=Format.HYBRID)
    )
    assert "oscillating: omega" in expected.note
    # Without the matrix no other solution tells that this one is nearer than is estimated.
    assert found.note.startswith(expected.note)
    expect_the_same(found, expected)


def test_an_omega_that_cannot_converge_is_refused():
    environment = replace(CPU, method=Method.SOR, omega=2.0, matrix_format=Format.HYBRID)
    with pytest.raises(UnsupportedError, match=r"omega between 0 and 2, not 2\.0"):
        solve_steady_state_without_matrix(*as_diagram(models.recurrent(1, 20).matrix), environment)
