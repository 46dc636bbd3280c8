"""Parts of matrices whose rows are in groups."""

import numpy as np
import pytest

from engines.model.csr import CsrMatrix
from engines.model.groups import choices_of, select_groups


def random_groups(seed, states=300):
    """Return a matrix, some of whose rows are empty, and groups, each of one row or more."""
    random = np.random.default_rng(seed)
    groups = np.append(0, np.cumsum(random.integers(1, 5, states))).astype(np.int32)
    lengths = random.integers(0, 4, groups[-1])
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int32)
    columns = random.integers(0, states, offsets[-1]).astype(np.int32)
    return CsrMatrix(offsets, columns, random.random(offsets[-1]), states), groups


def one_by_one(matrix, groups, states):
    """Return the same from plain loops: offsets, columns, values, offsets of groups."""
    offsets, columns, values, parts = [0], [], [], [0]
    for state in states:
        for row in range(groups[state], groups[state + 1]):
            inside = slice(matrix.row_offsets[row], matrix.row_offsets[row + 1])
            columns += matrix.columns[inside].tolist()
            values += matrix.values[inside].tolist()
            offsets.append(len(columns))
        parts.append(len(offsets) - 1)
    return offsets, columns, values, parts


@pytest.mark.parametrize(
    "states",
    [
        np.arange(300),
        np.arange(5, 290),
        np.array([0, 1, 2, 7, 8, 299]),
        np.array([299]),
        np.arange(0, 300, 2),
        np.arange(0),
    ],
    ids=["all", "one run", "three runs", "last", "every other", "none"],
)
@pytest.mark.parametrize("seed", range(3))
def test_the_rows_of_chosen_states_are_taken_over(seed, states):
    matrix, groups = random_groups(seed)
    earned = np.arange(float(matrix.num_rows))
    chosen, parts, rewards = select_groups(matrix, groups, states, earned)
    assert rewards.tolist() == earned[choices_of(states, groups)[0]].tolist()
    assert select_groups(matrix, groups, states)[2] is None
    offsets, columns, values, expected = one_by_one(matrix, groups, states)
    assert chosen.row_offsets.tolist() == offsets
    assert chosen.columns.tolist() == columns
    assert chosen.values.tolist() == values
    assert chosen.num_columns == matrix.num_columns
    assert parts.tolist() == choices_of(states, groups)[1].tolist() == expected
    assert parts.dtype.kind == chosen.row_offsets.dtype.kind == "i"
    chosen.check()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("how", ["any", "ascending", "in runs", "one run", "one row", "none"])
def test_rows_in_any_order_are_those_of_plain_loops(seed, how):
    matrix, _ = random_groups(seed)
    random = np.random.default_rng(seed)
    rows = {
        "any": random.integers(0, matrix.num_rows, 200),
        "ascending": np.flatnonzero(random.random(matrix.num_rows) < 0.3),
        "in runs": np.concatenate((np.arange(90, 400), np.arange(3, 50), np.arange(10))),
        "one run": np.arange(90, 400),
        "one row": np.array([np.argmax(matrix.row_lengths())]),
        "none": np.arange(0),
    }[how]
    each = [slice(matrix.row_offsets[row], matrix.row_offsets[row + 1]) for row in rows]
    found = matrix.select_rows(rows)
    assert found.columns.tolist() == [c for own in each for c in matrix.columns[own].tolist()]
    assert found.values.tolist() == [v for own in each for v in matrix.values[own].tolist()]
    assert found.row_lengths().tolist() == matrix.row_lengths()[rows].tolist()
    found.check()
    assert np.shares_memory(found.values, matrix.values) == how.startswith("one")
