"""Rows of probabilities that sum to 1 only within the tolerance, as they are read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bridge.files.checkable import as_umb, read_checkable
from bridge.files.umb import write_umb
from engines.errors import InvalidModelError
from engines.model.csr import CsrMatrix
from tests.bridge.check.models import dice

MDP = """2 3 5
0 0 0 0.999998
0 0 1 0.000001
0 1 1 1
1 0 0 0.25
1 0 1 0.750001
"""


def written(folder, text, **others):
    for ending, content in {"tra": text, **others}.items():
        (folder / f"m.{ending}").write_text(content)
    return folder / "m.tra"


def test_each_choice_is_divided_by_its_sum_and_the_first_is_named(tmp_path):
    model = read_checkable(written(tmp_path, MDP))
    values = model.model.matrix.values
    np.testing.assert_allclose(values[:2], [0.999998 / 0.999999, 0.000001 / 0.999999], rtol=1e-15)
    assert values[2] == 1.0
    assert np.abs(model.model.matrix.row_sums() - 1.0).max() < 1e-15
    (note,) = model.notes
    assert "probabilities of 2 choices" in note
    assert "choice 0 of state 0, with sum 0.999999" in note


@pytest.mark.parametrize("entries", [("0.1",) * 10, ("0.3333333333333333",) * 3, ("0.7", "0.3")])
def test_what_is_only_rounded_stays_as_it_is(tmp_path, entries):
    rows = [f"0 {column} {value}" for column, value in enumerate(entries)]
    rows += [f"{state} {state} 1" for state in range(1, len(entries))]
    text = "\n".join([f"{len(entries)} {len(rows)}", *rows])
    model = read_checkable(written(tmp_path, text))
    assert model.model.matrix.values[: len(entries)].tolist() == list(map(float, entries))
    assert model.notes == ()


def test_rates_stay_as_they_are(tmp_path):
    model = read_checkable(written(tmp_path, "2 3\n0 1 0.999995\n1 0 1\n1 1 3\n"), "CTMC")
    assert model.model.matrix.values.tolist() == [0.999995, 1.0, 3.0]
    assert model.notes == ()


def test_what_is_further_from_1_is_refused(tmp_path):
    with pytest.raises(InvalidModelError, match=r"m.tra, line 2: state 0: .* sum to 0.9999, not 1"):
        read_checkable(written(tmp_path, "2 2\n0 1 0.9999\n1 1 1\n"))


def test_rewards_of_transitions_are_weighted_by_what_was_divided(tmp_path):
    text = "2 3\n0 0 0.5\n0 1 0.500008\n1 1 1\n"
    path = written(tmp_path, text, trew="2 1\n0 1 3\n")
    earned = read_checkable(path).rewards[0].expected.state_rewards[0]
    assert earned == pytest.approx(3.0 * 0.500008 / 1.000008, rel=1e-15)


def test_a_umb_file_is_read_in_the_same_way(tmp_path):
    model = dice()
    matrix = model.model.matrix
    values = matrix.values.copy()
    values[0] += 2e-6
    off = CsrMatrix(matrix.row_offsets, matrix.columns, values, matrix.num_columns)
    changed = replace(model, model=replace(model.model, matrix=off))
    write_umb(as_umb(changed), tmp_path / "m.umb", "none")
    read = read_checkable(tmp_path / "m.umb")
    assert np.abs(read.model.matrix.row_sums() - 1.0).max() < 1e-15
    assert "probabilities of 1 state" in read.notes[0]
    assert "state 0, with sum 1.000001999" in read.notes[0]
