"""Matrices and models: what is refused, in which words, and the small operations on rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from engines.arrays import index_dtype
from engines.errors import InvalidModelError
from engines.host.products import sums_beside_diagonal, transposed
from engines.host.scaling import balance_matrix, scaled
from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind
from engines.systems.one_sided import Scaling, SweepSystem
from tests.engines import models

GOOD = models.dtmc([{0: 0.5, 1: 0.5}, {1: 1.0}, {0: 1.0}]).matrix


def broken(**changes):
    return replace(GOOD, **{name: np.array(value) for name, value in changes.items()})


@pytest.mark.parametrize(
    ("matrix", "text"),
    [
        (broken(row_offsets=[1, 2, 3, 4]), "matrix: row offsets must be one list that starts at 0"),
        (broken(row_offsets=np.zeros(0, int)), "must be one list that starts at 0"),
        (broken(row_offsets=[[0, 4]]), "must be one list that starts at 0"),
        (broken(row_offsets=[0, 3, 2, 4]), "the row offsets fall at state 1"),
        (broken(columns=[0, 1, 1]), "3 columns, 4 values, but the row offsets end at 4"),
        (broken(values=[1.0]), "4 columns, 1 values, but the row offsets end at 4"),
        (broken(row_offsets=[0, 2, 3, 5]), "4 columns, 4 values, but the row offsets end at 5"),
        (broken(columns=[0, 1, 1, 3]), "state 2 has a transition to 3, but the states are 0 to 2"),
        (broken(columns=[0, -1, 1, 0]), "state 0 has a transition to -1, but the states are 0"),
        (broken(values=[0.5, 0.5, -1.0, 1.0]), "state 1 has a transition to state 1 with value -1"),
        (
            broken(values=[0.5, np.nan, 1.0, 1.0]),
            "state 0 has a transition to state 1 with value n",
        ),
        (broken(values=[0.5, 0.5, 1.0, np.inf]), "values must be finite and not negative"),
    ],
)
def test_a_broken_matrix_is_named_with_its_first_wrong_place(matrix, text):
    with pytest.raises(InvalidModelError) as caught:
        matrix.check()
    assert text in str(caught.value)


def test_a_wrong_entry_after_empty_rows_is_blamed_on_its_own_row():
    matrix = models.csr([{}, {}, {0: 1.0}, {}, {9: 1.0}, {}], 6)
    with pytest.raises(InvalidModelError, match="state 4 has a transition to 9"):
        matrix.check()
    with pytest.raises(InvalidModelError, match="rates: choice 4 has"):
        matrix.check(what="rates", row_name="choice")


def test_a_good_matrix_passes():
    GOOD.check()
    models.csr([], 0).check()


SQUARE = models.csr([{0: 1.0}, {1: 1.0}])
CHOICES = models.csr([{0: 1.0}, {1: 1.0}, {1: 1.0}], 2)


def model(kind, matrix, groups=None):
    return ExplicitModel(kind, matrix, None if groups is None else np.array(groups))


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (model(ModelKind.DTMC, SQUARE, [0, 1, 2]), "a DTMC has no choices, but row groups were"),
        (model(ModelKind.CTMC, SQUARE, [0, 1, 2]), "a CTMC has no choices"),
        (model(ModelKind.DTMC, CHOICES), "3 rows but 2 columns: the matrix of a DTMC is square"),
        (model(ModelKind.CTMC, CHOICES), "the matrix of a CTMC is square"),
        (model(ModelKind.MDP, CHOICES), "an MDP needs row groups"),
        (model(ModelKind.MDP, CHOICES, [0, 3]), "2 row group offsets for 2 states"),
        (model(ModelKind.MDP, CHOICES, [1, 2, 3]), "the first of them 0"),
        (model(ModelKind.MDP, CHOICES, [0, 3, 3]), "state 1 has no choice"),
        (model(ModelKind.MDP, CHOICES, [0, 1, 2]), "the row groups end at 2, the rows at 3"),
        (
            model(ModelKind.DTMC, models.csr([{0: 1.0}, {0: 0.5, 1: 0.4}])),
            "the probabilities of state 1 sum to",
        ),
        (
            model(ModelKind.MDP, models.csr([{0: 1.0}, {1: 0.9}], 2), [0, 1, 2]),
            "the probabilities of choice 1 sum to",
        ),
        (model(ModelKind.DTMC, models.csr([{0: 1.0}, {}])), "state 1 sum to"),
        (
            model(ModelKind.CTMC, models.csr([{0: 1.0}, {1: -2.0}])),
            "CTMC transitions: state 1 has a transition to state 1 with value -2.0",
        ),
        (
            model(ModelKind.MDP, models.csr([{0: 1.0}, {5: 1.0}], 2), [0, 1, 2]),
            "MDP transitions: choice 1 has a transition to 5",
        ),
    ],
)
def test_a_broken_model_is_named_with_its_first_wrong_place(wrong, text):
    with pytest.raises(InvalidModelError) as caught:
        wrong.check()
    assert text in str(caught.value)


def test_a_good_model_is_returned_itself():
    good = model(ModelKind.MDP, CHOICES, [0, 1, 3])
    assert good.check() is good
    # Rates sum to anything, and an absorbing state of a CTMC has none.
    rates = model(ModelKind.CTMC, models.csr([{1: 7.0}, {}])).check()
    np.testing.assert_array_equal(rates.exit_rates, [7.0, 0.0])


@st.composite
def matrices(draw, square=False):
    """Any small matrix: empty rows, duplicates, columns in any order."""
    columns = draw(st.integers(1, 8))
    rows = columns if square else draw(st.integers(0, 8))
    entry = st.tuples(st.integers(0, columns - 1), st.floats(0.001, 10.0))
    drawn = [draw(st.lists(entry, max_size=6)) for _ in range(rows)]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in drawn])]).astype(np.int32)
    return CsrMatrix(
        offsets,
        np.array([column for row in drawn for column, _ in row], dtype=np.int32),
        np.array([value for row in drawn for _, value in row], dtype=np.float64),
        columns,
    )


def dense(matrix):
    full = np.zeros((matrix.num_rows, matrix.num_columns))
    np.add.at(full, (matrix.row_of_entry(), matrix.columns), matrix.values)
    return full


@given(matrices(), st.data())
def test_selected_rows_are_those_rows_in_that_order(matrix, data):
    count = matrix.num_rows
    rows = data.draw(st.lists(st.integers(0, count - 1), max_size=8) if count else st.just([]))
    chosen = matrix.select_rows(np.array(rows, dtype=np.int32))
    chosen.check()
    np.testing.assert_array_equal(dense(chosen), dense(matrix)[rows])
    # Entry for entry, not only in sum.
    for place, row in enumerate(rows):
        here = slice(chosen.row_offsets[place], chosen.row_offsets[place + 1])
        there = slice(matrix.row_offsets[row], matrix.row_offsets[row + 1])
        np.testing.assert_array_equal(chosen.columns[here], matrix.columns[there])
        np.testing.assert_array_equal(chosen.values[here], matrix.values[there])


@given(matrices())
def test_row_sums_and_lengths(matrix):
    np.testing.assert_allclose(matrix.row_sums(), dense(matrix).sum(axis=1), rtol=1e-12)
    assert matrix.row_lengths().sum() == matrix.num_entries == len(matrix.row_of_entry())


@given(matrices(square=True))
def test_sums_of_rows_are_those_of_a_plain_loop_to_the_last_bit(matrix):
    whole, outside = np.zeros(matrix.num_rows), np.zeros(matrix.num_rows)
    for row, column, value in zip(
        matrix.row_of_entry(), matrix.columns, matrix.values, strict=True
    ):
        whole[row] += value
        outside[row] += value * (row != column)
    np.testing.assert_array_equal(matrix.row_sums(), whole)
    np.testing.assert_array_equal(sums_beside_diagonal(matrix), outside)


@given(matrices())
def test_the_transpose_is_the_transpose_with_ascending_columns(matrix):
    turned = transposed(matrix, matrix.values)
    turned.check()
    np.testing.assert_allclose(dense(turned), dense(matrix).T)
    row = turned.row_of_entry()
    same = np.diff(row) == 0
    assert (np.diff(turned.columns)[same] >= 0).all()


@given(matrices(square=True))
def test_the_balance_matrix_is_the_transposed_rates_over_the_exits(matrix):
    full = dense(matrix)
    np.fill_diagonal(full, 0.0)
    exits = full.sum(axis=1)
    np.testing.assert_allclose(sums_beside_diagonal(matrix), exits, rtol=1e-12)
    expected = full.T / np.where(exits == 0.0, 1.0, exits)[:, None]
    np.testing.assert_allclose(dense(balance_matrix(matrix)), expected, rtol=1e-12)


@given(matrices(square=True), st.data())
def test_scaling_by_the_diagonal_is_jacobis_matrix(matrix, data):
    matrix = replace(matrix, values=matrix.values / 100.0)
    size = matrix.num_rows
    states = np.array(sorted(data.draw(st.sets(st.integers(0, size - 1), min_size=1))))
    offset = np.linspace(1.0, 2.0, len(states))
    system = SweepSystem(
        matrix.select_rows(states), np.zeros(size), offset, states, Scaling.DIAGONAL
    )
    result = scaled(system)
    full = dense(matrix)
    pivots = 1.0 - np.diag(full)[states]
    np.fill_diagonal(full, 0.0)
    np.testing.assert_allclose(dense(result.matrix), full[states] / pivots[:, None], rtol=1e-12)
    np.testing.assert_allclose(result.offset, offset / pivots, rtol=1e-12)
    assert result.scaling is Scaling.NONE


def test_a_state_that_only_loops_keeps_its_right_hand_side():
    system = SweepSystem(
        models.csr([{0: 1.0}]), np.zeros(1), np.array([3.0]), scaling=Scaling.DIAGONAL
    )
    assert scaled(system).offset[0] == 3.0
    assert scaled(system).matrix.num_entries == 0


def test_indices_are_narrow_until_they_must_be_wide():
    assert index_dtype(2**31 - 1) is np.int32
    assert index_dtype(2**31) is np.int64


@pytest.mark.parametrize("wide", [False, True])
def test_row_selection_takes_either_width(wide):
    matrix = models.random_dtmc(1).matrix
    kind = np.int64 if wide else np.int32
    rows = np.array([5, 5, 0, 59], dtype=kind)
    wanted = csr_array((matrix.values, matrix.columns, matrix.row_offsets), shape=(60, 60))
    chosen = replace(matrix, row_offsets=matrix.row_offsets.astype(kind)).select_rows(rows)
    np.testing.assert_array_equal(dense(chosen), wanted.toarray()[rows])
