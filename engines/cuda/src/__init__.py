"""CUDA sources, compiled at run time and cached on disk."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

USUAL = ("sweep", "prepare", "uniformise", "two_sided", "graph")
"""Modules that any solve may want."""

GRAPH = ("components", "condensation", "mec", "numbering", "trimming")
"""Modules that decompose graphs."""

IN_COLOURS = ("gauss_seidel", "split_colours", "diagram_colours")
"""Modules of sweeps in colours, whose text comes after the header of their slots."""

COLOURING = ("counting_sort", "colouring", "arranging")
"""Modules that find the colours of a system, and arrange it by them."""

PEERS = ("forward_backward",)
"""Modules of algorithms that ours are measured against."""

MODULES = (
    *(*USUAL, *GRAPH, *IN_COLOURS, *COLOURING, *PEERS),
    *("multilevel", "several", "space", "windows"),
)
FORMATTED = ("sweep", "uniformise", "two_sided", "windows")
"""Modules written over a matrix format, whose headers come before their text."""

TESTED = ("sweep", "uniformise", "windows")
"""Such modules whose text comes after the header of changes, their test and their record."""

OVER = {"diagram_colours": "hybrid"}
"""Modules written over one matrix format alone."""

BY_WORKLIST = ("graph", *GRAPH)
"""Modules whose text comes after the header of worklists."""

BUILDING = (
    *("formats/distinct", "formats/rows", "formats/layout", "formats/scan_segments"),
    "formats/panels",
    "diagrams",
)
"""Modules that lay a matrix out in another format than CSR, or expand one; loaded when wanted."""

BESIDE_BUILDING = {
    "diagrams": ("pivot.cuh", "formats/jobs.cuh"),
    "formats/layout": ("pivot.cuh",),
}
"""The headers of such modules beside the one that all of them have."""

OFFSET_TYPES = ("int", "long long")

IN_DOUBLE = ("REAL=double", "ROUNDED=")
"""What the vectors of a sweep are made of, and what is stored of a sum: all of it."""

_TINY = "LEAST_SCALE=7.888609052210118e-31"
IN_SINGLE = {
    False: ("REAL=float", "ROUNDED=__double2float_rd", _TINY),
    True: ("REAL=float", "ROUNDED=__double2float_rn", _TINY),
}
"""What the vectors of a sweep in single precision are made of, and what is stored of a sum, by
whether that is rounded to nearest; else it is rounded down.
Changes of values below 2^-100 are measured against that."""

HEADERS = {
    "csr": ("csr",),
    "values": ("divisors", "values"),
    "patterns": ("pairs", "patterns"),
    "segments": ("segments",),
    "hybrid": ("divisors", "jobs", "hybrid"),
    "panels": ("panels",),
}
"""The headers of each format, in order."""


def source(module: str, matrix_format: str = "csr") -> str:
    """Return the CUDA source of a module.

    Parameters
    ----------
    module
        One of `MODULES` or `BUILDING`.
    matrix_format
        One of `HEADERS`; it matters to the modules of `FORMATTED`.
    """
    names = [f"{module}.cu"]
    if module in IN_COLOURS:
        names = ["colours.cuh", *names]
    if module in FORMATTED or module in OVER:
        headers = (*HEADERS[OVER.get(module, matrix_format)], "products")
        tested = ("changes.cuh",) if module in TESTED else ()
        names = [*(f"formats/{header}.cuh" for header in headers), *tested, *names]
    elif module == "prepare":
        names = ["pivot.cuh", *names]
    elif module in BY_WORKLIST:
        names = ["worklist.cuh", *names]
    elif module in BUILDING:
        names = ["formats/building.cuh", *BESIDE_BUILDING.get(module, ()), *names]
    folder = files(__name__)
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


def options(offset_type: str, defines: Sequence[str] = ()) -> tuple[str, ...]:
    """Return NVRTC's options for a type of row offsets.

    Parameters
    ----------
    offset_type
        One of `OFFSET_TYPES`.
    defines
        Definitions that a format's headers ask for, such as ``CODE=unsigned char``, and those of
        `IN_SINGLE` for sweeps in single precision.
    """
    single = any(define.startswith("REAL=") for define in defines)
    precision = () if single else IN_DOUBLE
    return (
        "-std=c++17",
        f"-DOFFSET={offset_type}",
        f"-DUNSIGNED_OFFSET=unsigned {offset_type}",
        *(f"-D{define}" for define in (*defines, *precision)),
    )
