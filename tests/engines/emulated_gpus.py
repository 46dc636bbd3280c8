"""Several GPUs in NumPy: streams, events, captured graphs, and the few kernels of their sweeps.

What is queued is done as late as possible, and in any order that streams and events allow, drawn at
random: what waits for too little reads what is not there yet. Memory is NaN before it is written.
"""

from __future__ import annotations

import ctypes
import itertools
import random
import sys
from collections import defaultdict
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import numpy as np

from engines.cuda import driver, modules, several


class Work:
    """What is queued: done once, behind what it waits for."""

    def __init__(self, run: Callable[[], None], behind: list[Work], ready=lambda: True) -> None:
        self.run, self.behind, self.ready, self.done = run, behind, ready, False


def all_before(works):
    """What these wait for, and themselves."""
    found, left = {}, list(works)
    while left:
        work = left.pop()
        if id(work) not in found and not work.done:
            found[id(work)] = work
            left += work.behind
    return list(found.values())


class Emulation:
    """The state of all devices; `cupy` is what stands for the package."""

    def __init__(self, count: int, seed: int, free: int = 1 << 40) -> None:
        self.random = random.Random(seed)
        self.count, self.free = count, free
        self.all_streams: list[Stream] = []
        self.devices, self.streams = [0], [[Stream(self, device)] for device in range(count)]
        self.queued: list[Work] = []
        self.captured: list[Work] | None = None
        self.launched: list[str] = []
        self.freed: list[int] = []
        self.cupy = self._package()

    @property
    def device(self):
        return self.devices[-1]

    @property
    def stream(self):
        return self.streams[self.device][-1]

    def queue(self, run, stream=None, ready=lambda: True):
        stream = stream or self.stream
        assert stream.device == self.device
        behind = stream.behind()
        work = Work(run, behind, ready)
        stream.last = [work]
        assert (self.captured is None) or stream.is_captured
        (self.queued if self.captured is None else self.captured).append(work)
        return work

    def finish(self, works):
        """Do these and what they wait for, and now and then something else."""
        others = self.random.sample(self.queued, min(len(self.queued), self.random.randrange(3)))
        self.do(all_before([*works, *others]))
        self.queued = [work for work in self.queued if not work.done]

    def do(self, works):
        """Do pieces of work, which wait for nothing else, in an order drawn at random."""
        behind = {id(work): sum(not other.done for other in work.behind) for work in works}
        followers = defaultdict(list)
        for work in works:
            for other in work.behind:
                followers[id(other)].append(work)
        able = [work for work in works if not behind[id(work)]]
        while able:
            now = [work for work in able if work.ready()]
            assert now, "devices wait for each other, and none comes"
            work = self.random.choice(now)
            able.remove(work)
            work.run()
            work.done = True
            for follower in followers[id(work)]:
                behind[id(follower)] -= 1
                if not behind[id(follower)]:
                    able.append(follower)
        assert all(work.done for work in works)

    def empty(self, shape, dtype=np.float64):
        array = np.empty(shape, dtype=dtype).view(Array)
        array.view(np.ndarray).reshape(-1).view(np.uint8)[:] = 0xFF
        array.gpu, array.at = self, self.device
        return array

    def zeros(self, shape, dtype=np.float64):
        array = self.empty(shape, dtype)
        self.queue(lambda: plain(array).fill(0))
        return array

    def _package(self):
        class OutOfMemoryError(MemoryError):
            pass

        class CUDARuntimeError(RuntimeError):
            pass

        runtime = SimpleNamespace(
            getDevice=lambda: self.device,
            getDeviceCount=lambda: self.count,
            getDeviceProperties=lambda _device: {
                "multiProcessorCount": 4,
                "maxThreadsPerMultiProcessor": 2048,
                "regsPerMultiprocessor": 65536,
            },
            memGetInfo=lambda: (self.free, self.free),
            deviceCanAccessPeer=lambda _device, _other: True,
            deviceEnablePeerAccess=lambda _other: None,
            memcpyAsync=self._copy,
            memcpyDefault=4,
            CUDARuntimeError=CUDARuntimeError,
        )
        cuda = SimpleNamespace(
            runtime=runtime,
            nvrtc=SimpleNamespace(getVersion=lambda: (13, 0)),
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            Device=lambda number: Device(self, number),
            Stream=lambda **_how: Stream(self, self.device),
            Event=lambda **_how: Event(self),
            get_elapsed_time=lambda _began, _ended: 1.0,
        )
        package = ModuleType("cupy")
        package.cuda, package.empty, package.zeros = cuda, self.empty, self.zeros
        pool = SimpleNamespace(
            free_bytes=lambda: 0, free_all_blocks=lambda: self.freed.append(self.device)
        )
        package.get_default_memory_pool = lambda: pool
        for name in ("uint8", "int32", "int64", "uint64", "uintp", "float32", "float64"):
            setattr(package, name, getattr(np, name))
        return package

    def _copy(self, target, source, size, _kind, pointer):
        stream = self.all_streams[pointer - 1]
        self.queue(lambda: ctypes.memmove(target, source, size), stream)

    def kernel(self, name):
        """What stands for a compiled kernel."""

        def launch(_grid, _block, arguments, shared_mem=0):
            assert shared_mem == 0
            self.launched.append(name)
            for argument in arguments:
                if isinstance(argument, Array):
                    assert argument.at == self.device, f"{name} reads another device's memory"
            if name == "send_and_meet":
                send, is_met, meet = send_and_meet(*arguments)
                self.queue(send)
                return self.queue(meet, ready=is_met)
            return self.queue(lambda: KERNELS[name](*arguments))

        return launch


