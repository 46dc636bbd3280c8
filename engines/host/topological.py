"""Value iteration over the strongly connected components of a system, by the compiled library."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_double, c_int32, c_int64, c_void_p
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from engines.arrays import FloatArray, IndexArray
from engines.host.compiled.library import DOUBLES, INDICES, Array, Function
from engines.host.structures import HostSystem
from engines.systems.one_sided import ROUNDING_OF_A_SUM, SweepSystem

if TYPE_CHECKING:
    from engines.host.components import Components

ROUNDING = 1e-13
"""Relative changes below this are mostly rounding and say nothing about contraction."""

ENTRIES_OF_A_CALL = 50_000_000
"""Entries that a call looks at before Python reports progress and may answer an interrupt."""

WINDOW = 64


class Reason(IntEnum):
    """Why a walk stopped, as src/walk.hpp has it."""

    DONE = 0
    OUTSIDE = 1
    """At a component that is solved elsewhere."""
    SLOW = 2
    """At a component whose iterations contract too slowly."""
    OUT_OF_BUDGET = 3
    """Anywhere, to report."""
    LIMIT = 4
    """At a component that reached the limit of iterations."""
    CROSSED = 5
    """A lower bound exceeds its upper one."""


class How(IntEnum):
    """How a component is solved."""

    HERE = 0
    ELSEWHERE = 1
    PATIENTLY = 2
    """Here, however slow it is."""


class Rule(ctypes.Structure):
    """When an iteration ends: `PgRule` of src/topological.cpp.

    Parameters
    ----------
    epsilon, absolute
        Below which change a component is finished, and whether changes are absolute.
    limit
        Most iterations of a component.
    automatic
        Whether the expected error must be below epsilon too, twice in a row.
    rising
        Whether values rise from 0, so that an automatic solve can prove its error.
    slow_after
        Iterations after which an automatic solve gives up a component that contracts too slowly.
    """

    _fields_ = (
        ("epsilon", c_double),
        ("rounding", c_double),
        ("rounding_of_a_sum", c_double),
        ("limit", c_int64),
        ("slow_after", c_int64),
        ("absolute", c_int32),
        ("automatic", c_int32),
        ("rising", c_int32),
    )

    def __init__(
        self,
        *,
        epsilon: float,
        absolute: bool,
        limit: int,
        automatic: bool,
        rising: bool,
        slow_after: int,
    ) -> None:
        rounding = (ROUNDING, ROUNDING_OF_A_SUM)
        super().__init__(epsilon, *rounding, limit, slow_after, absolute, automatic, rising)


class Place(ctypes.Structure):
    """Where a walk is: `PgPlace` of src/topological.cpp, whose comments explain its fields."""

    component: int
    iterations: int
    unmet: int
    change: float
    work: float
    _fields_ = (
        ("component", c_int64),
        ("sweeps", c_int64),
        ("iterations", c_int64),
        ("met", c_int64),
        ("failed", c_int64),
        ("unmet", c_int64),
        ("change", c_double),
        ("work", c_double),
        ("changes", c_double * WINDOW),
    )

    def leave(self) -> None:
        """Go on to the component after the present one."""
        self.component += 1
        self.sweeps = self.met = self.failed = 0


class HostOrder(ctypes.Structure):
    """`PgOrder` of src/walk.hpp."""

    _fields_ = (
        ("components", c_int64),
        ("found", c_void_p),
        ("bounds", c_void_p),
        ("component", c_void_p),
    )

    @classmethod
    def of(cls, components: Components) -> HostOrder:
        """Return the order as the library reads it; its arrays must outlive it.

        Parameters
        ----------
        components
            The components of a system, and their order.
        """
        column = Array(components.equations.matrix.columns.dtype)
        arrays = (components.found, components.bounds, components.component)
        return cls(len(components.bounds) - 1, *map(column.pointer, arrays))


class _Numbers(ctypes.Structure):
    _fields_ = tuple(
        (name, c_void_p) for name in ("how", "errors", "x", "fresh", "before", "guess")
    )


_COMPONENTS = Function(
    "pg_components", c_int64, HostSystem, c_int64, c_void_p, c_void_p, c_void_p, INDICES
)
_SOLVE = Function(
    "pg_solve_components",
    c_int32,
    *(HostSystem, POINTER(HostOrder), POINTER(Rule), POINTER(_Numbers), POINTER(Place), c_int64),
)


def ordered_components(
    equations: SweepSystem,
) -> tuple[IndexArray, IndexArray, IndexArray, IndexArray]:
    """Return the strongly connected components of the states that have rows, in order.

    Parameters
    ----------
    equations
        The equations, with a group of rows for each state, of none for known ones; every entry
        is an edge.

    Returns
    -------
    Four arrays as `engines.host.components.Components` has them: found, bounds, component, depth.

    Raises
    ------
    MemoryError
        If there is too little memory.

    Notes
    -----
    Tarjan (1972), which finds each component after those that it leads to.
    """
    size, kind = equations.num_states, equations.matrix.columns.dtype
    if equations.num_updates != size:
        raise ValueError(f"there are {equations.num_updates} groups of rows for {size} states")
    found, bounds, component = (np.empty(n, dtype=kind) for n in (size, size + 1, size))
    depth = np.empty(size, dtype=np.int64)
    pointers = (array.ctypes.data for array in (found, bounds, component))
    count = int(_COMPONENTS(HostSystem.of(equations), size, *pointers, depth))
    if count < 0:
        raise MemoryError("strongly connected components: out of memory")
    return found[: bounds[count]], bounds[: count + 1], component, depth[:count]


class HostWalk:
    """Value iteration from component to component.

    Parameters
    ----------
    components
        The equations and their components.
    rule
        When an iteration ends.
    how
        A `How` for each component, shape (components,), int64; may be changed between the steps.
    values
        The first values, shape (states,); become the solution's.

    Attributes
    ----------
    place
        Where the walk is.
    errors
        Shape (components,): the error of each component that was finished, together with what it
        inherits.
    """

    def __init__(
        self, components: Components, rule: Rule, how: IndexArray, values: FloatArray
    ) -> None:
        count = require_sizes(components, how, values)
        self.place, self.errors = Place(), np.zeros(count)
        self._rule, self._components = rule, components
        self._system = HostSystem.of(components.equations)
        self._order = HostOrder.of(components)
        largest = int(components.sizes.max(initial=1))
        self._kept = (how, self.errors, values, *(np.empty(largest) for _ in range(3)))
        numbers = (DOUBLES.pointer(array) for array in self._kept[1:])
        self._numbers = _Numbers(INDICES.pointer(how), *numbers)

    def step(self, entries: int | None = None) -> Reason:
        """Go on until something is to be done elsewhere; return the reason.

        Parameters
        ----------
        entries
            About how many entries to look at before it returns to report;
            `ENTRIES_OF_A_CALL` by default.
        """
        budget = ENTRIES_OF_A_CALL if entries is None else entries
        numbers = (self._rule, self._numbers, self.place)
        return Reason(_SOLVE(self._system, self._order, *numbers, budget))


def require_sizes(components: Components, how: IndexArray, *values: FloatArray) -> int:
    """Return how many components there are.

    Parameters
    ----------
    components
        The components.
    how
        An array with a number for each of them.
    values
        Arrays with a number for each state.

    Raises
    ------
    ValueError
        If an array has another length.
    """
    count, states = len(components.bounds) - 1, components.equations.num_states
    if len(how) != count or any(len(array) != states for array in values):
        raise ValueError(f"arrays do not fit {count} components of {states} states")
    return count
