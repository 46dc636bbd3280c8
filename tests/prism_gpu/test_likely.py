"""Models of which only likely states are explored, from Python."""

from __future__ import annotations

import pytest

import prism_gpu as pg

QUEUE = """ctmc
module queue
  x : int init 0;
  [in] true -> 1 : (x'=x+1);
  [out] x>0 -> 2 : (x'=x-1);
endmodule
"""


@pytest.fixture
def queue(tmp_path):
    path = tmp_path / "queue.sm"
    path.write_text(QUEUE)
    return path


def test_a_value_is_a_pair_of_bounds(queue):
    model = pg.open(queue, likely=1e-9)
    result = model.check("P=? [ F<=10 x>=8 ]")
    least, greatest = result.value
    assert least <= 0.011601817470995252 <= greatest <= least + 1e-11
    assert result.proven
    assert result.error is None
    assert result.vector is None
    assert model.labels["unexplored"].sum() == 1
    assert model.check("P>=0.01 [ F<=10 x>=8 ]").value is True
    with pytest.raises(TypeError, match="not explored"):
        float(result)


def test_questions_about_the_model_as_built_have_a_number(queue):
    result = pg.open(queue, likely=1e-3).check('P=? [ F<=1 "unexplored" ]')
    assert 0.0 < float(result) < 1e-2


@pytest.mark.parametrize("likely", [0.0, 1.0, -1.0, float("nan")])
def test_a_probability_out_of_range_is_refused(queue, likely):
    with pytest.raises(ValueError, match="between 0 and 1"):
        pg.open(queue, likely=likely)


def test_prism_explores_all_states(queue):
    with pytest.raises(ValueError, match="leave front_end out"):
        pg.open(queue, likely=0.1, front_end="prism")