class Device:
    def __init__(self, gpu, number):
        assert 0 <= number < gpu.count
        self.gpu, self.id, self.compute_capability = gpu, number, "90"

    def __enter__(self):
        self.gpu.devices.append(self.id)

    def __exit__(self, *_error):
        self.gpu.devices.pop()


class Stream:
    def __init__(self, gpu, device):
        self.gpu, self.device, self.last, self.is_captured = gpu, device, [], False
        gpu.all_streams.append(self)
        self.ptr = len(gpu.all_streams)

    def behind(self):
        """What the next piece of work waits for."""
        captured = self.gpu.captured
        return [w for w in self.last if not w.done and (captured is None or w in captured)]

    def __enter__(self):
        assert self.device == self.gpu.device
        self.gpu.streams[self.device].append(self)

    def __exit__(self, *_error):
        assert self.gpu.streams[self.device].pop() is self

    def wait_event(self, event):
        self.is_captured |= event.is_captured
        self.last = [*self.last, *event.works]

    def synchronize(self):
        self.gpu.finish(self.last)

    def begin_capture(self):
        self.before, self.is_captured, self.gpu.captured = self.last, True, []

    def end_capture(self):
        nodes, self.gpu.captured = self.gpu.captured, None
        joined = all_before(self.behind_end(nodes))
        assert len(joined) == len(nodes), "not all that was captured has been joined"
        for stream in self.gpu.all_streams:
            if stream.is_captured:
                stream.last, stream.is_captured = [w for w in stream.last if w not in nodes], False
        self.last = self.before
        return Graph(self.gpu, nodes)

    def behind_end(self, nodes):
        return [work for work in self.last if work in nodes]


class Event:
    def __init__(self, gpu):
        self.gpu, self.works, self.is_captured = gpu, [], False

    def record(self, stream):
        self.works, self.is_captured = stream.behind(), stream.is_captured

    def synchronize(self):
        self.gpu.finish(self.works)


class Graph:
    def __init__(self, gpu, nodes):
        self.gpu, self.nodes = gpu, nodes

    def launch(self, stream):
        def run():
            for node in self.nodes:
                node.done = False
            self.gpu.do(self.nodes)

        self.gpu.queue(run, stream)


