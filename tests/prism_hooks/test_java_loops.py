"""Java's loops, in this process: the same bits as numba's, and what the command says of them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from engines.cpu import engine, host_loops, kernels, substitution_kernels, uniformise_kernels
from engines.cpu.chunks import cut_rows
from engines.cpu.graph import CpuGraph
from engines.cpu.prepare import scaled
from engines.cpu.substitution import substitute_with
from engines.diagrams.choices import choice_roots
from engines.diagrams.diagram import ZERO
from engines.diagrams.expand import expand_surveyed_choices
from engines.diagrams.survey import survey
from engines.diagrams.walks import walked_up_to
from engines.formats.csr import CsrMatrix
from engines.host.paths import read_points
from engines.model import ExplicitModel
from engines.system import Direction, SweepSystem
from engines.uniformisation import PowerSum
from tests.engines import graph_shapes, models
from tests.engines.diagrams.random_diagrams import (
    DiagramBuilder,
    diagram_of,
    numbering_of,
    random_model,
)
from tests.engines.test_substitution import CASES, forwards, system_of

pytestmark = pytest.mark.prism

SIZE = 120
SWEEPS = 40


@pytest.fixture(scope="module")
def loops(prism_install):
    """Return Java's loops in the JVM of this process."""
    import bridge
    from prism_hooks.java_loops import JavaLoops

    model = prism_install.beside("prism-examples")
    if model is None:
        pytest.skip(f"needs PRISM's examples: there is no prism-examples by {prism_install.root}")
    before = host_loops.registered()
    path = model / "simple" / "dice" / "dice.pm"
    with bridge.open(path, device="cpu", prism_dir=str(prism_install.root)):
        found = host_loops.registered()
        assert isinstance(found, JavaLoops)
        yield found
    host_loops.register(before)


