"""Where paths are sampled: on the CPU, or on a GPU once that is seen to be sooner."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from engines.cuda.driver import cupy, driver_present, gpu_refusal
from engines.errors import UnsupportedError
from engines.model.environment import DeviceChoice
from engines.montecarlo.compile import Compiled
from engines.montecarlo.results import PathArrays, joined
from engines.montecarlo.sampler import Sampler
from engines.montecarlo.tally import PathBatch


@dataclass(frozen=True)
class PlaceTuning:
    """When a GPU is sooner, and how that is found out.

    Parameters
    ----------
    gpu_opens_s
        What a GPU takes to open and to compile a model, beyond what the CPU takes: 0.2 to 0.4 in
        `examples/benchmarks/simulation_threshold.py`. What the CPU samples within that stays there.
    many_paths
        Where so many are known to be wanted, a GPU begins: of paths that take 32 cores 0.05 µs
        each, the least that was measured, so many take `gpu_opens_s`.
    worker_paths
        From so many on, workers of a cluster take a GPU where they have one: a cluster is for large
        numbers of paths, and each worker stays where it begins.
    first_paths
        The first part, since a path may take a second.
    largest_step
        Each other part is as large as all before it, or up to so many times as large where that
        will hardly be measurable.
    measurable_s
        A part that took less may have started threads for as long as it sampled: that takes some
        milliseconds, and more where others use the cores.
    """

    gpu_opens_s: float = 0.4
    many_paths: int = 1 << 23
    worker_paths: int = 1 << 17
    first_paths: int = 64
    largest_step: int = 8
    measurable_s: float = 0.02


def device_for(
    device: DeviceChoice,
    num_paths: int,
    tuning: PlaceTuning = PlaceTuning(),
    *,
    on_cluster: bool = False,
) -> DeviceChoice:
    """Return where to begin to sample.

    Parameters
    ----------
    device
        What the user asked for.
    num_paths
        How many paths there will be; 0 where nobody knows.
    tuning
        How many are worth a GPU.
    on_cluster
        Whether the workers of a cluster sample them, which stay where they begin.

    Returns
    -------
    DeviceChoice
        `AUTO` for a GPU if there is one.
    """
    many = tuning.worker_paths if on_cluster else tuning.many_paths
    small = device is DeviceChoice.AUTO and num_paths < many
    return DeviceChoice.CPU if small else device


class CpuPace:
    """How long the CPU takes, from the parts that it has sampled.

    Parameters
    ----------
    tuning
        How large the parts are, and which say something.
    """

    def __init__(self, tuning: PlaceTuning = PlaceTuning()) -> None:
        self._tuning = tuning
        self.num_paths = 0
        self.seconds = 0.0
        self._last = (0, 0.0)
        self._open = (0, 0.0)
        self._measured: deque[float] = deque(maxlen=2)

    def note(self, num_paths: int, seconds: float) -> None:
        """Take note of a part.

        Parameters
        ----------
        num_paths, seconds
            How many paths it had, at least one, and how long they took.
        """
        self.num_paths += num_paths
        self.seconds += seconds
        # A larger part says more than those before it; where batches are small, several count.
        paths, before = (0, 0.0) if num_paths > self._last[0] else self._open
        self._last = (num_paths, seconds)
        self._open = (paths + num_paths, before + seconds)
        if self._open[1] >= self._tuning.measurable_s:
            self._measured.append(self._open[1] / self._open[0])
            self._open = (0, 0.0)

    def next_part(self) -> int:
        """Return how many paths to sample before looking again."""
        if self.num_paths == 0:
            return self._tuning.first_paths
        paths, seconds = self._last
        wanted = 2 * self._tuning.measurable_s
        most = self._tuning.largest_step * self.num_paths
        if seconds * most > wanted * paths:
            most = int(wanted * paths / seconds)
        return max(self.num_paths, most)

    def expected_s(self, num_paths: int) -> float:
        """Return about how many seconds paths will take; 0 as long as nothing can be said.

        That needs two measurements, of which the quicker counts: one alone may have waited for a
        thread that was loading a library.

        Parameters
        ----------
        num_paths
            How many paths.
        """
        known = len(self._measured) == self._measured.maxlen
        return num_paths * min(self._measured) if known else 0.0


class DeviceSampler:
    """Samples paths, which are the same on either device; a `Sampler` that may move to a GPU.

    Unless the user named a device, the CPU begins, in parts that are timed. Once the rest would
    take it longer than a GPU takes to open, the rest is sampled on a GPU if there is one: the
    sampler moves once. Where nobody knows how many paths there will be, the paths that were asked
    for count as the rest, and the time spent so far as what may follow.

    Parameters
    ----------
    make
        Makes a sampler for a device.
    device, device_number
        What the user asked for.
    num_paths
        How many paths there will be; 0 where nobody knows.
    on_cluster
        Whether workers sample most of them; then this sampler stays where it begins, as they do.
    tuning
        When a GPU is sooner.
    clock
        Returns seconds.

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
        *,
        on_cluster: bool = False,
        tuning: PlaceTuning = PlaceTuning(),
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._make, self._number, self._clock = make, device_number, clock
        self._num_paths, self._tuning = num_paths, tuning
        begin = device_for(device, num_paths, tuning, on_cluster=on_cluster)
        replaceable = device is not begin and driver_present()
        self._may_move = replaceable and not on_cluster
        self._pace = CpuPace(tuning)
        self._sampled = 0
        """The number of the path after the last that was ever sampled."""
        self._moved_at: int | None = None
        self._refusal = ""
        try:
            self._sampler = self._opened(begin)
        except UnsupportedError:
            # Without a C compiler a GPU does few paths too.
            if not replaceable:
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
        """Where paths are sampled, and may be sampled later, in words."""
        if self._may_move:
            return "on the CPU; a GPU takes over if that is sooner"
        number = self._sampler.num_devices
        return ("on the CPU", "on the GPU")[number] if number < 2 else f"on {number} GPUs"

    @property
    def remark(self) -> str:
        """Where paths were sampled, if it changed or should have; else empty."""
        if self._refusal:
            return f"GPU not used: {self._refusal}"
        if self._moved_at is None:
            return ""
        return f"paths from number {self._moved_at} on were sampled {self.place}"

    def run(
        self, first_path: int, num_paths: int, progress: Callable[[int], None] | None = None
    ) -> PathBatch:
        """Sample consecutive paths as `Sampler.run` does; the batch is that of one part."""
        parts = []
        for part in self._parts(first_path, num_paths, progress):
            if part.first_failed is not None:
                with self._device_held():
                    self._sampler.run(part.first_failed, 1)
                raise RuntimeError(f"path {part.first_failed} failed only once: report it")
            parts.append(part)
        return joined(parts).batch(self.compiled.questions)

    def sample(
        self, first_path: int, num_paths: int, progress: Callable[[int], None] | None = None
    ) -> PathArrays:
        """Sample consecutive paths as `Sampler.sample` does; the arrays are those of one part."""
        return joined(list(self._parts(first_path, num_paths, progress)))

    def _parts(
        self, first_path: int, num_paths: int, progress: Callable[[int], None] | None
    ) -> Iterator[PathArrays]:
        end = first_path + num_paths
        while True:
            number = self._next_part(first_path, end - first_path)
            with self._device_held():
                started = self._clock()
                part = self._sampler.sample(first_path, number, progress)
                seconds = self._clock() - started
            if not self.on_gpu:
                self._pace.note(number, seconds)
            first_path += number
            self._sampled = max(self._sampled, first_path)
            yield part
            if first_path >= end:
                return

    def _next_part(self, first_path: int, num_paths: int) -> int:
        """Return how many of the paths to sample next, after a move to a GPU if it is time."""
        # Some paths are sampled once more, to explain one or for their lengths.
        if not self._may_move or first_path + num_paths <= self._sampled:
            return num_paths
        if self._num_paths:
            rest = max(num_paths, self._num_paths - first_path)
            seconds = self._pace.expected_s(rest)
        else:
            seconds = self._pace.expected_s(num_paths)
            if seconds:
                # A run that has lasted so long is expected to last as long again.
                seconds += self._pace.seconds
        if seconds > self._tuning.gpu_opens_s:
            self._move(first_path)
            return num_paths
        return min(num_paths, self._pace.next_part())

    def _move(self, first_path: int) -> None:
        """Open a GPU for the paths from this one on; what is in the way becomes the remark."""
        self._may_move = False
        self._refusal = gpu_refusal(self._number) or ""
        if not self._refusal:
            try:
                self._sampler = self._opened(DeviceChoice.GPU)
            except (UnsupportedError, MemoryError) as error:
                self._refusal = str(error).partition("\n")[0]
            else:
                self._moved_at = first_path

    def _device_held(self) -> AbstractContextManager[Any]:
        """Hold the GPU while it samples."""
        return self._device(DeviceChoice.GPU) if self.on_gpu else nullcontext()
