"""Gauss-Seidel and SOR in colours, watched: sweeps that swing are turned round, then relaxed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from engines.arrays import FloatArray
from engines.diagrams.system import System
from engines.errors import UnsupportedError
from engines.host.colours import Order
from engines.model.environment import Method
from engines.model.events import Event, Events, Kind
from engines.model.result import SweepCost
from engines.systems.one_sided import RELAXED_OMEGA, Sweeper

METHODS = {
    Method.GAUSS_SEIDEL: Order.FORWARDS,
    Method.BACKWARDS_GAUSS_SEIDEL: Order.BACKWARDS,
    Method.SOR: Order.FORWARDS,
    Method.BACKWARDS_SOR: Order.BACKWARDS,
}
"""The methods that sweep in colours, and the order that each goes in."""


def sweeps_in_colours(method: Method) -> bool:
    """Return whether a method is one of Gauss-Seidel's."""
    return method in METHODS


def relaxation(method: Method, omega: float) -> float:
    """Return the ω that a method sweeps with, given that of the environment."""
    return omega if method in (Method.JOR, Method.SOR, Method.BACKWARDS_SOR) else 1.0


class Colours(Protocol):
    """Which states a sweep computes together."""

    @property
    def order(self) -> Order:
        """The order of states that the colours approximate."""

    @property
    def count(self) -> int:
        """Number of colours."""

    @property
    def slice_size(self) -> int:
        """Consecutive states of one colour."""

    @property
    def fresh(self) -> float:
        """Share of the entries that see a value of the same sweep."""


class Arranged(Protocol):
    """A system arranged in colours."""

    @property
    def colouring(self) -> Colours:
        """The colours."""

    @property
    def omega(self) -> float:
        """Relaxation of the sweeps."""

    def restarted(self, values: FloatArray, omega: float) -> Self:
        """Return the same sweeps from another iterate, of shape (states,)."""


A = TypeVar("A", bound=Arranged)
S = TypeVar("S", bound=System, contravariant=True)


class ColourEngine(Protocol[A, S]):
    """A place where sweeps in colours are made."""

    @property
    def order(self) -> Order:
        """The order of Gauss-Seidel to begin with."""

    def coloured(self, system: S, order: Order) -> A:
        """Return a system, as the engine takes it, arranged in colours of an order."""

    def prepared(self, coloured: A, stop_below: float, absolute: bool) -> Sweeper:
        """Return plain sweeps of what has been arranged."""

    def opposite_is_fresher(self, system: S, order: Order) -> bool:
        """Return whether more entries see fresh values if states are swept in opposite order."""


def check_omega(omega: float) -> None:
    """Raise unless sweeps in colours may converge.

    Parameters
    ----------
    omega
        Relaxation.

    Raises
    ------
    UnsupportedError
        For an ω with which they cannot.
    """
    if not 0.0 < omega < 2.0:
        raise UnsupportedError(
            f"sweeps in colours converge only for an omega between 0 and 2, not {omega}"
        )


@dataclass(frozen=True)
class WatchTuning:
    """When it is looked how successive changes point.

    Parameters
    ----------
    first_look
        Sweeps before the first look; each comes twice as late as the one before.
    fewest_looked_at
        Sweeps that a look takes.
    growing
        A largest change that has grown so much since the first sweeps belongs to no slow start.
    """

    first_look: int = 64
    fewest_looked_at: int = 3
    growing: float = 1e3


