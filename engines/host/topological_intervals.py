"""Interval iteration over the strongly connected components, by the compiled library."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_double, c_int32, c_int64, c_void_p
from typing import TYPE_CHECKING

import numpy as np

from engines.arrays import FloatArray, IndexArray
from engines.host import topological
from engines.host.compiled.library import DOUBLES, INDICES, Function
from engines.host.structures import HostSystem
from engines.host.topological import HostOrder, Reason, require_sizes
from engines.systems.two_sided import SMALLEST, UNIT_ROUNDOFF

if TYPE_CHECKING:
    from engines.host.components import Components


class IntervalRule(ctypes.Structure):
    """How to iterate, and until when: `PgIntervalRule` of src/topological_intervals.cpp.

    Parameters
    ----------
    slack
        Rounding of a row besides that of its sum, in units of roundoff.
    raised_by
        What is added to the first upper values of a component of several states.
    limit
        Most iterations of a component.
    slow_after
        Iterations after which a component is given up that will need as many more; 0 for never.
    absolute
        Whether widths are absolute.
    monotonic_below, monotonic_above
        Whether no iteration lowers a lower value, or raises an upper one.
    """

    _fields_ = (
        ("slack", c_double),
        ("unit_roundoff", c_double),
        ("smallest", c_double),
        ("raised_by", c_double),
        ("limit", c_int64),
        ("slow_after", c_int64),
        ("absolute", c_int32),
        ("monotonic_below", c_int32),
        ("monotonic_above", c_int32),
    )

    def __init__(
        self,
        *,
        slack: float,
        raised_by: float,
        limit: int,
        slow_after: int,
        absolute: bool,
        monotonic_below: bool,
        monotonic_above: bool,
    ) -> None:
        numbers = (slack, UNIT_ROUNDOFF, SMALLEST, raised_by, limit, slow_after)
        super().__init__(*numbers, absolute, monotonic_below, monotonic_above)


class IntervalPlace(ctypes.Structure):
    """Where a walk is, and what its last iteration did: `PgIntervalPlace`, which explains it."""

    component: int
    sweeps: int
    iterations: int
    at_rest: int
    width: float
    crossing: float
    worst: float
    work: float
    _fields_ = (
        ("component", c_int64),
        ("sweeps", c_int64),
        ("iterations", c_int64),
        ("at_rest", c_int64),
        ("width", c_double),
        ("rise", c_double),
        ("fall", c_double),
        ("crossing", c_double),
        ("width_before", c_double),
        ("checked_at", c_int64),
        ("worst", c_double),
        ("work", c_double),
    )

    def leave(self) -> None:
        """Go on to the component after the present one."""
        self.component += 1
        self.sweeps = 0


class _Numbers(ctypes.Structure):
    _fields_ = tuple(
        (name, c_void_p)
        for name in ("how", "epsilons", "lower", "upper", "fresh_lower", "fresh_upper")
    )


_NARROW = Function(
    "pg_narrow_components",
    c_int32,
    *(HostSystem, POINTER(HostOrder), POINTER(IntervalRule)),
    *(POINTER(_Numbers), POINTER(IntervalPlace), c_int64),
)


class HostIntervalWalk:
    """Interval iteration from component to component.

    Parameters
    ----------
    components
        The equations and their components; single states must have no loop.
    rule
        How to iterate, and until when.
    how
        A `How` for each component, shape (components,), int64; may be changed between the steps.
    epsilons
        How close the bounds of each component must come, shape (components,).
    lower, upper
        The first bounds, shape (states,); become the last.

    Attributes
    ----------
    place
        Where the walk is.
    """

    def __init__(
        self,
        components: Components,
        rule: IntervalRule,
        how: IndexArray,
        epsilons: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
    ) -> None:
        count = require_sizes(components, how, lower, upper)
        if len(epsilons) != count:
            raise ValueError(f"there are {len(epsilons)} epsilons for {count} components")
        self.place = IntervalPlace()
        self._rule, self._components = rule, components
        self._system = HostSystem.of(components.equations)
        self._order = HostOrder.of(components)
        largest = int(components.sizes.max(initial=1))
        self._kept = (how, epsilons, lower, upper, np.empty(largest), np.empty(largest))
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
        budget = topological.ENTRIES_OF_A_CALL if entries is None else entries
        numbers = (self._rule, self._numbers, self.place)
        return Reason(_NARROW(self._system, self._order, *numbers, budget))
