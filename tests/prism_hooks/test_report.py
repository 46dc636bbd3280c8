"""The lines of the log have the form that tools read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engines.result import SolveResult
from prism_hooks.report import iterations_line


def test_the_line_of_a_solve_is_prism_s():
    result = replace(
        SolveResult.exact(np.zeros(2), "Jacobi"),
        iterations=4,
        seconds=1.234,
        setup_seconds=0.216,
        sweeping_seconds=1.0,
    )
    assert iterations_line(result) == (
        "Jacobi: 4 iterations in 1.23 seconds (average 0.250000, setup 0.22)"
    )


def test_a_solve_without_sweeps_has_no_average():
    line = iterations_line(SolveResult.exact(np.zeros(2), "Power method"))
    assert line == "Power method: 0 iterations in 0.00 seconds (average 0.000000, setup 0.00)"
