"""Where paths are sampled: on the CPU, or on a GPU where there are enough of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from engines.backend import cupy, driver_present, gpu_refusal
from engines.environment import DeviceChoice
from engines.errors import UnsupportedError
from engines.montecarlo.compile import Compiled
from engines.montecarlo.results import PathArrays
from engines.montecarlo.sampler import Sampler
from engines.montecarlo.tally import PathBatch

GPU_PATHS = 1 << 17
"""Where neither -gpu nor -nogpu is given, fewer paths are sampled on the CPU: those of some hundred
steps are done there before a GPU has been opened and has compiled the model."""


def device_for(device: DeviceChoice, num_paths: int) -> DeviceChoice:
    """Return where to sample.

    Parameters
    ----------
    device
        What the user asked for.
    num_paths
        How many paths there will be; 0 where nobody knows.

    Returns
    -------
    DeviceChoice
        `AUTO` for a GPU if there is one.
    """
    small = device is DeviceChoice.AUTO and num_paths < GPU_PATHS
    return DeviceChoice.CPU if small else device


class DeviceSampler:
    """Samples paths, which are the same on either device; a `Sampler` that may move to a GPU.

    Parameters
    ----------
    make
        Makes a sampler for a device.
    device, device_number
        What the user asked for.
    num_paths
        How many paths there will be; 0 where nobody knows. Then the CPU begins.

    Raises
    ------
    InvalidModelError, UnsupportedError
        As `Sampler` does.
    """

    def __init__(
        self,
        make: Callable[[DeviceChoice], Sampler],
        device: DeviceChoice,
        device_number: int,
        num_paths: int,
    ) -> None:
        self._make, self._number = make, device_number
        begin = device_for(device, num_paths)
        self._may_move = device is DeviceChoice.AUTO and begin is DeviceChoice.CPU
        self._moved_at: int | None = None
        try:
            self._sampler = self._opened(begin)
        except UnsupportedError:
            # Without a C compiler a GPU does few paths too.
            if not (self._may_move and driver_present()):
                raise
            self._may_move = False
            self._sampler = self._opened(DeviceChoice.GPU)

    def _opened(self, device: DeviceChoice) -> Sampler:
        with self._device(device):
            return self._make(device)

    def _device(self, device: DeviceChoice) -> AbstractContextManager[Any]:
        if device is DeviceChoice.CPU or gpu_refusal(self._number) is not None:
            return nullcontext()
        return cupy().cuda.Device(self._number)  # type: ignore[no-any-return]

    @property
    def compiled(self) -> Compiled:
        """The source that is run, and its plan."""
        return self._sampler.compiled

    @property
    def on_gpu(self) -> bool:
        """Whether paths are sampled by a GPU."""
        return self._sampler.on_gpu

    @property
    def place(self) -> str:
        """Where paths are sampled, in words."""
        number = self._sampler.num_devices
        return ("on the CPU", "on the GPU")[number] if number < 2 else f"on {number} GPUs"

    @property
    def remark(self) -> str:
        """Where paths were sampled, if it changed on the way; else empty."""
        if self._moved_at is None:
            return ""
        return f"paths from number {self._moved_at} on were sampled {self.place}"

    def open_for(self, first_path: int, num_paths: int) -> None:
        """Move to a GPU if these paths make it worthwhile; to be done before the process may end.

        Parameters
        ----------
        first_path, num_paths
            What is to be sampled next.
        """
        if not self._may_move or first_path + num_paths < GPU_PATHS:
            return
        self._may_move = False
        if not driver_present() or gpu_refusal(self._number) is not None:
            return
        moved = self._opened(DeviceChoice.AUTO)
        if moved.on_gpu:
            self._sampler, self._moved_at = moved, first_path

    def run(
        self, first_path: int, num_paths: int, progress: Callable[[int], None] | None = None
    ) -> PathBatch:
        """Sample consecutive paths as `Sampler.run` does."""
        with self._here():
            return self._sampler.run(first_path, num_paths, progress)

    def sample(
        self, first_path: int, num_paths: int, progress: Callable[[int], None] | None = None
    ) -> PathArrays:
        """Sample consecutive paths as `Sampler.sample` does."""
        with self._here():
            return self._sampler.sample(first_path, num_paths, progress)

    def _here(self) -> AbstractContextManager[Any]:
        return self._device(DeviceChoice.GPU) if self.on_gpu else nullcontext()