def random_system(seed):
    """A chain or an MDP, with or without an offset, a subset of states, ω, infinities, and NaN."""
    rng = np.random.default_rng(seed)
    chain = seed % 2 == 0
    model = models.random_dtmc(seed, SIZE) if chain else models.random_mdp(seed, SIZE)
    matrix, groups, states = model.matrix, model.row_group_offsets, None
    if seed % 4 >= 2:
        states = np.flatnonzero(rng.random(SIZE) < 0.7).astype(np.int32)
        if groups is None:
            matrix = matrix.select_rows(states)
        else:
            lengths = np.diff(groups)[states]
            rows = np.concatenate([np.arange(groups[i], groups[i + 1]) for i in states])
            matrix = matrix.select_rows(rows)
            groups = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    start = rng.random(SIZE) * 10.0 ** rng.integers(-12, 12, SIZE)
    start[rng.random(SIZE) < 0.1] = 0.0
    offset = rng.random(matrix.num_rows) if seed % 8 >= 4 else None
    if seed % 3 == 0:
        start[3], start[5] = np.inf, -0.0
    if seed % 9 == 0:
        start[7] = np.nan
    if seed % 5 == 0:
        offsets = matrix.row_offsets.astype(np.int64)
        matrix = CsrMatrix(offsets, matrix.columns, matrix.values, matrix.num_columns)
        start.setflags(write=False)
        matrix.values.setflags(write=False)
    return SweepSystem(
        matrix,
        start,
        offset,
        states,
        omega=[1.0, 0.9][seed % 2] if chain else 1.0,
        group_offsets=groups,
        direction=None if chain else (Direction.MINIMISE, Direction.MAXIMISE)[seed // 4 % 2],
    )


def graph(seed):
    """A model of which each entry is an edge, whatever it was."""
    model = graph_shapes.drawn(seed).model
    ones = np.ones(model.matrix.num_entries)
    matrix = CsrMatrix(model.matrix.row_offsets, model.matrix.columns, ones, model.num_states)
    return ExplicitModel(model.kind, matrix, model.row_group_offsets)


def by_numba(system, stop_below, omega, absolute):
    changes, x = np.full(SWEEPS, -1.0), system.start.copy()
    x_new, arrays = x.copy(), engine._numba_arrays(system)
    if system.group_offsets is not None:
        made = kernels.repeat_groups(changes, stop_below, *arrays, x, x_new, absolute)
    else:
        made = kernels.repeat_rows(changes, stop_below, *arrays, omega, x, x_new, absolute)
    return int(made), changes, x, x_new


def by_java(loops, system, stop_below, omega, absolute, pieces=1, threads=1):
    changes, x = np.full(SWEEPS, -1.0), system.start.copy()
    x_new, groups = x.copy(), system.group_offsets
    offsets = system.matrix.row_offsets
    cut = cut_rows(offsets if groups is None else offsets[groups], pieces)
    swept = loops.sweeps(system, cut)
    made = swept.repeat(changes, stop_below, omega, x, x_new, absolute, threads)
    return made, changes, x, x_new


def bits(outcome):
    """An outcome as integers: equal only where every bit is, zeros and infinities too."""
    made, *arrays = outcome
    return [made, *(np.where(np.isnan(a), np.nan, a).view(np.int64).tolist() for a in arrays)]


@pytest.mark.parametrize("absolute", [True, False], ids=["absolute", "relative"])
@pytest.mark.parametrize("seed", range(24))
def test_sweeps_have_the_bits_of_numba_s(loops, seed, absolute):
    system = random_system(seed)
    for stop_below in (-1.0, 1e-2):
        for omega in (system.omega, 1.0, 0.75):
            how = (system, stop_below, omega, absolute)
            assert bits(by_java(loops, *how)) == bits(by_numba(*how))


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize(("direction", "choices"), CASES, ids=["chain", "min", "max"])
@pytest.mark.parametrize("seed", range(6))
def test_a_walk_has_the_bits_of_numba_s(loops, seed, direction, choices, offset):
    model, known = forwards(seed, SIZE, choices=choices)
    system = system_of(model, known, seed, offset=offset, direction=direction)
    for form in (system, scaled(system)):
        expected = substitute_with(substitution_kernels.substitute, form, system.start)
        x = system.start.copy()
        error = loops.sweeps(form, cut_rows(form.matrix.row_offsets, 1)).substitute(x)
        assert error == expected.error > 0.0
        np.testing.assert_array_equal(x, expected.values)


@pytest.mark.parametrize("choices", [1, 3])
def test_a_walk_ends_where_states_need_each_other(loops, choices):
    random = models.random_dtmc(1, SIZE) if choices == 1 else models.random_mdp(1, SIZE)
    direction = None if choices == 1 else Direction.MAXIMISE
    system = system_of(random, models.mask(SIZE, [0]), 1, offset=False, direction=direction)
    swept = loops.sweeps(system, cut_rows(system.matrix.row_offsets, 1))
    assert swept.substitute(system.start.copy()) < 0.0


@pytest.mark.parametrize("seed", range(8))
def test_threads_make_no_difference(loops, seed):
    system = random_system(seed)
    one = by_java(loops, system, 1e-2, system.omega, False, pieces=24)
    for threads in (2, 3, 5):
        more = by_java(loops, system, 1e-2, system.omega, False, pieces=24, threads=threads)
        assert bits(more) == bits(one)


def test_what_is_empty_is_swept(loops):
    nothing = SweepSystem(
        CsrMatrix(np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0), 0), np.zeros(0)
    )
    assert by_java(loops, nothing, -1.0, 1.0, True)[0] == SWEEPS
    no_entries = CsrMatrix(np.zeros(4, np.int32), np.zeros(0, np.int32), np.zeros(0), 3)
    made, _, x, x_new = by_java(loops, SweepSystem(no_entries, np.ones(3)), 0.5, 1.0, True)
    assert made == 2
    assert not x.any()
    assert not x_new.any()


