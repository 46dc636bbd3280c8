"""Systems of equations over a diagram's matrix, which is never expanded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engines.arrays import FloatArray, IndexArray
from engines.diagrams.hybrid import HybridMatrix
from engines.errors import UnsupportedError
from engines.systems.flows import FlowRuns
from engines.systems.one_sided import Direction, Scaling, SweepSystem


@dataclass(frozen=True)
class DiagramSystem:
    """A system of equations, as `systems.one_sided.SweepSystem`, whose matrix is a diagram's.

    Parameters
    ----------
    matrix
        The rows of all states. Under `Scaling.BALANCE` the transpose of `rates`: its row j has the
        rates into state j.
    start
        Shape (states,), float64: the first iterate, on the host, or on the device, where the solve
        writes over it.
    offset
        The vector b, shape (rows,), or None for zero.
    states
        The states that are computed, ascending; None for all. Row i is that of the i-th of them; in
        an MDP, their choices are the rows, in order.
    scaling, omega
        As in `SweepSystem`.
    rates
        Under `Scaling.BALANCE`: the rates out of each state.
    flows
        The same as both matrices, where their rows are kept as runs.
    direction
        MDPs: minimise or maximise over the choices.
    divisors
        Without a scaling: what the products of each row are divided by, shape (rows,), the vector b
        not; None for 1.
    """

    matrix: HybridMatrix
    start: Any
    offset: FloatArray | None = None
    states: IndexArray | None = None
    scaling: Scaling = Scaling.NONE
    omega: float = 1.0
    rates: HybridMatrix | None = None
    flows: FlowRuns | None = None
    direction: Direction | None = None
    divisors: FloatArray | None = None

    @property
    def num_states(self) -> int:
        """Number of states, the length of the iterate."""
        return self.matrix.num_states

    @property
    def num_updates(self) -> int:
        """Number of states that a sweep computes."""
        return self.num_states if self.states is None else len(self.states)

    @property
    def has_choices(self) -> bool:
        """Whether several rows may compute one state."""
        return self.matrix.job_choices is not None

    @property
    def expanded(self) -> None:
        """None: there is no such system with an expanded matrix."""

    def check(self) -> None:
        """Raise unless the parts belong together.

        Raises
        ------
        UnsupportedError
            When the GPU engine cannot sweep such a system without its matrix, and why.
        ValueError
            When a part is missing or has the wrong length.
        """
        size = self.matrix.num_states
        if self.matrix.num_columns != size or len(self.start) != size:
            raise ValueError(
                f"{size} states, {self.matrix.num_columns} columns and an iterate of length "
                f"{len(self.start)} do not belong together"
            )
        if self.has_choices and self.scaling is not Scaling.NONE:
            raise UnsupportedError("rows of choices are not divided")
        if self.divisors is not None and (
            self.scaling is not Scaling.NONE
            or self.has_choices
            or len(self.divisors) != self.num_updates
        ):
            raise ValueError("divisors belong to the rows of a chain without scaling")
        if self.has_choices != (self.direction is not None):
            raise ValueError("a direction belongs to a matrix with choices")
        if self.scaling is Scaling.BALANCE:
            if self.rates is None or self.rates.num_states != size:
                raise ValueError("rates into states need the rates out of the same states")
            if self.states is not None or self.offset is not None:
                raise UnsupportedError("balance equations are those of all states")


System = SweepSystem | DiagramSystem
"""What is swept, whatever holds its matrix. Any matrix has a number of entries and their values;
what needs each entry in its place asks for the `expanded` system, and refuses where it is None."""