class Array(np.ndarray):
    """Memory of a device."""

    def __array_finalize__(self, of):
        self.gpu, self.at = getattr(of, "gpu", None), getattr(of, "at", None)

    @property
    def data(self):
        def clear(value, size, stream):
            assert value == 0
            self.gpu.queue(lambda: ctypes.memset(self.ctypes.data, 0, size), stream)

        return SimpleNamespace(ptr=self.ctypes.data, memset_async=clear)

    @property
    def device(self):
        return SimpleNamespace(id=self.at)

    def set(self, array):
        assert self.at == self.gpu.device
        held = np.array(array)
        self.gpu.queue(lambda: np.copyto(plain(self), held))

    def get(self, out=None):
        assert self.at == self.gpu.device
        self.gpu.finish(self.gpu.stream.last)
        if out is None:
            return plain(self).copy()
        out[...] = plain(self)
        return out


def plain(array):
    return array.view(np.ndarray)


def at(window):
    """A vector that negative numbers of a window's entries serve for, and where that begins."""
    root = plain(window)
    while isinstance(root.base, np.ndarray):
        root = root.base
    root = root.view(np.float64) if root.dtype != np.float64 else root
    return root, (window.ctypes.data - root.ctypes.data) // 8


def words(address, count, kind):
    return np.ctypeslib.as_array((kind * count).from_address(int(address)))


def inflows(offsets, columns, values, x):
    vector, first = at(x)
    for row in range(len(offsets) - 1):
        total = 0.0
        for k in range(int(offsets[row]), int(offsets[row + 1])):
            total += float(values[k]) * float(vector[first + int(columns[k])])
        yield row, total


def state_of(states, row):
    return int(states[row]) if isinstance(states, np.ndarray) else row


def uniformise(offsets, columns, values, states, stay, rows, _chunk, rate, x, x_new, total,
               weights, left, count, before, made, share, least, sweep,
               before_slot, slot):  # fmt: skip
    if before_slot[0] == 0.0:
        return
    assert before_slot[0] in (1.0, 2.0)
    assert rows == len(offsets) - 1 == len(stay) == len(total)
    k = int(made[0]) + int(sweep)
    c = before if k < left else weights[k - left] if k - left < count else 0.0
    assert len(weights) == count
    for row, inflow in inflows(offsets, columns, values, x):
        state = state_of(states, row)
        was = x[state]
        after = stay[row] * was + inflow / rate
        x_new[state] = after
        if c != 0.0:
            total[row] += c * after
        if after != was:
            slot[0] = max(slot[0], 2.0 if abs(after - was) > share * was + least else 1.0)


def end_uniformise(slots, made, sweeps):
    for t in range(1, sweeps + 1):
        if slots[t] == 0.0 and slots[t - 1] != 0.0:
            made[1] = made[0] + t
        if slots[t] < 2.0 and not made[2]:
            made[2] = made[0] + t
    slots[0], slots[1 : sweeps + 1] = slots[sweeps], 0.0
    made[0] += sweeps


def sweep_rows(offsets, columns, values, offset, states, rows, _chunk, omega, x, x_new,
               before_slot, slot, stop_below, absolute, _early):  # fmt: skip
    assert rows == len(offsets) - 1
    for row, inflow in inflows(offsets, columns, values, x):
        if before_slot[0] < stop_below:
            slot[0] = before_slot[0]
            return
        state = state_of(states, row)
        was = x[state]
        given = offset[row] if isinstance(offset, np.ndarray) else 0.0
        x_new[state] = (1.0 - omega) * was + omega * (given + inflow)
        change = abs(x_new[state] - was) / (1.0 if absolute else abs(was))
        slot[0] = max(slot[0], change)


def end_stretch(slots, history, length, sweeps):
    begin = int(length[0])
    history[begin : begin + sweeps] = slots[1 : sweeps + 1]
    slots[0], slots[1 : sweeps + 1] = slots[sweeps], 0.0
    length[0] += sweeps


