"""Optimistic value iteration: upper bounds that are guessed, then verified."""

from __future__ import annotations

import numpy as np

from engines.arrays import FloatArray
from engines.methods.iterate import FIRST_BATCH
from engines.model.environment import SolverEnvironment
from engines.model.events import Kind
from engines.model.progress import Progress
from engines.model.result import Status
from engines.solve.narrow import Batches, Narrowing, narrow
from engines.solve.system import SLOW_AFTER
from engines.systems.two_sided import TwoSidedSweeper


def narrow_by_guesses(
    sweeper: TwoSidedSweeper,
    trivial_upper: FloatArray,
    environment: SolverEnvironment,
    may_give_up: bool,
    progress: Progress | None = None,
    batches: Batches | None = None,
) -> Narrowing:
    """Sweep a lower bound and guesses of an upper one until a guess is verified.

    Parameters
    ----------
    sweeper
        The prepared solve, which does not stop by itself and lets no upper value rise.
    trivial_upper
        Upper bounds that hold without a sweep, shape (states,); infinite where there is none.
    environment
        Epsilon and limits.
    may_give_up
        Whether slow sweeps may be given up.
    progress
        Called after each batch of sweeps, with the width.
    batches
        The batches made so far with this sweeper, to go on from.

    Notes
    -----
    Hartmanns and Kaminski (2020), Optimistic Value Iteration. A guess u is the lower bound moved
    up by a little less than epsilon. Both are swept. As soon as a sweep, rounded up, raises no
    value of u, u is an upper bound (Park's induction), and so is all that follows it. A guess that
    falls below the lower bound in some state was wrong, and one that is still open after half as
    many sweeps as came before it is given up. The lower bound goes on during all this, so that a
    wrong guess costs no sweep of it; the paper's test for when to guess is therefore left out.
    """
    batches = batches or Batches(sweeper, environment, progress)
    # Rounding must leave a guess within epsilon of the lower bound.
    distance = 0.9 * environment.epsilon
    guessed_at, slow = batches.iterations, False
    sweeper.guess_upper(distance, environment.absolute)
    while not batches.exhausted and not slow:
        record = batches.run()
        if (record.rises == 0.0).any():
            return narrow(sweeper, environment, may_give_up, progress, batches)
        at_rest = record.moved[-1] == 0.0
        if at_rest and distance >= 1.0:
            break
        tried = batches.iterations - guessed_at
        if at_rest or record.crossings.max() > 0.0 or tried > max(FIRST_BATCH, guessed_at // 2):
            if at_rest:
                distance = min(max(10.0 * distance, 1e-15), 1.0)
            slow = may_give_up and batches.iterations >= SLOW_AFTER
            sweeper.guess_upper(distance, environment.absolute)
            guessed_at = batches.iterations
    lower, _ = sweeper.bounds()
    unverified = (Kind.NO_GUESS_VERIFIED(),)
    upper = np.maximum(trivial_upper, lower)
    return Narrowing(lower, upper, Status.NOT_CONVERGED, batches.iterations, unverified, slow)
