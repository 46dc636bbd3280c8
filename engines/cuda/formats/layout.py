"""What a format is built from, and what a sweep in it needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from engines.cuda.driver import cupy
from engines.cuda.modules import BLOCK_THREADS, Launcher, Variant
from engines.cuda.prepare import DeviceSystem
from engines.model.choice import Format

MOST_THREADS = 1024
"""The most threads of a block; as in the kernels."""

CHUNK_THREADS = (1024, 768, 640, 512)
"""Threads a block where a block takes a chunk of rows: as many as let most be under way at a time,
and in large blocks before small ones. Each chunk wants a part of the processor's cache for what it
reads of x, so that few chunks find more of it there."""

SLICE = 32
"""Rows of a slice, as many as a warp has threads; chunks are made of whole slices."""

BESIDE = "formats/layout"
"""The module of kernels that all formats use."""


@dataclass(frozen=True)
class Source:
    """A matrix in CSR on the device.

    Parameters
    ----------
    row_offsets, columns, values
        The matrix.
    divisors
        What each row is still to be divided by, or None.
    offset
        The right-hand side, shape (rows,), or None; divided already.
    row_states
        The state of each row, which distances of columns count from; None where row i is state i's.
    rows, entries
        Size of the matrix.
    scale_apart
        Whether the divisors stay beside the dictionary instead of going into its values.
    states
        Length of the vector that it is multiplied with; only panels ask for it.

    Notes
    -----
    With a scale apart, a row's sum is multiplied by the divisor's reciprocal instead of dividing
    each of its n entries. Of entries and iterates that are not negative, the one is off by at most
    n + 2 units of roundoff, the other by n + 1, so that they differ by at most 2 (n + 2) of them.
    All else is CSR's arithmetic: where one thread adds up a row in both, the results are the same
    to the last bit.
    """

    row_offsets: Any
    columns: Any
    values: Any
    divisors: Any | None
    offset: Any | None
    row_states: Any | None
    rows: int
    entries: int
    scale_apart: bool = False
    states: int = 0

    @property
    def divisors_within(self) -> Any | None:
        """The divisors that go into the values, or None."""
        return None if self.scale_apart else self.divisors

    def scales(self) -> tuple[Source, ...]:
        """Return the ways to treat the scale of the rows: within the values, and apart."""
        return (self,) if self.divisors is None else (self, replace(self, scale_apart=True))


@dataclass(frozen=True)
class Scan:
    """A kernel that goes before each sweep and takes sums of products, which the sweep gathers.

    Parameters
    ----------
    kernel, module
        The kernel. Behind the matrix it takes the vector, the slot of the sweep before, the
        threshold of its test, and where the sums go.
    matrix
        Its arguments for the matrix.
    sums
        Takes the sums.
    threads, block
        All threads, and threads a block.
    shared_bytes
        Dynamic shared memory of a block.
    """

    kernel: str
    module: str
    matrix: tuple[Any, ...]
    sums: Any
    threads: int
    block: int
    shared_bytes: int = 0

    def launch(self, launcher: Launcher, x: Any, before_slot: Any, stop_below: float) -> None:
        """Queue the kernel on the current stream.

        Parameters
        ----------
        launcher
            Launches kernels for the matrix's type of row offsets.
        x
            The vector.
        before_slot
            The change of the sweep before.
        stop_below
            A sweep whose predecessor changed less does nothing.
        """
        launcher.launch(
            self.kernel,
            self.threads,
            *(*self.matrix, x, before_slot, cupy().float64(stop_below), self.sums),
            module=self.module,
            block=self.block,
            shared_bytes=self.shared_bytes,
        )


@dataclass(frozen=True)
class Layout:
    """A matrix as the kernels of a format read it.

    Parameters
    ----------
    matrix_format
        Which format.
    arguments
        The kernels' arguments for the matrix.
    matrix_bytes
        Bytes of these that a sweep reads, and writes.
    defines
        What the kernels are compiled with.
    chunked
        Whether a block takes a chunk of rows; else a thread has one row.
    shared_bytes
        Dynamic shared memory of a block.
    holds_offset
        Whether the right-hand side is part of the layout.
    scan
        What goes before each sweep; None for nothing.
    """

    matrix_format: Format
    arguments: tuple[Any, ...]
    matrix_bytes: int
    defines: tuple[str, ...] = ()
    chunked: bool = True
    shared_bytes: int = 0
    holds_offset: bool = False
    scan: Scan | None = None

    @property
    def variant(self) -> Variant:
        """What the modules are compiled for."""
        return Variant(str(self.matrix_format), self.defines)


@dataclass(frozen=True)
class Geometry:
    """How a kernel is launched.

    Parameters
    ----------
    threads
        All threads, a multiple of `block` where rows are taken in chunks.
    block
        Threads a block.
    chunk
        Rows a block.
    """

    threads: int
    block: int
    chunk: int


def source_of(
    device: DeviceSystem, launcher: Launcher, rows: int, entries: int, states: int = 0
) -> Source:
    """Return the matrix of a system, with the state of each row.

    Parameters
    ----------
    device
        The system, its matrix still in CSR.
    launcher
        Launches kernels for the system's type of row offsets.
    rows, entries
        Size of the matrix.
    states
        Length of the vector that it is multiplied with, where panels may be wanted.
    """
    cp = cupy()
    row_states = device.states
    if device.group_offsets is not None:
        row_states = cp.empty(rows, dtype=cp.int32)
        groups = len(device.group_offsets) - 1
        launcher.launch(
            "name_row_states",
            groups,
            *(device.group_offsets, device.states, cp.int32(groups), row_states),
            module=BESIDE,
        )
    return Source(
        *(device.row_offsets, device.columns, device.values, device.divisors, device.offset),
        row_states,
        rows,
        entries,
        states=states,
    )


def geometry(
    layout: Layout, kernel: str, module: str, count: int, threads_each: int, launcher: Launcher
) -> Geometry:
    """Return how a kernel is launched over a layout.

    Parameters
    ----------
    layout
        The matrix.
    kernel, module
        The kernel.
    count
        Rows, or groups of rows.
    threads_each
        Threads that share one of them.
    launcher
        Launches the kernels of this layout.
    """
    if kernel.endswith("by_block"):
        return Geometry(count * threads_each, MOST_THREADS, MOST_THREADS)
    alone = Geometry(count * threads_each, BLOCK_THREADS, BLOCK_THREADS)
    if not layout.chunked or threads_each > 1:
        return alone
    blocks = {size: launcher.resident_blocks(kernel, module, size) for size in CHUNK_THREADS}
    block = max(CHUNK_THREADS, key=lambda size: size * blocks[size])
    # Where each row has a thread of its own at once, small blocks spread over more processors.
    if count <= block * blocks[block]:
        return alone
    chunk = -(-count // blocks[block])
    chunk = -(-chunk // SLICE) * SLICE
    return Geometry(-(-count // chunk) * block, block, chunk)


def nbytes(*arrays: Any) -> int:
    """Return the bytes of arrays; None has none."""
    return sum(int(array.nbytes) for array in arrays if array is not None)


def divided_in_place(source: Source, launcher: Launcher) -> None:
    """Divide the rows of a matrix that has divisors."""
    if source.divisors is not None:
        wide = launcher.offset_dtype
        arguments = (source.row_offsets, source.values, wide(source.rows), source.divisors)
        launcher.launch("divide_rows", source.rows, *arguments, module=BESIDE)
