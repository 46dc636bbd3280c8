"""Coloured Gauss-Seidel on a GPU of systems whose matrix stays in the hybrid representation."""

from __future__ import annotations

from typing import Any

from engines.cuda.driver import cupy
from engines.cuda.gauss_seidel import ColourSweeper
from engines.cuda.modules import Launcher
from engines.cuda.rows import DeviceRows
from engines.host.diagram_colours import ColouredDiagram
from engines.host.expansion.slices import SliceColours
from engines.model.result import SweepCost

MODULE = "diagram_colours"


class DiagramColourSweeper(ColourSweeper):
    """A solve on the device, a launch a colour, whose rows are laid out already.

    Parameters
    ----------
    rows
        The rows, in the hybrid representation.
    coloured
        Start, relaxation and colours.
    stop_below, absolute, device_number
        As in `engines.cuda.gauss_seidel.ColourSweeper`.
    """

    def __init__(
        self,
        rows: DeviceRows,
        coloured: ColouredDiagram,
        stop_below: float,
        absolute: bool,
        device_number: int,
    ) -> None:
        self._rows = rows
        self._slices = coloured.colouring
        self._num_states = len(coloured.start)
        self._at_once = SliceColours(rows.count, rows.count, 1)
        how = (coloured.omega, stop_below, absolute, device_number)
        super().__init__(coloured.start, self._slices.count, *how)
        name = f"{rows.layout.matrix_format} by colours"
        self.cost = SweepCost(
            (device_number,), "rows_of_slices", name, rows.bytes_moved, rows.events
        )

    def _prepare(self) -> Launcher:
        self._positions = None
        states = self._rows.device.states
        if states is not None:
            cp = cupy()
            self._positions = cp.full(self._num_states, -1, dtype=cp.int32)
            self._positions[states] = cp.arange(self._rows.count, dtype=cp.int32)
        return self._rows.launcher

    def _sweep_colour(self, source: int, colour: int, slots: Any) -> None:
        test = (self._stop_below, self._absolute)
        self._sweep_slices(source, self._slices, colour, slots, self._omega, *test)

    def _sweep_at_once(self, source: int, slots: Any) -> None:
        self._sweep_slices(source, self._at_once, 0, slots, 1.0, -1.0, True)

    def _sweep_slices(
        self,
        source: int,
        slices: SliceColours,
        colour: int,
        slots: Any,
        omega: float,
        stop_below: float,
        absolute: bool,
    ) -> None:
        cp, device = self._cp, self._rows.device
        multipliers, shifts = zip(divisor(slices.slice_size), divisor(slices.count), strict=True)
        self._launcher.launch(
            "sweep_rows_of_slices",
            slices.steps(colour) * slices.slice_size,
            *(*self._rows.layout.arguments, device.offset, device.states, self._positions),
            *(cp.int32(number) for number in (slices.rows, slices.slice_size, slices.slices)),
            *(cp.int32(slices.backwards), cp.int32(colour), cp.int32(slices.count)),
            *(cp.uint32(number) for number in multipliers),
            *(cp.int32(shift) for shift in shifts),
            *(cp.float64(omega), self._vectors[source], self._vectors[1 - source], *slots),
            *(cp.float64(stop_below), cp.int32(absolute)),
            module=MODULE,
        )


def divisor(number: int) -> tuple[int, int]:
    """Return a multiplier and a shift that divide numbers below 2³¹, rounding down.

    Parameters
    ----------
    number
        From 1 to 2³¹ − 1.

    Notes
    -----
    With 2^(s − 1) < d ≤ 2^s and m = ⌈2^(31 + s) / d⌉, m d exceeds 2^(31 + s) by less than d ≤ 2^s,
    so that n m / 2^(31 + s) exceeds n / d by less than 1 / d for n < 2³¹ (Granlund and Montgomery
    1994, Division by invariant integers using multiplication, theorem 4.2).
    """
    shift = 31 + (number - 1).bit_length()
    multiplier = -(-(1 << shift) // number)
    assert multiplier < 1 << 32, "the multiplier of a divisor does not fit into 32 bits"
    return multiplier, shift
