"""States where an until has probability 0 or 1, from the graph alone.

The sets are those of Prob0A, Prob0E, Prob1A and Prob1E (de Alfaro 1997, Formal Verification of
Probabilistic Systems; Baier and Katoen 2008, section 10.6.1), each found by a worklist.
"""

from __future__ import annotations

from engines.arrays import MaskArray
from engines.devices.graph import operations_of
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.process.timeline import SEARCHING, TIMELINE
from engines.systems.one_sided import Direction


@TIMELINE.counted(SEARCHING)
def prob0(
    model: ExplicitModel,
    remain: MaskArray,
    target: MaskArray,
    direction: Direction | None = None,
    *,
    environment: SolverEnvironment | None = None,
) -> MaskArray:
    """Return the states where the probability of ``remain U target`` is 0.

    Parameters
    ----------
    model
        A model of any kind.
    remain, target
        Boolean masks, shape (states,).
    direction
        MDPs only, and needed there: whether the minimum is 0 (some strategy avoids the target) or
        the maximum (every strategy does).
    environment
        Which device to use; None for the CPU. The set is the same on all.

    Returns
    -------
    Boolean mask, shape (states,).

    Raises
    ------
    ValueError
        If an MDP comes without a direction.
    UnsupportedError
        When the GPU was asked for and cannot be used.
    """
    operations = operations_of(model, environment)
    if _minimises(model, direction):
        return ~operations.must_approach(target, remain)
    return ~operations.may_reach(target, remain)


@TIMELINE.counted(SEARCHING)
def prob1(
    model: ExplicitModel,
    remain: MaskArray,
    target: MaskArray,
    direction: Direction | None = None,
    *,
    never: MaskArray | None = None,
    environment: SolverEnvironment | None = None,
) -> MaskArray:
    """Return the states where the probability of ``remain U target`` is 1.

    Parameters
    ----------
    model
        A model of any kind.
    remain, target
        Boolean masks, shape (states,).
    direction
        MDPs only, and needed there: whether the minimum is 1 (every strategy reaches the target
        almost surely) or the maximum (some strategy does).
    never
        What `prob0` returned for the same question, where that is known already.
    environment
        Which device to use; None for the CPU. The set is the same on all.

    Returns
    -------
    Boolean mask, shape (states,).

    Raises
    ------
    ValueError
        If an MDP comes without a direction.
    UnsupportedError
        When the GPU was asked for and cannot be used.
    """
    if model.kind is ModelKind.MDP and not _minimises(model, direction):
        return operations_of(model, environment).can_force(target, remain)
    # Probability 1 is lost by a path, before the target, to where the probability is 0.
    if never is None:
        never = prob0(model, remain, target, direction, environment=environment)
    return ~operations_of(model, environment).may_reach(never, remain & ~target)


@TIMELINE.counted(SEARCHING)
def reachable(
    model: ExplicitModel, sources: MaskArray, *, environment: SolverEnvironment | None = None
) -> MaskArray:
    """Return the states that a path from `sources` enters, those of length 0 included.

    Parameters
    ----------
    model
        A model of any kind.
    sources
        Boolean mask, shape (states,).
    environment
        Which device to use; None for the CPU. The set is the same on all.

    Raises
    ------
    UnsupportedError
        When the GPU was asked for and cannot be used.
    """
    return operations_of(model, environment).reached_from(sources)


def _minimises(model: ExplicitModel, direction: Direction | None) -> bool:
    if model.kind is not ModelKind.MDP:
        return False
    if direction is None:
        raise ValueError("an MDP needs a direction: minimise or maximise")
    return direction is Direction.MINIMISE
