"""Scaling a matrix: plain loops are the oracle, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.host import scaling as scaling_module
from engines.host.scaling import scaled
from engines.model.csr import CsrMatrix
from engines.systems.one_sided import ROUNDING_OF_A_SUM, Scaling, SweepSystem
from tests.engines import models


def random_matrix(seed, size, largest=1.0):
    """Some entries a row in any order of columns, loops among them."""
    rng = np.random.default_rng(seed)
    rows = [
        {
            int(j): float(rng.uniform(0.0, largest))
            for j in rng.permutation(size)[: rng.integers(0, min(size, 5) + 1)]
        }
        for _ in range(size)
    ]
    return models.csr(rows)


def plain(system):
    """What `scaled` is to return: matrix, as lists of rows, and right-hand side."""
    given, size = system.matrix, system.num_states
    rows = [[] for _ in range(given.num_rows)]
    for row, column, value in zip(
        given.row_of_entry().tolist(), given.columns.tolist(), given.values.tolist(), strict=True
    ):
        rows[row].append((column, value))
    if system.scaling is Scaling.BALANCE:
        exits = [added(value for column, value in row if column != i) for i, row in enumerate(rows)]
        turned = [[] for _ in range(size)]
        for i, row in enumerate(rows):
            for column, value in row:
                if column != i:
                    turned[column].append((i, value / (exits[column] or 1.0)))
        return turned, system.offset
    states = range(size) if system.states is None else system.states.tolist()
    divided, offset = [], None if system.offset is None else system.offset.copy()
    for i, (state, row) in enumerate(zip(states, rows, strict=True)):
        own = added(value for column, value in row if column == state)
        others = added(value for column, value in row if column != state)
        whole = own != 0.0 and abs(others + own - 1.0) <= ROUNDING_OF_A_SUM
        pivot = others if whole else 1.0 - own
        pivot = pivot if pivot > 0.0 else 1.0
        divided.append([(column, value / pivot) for column, value in row if column != state])
        if offset is not None:
            offset[i] /= pivot
    return divided, offset


def added(numbers):
    """The sum, one number after the other."""
    total = 0.0
    for number in numbers:
        total += number
    return total


def expect_plain(system):
    found, (rows, offset) = scaled(system), plain(system)
    assert found.scaling is Scaling.NONE
    matrix = found.matrix
    assert matrix.row_lengths().tolist() == [len(row) for row in rows]
    entries = [entry for row in rows for entry in row]
    assert matrix.columns.tolist() == [column for column, _ in entries]
    assert matrix.values.tolist() == [value for _, value in entries]
    assert matrix.num_columns == system.num_states
    if offset is None:
        assert found.offset is None
    else:
        np.testing.assert_array_equal(found.offset, offset)
    return found


def widened(matrix, wide):
    """The same in the index types that are named."""
    offsets, columns = {"narrow": ("i4", "i4"), "offsets": ("i8", "i4"), "all": ("i8", "i8")}[wide]
    return CsrMatrix(
        matrix.row_offsets.astype(offsets),
        matrix.columns.astype(columns),
        matrix.values,
        matrix.num_columns,
    )


@given(seed=st.integers(0, 10_000), size=st.integers(1, 40))
def test_the_balance_is_that_of_plain_loops(seed, size):
    system = SweepSystem(random_matrix(seed, size), np.ones(size), scaling=Scaling.BALANCE)
    expect_plain(system)


@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 40),
    subset=st.booleans(),
    offset=st.booleans(),
)
def test_the_diagonal_goes_as_in_plain_loops(seed, size, subset, offset):
    # Diagonals up to 1.5: some states only loop, or more than that.
    matrix = random_matrix(seed, size, 1.5)
    states = np.arange(0, size, 2, dtype=np.int32) if subset else None
    matrix = matrix if states is None else matrix.select_rows(states)
    right = np.linspace(0.5, 2.0, matrix.num_rows) if offset else None
    system = SweepSystem(matrix, np.ones(size), right, states, Scaling.DIAGONAL)
    expect_plain(system)


@pytest.mark.parametrize("wide", ["narrow", "offsets", "all"])
@pytest.mark.parametrize("scaling", [Scaling.BALANCE, Scaling.DIAGONAL])
def test_index_types_do_not_matter(scaling, wide):
    matrix = widened(random_matrix(4, 60), wide)
    expect_plain(SweepSystem(matrix, np.ones(60), np.ones(60), scaling=scaling))


def test_the_number_of_threads_does_not_matter(monkeypatch):
    system = SweepSystem(
        random_matrix(1, 500), np.ones(500), np.ones(500), scaling=Scaling.DIAGONAL
    )
    shares = scaling_module.shares_of(system)
    shares.threads, shares.bounds = 3, np.linspace(0, 500, 25).astype(np.int64)
    monkeypatch.setattr(scaling_module, "shares_of", lambda _system: shares)
    expect_plain(system)


def test_what_is_not_to_be_scaled_stays():
    system = SweepSystem(random_matrix(2, 5), np.ones(5))
    assert scaled(system) is system


@pytest.mark.parametrize("subset", [False, True])
def test_without_a_diagonal_nothing_is_copied(subset):
    rows = [{(i + 1) % 6: 0.25, (i + 2) % 6: 0.5} for i in range(6)]
    states = np.array([0, 2, 5], dtype=np.int32) if subset else None
    matrix = models.csr(rows) if states is None else models.csr(rows).select_rows(states)
    system = SweepSystem(matrix, np.ones(6), np.ones(matrix.num_rows), states, Scaling.DIAGONAL)
    assert expect_plain(system).matrix is matrix


def test_what_leaves_a_state_is_added_up_where_it_mostly_stays():
    matrix = models.csr([{0: 1.0 - 4e-12, 1: 1e-12, 2: 3e-12}, {0: 0.5, 1: 0.2}, {2: 1.0}])
    found = scaled(SweepSystem(matrix, np.ones(3), np.full(3, 8e-12), scaling=Scaling.DIAGONAL))
    np.testing.assert_allclose(found.matrix.values, [0.25, 0.75, 0.625], rtol=1e-15)
    np.testing.assert_allclose(found.offset, [2.0, 1e-11, 8e-12], rtol=1e-15)