def merge_slots(slots, devices, sweep, merged):
    changes = [words(slots[i] + 8 * sweep, 1, ctypes.c_double)[0] for i in range(devices)]
    assert not np.isnan(changes).any()
    merged[sweep] = max(changes)


def send_and_meet(x_new, sends, count, inboxes, devices, place, sweep, own, changes, merged,
                  _patience, _missing):  # fmt: skip
    """What a device sends, whether all have come, and what it does then."""

    def inbox(device):
        return words(inboxes[device], 3 * devices, ctypes.c_uint64).reshape(3, devices)

    def send():
        assert len(sends) == count
        for begin, end, there in sends:
            target = words(there + 8 * begin, end - begin, ctypes.c_double)
            target[:] = plain(x_new)[begin:end]
        number = int(own[0]) + 1
        for other in range(devices):
            if other != place:
                change = np.array(changes[sweep]).view(np.uint64)
                inbox(other)[1 + number % 2, place] = change
                inbox(other)[0, place] = number

    def is_met():
        number = int(own[0]) + 1
        return all(inbox(place)[0, i] >= number for i in range(devices) if i != place)

    def meet():
        number = int(own[0]) + 1
        row = inbox(place)[1 + number % 2].view(np.float64)
        others = [row[i] for i in range(devices) if i != place]
        merged[sweep] = max([float(changes[sweep]), *others])
        own[0] = number

    return send, is_met, meet


def add_part(offsets, columns, values, rows, _lanes, x, sums):
    first = words(offsets, rows + 1, ctypes.c_int32)
    own = words(columns, first[-1], ctypes.c_int32)
    weights = words(values, first[-1], ctypes.c_double)
    for row in range(rows):
        for entry in range(first[row], first[row + 1]):
            read = words(int(x) + 8 * int(own[entry]), 1, ctypes.c_double)[0]
            words(int(sums) + 8 * row, 1, ctypes.c_double)[0] += weights[entry] * read


def end_colour(sums, groups, states, minimise, omega, x, slot, absolute, keep):
    values = words(x, states, ctypes.c_double)
    if int(groups):
        ends = words(groups, states + 1, ctypes.c_int32)
        best = min if minimise else max
        rows = words(sums, ends[-1] - ends[0], ctypes.c_double)
        cut = [rows[a - ends[0] : b - ends[0]] for a, b in itertools.pairwise(ends)]
        after = np.array([best(row) for row in cut])
    else:
        after = (1.0 - omega) * values + omega * words(sums, states, ctypes.c_double)
    change = np.abs(after - values)
    if not absolute:
        with np.errstate(divide="ignore", invalid="ignore"):
            change = change / np.abs(values)
    slot[0] = max(slot[0], np.nanmax(change, initial=0.0))
    if keep:
        values[:] = after


KERNELS = {
    "add_part": add_part,
    "end_colour": end_colour,
    "uniformise_rows_by_thread": uniformise,
    "end_uniformise_stretch": end_uniformise,
    "sweep_rows_by_thread": sweep_rows,
    "end_stretch": end_stretch,
    "merge_slots": merge_slots,
}


def emulate(monkeypatch, count, seed=0, free=1 << 40):
    """Put emulated devices in the place of CuPy's; `forget` goes before and after."""
    gpu = Emulation(count, seed, free)
    pinned = ModuleType("cupyx")
    pinned.zeros_pinned = pinned.empty_pinned = np.zeros
    monkeypatch.setattr(driver, "driver_present", lambda: True)
    monkeypatch.setitem(sys.modules, "cupy", gpu.cupy)
    monkeypatch.setitem(sys.modules, "cupyx", pinned)
    monkeypatch.setattr(modules.Launcher, "_kernel", lambda _self, _module, name: gpu.kernel(name))
    return gpu


def forget():
    """Forget what is known of devices."""
    for kept in (driver.find_cupy, modules.stream, modules._limits, several._stream):
        kept.cache_clear()
