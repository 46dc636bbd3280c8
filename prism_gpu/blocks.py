"""Linear equations over shared blocks, after `libcudasles_solve` of the thesis of 2013."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from bridge.known import require_known
from engines.arrays import FloatArray, IndexArray
from engines.devices.choice import choose_diagram_engine
from engines.diagrams.instances import BlockInstance, CoordinateBlock, hybrid_of
from engines.diagrams.system import DiagramSystem
from engines.errors import InvalidModelError
from engines.host.diagram_colours import ColouredDiagramScheme
from engines.model.environment import Method
from engines.model.events import told
from prism_gpu.settings import number_of, read_settings, whole_of


@dataclass(frozen=True)
class Block:
    """A sparse block in coordinate form.

    Parameters
    ----------
    shape
        Rows and columns.
    values
        Shape (entries,).
    rows, columns
        Shape (entries,): where each entry lies in the block, from 0 on.
    """

    shape: tuple[int, int]
    values: ArrayLike
    rows: ArrayLike
    columns: ArrayLike


@dataclass(frozen=True)
class Instance:
    """A place where a block lies in the matrix.

    Parameters
    ----------
    block
        Its number among the blocks.
    row, column
        Of the matrix, where the block's first row and column lie.
    """

    block: int
    row: int
    column: int


@dataclass(frozen=True)
class Solution:
    """What `solve_blocks` found.

    Parameters
    ----------
    values
        Shape (n,): the last iterate.
    iterations
        Sweeps that were made.
    converged
        Whether the last one met the stopping rule.
    residual
        The largest ``|b − (D + R) x|`` divided by the row's ``|diagonal|``.
    seconds
        Wall-clock seconds, all included.
    device
        "CPU" or "GPU 0".
    note
        Colours, and what else the log would tell.
    """

    values: FloatArray
    iterations: int
    converged: bool
    residual: float
    seconds: float
    device: str
    note: str


def solve_blocks(
    blocks: Sequence[Block],
    instances: Sequence[Instance],
    right_side: ArrayLike | None,
    diagonal: ArrayLike,
    *,
    start: ArrayLike | None = None,
    omega: float = 1.0,
    epsilon: float = 1e-6,
    stop: Literal["relative", "absolute"] = "relative",
    max_iterations: int = 10_000,
    device: Literal["auto", "cpu", "gpu"] = "auto",
    slice_size: int | None = None,
    colours: int | None = None,
) -> Solution:
    """Solve (D + R) x = b by Gauss-Seidel in colours, where R is a sum of shared sparse blocks.

    The blocks stay shared: R is never expanded, and takes the memory of its distinct blocks and a
    few bytes an instance, as in PRISM's hybrid engine.

    Parameters
    ----------
    blocks
        The distinct blocks, in coordinate form.
    instances
        Where they lie in R; they may overlap, and are added up then.
    right_side
        b, shape (n,); None for zero.
    diagonal
        The diagonal D, shape (n,), as it is, not inverted; no entry may be zero. Its length is n.
    start
        The first iterate, shape (n,); None for zero, or for 1/n everywhere where b is zero.
    omega
        Relaxation ω, between 0 and 2: x ← (1 − ω) x + ω (b − R x) / D.
    epsilon
        Sweeps end when no value changes by more in one.
    stop
        Whether that is relative to the value, or absolute.
    max_iterations
        The most sweeps.
    device
        Where to sweep; "auto" takes a GPU if there is one that can be used.
    slice_size, colours
        Consecutive states of a slice, and number of colours; None for a choice.

    Returns
    -------
    Solution
        Where its `converged` is false, the last iterate.

    Raises
    ------
    InvalidModelError
        For parts that do not belong together, and for numbers that are none.
    TypeError, ValueError
        For arguments of a wrong type, and for words that are not known.
    UnsupportedError
        For an ω outside of (0, 2), and where a GPU was asked for and cannot be used.

    Notes
    -----
    After section 4.4 of G. Ingaramo, Implementación del algoritmo Gauss-Seidel en CUDA para la
    verificación simbólica de modelos probabilísticos, 2013. That call takes the diagonal inverted,
    overwrites the start and returns a status.
    """
    began = time.perf_counter()
    require_known(stop, ("relative", "absolute"), "value of stop")
    settings = {"epsilon": epsilon, "max_iterations": max_iterations, "device": device}
    omega = number_of({"omega": omega}, "omega", 1.0)
    environment = replace(
        read_settings({**settings, "absolute": stop == "absolute"}).environment,
        method=Method.SOR,
        omega=omega,
        slice_size=_whole_or_none("slice_size", slice_size),
        colours=_whole_or_none("colours", colours),
    )
    system = _system(blocks, instances, right_side, diagonal, start, omega)
    engine, events = choose_diagram_engine(environment, system)
    scheme = ColouredDiagramScheme(engine, system, environment)
    sweeper = scheme.sweeper(system, epsilon, environment.absolute)
    batch = 64  # Sweeps between two looks at what they did.
    made, change = 0, np.inf
    while made < max_iterations and not change < epsilon:
        changes = sweeper.run(min(batch, max_iterations - made))
        made, change = made + len(changes), float(changes[-1])
        # A value that rises from 0 has an infinite relative change; values that overflow have none.
        if np.isnan(change):
            break
    values = np.array(sweeper.values())
    converged = change < epsilon and bool(np.isfinite(values).all())
    return Solution(
        *(values, made, converged, sweeper.residual(), time.perf_counter() - began),
        *(sweeper.cost.engine, told((*events, *sweeper.cost.events, *sweeper.events))),
    )


def _whole_or_none(name: str, value: int | None) -> int | None:
    return None if value is None else whole_of({name: value}, name, 0)


def _system(
    blocks: Sequence[Block],
    instances: Sequence[Instance],
    right_side: ArrayLike | None,
    diagonal: ArrayLike,
    start: ArrayLike | None,
    omega: float,
) -> DiagramSystem:
    for what, items, wanted in (("blocks", blocks, Block), ("instances", instances, Instance)):
        for item in items:
            if not isinstance(item, wanted):
                raise TypeError(f"{what} must be of {wanted.__name__}, not {item!r}")
    pivots = _vector(diagonal, "the diagonal", None)
    size = len(pivots)
    if (pivots == 0.0).any():
        raise InvalidModelError(f"the diagonal is zero in row {int(np.argmin(np.abs(pivots)))}")
    given = None if right_side is None else _vector(right_side, "the right-hand side", size)
    if start is not None:
        first = _vector(start, "the start", size)
    else:
        first = np.full(size, 1.0 / max(size, 1) if given is None else 0.0)
    try:
        matrix = hybrid_of(
            size,
            [
                CoordinateBlock(
                    *(int(block.shape[0]), int(block.shape[1])),
                    np.asarray(block.values, dtype=np.float64),
                    *(_places(block.rows, "rows"), _places(block.columns, "columns")),
                )
                for block in blocks
            ],
            [BlockInstance(item.block, item.row, item.column) for item in instances],
        )
    except ValueError as error:
        raise InvalidModelError(str(error)) from error
    offset = None if given is None else given / pivots
    return DiagramSystem(matrix, first, offset, omega=omega, divisors=-pivots)


def _places(numbers: ArrayLike, what: str) -> IndexArray:
    found = np.asarray(numbers)
    if found.size and not np.issubdtype(found.dtype, np.integer):
        raise InvalidModelError(f"the {what} of a block must be integers, not {found.dtype}")
    return found.astype(np.int64)


def _vector(values: ArrayLike, what: str, size: int | None) -> FloatArray:
    try:
        found: FloatArray = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidModelError(f"{what} must be numbers: {error}") from error
    if found.ndim != 1 or (size is not None and len(found) != size):
        wanted = "one dimension" if size is None else f"{size} entries"
        raise InvalidModelError(f"{what} must have {wanted}, but its shape is {found.shape}")
    if not np.isfinite(found).all():
        raise InvalidModelError(f"{what} holds what is no finite number")
    return found
