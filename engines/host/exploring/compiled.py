"""A program's expansion compiled by the C compiler: what byte code does, but faster.

The compiled library is kept and checked as `engines.program.native` says.
"""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import dataclass
from typing import Any

from engines.errors import CacheError, UnsupportedError
from engines.program import native
from engines.program.blocks import BlockSource
from engines.program.packing import Packing
from engines.program.program import Program
from engines.program.source import arithmetic_constants, kernel

_ENTRY = "expand_states"
_AT_ONCE = "most_at_once"


@dataclass(frozen=True)
class CompiledExpansion:
    """A compiled function.

    Parameters
    ----------
    function
        A `PgExpand` of src/explore_compiled.hpp.
    at_once
        Of how many transitions it writes targets before any is taken.
    """

    function: Any
    at_once: int


def source_of(program: Program, packing: Packing) -> str:
    """Return the source of a program's expansion.

    Parameters
    ----------
    program
        The model.
    packing
        Of its states.

    Raises
    ------
    UnsupportedError
        As `BlockSource`.
    """
    writer = BlockSource(program, packing)
    parts = [
        *arithmetic_constants(),
        kernel("montecarlo"),
        writer.declarations(),
        writer.block_expansion(_ENTRY),
        f"EXPORTED const int {_AT_ONCE} = {writer.at_once};",
    ]
    return "\n".join(parts) + "\n"


def compiled_expansion(program: Program, packing: Packing) -> CompiledExpansion:
    """Return the compiled function of a program.

    Parameters
    ----------
    program
        The model.
    packing
        Of its states.

    Raises
    ------
    UnsupportedError
        If there is no compiler, it fails, or what it makes cannot be kept.
    """
    try:
        library = native.load(source_of(program, packing))
    except (CacheError, OSError, subprocess.SubprocessError) as error:
        raise UnsupportedError(str(error)) from error
    at_once = ctypes.c_int.in_dll(library, _AT_ONCE).value
    return CompiledExpansion(getattr(library, _ENTRY), at_once)
