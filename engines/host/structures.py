"""Systems as the compiled library reads them."""

from __future__ import annotations

from ctypes import c_double, c_int32, c_void_p

from engines.host.compiled.library import HostMatrix, Structure, doubles, of_type_or_none
from engines.host.compiled.shares import Shares
from engines.systems.one_sided import Direction, SweepSystem


class HostSystem(Structure):
    """`PgSystem` of src/system.hpp."""

    _fields_ = (
        ("matrix", HostMatrix),
        ("groups", c_void_p),
        ("states", c_void_p),
        ("offset", c_void_p),
        ("omega", c_double),
        ("minimise", c_int32),
    )

    @classmethod
    def of(cls, system: SweepSystem) -> HostSystem:
        """Return a system without a scaling as the library reads it; arrays are shared.

        Parameters
        ----------
        system
            The system; its start is not looked at.
        """
        matrix = HostMatrix.of(system.matrix)
        groups = of_type_or_none(system.group_offsets, bool(matrix.wide_offsets))
        states = of_type_or_none(system.states, bool(matrix.wide_columns))
        offset = None if system.offset is None else doubles(system.offset)
        arrays = (groups, states, offset)
        pointers = [None if array is None else array.ctypes.data for array in arrays]
        minimise = system.direction is Direction.MINIMISE
        made = cls(matrix, *pointers, system.omega, minimise)
        made._kept = (matrix, *arrays)
        return made


def shares_of(system: SweepSystem) -> Shares:
    """Return how a system is shared out.

    Parameters
    ----------
    system
        The system.
    """
    offsets, groups = system.matrix.row_offsets, system.group_offsets
    return Shares(offsets if groups is None else offsets[groups], system.matrix.num_rows)
