"""Values on their way to PRISM, which compares them with the bound of an operator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from engines.model.comparison import settle
from engines.model.environment import SolverEnvironment
from engines.model.result import SolveResult
from prism_hooks.claims import ROUNDING_OF_STEPS, Claim

LEAST_APART = {0.0: np.nextafter(0.0, 1.0), 1.0: 2.0**-53}
"""The least value that differs from 0, or whose complement differs from 1, by that bound."""


def compared(
    problem: Any, result: SolveResult, claim: Claim, environment: SolverEnvironment
) -> tuple[SolveResult, Claim]:
    """Return values that PRISM compares with a bound as it would compare the exact ones.

    Parameters
    ----------
    problem
        The `prismgpu.Problem`, with the bound.
    result
        What was found.
    claim
        What is known of its error.
    environment
        What was asked for.
    """
    result, exactly = _without_false_zeros(result, problem.bound), result.exactly
    if np.isnan(problem.bound) or exactly is None or result.unrounded:
        return result, claim
    error, absolute = claim.error, claim.absolute
    if not error > 0.0:
        # After a number of steps, values are exact but for rounding, of the model's numbers too.
        error = max(result.error_estimate, ROUNDING_OF_STEPS)
        absolute = environment.absolute
    known = ~np.isfinite(result.values) | np.isin(result.values, claim.decided)
    sizes = 1.0 if absolute else np.abs(result.values)
    errors = np.where(known, 0.0, error * sizes)
    relation, bound = str(problem.relation), float(problem.bound)
    values, exact, some_left = settle(result.values, errors, relation, bound, exactly)
    decided = {*claim.decided, *exact}
    complements = {*claim.complements, *(1.0 - value for value in exact)}
    claim = claim._replace(decided=tuple(sorted(decided)), complements=tuple(sorted(complements)))
    if some_left and not claim.error > 0.0 and bound not in LEAST_APART:
        # PRISM is not to compare what rounding may have put on the wrong side.
        claim = claim._replace(error=error, absolute=absolute)
    return replace(result, values=values), claim


def _without_false_zeros(result: SolveResult, bound: float) -> SolveResult:
    """Return values of which neither is 0, nor its complement 1, where the exact one is not."""
    if result.possible is None or bound not in LEAST_APART:
        return result
    apart = np.maximum(result.values, LEAST_APART[bound])
    return replace(result, values=np.where(result.possible, apart, result.values))
