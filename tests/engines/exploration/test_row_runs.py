"""Matrices kept as runs of rows are those of plain lists of entries."""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.check.checker import Checker
from bridge.check.sources import TextSource
from bridge.language.properties_file import parse_properties
from engines.diagrams import run_blocks
from engines.diagrams.run_blocks import hybrid_of_runs
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.exploration import build as building
from engines.exploration.run_matrix import RunMatrix, runs_of_matrix
from engines.host.expansion import room
from engines.model import row_runs
from engines.model.environment import DeviceChoice, Method, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from engines.model.row_runs import RunCollector
from engines.questions import diagram_long_run
from engines.questions.diagram_long_run import LongRun
from engines.questions.long_run import long_run_probabilities, long_run_rewards
from engines.systems.flows import flows_of_runs

CPU = SolverEnvironment(device=DeviceChoice.CPU)
TANDEM = Path(__file__).parents[3] / "examples" / "models" / "tandem.sm"


def random_rows(rng, size):
    """Rows as lists of (column, value), of few kinds, unordered and with columns met twice."""
    kinds = []
    for _ in range(rng.integers(1, 5)):
        pairs = rng.integers(0, 5)
        kinds.append([(int(rng.integers(-4, 5)), float(rng.integers(1, 4))) for _ in range(pairs)])
    rows = []
    while len(rows) < size:
        kind = kinds[rng.integers(len(kinds))]
        for _ in range(rng.integers(1, 12)):
            state = len(rows)
            rows.append([(state + d, v) for d, v in kind if 0 <= state + d < size])
    return rows[:size]


def as_dictionaries(rows):
    found = []
    for row in rows:
        sums = {}
        for column, value in row:
            sums[column] = sums.get(column, 0.0) + value
        found.append(dict(sorted(sums.items())))
    return found


def collected(rows, block):
    collector = RunCollector()
    for first in range(0, len(rows), block):
        part = rows[first : first + block]
        offsets = np.cumsum([0, *map(len, part)])
        columns = np.array([c for row in part for c, _ in row], dtype=np.int32)
        values = np.array([v for row in part for _, v in row], dtype=np.float64)
        collector.add(offsets, columns, values)
    return collector.runs()


def written(matrix):
    entries = list(zip(matrix.columns.tolist(), matrix.values.tolist(), strict=True))
    offsets = matrix.row_offsets.tolist()
    return [dict(entries[a:b]) for a, b in itertools.pairwise(offsets)]


def rows_of_hybrid(hybrid):
    """Follow each state through its strip's jobs, one entry at a time."""
    rows = []
    for state in range(hybrid.num_states):
        strip = int(np.searchsorted(hybrid.strip_states, state, side="right")) - 1
        local, row = state - int(hybrid.strip_states[strip]), {}
        for job in range(*hybrid.strip_jobs[strip : strip + 2]):
            place = int(hybrid.block_rows[hybrid.job_blocks[job]]) + local
            for entry in range(*hybrid.local_offsets[place : place + 2]):
                column = int(hybrid.job_columns[job] + hybrid.local_columns[entry])
                assert column not in row
                row[column] = float(hybrid.local_values[entry])
        rows.append(row)
    return rows


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 2**32), st.integers(1, 80), st.integers(1, 90), st.integers(1, 9))
def test_random_matrices(seed, size, block, longest):
    rows = random_rows(np.random.default_rng(seed), size)
    expected = as_dictionaries(rows)
    runs = collected(rows, block)
    assert (runs.num_rows, runs.num_entries) == (size, sum(map(len, expected)))
    assert written(RunMatrix.of(runs)) == expected
    assert written(RunMatrix.of(runs.cut(longest))) == expected
    assert runs.cut(longest).lengths.max() <= longest
    transposed = [
        {row: expected[row][column] for row in range(size) if column in expected[row]}
        for column in range(size)
    ]
    assert written(RunMatrix.of(runs.transposed())) == transposed
    for matrix, plain in ((runs, expected), (runs.transposed(), transposed)):
        hybrid = hybrid_of_runs(matrix)
        assert rows_of_hybrid(hybrid) == plain
        assert hybrid.num_entries == sum(map(len, plain))


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**32), st.integers(1, 80))
def test_random_flows(seed, size):
    rows = random_rows(np.random.default_rng(seed), size)
    runs = collected(rows, size)
    flows = flows_of_runs(runs, runs.transposed())
    expected = as_dictionaries(rows)
    found, out = [], []
    for state in range(size):
        kind = flows.kinds[np.searchsorted(flows.firsts, state, side="right") - 1]
        entries = slice(*flows.starts[kind : kind + 2])
        sources = (state + flows.distances[entries]).tolist()
        found.append(dict(zip(sources, flows.rates[entries].tolist(), strict=True)))
        out.append(flows.out[kind])
    assert found == [
        {row: expected[row][to] for row in range(size) if row != to and to in expected[row]}
        for to in range(size)
    ]
    assert out == [sum(v for to, v in expected[row].items() if to != row) for row in range(size)]
    assert (flows.num_states, flows.num_entries) == (size, sum(map(len, found)))


def test_blocks_do_not_matter():
    rows = random_rows(np.random.default_rng(3), 200)
    whole, parts = collected(rows, 200), collected(rows, 7)
    for name in ("firsts", "kinds", "pair_starts", "distances", "numbers"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name))


def test_a_long_run_is_written_out_in_parts(monkeypatch):
    monkeypatch.setattr("engines.exploration.run_matrix.ROWS_OF_A_PART", 10)
    monkeypatch.setattr(run_blocks, "LONGEST_STRIP", 10)
    rows = [[(state, 1.0), (min(state + 1, 94), 2.0)] for state in range(95)]
    runs = collected(rows, 95)
    assert runs.num_runs == 2
    assert written(RunMatrix.of(runs)) == as_dictionaries(rows)
    assert rows_of_hybrid(hybrid_of_runs(runs)) == as_dictionaries(rows)


