"""The public package on a GPU: the device that was named is used, and the values are the CPU's."""

from __future__ import annotations

import numpy as np

import prism_gpu as pg


def test_a_chain_is_solved_where_it_was_asked_for():
    states = 5_000
    matrix = np.zeros((states, states))
    matrix[0, 0] = matrix[-1, -1] = 1.0
    inner = np.arange(1, states - 1)
    matrix[inner, inner + 1], matrix[inner, inner - 1] = 0.4, 0.6
    model = pg.dtmc(matrix, labels={"broke": 0}, initial=3, epsilon=1e-10)
    text = 'P=? [ F<=400 "broke" ]'
    there, here = (model.check(text, device=device) for device in ("gpu", "cpu"))
    assert (there.device, here.device) == ("GPU 0", "CPU")
    assert np.allclose(there.vector, here.vector, rtol=0, atol=1e-13)
