"""What a state leads to in a graph in the hybrid representation, found on a GPU."""

from __future__ import annotations

import numpy as np

from engines.arrays import MaskArray
from engines.cuda.diagram_upload import MODULE, check_sizes, hybrid_bytes, upload_hybrid
from engines.cuda.driver import cupy
from engines.cuda.memory import available_bytes
from engines.cuda.modules import BLOCK_THREADS, Launcher, stream
from engines.diagrams.hybrid import HybridMatrix
from engines.errors import DeviceMemoryError


def reached_on_device(
    hybrid: HybridMatrix, state: int, device_number: int = 0, memory: int | None = None
) -> tuple[MaskArray, int]:
    """Return the states that one leads to, itself included, and one of the farthest.

    Parameters
    ----------
    hybrid
        The transitions, without choices.
    state
        Where paths begin.
    device_number
        Which of the devices.
    memory
        Bytes of device memory that may be taken; None for what is free.

    Returns
    -------
    Shape (states,), and a state of those that the most transitions are needed to.

    Raises
    ------
    DeviceMemoryError
        When the device cannot hold blocks and sets; nothing is left allocated.
    UnsupportedError
        As in `engines.cuda.diagram_upload.check_sizes`.
    """
    cp, size = cupy(), hybrid.num_states
    check_sizes(hybrid)
    with cp.cuda.Device(device_number), stream(device_number):
        need, available = hybrid_bytes(hybrid) + 5 * size, available_bytes(memory)
        if need > available:
            raise DeviceMemoryError(
                f"GPU {device_number}: blocks and sets of {size} states take about {need} bytes, "
                f"and {available} bytes are free"
            )
        try:
            return _reached(hybrid, state)
        except cp.cuda.memory.OutOfMemoryError as error:
            cp.get_default_memory_pool().free_all_blocks()
            raise DeviceMemoryError(
                f"GPU {device_number} ran out of memory on a walk: {error}"
            ) from error


def _reached(hybrid: HybridMatrix, state: int) -> tuple[MaskArray, int]:
    cp, size = cupy(), hybrid.num_states
    launcher = Launcher("int")
    arguments = upload_hybrid(hybrid, launcher).arguments
    reached = cp.zeros(-(-size // 32), dtype=cp.uint32)
    queue = cp.empty(size, dtype=cp.int32)
    # Where the present round's states begin and end in the queue, and how many are in it.
    marks = cp.empty(3, dtype=cp.int32)
    start = (cp.int32(state), reached, queue, marks)
    launcher.launch("begin_walk", 1, *start, module=MODULE, block=1)
    # Whatever the number of states in a round, which the host does not know between its looks.
    threads, rounds_a_look = 256 * BLOCK_THREADS, 128
    while True:
        for _ in range(rounds_a_look):
            launcher.launch("walk_on", threads, *arguments, reached, queue, marks, module=MODULE)
            launcher.launch("end_round", 1, marks, module=MODULE, block=1)
        begin, end, count = (int(mark) for mark in marks.get())
        if begin == end:
            break
    bits = np.unpackbits(reached.get().view(np.uint8), bitorder="little")
    return bits[:size].astype(np.bool_), int(queue[count - 1 : count].get()[0])
