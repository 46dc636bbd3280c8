"""The line of PRISM's log that tells the sweeps of a finished solve."""

from __future__ import annotations

from engines.result import SolveResult


def iterations_line(result: SolveResult) -> str:
    """Return method, sweeps and seconds as PRISM prints them after a solve.

    Parameters
    ----------
    result
        A finished solve.

    Returns
    -------
    One line, such as ``Jacobi: 22 iterations in 0.01 seconds (average 0.000123, setup 0.00)``.
    """
    return (
        f"{result.method}: {result.iterations} iterations in {result.seconds:.2f} seconds "
        f"(average {result.sweep_seconds:.6f}, setup {result.setup_seconds:.2f})"
    )