def test_rows_that_seldom_repeat_are_given_up(monkeypatch):
    monkeypatch.setattr(row_runs, "BEFORE_GIVING_UP", 20)
    rows = [[(state, float(state))] for state in range(100)]
    with pytest.raises(UnsupportedError, match="100 rows make 100 runs"):
        collected(rows, 100)


def test_what_takes_too_much_room_is_refused(monkeypatch):
    rows = [[(state, 1.0), (max(state - 1, 0), 2.0)] for state in range(95)]
    runs = collected(rows, 95)
    monkeypatch.setattr(row_runs, "MOST_PIECES", 3)
    with pytest.raises(UnsupportedError, match="pieces of runs, more than 3"):
        runs.transposed()
    monkeypatch.setattr(run_blocks, "MOST_LOCAL_ENTRIES", 3)
    with pytest.raises(UnsupportedError, match="entries of their own, more than 3"):
        hybrid_of_runs(runs)
    monkeypatch.setattr(room, "available_host_bytes", lambda: 1000)
    with pytest.raises(DeviceMemoryError, match="the matrix of 95 states and 189 transitions"):
        assert RunMatrix.of(runs).values is None


def test_a_changed_matrix_is_an_ordinary_one():
    matrix = RunMatrix.of(collected([[(0, 1.0), (1, 3.0)], [(1, 2.0)]], 2))
    halved = matrix.divide_rows(np.array([2.0, 2.0]))
    assert runs_of_matrix(halved) is None
    assert (halved.num_rows, halved.num_entries) == (2, 3)
    assert written(halved) == [{0: 0.5, 1: 1.5}, {1: 1.0}]
    assert not hasattr(matrix, "other")


@pytest.fixture
def tandem_in_runs(monkeypatch):
    told = []
    small = functools.partial(building.ExplorationTuning, most_entries=100, states_of_a_part=1000)
    listed = TextSource(TANDEM, fix_deadlocks=True).build({"c": 30}, print)
    monkeypatch.setattr(building, "ExplorationTuning", small)
    found = TextSource(TANDEM, fix_deadlocks=True).build({"c": 30}, told.append)
    assert re.search(r"6389 transitions .* 1.99 bytes a state in place of 45", "".join(told))
    return found, listed


def in_runs(matrix):
    """Whether a matrix is kept as runs, and nobody has had its entries written out."""
    return runs_of_matrix(matrix) is not None and "values" not in vars(matrix)


def test_a_model_is_built_in_runs(tandem_in_runs):
    found, listed = tandem_in_runs
    assert in_runs(found.model.matrix)
    assert found.model.labels.keys() == listed.model.labels.keys()
    for name, states in listed.model.labels.items():
        assert np.array_equal(found.model.labels[name], states)
    matrix = listed.model.matrix
    entries = list(zip(matrix.columns.tolist(), matrix.values.tolist(), strict=True))
    offsets = matrix.row_offsets.tolist()
    rows = [entries[a:b] for a, b in itertools.pairwise(offsets)]
    assert written(found.model.matrix) == as_dictionaries(rows)


@pytest.mark.parametrize("property_", ['R{"customers"}=? [ S ]', "S=? [ second>3 ]"])
def test_the_long_run_needs_no_entries(tandem_in_runs, property_):
    found, listed = tandem_in_runs
    (asked,) = parse_properties(property_, "").properties
    value = Checker(found, CPU).check(asked.expression).value
    assert in_runs(found.model.matrix)
    assert value == pytest.approx(Checker(listed, CPU).check(asked.expression).value, rel=1e-6)


def test_several_questions_find_the_class_once(tandem_in_runs, monkeypatch):
    found, _ = tandem_in_runs
    searches = []
    search = diagram_long_run.recurrent_class
    monkeypatch.setattr(
        diagram_long_run,
        "recurrent_class",
        lambda *matrices: searches.append(matrices) or search(*matrices),
    )
    for above in (3, 5):
        states = np.arange(found.model.num_states) % above == 0
        long_run_probabilities(found.model, states, CPU)
    assert len(searches) == 1


def test_other_questions_have_the_entries_written_out(tandem_in_runs):
    found, listed = tandem_in_runs
    (asked,) = parse_properties("P=? [ F<=0.1 first=3 ]", "").properties
    value = Checker(found, CPU).check(asked.expression).value
    assert not in_runs(found.model.matrix)
    assert value == Checker(listed, CPU).check(asked.expression).value


@pytest.mark.parametrize(
    "environment",
    [
        replace(CPU, bounds=True),
        replace(CPU, method=Method.POWER),
        replace(CPU, method=Method.JACOBI),
    ],
)
def test_the_long_run_by_named_methods(tandem_in_runs, environment):
    found, listed = tandem_in_runs
    states = np.arange(listed.model.num_states) % 3 == 0
    a = long_run_probabilities(found.model, states, environment)
    b = long_run_probabilities(listed.model, states, environment)
    assert a.values == pytest.approx(b.values, rel=1e-5)


def test_several_classes_have_the_entries_written_out():
    rows = [[(0, 1.0)], [(0, 0.25), (2, 0.75)], [(2, 1.0)]]
    model = ExplicitModel(ModelKind.DTMC, RunMatrix.of(collected(rows, 3)))
    assert LongRun.of_runs(model.matrix.runs).refusal(CPU)
    rewards = RewardStructure("", np.array([1.0, 5.0, 3.0]))
    assert long_run_rewards(model, rewards, CPU).values.tolist() == [1.0, 2.5, 3.0]
    assert not in_runs(model.matrix)
