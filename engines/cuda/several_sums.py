"""Sums of powers on several GPUs: each adds up the terms of a block of rows.

What devices send each other after a sweep, and how they meet, is as in one-sided solves; see
`engines.cuda.several`. The change that they agree on is 2 where a sweep is not steady on any of
them, else 1 where it has changed anything on any of them, else 0.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from engines.arrays import FloatArray
from engines.cuda import uniformise
from engines.cuda.driver import cupy
from engines.cuda.meeting import Meetings, MeetingTuning, Part, begin_stretch, end_stretch, gather
from engines.cuda.queued import HISTORY
from engines.cuda.several import (
    event,
    parts_of,
    require_room,
    require_shareable,
    shared_or_reason,
    shared_out,
    told_of,
)
from engines.cuda.transfer import to_host
from engines.cuda.uniformise import DeviceSum, SumRows, first_term, require_numbers
from engines.formats.blocks import row_blocks
from engines.model.choice import Format
from engines.model.events import Event
from engines.model.progress import Progress
from engines.model.result import SweepCost
from engines.systems.one_sided import SweepSystem
from engines.systems.power_sums import PowerSum, Summed


def sum_powers(
    problem: PowerSum,
    progress: Progress | None,
    devices: tuple[int, ...],
    matrix_format: Format = Format.CSR,
    most_memory: int | None = None,
    meeting: MeetingTuning = MeetingTuning(),
) -> Summed:
    """Compute Σ_k c_k P^k x; see `engines.questions.uniformisation`.

    What cannot be shared out is summed on the first device, and the cost tells why.

    Parameters
    ----------
    problem
        The sum.
    progress
        As in `engines.cuda.uniformise.sum_powers`.
    devices
        Which devices, the first of which decides; a device may be named twice.
    matrix_format
        How each lays its block out.
    most_memory
        Bytes that the sum may take of each device; None for what is free.
    meeting
        How they meet.

    Raises
    ------
    DeviceMemoryError
        When not even the first device can hold the system; nothing is left allocated.
    UnsupportedError
        For more states than 32 bits number, and when a device has waited for another in vain.
    """
    began = time.perf_counter()
    require_numbers(problem)

    def prepare() -> SeveralSum:
        require_shareable(problem.system, devices)
        require_room(devices, *bytes_needed(problem), most_memory)
        with cupy().cuda.Device(devices[0]):
            return SeveralSum(problem, devices, matrix_format, meeting)

    shared = shared_or_reason(devices, prepare)
    if isinstance(shared, Event):
        how = (matrix_format, most_memory)
        done = uniformise.sum_powers(problem, progress, devices[0], *how)
        return replace(done, cost=told_of(done.cost, shared))
    with cupy().cuda.Device(devices[0]):
        return shared.summed(progress, began)


def bytes_needed(problem: PowerSum) -> tuple[int, int]:
    """Return the bytes of what is cut into blocks, and of what each device takes beside its block.

    Parameters
    ----------
    problem
        The sum.
    """
    system = problem.system
    beside = 24 * system.num_states + 16 * HISTORY + problem.weights.nbytes
    return system.bytes_per_sweep + 2 * problem.stay.nbytes, beside


def sum_blocks(problem: PowerSum, pieces: int) -> list[PowerSum]:
    """Cut the rows of a sum into blocks of about equal work.

    Parameters
    ----------
    problem
        The sum.
    pieces
        How many blocks are wanted; there are fewer where there are fewer rows.

    Returns
    -------
    Sums over the same states, each of some of the rows; see `engines.formats.blocks.row_blocks`.
    """
    blocks, first = [], 0
    for block in row_blocks(problem.system, pieces):
        end = first + block.num_updates
        blocks.append(replace(problem, system=block, stay=problem.stay[first:end]))
        first = end
    return blocks


class SeveralSum(DeviceSum):
    """A sum on several devices.

    Parameters
    ----------
    problem
        The sum.
    devices
        Which devices, the first of which is the current one.
    matrix_format
        How each lays its block out.
    meeting
        How they meet.
    """

    def __init__(
        self,
        problem: PowerSum,
        devices: tuple[int, ...],
        matrix_format: Format,
        meeting: MeetingTuning,
    ) -> None:
        self._devices, self._meeting = devices, meeting
        super().__init__(problem, devices[0], matrix_format)

    def _prepare(self, matrix_format: Format) -> None:
        problem = self._problem
        blocks = sum_blocks(problem, len(self._devices))

        def laid_out(place: int, counted: SweepSystem) -> SumRows:
            block = blocks[place]
            own = replace(block, system=counted)
            return SumRows.of(own, first_term(block), problem.system, matrix_format)

        systems = [block.system for block in blocks]
        self._parts: list[Part[SumRows]] = parts_of(systems, self._devices, laid_out, 1.0)
        self._meetings = Meetings(self._parts, self._meeting)
        self._rows = self._parts[0].rows
        self._vectors = self._parts[0].vectors
        self._fork = event()

    def _cost(self) -> SweepCost:
        moved = sum(part.rows.bytes_moved for part in self._parts)
        cost = replace(super()._cost(), bytes_per_sweep=moved)
        return shared_out(cost, self._parts, self._meetings.way)

    def _ended(self) -> tuple[int, int]:
        self._meetings.require_all()
        return super()._ended()

    def _total(self) -> FloatArray:
        totals = []
        for part in self._parts:
            with self._cp.cuda.Device(part.device), part.stream:
                totals.append(to_host(part.rows.total))
        return np.concatenate(totals)

    def _iterate(self) -> FloatArray:
        return gather(self._parts, 0, super()._iterate())

    def _graph(self) -> Any:
        with self._meetings.queued_as_a_whole():
            return super()._graph()

    def _stretch(self, sweeps: int) -> None:
        begin_stretch(self._parts, self._fork)
        for t in range(1, sweeps + 1):
            for part in self._parts:
                with self._cp.cuda.Device(part.device), part.stream:
                    x, x_new = part.windows[(t - 1) % 2], part.windows[t % 2]
                    slots = (part.merged[t - 1 : t], part.changes[t : t + 1])
                    part.rows.sweep(t, x, x_new, *slots)
            self._meetings.queue(t, t % 2)
        for part in self._parts:
            with self._cp.cuda.Device(part.device), part.stream:
                part.rows.end_stretch(part.merged, sweeps)
        end_stretch(self._parts)