def test_a_column_out_of_range_is_an_error_on_every_thread(loops):
    offsets = np.arange(101, dtype=np.int32)
    columns = np.full(100, 100, dtype=np.int32)
    system = SweepSystem(CsrMatrix(offsets, columns, np.ones(100), 100), np.ones(100))
    with pytest.raises(Exception, match="out of bounds"):
        by_java(loops, system, -1.0, 1.0, True, pieces=16, threads=2)


def test_no_copy_is_made_of_what_takes_too_much_of_the_heap(loops, monkeypatch):
    monkeypatch.setattr("prism_hooks.java_loops.SHARE_OF_FREE_HEAP", 1 << 50)
    system = random_system(0)
    pieces = cut_rows(system.matrix.row_offsets, 1)
    assert loops.sweeps(system, pieces) is None
    assert loops.symmetric_sweeps(system, pieces) is None
    edges = np.zeros(1, dtype=np.int32)
    assert loops.strong_components(edges, edges[:0], np.zeros(0, dtype=np.bool_)) is None


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("threads", [1, 3])
def test_sums_of_powers_have_the_bits_of_numba_s(loops, seed, threads):
    system = random_system(2 * seed)
    rng = np.random.default_rng(seed)
    rows, matrix = system.num_updates, system.matrix
    problem = PowerSum(system, rng.random(rows), 2.5, 0, np.ones(SWEEPS), 0.0)
    weights = rng.random(SWEEPS) * (rng.random(SWEEPS) < 0.8)
    start, total = system.start.copy(), rng.random(rows)
    ours = (start.copy(), start.copy(), total.copy())
    powers = loops.powers(problem, cut_rows(matrix.row_offsets, 12))
    made = powers.add(weights, *ours, threads)
    states = np.empty(0, dtype=np.int32) if system.states is None else system.states
    parts = (kernels.unsigned(matrix.row_offsets), kernels.unsigned(matrix.columns), matrix.values)
    theirs = (start.copy(), start.copy(), total.copy())
    arrays = (*parts, states, problem.stay, problem.rate)
    expected = uniformise_kernels.add_powers(*arrays, weights, *theirs)
    assert bits((made, *ours)) == bits(((int(expected[0]), bool(expected[1])), *theirs))


def test_a_sum_whose_iterate_rests_ends_early(loops):
    ring = np.arange(5, dtype=np.int32)
    matrix = CsrMatrix(np.arange(6, dtype=np.int32), ring, np.ones(5), 5)
    problem = PowerSum(SweepSystem(matrix, np.ones(5)), np.full(5, 0.5), 2.0, 0, np.ones(9), 0.0)
    vectors = (np.ones(5), np.ones(5), np.zeros(5))
    assert loops.powers(problem, cut_rows(matrix.row_offsets, 1)).add(np.ones(9), *vectors, 1) == (
        1,
        True,
    )


@pytest.mark.parametrize("seed", range(40))
def test_components_are_those_of_plain_loops(loops, seed):
    model = graph(seed)
    groups, matrix = model.row_group_offsets, model.matrix
    offsets = matrix.row_offsets if groups is None else matrix.row_offsets[groups]
    within = np.random.default_rng(seed).random(model.num_states) < [1.0, 0.8][seed % 2]
    expected, count = CpuGraph(model).strong_components(within)
    found = loops.strong_components(offsets, matrix.columns, within)
    np.testing.assert_array_equal(found, expected)
    assert found.max(initial=-1) + 1 == count


def test_a_path_of_many_states_is_one_component_each_and_a_ring_is_one(loops):
    size = 200_000
    starts = np.arange(size + 1, dtype=np.int32)
    ring = ((starts[:-1] + 1) % size).astype(np.int32)
    everything = np.ones(size, dtype=np.bool_)
    assert not loops.strong_components(starts, ring, everything).any()
    path = np.minimum(starts[:-1] + 1, size - 1).astype(np.int32)
    np.testing.assert_array_equal(loops.strong_components(starts, path, everything), starts[:-1])


