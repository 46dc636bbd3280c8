"""From a system on the device to the layout that is swept: choose, build, fall back to CSR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from engines.cuda.driver import cupy
from engines.cuda.formats import csr, panels, patterns, segments, values
from engines.cuda.formats.batches import in_batches
from engines.cuda.formats.layout import Layout, Source, divided_in_place, source_of
from engines.cuda.formats.survey import OFTEN, survey
from engines.cuda.formats.tuning import PanelTuning, RowTuning
from engines.cuda.modules import Launcher
from engines.cuda.prepare import DeviceSystem
from engines.errors import UnsupportedError
from engines.model.choice import (
    SMALL_SWEEP_BYTES,
    Facts,
    Format,
    estimate_line,
    estimates,
    worthwhile,
)
from engines.model.events import Event, Events, Kind
from engines.systems.one_sided import SweepSystem

Builder = Callable[[Source, Launcher], Layout]


@dataclass(frozen=True)
class LaidOut:
    """A system whose matrix has been laid out.

    Parameters
    ----------
    device
        The system, without the arrays that the layout has replaced.
    layout
        The matrix.
    events
        Why the format is not the one that was asked for.
    estimates
        The estimates that the format was chosen by, in one line; empty where it was named.
    """

    device: DeviceSystem
    layout: Layout
    events: Events = ()
    estimates: str = ""


def may_leave_csr(system: SweepSystem, wanted: Format) -> bool:
    """Return whether a system may be laid out otherwise than in CSR.

    Parameters
    ----------
    system
        What is to be solved.
    wanted
        What the user asked for.
    """
    if system.matrix.num_entries == 0 or wanted is Format.CSR:
        return False
    return wanted is not Format.AUTO or system.bytes_per_sweep >= SMALL_SWEEP_BYTES


def lay_out(
    device: DeviceSystem,
    system: SweepSystem,
    wanted: Format,
    launcher: Launcher,
    *,
    segments_serve: bool = False,
    by_blocks: bool = False,
    tuning: RowTuning = RowTuning(),
) -> LaidOut:
    """Lay a matrix out for its sweeps.

    Parameters
    ----------
    device
        The system on the device, its matrix in CSR; its rows not yet divided where
        `may_leave_csr` says so.
    system
        The same on the host.
    wanted
        What the user asked for.
    launcher
        Launches kernels for the system's type of row offsets.
    segments_serve
        Whether the sweeps need no more of the matrix than products of whole rows.
    by_blocks
        Whether some rows are so long that a block takes them where threads share rows.
    tuning
        What was measured of the formats.

    Notes
    -----
    What cannot be built, for too many distinct words or too little memory, leaves CSR, and events
    tell why.
    """
    done = _laid_out(device, system, wanted, launcher, segments_serve, by_blocks, tuning.panels)
    entries = int(device.values.size)
    return replace(done, layout=in_batches(done.layout, system, entries, tuning.batches))


def _laid_out(
    device: DeviceSystem,
    system: SweepSystem,
    wanted: Format,
    launcher: Launcher,
    segments_serve: bool,
    by_blocks: bool,
    tuning: PanelTuning,
) -> LaidOut:
    rows = system.matrix.num_rows
    on_device = int(device.values.size)
    if not may_leave_csr(system, wanted) or on_device == 0:
        return _in_csr(device, launcher, rows, on_device)
    shape = panels.cut(system.num_states, launcher, tuning)
    facts = Facts(
        rows,
        on_device,
        offset_bytes=int(device.row_offsets.itemsize),
        beside=_beside(device, system),
        given_bytes=0 if device.offset is None else int(device.offset.nbytes),
        segments_serve=segments_serve and device.group_offsets is None,
        groups=device.group_offsets is not None,
        panels=None if shape is None else shape.panels,
        panel_copies=0 if shape is None else shape.copied_bytes,
        by_blocks=by_blocks,
    )
    if wanted in (Format.SEGMENTS, Format.PANELS) and not facts.segments_serve:
        what = f"sums of {wanted} serve one-sided sweeps of chains"
        refused = Kind.FORMAT_REFUSED(format=wanted, reason=what)
        return _in_csr(device, launcher, rows, on_device, (refused,))
    if wanted is Format.HYBRID:
        refused = Kind.FORMAT_REFUSED(format=wanted, reason="the matrix is not a diagram's")
        return _in_csr(device, launcher, rows, on_device, (refused,))
    try:
        source = source_of(device, launcher, rows, on_device, system.num_states)
        if wanted is not Format.AUTO:
            layout, reason = _built(_builder(wanted, tuning), source, launcher)
            if layout is not None:
                return _freed(device, layout)
            refused = Kind.FORMAT_REFUSED(format=wanted, reason=reason)
            return _in_csr(device, launcher, rows, on_device, (refused,))
        facts = survey(source, launcher, facts)
    except cupy().cuda.memory.OutOfMemoryError:
        cupy().get_default_memory_pool().free_all_blocks()
        return _in_csr(device, launcher, rows, on_device, (Kind.NO_ROOM_FOR_FORMATS(),))
    failed: list[Event] = []
    for candidate in worthwhile(facts):
        builder = _builder(candidate, tuning)
        if candidate is Format.PATTERNS:
            # A sample may have missed most of them.
            builder = partial(patterns.build, most=max(rows // OFTEN, 1))
        layout, reason = _built(builder, source, launcher)
        if layout is not None:
            done = _freed(device, layout)
            return replace(done, estimates=estimate_line(estimates(facts), candidate))
        failed.append(Kind.FORMAT_FAILED(format=candidate, reason=reason))
    done = _in_csr(device, launcher, rows, on_device, tuple(failed))
    return replace(done, estimates=estimate_line(estimates(facts), Format.CSR))


def _builder(wanted: Format, tuning: PanelTuning) -> Builder:
    """Return what builds a format."""
    builders: dict[Format, Builder] = {
        Format.VALUES: values.build,
        Format.PATTERNS: patterns.build,
        Format.SEGMENTS: segments.build,
        Format.PANELS: partial(panels.build, tuning=tuning),
    }
    return builders[wanted]


def _built(builder: Builder, source: Source, launcher: Launcher) -> tuple[Layout | None, str]:
    try:
        return builder(source, launcher), ""
    except UnsupportedError as error:
        return None, str(error)
    except cupy().cuda.memory.OutOfMemoryError:
        cupy().get_default_memory_pool().free_all_blocks()
        return None, "the GPU has too little memory to build it"


def _in_csr(
    device: DeviceSystem, launcher: Launcher, rows: int, entries_there: int, events: Events = ()
) -> LaidOut:
    source = Source(
        *(device.row_offsets, device.columns, device.values, device.divisors, None, None),
        rows,
        entries_there,
    )
    divided_in_place(source, launcher)
    return LaidOut(replace(device, divisors=None), csr.build(source), events)


def _freed(device: DeviceSystem, layout: Layout) -> LaidOut:
    """Return the system without what only its layout holds from now on."""
    offset = None if layout.holds_offset else device.offset
    left = replace(
        device, row_offsets=None, columns=None, values=None, divisors=None, offset=offset
    )
    return LaidOut(left, layout)


def _beside(device: DeviceSystem, system: SweepSystem) -> int:
    arrays = (device.offset, device.states, device.group_offsets)
    read = sum(int(array.nbytes) for array in arrays if array is not None)
    return read + 8 * (system.num_states + system.num_updates)
