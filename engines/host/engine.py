"""The CPU engine."""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray
from engines.host import layouts, substitution
from engines.host.layouts import Layout
from engines.host.scaling import scaled
from engines.host.single_sweeper import CpuSingleSweeper
from engines.host.space import HostSpace
from engines.model.choice import Format
from engines.model.events import Events, Kind
from engines.systems.one_sided import SingleSweeper, SweepSystem

ENCODE_SWEEPS = 100
"""Sweeps in CSR before rows are looked through for patterns, which takes as long as ten or twenty:
a solve that has made this many makes many more, as a rule."""

ENCODE_ENTRIES = 100_000
"""Fewest entries of a matrix that is looked through: sweeps of fewer are short."""


class CpuEngine:
    """Sweeps on the host's cores.

    Parameters
    ----------
    matrix_format
        How matrices are laid out: csr, values or patterns; any other becomes csr.
        By default rows are swept in CSR, and by patterns in a long solve of rows that repeat.
    """

    gpus = ()

    def __init__(self, matrix_format: Format = Format.AUTO) -> None:
        self._format = matrix_format

    def sweeper(self, system: SweepSystem, stop_below: float, absolute: bool) -> CpuSweeper:
        """Prepare a solve; see `engines.systems.one_sided.Scheme.sweeper`."""
        return CpuSweeper(scaled(system), stop_below, absolute, self._format)


class CpuSweeper:
    """A solve on the host: two vectors, swapped after each sweep.

    Parameters
    ----------
    system
        A system whose matrix is scaled already.
    stop_below, absolute
        As in `engines.systems.one_sided.Scheme.sweeper`.
    matrix_format
        As in `CpuEngine`.
    layout
        The matrix, if it is laid out by now.
    """

    def __init__(
        self,
        system: SweepSystem,
        stop_below: float,
        absolute: bool,
        matrix_format: Format = Format.AUTO,
        layout: Layout | None = None,
    ) -> None:
        self.seconds = 0.0
        self._system, self._format = system, matrix_format
        self._stop_below, self._absolute = stop_below, absolute
        large = matrix_format is Format.AUTO and system.matrix.num_entries >= ENCODE_ENTRIES
        self._until_patterns = ENCODE_SWEEPS if large else math.inf
        """Sweeps to come until rows are looked through for patterns."""
        events: Events = ()
        if layout is None:
            layout, events = layouts.lay_out(system, matrix_format)
        self._layout, self.cost = layout, layout.cost(events)
        self._x = layout.inwards(system.start)
        # States that no row computes keep their values in both vectors.
        self._x_new = self._x.copy()

    def run(self, sweeps: int) -> FloatArray:
        """Make up to `sweeps` sweeps; see `engines.systems.one_sided.Sweeper.run`."""
        if self._until_patterns <= 0:
            self._look_for_patterns()
        started = time.perf_counter()
        changes = np.empty(sweeps)
        how = (changes, self._stop_below, self._system.omega)
        made = self._layout.sweeps.repeat(*how, self._x, self._x_new, self._absolute)
        if made % 2:
            self._x, self._x_new = self._x_new, self._x
        self._until_patterns -= made
        self.seconds += time.perf_counter() - started
        return changes[:made]

    def _look_for_patterns(self) -> None:
        """Go on by patterns where neighbouring rows repeat."""
        self._until_patterns = math.inf
        # Where there is too little memory, rows are swept as before.
        with contextlib.suppress(MemoryError):
            layout = layouts.in_patterns(self._system)
            if layout is not None:
                x = self.values()
                self._layout, self.cost = layout, layout.cost()
                self.restart(x)

    def residual(self) -> float:
        """Return the largest absolute value of b + A x − x."""
        return layouts.residual(self._layout.sweeps, self._x, self._x_new)

    def in_single(self, stop_below: float, nearest: bool, factor: float = 1.0) -> SingleSweeper:
        """Return sweeps in single precision; see `engines.systems.one_sided.HasSingle`."""
        how = (stop_below, self._absolute, nearest, factor)
        single = CpuSingleSweeper(self._system, self.values(), *how)
        if self._format not in (Format.AUTO, Format.CSR):
            as_csr = Kind.SINGLE_AS_CSR(format=self._format)
            single.cost = replace(single.cost, events=(as_csr,))
        return single

    def twin(self, start: FloatArray, stop_below: float) -> CpuSweeper:
        """Return sweeps of the same rows from another start; see `systems.one_sided.HasTwin`."""
        system = replace(self._system, start=start)
        twin = CpuSweeper(system, stop_below, self._absolute, self._format, self._layout)
        twin._until_patterns = self._until_patterns
        return twin

    def restart(self, start: FloatArray) -> None:
        """Go on from another iterate; see `engines.systems.space.HasSpace`."""
        self._x = self._layout.inwards(start)
        self._x_new = self._x.copy()

    def space(self, system: SweepSystem) -> HostSpace:
        """Return a space for GMRES; see `engines.systems.space.HasSpace`."""
        return HostSpace(system, self)

    def substituted(self) -> tuple[FloatArray, float] | None:
        """Return what one walk along the edges finds; see `systems.one_sided.HasSubstitution`."""
        return substitution.substitute(self._system, self.values())

    def stop_at(self, stop_below: float) -> None:
        """Stop after the first later sweep whose change is below this; negative for never."""
        self._stop_below = stop_below

    def go_on_from(self, single: SingleSweeper) -> None:
        """Take over the mean of the last two iterates; see `systems.one_sided.HasSingle`."""
        assert isinstance(single, CpuSingleSweeper)
        where = slice(None) if self._system.states is None else self._system.states
        x = np.array(self.values())
        x[where] = single.mean()[where]
        self.restart(x)

    def values(self) -> FloatArray:
        """Return the present iterate."""
        return self._layout.outwards(self._x)