@pytest.mark.parametrize("seed", range(60))
def test_closures_are_those_of_plain_loops(loops, seed):
    model, draw = graph(seed), np.random.default_rng(seed)
    plain, matrix = CpuGraph(model), model.matrix
    groups = model.row_group_offsets
    found = loops.closures(groups, matrix.row_offsets, matrix.columns, model.num_states)
    goal = draw.random(model.num_states) < [0.02, 0.3][seed % 2]
    through = draw.random(model.num_states) < [1.0, 0.9, 0.4][seed % 3]
    np.testing.assert_array_equal(found.reached_from(goal), plain.reached_from(goal))
    for name in ("may_reach", "must_approach", "can_force"):
        expected = getattr(plain, name)(goal, through)
        np.testing.assert_array_equal(getattr(found, name)(goal, through), expected)


@pytest.mark.parametrize("seed", range(120))
def test_end_components_are_those_of_plain_loops(loops, monkeypatch, seed):
    model, draw = graph(seed), np.random.default_rng(seed)
    plain, matrix = CpuGraph(model), model.matrix
    groups = model.row_group_offsets
    found = loops.closures(groups, matrix.row_offsets, matrix.columns, model.num_states)
    within = draw.random(model.num_states) < [1.0, 0.95, 0.6][seed % 3]
    choices = draw.random(matrix.num_rows) < [1.0, 0.9][seed % 2]
    # Where there are hardly any edges, one more look is one too many.
    monkeypatch.setattr(host_loops, "MOST_LOOKS", 1000)
    labels, usable = found.end_components(within, choices)
    expected, count, kept = plain.end_components(within, choices)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_array_equal(usable, kept)
    assert labels.max(initial=-1) + 1 == count


