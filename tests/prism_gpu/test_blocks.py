"""Equations over shared blocks are those over the matrix that the blocks make."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, diags_array
from scipy.sparse.linalg import spsolve

import prism_gpu as pg
from engines.diagrams.instances import BlockInstance, CoordinateBlock, hybrid_of


def expanded(size, blocks, instances):
    """The matrix, by SciPy alone."""
    total = coo_array((size, size)).tocsr()
    for item in instances:
        block = blocks[item.block]
        at = (np.asarray(block.rows) + item.row, np.asarray(block.columns) + item.column)
        total = total + coo_array((np.asarray(block.values), at), shape=(size, size)).tocsr()
    return total


def drawn(seed, size=300):
    """Random blocks, one of them empty, and instances that may overlap and cut each other."""
    rng = np.random.default_rng(seed)
    blocks = []
    for height, width, entries in ((40, 30, 70), (17, 60, 50), (1, 1, 1), (5, 5, 0)):
        places = rng.integers(0, height, entries), rng.integers(0, width, entries)
        blocks.append(pg.Block((height, width), rng.normal(size=entries), *places))
    instances = [
        pg.Instance(
            int(number),
            int(rng.integers(0, size - blocks[number].shape[0] + 1)),
            int(rng.integers(0, size - blocks[number].shape[1] + 1)),
        )
        for number in rng.integers(0, len(blocks), 25)
    ]
    rows = np.abs(expanded(size, blocks, instances)).sum(axis=1)
    diagonal = rng.choice([-1.0, 1.0], size) * (1.5 * rows + 1.0)
    return blocks, instances, rng.normal(size=size), diagonal


def hybrid(size, blocks, instances):
    return hybrid_of(
        size,
        [
            CoordinateBlock(
                *b.shape, np.asarray(b.values), np.asarray(b.rows), np.asarray(b.columns)
            )
            for b in blocks
        ],
        [BlockInstance(i.block, i.row, i.column) for i in instances],
    )


@given(seed=st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_the_hybrid_matrix_is_the_sum_of_its_instances(seed):
    blocks, instances, _, _ = drawn(seed)
    found = hybrid(300, blocks, instances)
    dense = np.zeros((300, 300))
    for strip in range(found.num_strips):
        states = range(*found.strip_states[strip : strip + 2])
        for job in range(*found.strip_jobs[strip : strip + 2]):
            first = found.block_rows[found.job_blocks[job]]
            for row, state in enumerate(states):
                here = slice(*found.local_offsets[first + row : first + row + 2])
                columns = found.job_columns[job] + found.local_columns[here]
                dense[state, columns] += found.local_values[here]
    wanted = expanded(300, blocks, instances)
    np.testing.assert_allclose(dense, wanted.toarray(), atol=1e-12)
    assert found.num_entries >= wanted.nnz


@pytest.mark.parametrize("omega", [1.0, 0.8, 1.1])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_solution_is_that_of_the_csr_matrix(seed, omega):
    blocks, instances, right, diagonal = drawn(seed)
    found = pg.solve_blocks(
        blocks, instances, right, diagonal, omega=omega, epsilon=1e-13, stop="absolute"
    )
    matrix = expanded(len(right), blocks, instances) + diags_array(diagonal)
    assert found.converged
    np.testing.assert_allclose(found.values, spsolve(matrix.tocsc(), right), rtol=1e-9, atol=1e-12)
    assert found.residual < 1e-12
    assert found.iterations < 200


def test_a_shared_block_is_stored_once():
    tile = pg.Block((10, 10), np.full(9, -0.5), np.arange(1, 10), np.arange(9))
    instances = [pg.Instance(0, 10 * k, 10 * k) for k in range(1000)]
    found = hybrid(10_000, [tile], instances)
    assert (found.num_blocks, found.num_jobs, found.num_entries) == (1, 1000, 9000)
    right = np.zeros(10_000)
    right[::10] = 1.0
    solved = pg.solve_blocks([tile], instances, right, np.ones(10_000), epsilon=1e-12)
    np.testing.assert_allclose(solved.values.reshape(1000, 10), [0.5 ** np.arange(10)] * 1000)


def test_without_a_right_side_it_balances_from_the_uniform_start():
    # π Q = 0 of a ring: every state is as likely, whatever the rates' scale.
    ring = pg.Block((4, 4), [2.0] * 4, [1, 2, 3, 0], [0, 1, 2, 3])
    found = pg.solve_blocks([ring], [pg.Instance(0, 0, 0)], None, [-2.0] * 4, omega=0.9)
    assert found.converged
    np.testing.assert_allclose(found.values, 0.25, rtol=1e-5)


@pytest.mark.parametrize("stop", ["relative", "absolute"])
def test_a_long_way_is_swept_to_its_end(stop):
    # x(i) = x(i + 1) / 2, and 1 in the last state alone: sweeps reach the first one after many.
    size = 400
    halves = pg.Block((1, 2), [-0.5], [0], [1])
    instances = [pg.Instance(0, i, i) for i in range(size - 1)]
    right_side = np.append(np.zeros(size - 1), 1.0)
    given_ = ([halves], instances, right_side, np.ones(size))
    found = pg.solve_blocks(*given_, stop=stop, epsilon=1e-12, slice_size=1, colours=2)
    assert found.converged
    np.testing.assert_allclose(found.values, 0.5 ** np.arange(size)[::-1], atol=1e-9)


def test_what_overflows_ends_early():
    block = pg.Block((2, 2), [3.0, 3.0], [0, 1], [1, 0])
    given_ = ([block], [pg.Instance(0, 0, 0)], [1.0, 1.0], [1.0, 1.0])
    found = pg.solve_blocks(*given_, max_iterations=100_000)
    assert not found.converged
    assert found.iterations < 100_000


def test_what_does_not_converge_says_so():
    block = pg.Block((2, 2), [3.0, 3.0], [0, 1], [1, 0])
    given_ = ([block], [pg.Instance(0, 0, 0)], [1.0, 1.0], [1.0, 1.0])
    found = pg.solve_blocks(*given_, max_iterations=7)
    assert (found.converged, found.iterations) == (False, 7)
    assert "colour" in found.note


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"diagonal": [1.0, 0.0]}, "diagonal is zero in row 1"),
        ({"right_side": [1.0]}, "right-hand side must have 2 entries"),
        ({"right_side": [1.0, np.nan]}, "no finite number"),
        ({"instances": [pg.Instance(0, 1, 0)]}, "lies outside of 2"),
        ({"instances": [pg.Instance(1, 0, 0)]}, "block 1, of 1 blocks"),
        ({"blocks": [pg.Block((2, 2), [1.0], [2], [0])]}, "row of an entry"),
        ({"blocks": [pg.Block((2, 2), [1.0, 2.0], [1], [0])]}, "2 values, but 1 rows"),
        ({"blocks": [pg.Block((2, 2), [1.0], [0.7], [0])]}, "rows of a block must be integers"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(changed, said):
    whole = {
        "blocks": [pg.Block((2, 2), [0.5], [1], [0])],
        "instances": [pg.Instance(0, 0, 0)],
        "right_side": [1.0, 1.0],
        "diagonal": [1.0, 1.0],
    }
    with pytest.raises(pg.InvalidModelError, match=said):
        pg.solve_blocks(**{**whole, **changed})


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"stop": "soon"}, ValueError, "unknown value of stop 'soon'"),
        ({"device": "tpu"}, ValueError, "unknown value of device 'tpu'"),
        ({"epsilon": "small"}, TypeError, "epsilon must be a number"),
        ({"max_iterations": 0.5}, TypeError, "max_iterations must be a whole number"),
        ({"colours": "red"}, TypeError, "colours must be a whole number"),
        ({"omega": "1"}, TypeError, "omega must be a number"),
        ({"blocks": [5]}, TypeError, "blocks must be of Block, not 5"),
        ({"instances": [5]}, TypeError, "instances must be of Instance, not 5"),
        ({"start": "ab"}, ValueError, "the start must be numbers"),
    ],
)
def test_arguments_of_a_wrong_type_are_named(changed, error, said):
    whole = {"blocks": [], "instances": [], "right_side": [1.0], "diagonal": [1.0]}
    with pytest.raises(error, match=said):
        pg.solve_blocks(**{**whole, **changed})


def test_an_omega_that_cannot_converge_is_refused():
    block = pg.Block((2, 2), [0.5], [1], [0])
    with pytest.raises(pg.UnsupportedError, match="between 0 and 2"):
        pg.solve_blocks([block], [pg.Instance(0, 0, 0)], [1.0, 1.0], [1.0, 1.0], omega=2.5)
