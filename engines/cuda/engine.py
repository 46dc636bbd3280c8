"""The CUDA engine."""

from __future__ import annotations

from engines.arrays import INT32_MAX
from engines.cuda.driver import cupy
from engines.cuda.formats.tuning import RowTuning
from engines.cuda.memory import available_bytes
from engines.cuda.split import SplitSweeper
from engines.cuda.sweeper import CudaSweeper, device_bytes
from engines.errors import DeviceMemoryError, UnsupportedError
from engines.model.choice import Format
from engines.systems.one_sided import SweepSystem


class CudaEngine:
    """Sweeps on one GPU.

    Parameters
    ----------
    device_number
        Which of the devices.
    matrix_format
        How matrices are laid out; what cannot be is swept in CSR, and the cost tells why.
    most_memory
        Bytes of device memory that a solve may take; None for what is free.
    tuning
        What was measured of the ways to sweep rows; of those in the host's memory, the default.
    """

    def __init__(
        self,
        device_number: int = 0,
        matrix_format: Format = Format.CSR,
        most_memory: int | None = None,
        tuning: RowTuning = RowTuning(),
    ) -> None:
        self.device_number = device_number
        self.gpus = (device_number,)
        self.matrix_format = matrix_format
        self.most_memory = most_memory
        self._tuning = tuning

    def sweeper(self, system: SweepSystem, stop_below: float, absolute: bool) -> CudaSweeper:
        """Prepare a solve; see `engines.systems.one_sided.Scheme.sweeper`.

        A matrix that the device cannot hold is left in the host's memory; see
        `engines.cuda.split`.

        Raises
        ------
        DeviceMemoryError
            When the device cannot hold the vectors; nothing is left allocated.
        """
        cp = cupy()
        if system.num_states > INT32_MAX:
            raise UnsupportedError(
                f"{system.num_states} states: the GPU engine numbers states in 32 bits"
            )
        where = (stop_below, absolute, self.device_number, self.matrix_format)
        with cp.cuda.Device(self.device_number):
            need = device_bytes(system)
            available = available_bytes(self.most_memory)
            try:
                if need <= available:
                    sweeper = CudaSweeper(system, *where, self._tuning)
                    sweeper.spare = available - need
                    return sweeper
            except cp.cuda.memory.OutOfMemoryError:
                cp.get_default_memory_pool().free_all_blocks()
                available = available_bytes(self.most_memory)
            try:
                return SplitSweeper(system, *where, memory=available)
            except cp.cuda.memory.OutOfMemoryError as error:
                cp.get_default_memory_pool().free_all_blocks()
                raise DeviceMemoryError(
                    f"GPU {self.device_number} ran out of memory: {error}"
                ) from error