def test_end_components_that_take_too_many_looks_are_left_to_others(loops, monkeypatch):
    # Rings of two, and a choice of each that may lead to the next ring.
    size = 40
    states = np.arange(0, size, 2)
    onwards = np.column_stack((states, np.minimum(states + 2, size - 1)))
    rows = [row for ring in zip(states + 1, onwards, states, strict=True) for row in ring]
    columns = np.concatenate([np.atleast_1d(row) for row in rows]).astype(np.int32)
    offsets = np.cumsum([0, *(np.size(row) for row in rows)]).astype(np.int32)
    groups = np.cumsum([0, *(size // 2) * (2, 1)]).astype(np.int32)
    found = loops.closures(groups, offsets, columns, size)
    within, choices = np.arange(size) < size - 1, np.ones(len(rows), dtype=np.bool_)
    labels, _ = found.end_components(within, choices)
    np.testing.assert_array_equal(labels, [*(np.arange(size - 2) // 2), -1, -1])
    monkeypatch.setattr(host_loops, "MOST_LOOKS", 1)
    assert found.end_components(within, choices) is None


def test_a_strategy_that_takes_too_many_rounds_is_left_to_others(loops, monkeypatch):
    # Each state may go to the one before, and is lost a round after it; the last is the goal.
    size = 30
    columns = np.array([0, *np.ravel([(s - 1, size) for s in range(1, size)]), size], np.int32)
    offsets = np.array([0, *range(1, 2 * size, 2), 2 * size], np.int32)
    found = loops.closures(None, offsets, columns, size + 1)
    goal, everything = np.arange(size + 1) == size, np.ones(size + 1, dtype=np.bool_)
    monkeypatch.setattr(host_loops, "MOST_ROUNDS", size)
    np.testing.assert_array_equal(found.can_force(goal, everything), goal)
    monkeypatch.setattr(host_loops, "MOST_ROUNDS", size - 1)
    assert found.can_force(goal, everything) is None


@pytest.mark.parametrize("levels", [1, 3, 5, 7])
@pytest.mark.parametrize("seed", range(5))
def test_matrices_are_expanded_as_by_the_library_s_walk(loops, seed, levels):
    model = random_model(seed, levels)
    for numbering in (model.numbering, model.numbering.transposed()):
        entries = survey(model.diagram, numbering).num_entries
        expected = walked_up_to(entries, model.diagram, numbering).expanded()
        for room in (0, 5):
            found = loops.expanded(model.diagram, numbering, entries + room)
            for name in ("row_offsets", "columns", "values"):
                one, other = getattr(found, name), getattr(expected, name)
                np.testing.assert_array_equal(one, other)
                assert one.dtype == other.dtype
        if entries:
            assert loops.expanded(model.diagram, numbering, entries - 1) is None


def sparse_diagram(levels, keys, values):
    """The diagram of entries given by the bits of rows and columns, interleaved, ascending."""
    builder = DiagramBuilder()

    def node(first, last, bit):
        if first == last:
            return ZERO
        if bit < 0:
            return builder.terminal(float(values[first]))
        middle = first + int(np.searchsorted(keys[first:last] >> bit & 1, 1))
        return builder.test(
            2 * levels - 1 - bit, node(first, middle, bit - 1), node(middle, last, bit - 1)
        )

    return builder.diagram(node(0, len(keys), 2 * levels - 1))


@pytest.mark.parametrize("shared", [True, False], ids=["blocks that recur", "blocks of their own"])
def test_large_matrices_are_expanded_by_blocks_that_may_recur(loops, shared):
    rng, levels = np.random.default_rng(3), 12
    keys = np.unique(rng.integers(0, 1 << 2 * levels, 30_000))
    values = rng.random(len(keys)) + 0.5
    if shared:
        # The same in each block of 32 rows and columns that is there at all.
        block = np.unique(rng.integers(0, 1 << 10, 40))
        there = np.unique(rng.integers(0, 1 << 2 * levels - 10, 6_000))
        keys = (there[:, None] << 10 | block).ravel()
        values = np.tile(rng.random(len(block)) + 0.5, len(there))
    diagram = sparse_diagram(levels, keys, values)
    some = rng.random(1 << levels) < 0.8
    states = some.reshape((2,) * levels)
    numbering = numbering_of(states, range(0, 2 * levels, 2), range(1, 2 * levels, 2))
    found = loops.expanded(diagram, numbering, len(keys))
    rows = sum((keys >> 2 * bit + 1 & 1) << bit for bit in range(levels))
    columns = sum((keys >> 2 * bit & 1) << bit for bit in range(levels))
    inside = some[rows] & some[columns]
    number = np.cumsum(some) - 1
    order = np.lexsort((columns[inside], rows[inside]))
    np.testing.assert_array_equal(found.row_of_entry(), number[rows[inside]][order])
    np.testing.assert_array_equal(found.columns, number[columns[inside]][order])
    np.testing.assert_array_equal(found.values, values[inside][order])


@pytest.mark.parametrize("levels", [1, 4, 6])
@pytest.mark.parametrize("seed", range(6))
def test_choices_are_those_of_the_library(loops, seed, levels):
    model = random_model(seed, levels, choice_variables=2)
    roots, assignments = choice_roots(model.diagram, model.choice_variables)
    surveyed = survey(model.diagram, model.numbering, roots)
    expected = expand_surveyed_choices(surveyed, roots, assignments)
    entries = surveyed.num_entries
    for room in (0, 3):
        found = loops.expanded_choices(model.diagram, model.numbering, roots, entries + room)
        matrix, groups, numbers = found
        np.testing.assert_array_equal(matrix.row_offsets, expected.matrix.row_offsets)
        np.testing.assert_array_equal(matrix.columns, expected.matrix.columns)
        np.testing.assert_array_equal(matrix.values, expected.matrix.values)
        np.testing.assert_array_equal(groups, expected.row_group_offsets)
        np.testing.assert_array_equal(numbers, expected.choice_numbers)
    if entries:
        few = loops.expanded_choices(model.diagram, model.numbering, roots, entries - 1)
        assert few is None


@pytest.mark.parametrize("levels", [1, 5, 9])
@pytest.mark.parametrize("seed", range(4))
def test_functions_are_read_at_states_as_by_the_library(loops, seed, levels):
    rng = np.random.default_rng(seed)
    rows = range(1, 2 * levels, 2)
    states = rng.random((2,) * levels) < 0.6
    states.flat[0] = True
    numbering = numbering_of(states, rows, range(2, 2 * levels + 2, 2))
    builder = DiagramBuilder()
    functions = rng.integers(0, 4, (3, *states.shape)) / 2.0
    roots = np.array([builder.of_function(function, list(rows)) for function in functions])
    diagram = builder.diagram(int(roots[0]))
    places = np.sort(rng.integers(0, numbering.num_states, 200))
    which = rng.integers(0, 3, 200)
    found = loops.points(diagram, numbering, places, roots[which])
    assert found.dtype == np.float64
    expected = read_points(diagram, numbering, places, roots[which])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found, functions[:, states][which, places])


def test_functions_of_other_variables_are_not_read(loops):
    diagram = diagram_of(np.arange(8.0).reshape(2, 2, 2) + 1.0, [1, 2, 7])
    numbering = numbering_of(np.ones((2, 2), bool), [1, 2], [3, 4])
    assert loops.points(diagram, numbering, np.arange(4), np.full(4, diagram.root)) is None


def test_a_variable_that_is_none_of_the_matrix_s_makes_none(loops):
    diagram = diagram_of(np.arange(8.0).reshape(2, 2, 2) + 1.0, [1, 2, 7])
    numbering = numbering_of(np.ones(2, bool), [1], [2])
    assert loops.expanded(diagram, numbering, 100) is None


KERNEL = re.compile(r"kernel (.*?), format .*?, (\d+) sweeps")


@pytest.mark.parametrize(
    ("model", "constants", "text"),
    [
        ("ctmcs/cluster/cluster.sm", "N=12", 'S=? [ "premium" ]'),
        ("ctmcs/cluster/cluster.sm", "N=12", 'P=? [ true U<=1 !"minimum" ]'),
        ("mdps/csma/csma2_4.nm", "", 'R{"time"}max=? [ F s1=4 & s2=4 ]'),
    ],
    ids=["long run", "time bound", "MDP"],
)
def test_the_command_names_java_and_finds_what_numba_finds(
    prism_gpu, prism_examples, tmp_path, model, constants, text
):
    words = [prism_examples / model, "-pf", text, "-gpuinfo", "-nogpu"]
    words += ["-const", constants] if constants else []
    # Systems of any size, in the one way or the other.
    limits = ("FEWEST_ENTRIES", "FEWEST_ENTRIES_WITH_CHOICES", "FEWEST_ENTRIES_OF_SUMS")
    java_alone = "".join(f"host_loops.{limit} = " for limit in limits) + "1"
    numba_alone = "host_loops.MOST_ENTRIES = engine.NUMBA_ENTRIES_AT_START = 0"
    outcomes = []
    for name, setting in (("java", java_alone), ("numba", numba_alone)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(
            f"from engines.cpu import engine, host_loops\nengine.NUMBA_ENTRIES = 0\n{setting}\n"
        )
        paths = f"{folder}:{__file__.rsplit('/tests/', 1)[0]}"
        outcomes.append(prism_gpu(*words, PYTHONPATH=paths))
    ours, by_numba_alone = outcomes
    assert ours.code == by_numba_alone.code == 0, ours.errors + by_numba_alone.errors
    (java, sweeps), (numba, as_many) = (
        KERNEL.search(run.output).groups() for run in (ours, by_numba_alone)
    )
    assert java.startswith("Java, threads ")
    assert numba.startswith("numba, threads ")
    assert sweeps == as_many
    assert ours.results() == by_numba_alone.results()
