"""States of chains whose transitions all have the value 0: deadlocks, as PRISM has it."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.files.reader import read_model

TEXTS = {
    "ascending": "3 4\n0 1 1 a\n1 2 0\n2 2 1 b\n2 0 0\n",
    "any order": "3 4\n2 0 0\n1 2 0\n2 2 1 b\n0 1 1 a\n",
    "without actions": "3 3\n0 1 1\n1 2 0\n2 2 1\n",
}


@pytest.mark.parametrize("kind", ["DTMC", "CTMC"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_state_whose_only_rate_is_0_is_a_deadlock(kind, text, tmp_path):
    path = tmp_path / "m.tra"
    path.write_text(text)
    read = read_model(path, kind)
    np.testing.assert_array_equal(read.model.labels["deadlock"], [False, True, False])
    matrix = read.model.matrix
    dense = np.zeros((3, 3))
    dense[matrix.row_of_entry(), matrix.columns] = matrix.values
    np.testing.assert_array_equal(dense, [[0, 1, 0], [0, 1, 0], [0, 0, 1]])
    if read.actions is not None:
        assert [read.action_names[action] for action in read.actions] == ["a", "", "b"]