class WatchedSweeper(Generic[A, S]):
    """A `Sweeper` that notices when sweeps swing or grow, and goes on with others that do not.

    Gauss-Seidel for π Q = 0 may swing for ever, by a period of the order's own, and over-relaxed
    sweeps may grow. The change of a sweep then never meets the test. So from time to time the
    changes of two successive sweeps are compared: where they do not point the same way, and what
    is left would take longer than what was done, the order is turned round if more entries see
    fresh values then, once; else sweeps are relaxed.

    Parameters
    ----------
    engine
        Prepares sweeps.
    system
        What to solve, as the engine takes it.
    stop_below, absolute
        As in `engines.systems.one_sided.Scheme.sweeper`.
    singular
        Whether it is π Q = 0.
    besides
        What else the log tells of these sweeps.
    tuning
        When it is looked how changes point.
    """

    def __init__(
        self,
        engine: ColourEngine[A, S],
        system: S,
        stop_below: float,
        absolute: bool,
        singular: bool,
        besides: Events = (),
        tuning: WatchTuning = WatchTuning(),
    ) -> None:
        self._tuning = tuning
        self._engine = engine
        self._system = system
        self._stop_below, self._absolute = stop_below, absolute
        self._coloured = engine.coloured(system, engine.order)
        self._sweeper = engine.prepared(self._coloured, stop_below, absolute)
        self.cost: SweepCost = self._sweeper.cost
        self.seconds = 0.0
        self._seconds_before = 0.0
        self._made = 0
        self._next_look = self._tuning.first_look
        self._recent: list[float] = []
        self._first_change = math.inf
        self._singular = singular
        # Value iteration and sweeps up to a least solution rise or die out, those for π Q = 0 may
        # go round.
        may_grow, may_swing = system.omega > 1.0, singular and system.omega == 1.0
        self._watched = not system.has_choices and (may_grow or may_swing)
        self._turned = False
        self._events: list[Event] = []
        self._tell_colours()
        self._events += besides

    @property
    def colouring(self) -> Colours:
        """The present colours."""
        return self._coloured.colouring

    @property
    def omega(self) -> float:
        """The present relaxation."""
        return self._coloured.omega

    @property
    def events(self) -> Events:
        """What the colours are, and what became of the sweeps."""
        return tuple(self._events)

    def _tell_colours(self) -> None:
        colours = self.colouring
        numbers = {"colours": colours.count, "states": colours.slice_size}
        percent = 100.0 * colours.fresh
        self._events.append(Kind.COLOURED(order=colours.order, **numbers, percent=percent))

    def run(self, sweeps: int) -> FloatArray:
        """Make up to `sweeps` sweeps; see `engines.systems.one_sided.Sweeper.run`."""
        if not self._watched:
            changes = self._sweeper.run(sweeps)
        elif self._made >= self._next_look and sweeps >= self._tuning.fewest_looked_at:
            changes = self._look()
        else:
            changes = self._until_look(sweeps)
        self.seconds = self._seconds_before + self._sweeper.seconds
        return changes

    def _until_look(self, sweeps: int) -> FloatArray:
        changes = self._sweeper.run(min(sweeps, max(1, self._next_look - self._made)))
        self._count(changes)
        stopped = bool(changes[-1] < self._stop_below)
        if stopped and self.omega > 1.0 and self._grows(self._sweeper.values()):
            self._relax("diverging", self._system.start)
            return _not_converged(changes)
        return changes

    def residual(self) -> float:
        """Return the largest absolute value of b + A x − x for the present iterate."""
        return self._sweeper.residual()

    def values(self) -> FloatArray:
        """Return the present iterate, shape (states,), on the host."""
        return self._sweeper.values()

    def _count(self, changes: FloatArray) -> None:
        self._made += len(changes)
        self._recent.extend(float(change) for change in changes)
        if self._first_change == math.inf:
            finite = changes[np.isfinite(changes)]
            self._first_change = float(finite[0]) if len(finite) else math.inf

    def _look(self) -> FloatArray:
        """Make the sweeps of a look, and go on otherwise where they swing or grow."""
        changes: list[FloatArray] = []
        points = [np.array(self._sweeper.values())]
        for _ in range(self._tuning.fewest_looked_at - 1):
            changes.append(self._sweeper.run(1))
            points.append(np.array(self._sweeper.values()))
            if changes[-1][-1] < self._stop_below:
                break
        made = np.concatenate(changes)
        self._count(made)
        stopped = bool(made[-1] < self._stop_below)
        if self.omega > 1.0 and self._grows(points[-1]):
            self._relax("diverging", self._system.start)
        elif stopped:
            return made
        # The cosine between the changes of two sweeps is 1 in slow progress, and cos 2π/p in a
        # swing of period p, whose changes do not add up.
        elif self._is_slow() and _cosine(*points) < 0.5:
            if self.omega > 1.0:
                # Iterates of both signs are worse than the start.
                self._relax("oscillating", self._system.start)
            elif not self._turned and self._engine.opposite_is_fresher(
                self._system, self.colouring.order
            ):
                self._turn(points[-1])
            else:
                self._relax("oscillating", points[-1])
        self._next_look = 2 * self._made
        self._recent.clear()
        return _not_converged(made) if stopped else made

    def _grows(self, values: FloatArray) -> bool:
        if self._recent[-1] > self._tuning.growing * max(self._first_change, 1.0):
            return True
        # What is infinite from the start is meant to be.
        return not bool(np.isfinite(values[np.isfinite(self._system.start)]).all())

    def _is_slow(self) -> bool:
        """Return whether the sweeps will take longer than they have, going by the last ones."""
        half = len(self._recent) // 2
        early, late = max(self._recent[:half]), max(self._recent[half:])
        if early == math.inf or late == 0.0:
            return False
        if late >= early:
            return True
        wanted = max(self._stop_below, np.finfo(np.float64).eps)
        left = math.log(wanted / late) / math.log(late / early) * (len(self._recent) - half)
        return left > self._made

    def _turn(self, values: FloatArray) -> None:
        self._turned = True
        order = self.colouring.order.opposite
        self._events.append(Kind.TURNED(sweeps=self._made, order=order))
        # What the sweeps before hold on a device is free before others are prepared.
        self._leave()
        del self._coloured
        self._take(self._engine.coloured(replace(self._system, start=values), order))
        self._tell_colours()

    def _relax(self, why: str, values: FloatArray) -> None:
        self._watched = False
        omega = RELAXED_OMEGA if self._singular else 1.0
        self._events.append(Kind.RELAXED(why=why, sweeps=self._made, omega=omega))
        self._leave()
        self._take(self._coloured.restarted(np.asarray(values, np.float64), omega))

    def _leave(self) -> None:
        self._seconds_before += self._sweeper.seconds
        del self._sweeper

    def _take(self, coloured: A) -> None:
        self._coloured = coloured
        self._sweeper = self._engine.prepared(coloured, self._stop_below, self._absolute)
        self.cost = self._sweeper.cost


def _not_converged(changes: FloatArray) -> FloatArray:
    """Return changes of which the last met the test only because NaN does not change."""
    return np.append(changes[:-1], math.inf)


def _cosine(first: FloatArray, second: FloatArray, third: FloatArray) -> float:
    """Return the cosine between the relative changes from each of three iterates to the next."""
    with np.errstate(divide="ignore", invalid="ignore"):
        before = np.nan_to_num((second - first) / np.abs(third), posinf=0.0, neginf=0.0)
        after = np.nan_to_num((third - second) / np.abs(third), posinf=0.0, neginf=0.0)
    lengths = float(np.linalg.norm(before) * np.linalg.norm(after))
    return float(before @ after) / lengths if lengths > 0.0 else 1.0
