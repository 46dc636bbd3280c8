"""A plugin of pytest that writes down the tests' calls of the compiled library.

``pytest -p tests.engines.host_calls`` with `FOLDER_VARIABLE` set writes the two files that
host_driver/replay.cpp reads.
"""

from __future__ import annotations

import ctypes
import gc
import os
import struct
import zlib
from collections import Counter, defaultdict
from ctypes import c_double, c_int32, c_int64, c_void_p
from pathlib import Path

import numpy as np
import pytest

from engines.host.compiled import shares
from engines.host.compiled.library import Function

FOLDER_VARIABLE = "PRISM_GPU_HOST_CALLS"
CALLS, FUNCTIONS = "calls.bin", "functions.inc"
THREADS = 3
MOST_OF_A_TEST, MOST_OF_A_FUNCTION, MOST_BYTES = 20, 200, 1 << 18
MOST_PARAMETERS = 8
"""With how many of its parameters a test is run."""

ROOM_OF_THREADS = {("pg_move", 10)}
"""Functions and numbers of blocks in which a thread leaves what no other reads."""
NOT_COMPARED = -1

BITS, NULL, BLOCK, HANDLE, NEW_HANDLE = range(5)
"""`Kind` of replay.cpp."""

C_TYPES = {None: "void", c_int32: "std::int32_t", c_int64: "std::int64_t", c_double: "double"}


def numbers(*values):
    """Return numbers as the driver reads them."""
    return struct.pack(f"={len(values)}q", *values)


def bits(value, kind):
    """Return the 64 bits of a number as an integer."""
    if kind is c_double:
        return struct.unpack("=q", struct.pack("=d", value))[0]
    return 0 if value is None else int(value)


def pointer_fields(kind, start=0):
    """Yield where a type of ctypes has pointers, in bytes."""
    if issubclass(kind, ctypes.Array):
        for i in range(kind._length_):
            yield from pointer_fields(kind._type_, start + i * ctypes.sizeof(kind._type_))
    elif issubclass(kind, ctypes.Structure):
        for name, of, *_ in kind._fields_:
            yield from pointer_fields(of, start + getattr(kind, name).offset)
    elif kind is c_void_p:
        yield start


class Blocks:
    """The memory that a call is given.

    Parameters
    ----------
    sizes
        How many bytes the array at an address has, for each whose address was asked for.
    """

    def __init__(self, sizes):
        self._sizes, self._numbers, self._found = sizes, {}, []

    def of(self, address, size, pointers=()):
        """Return the number of a block, which is added unless it is known."""
        known = self._numbers.setdefault(address, len(self._found))
        if known == len(self._found):
            self._found.append((address, size, []))
            for where in pointers:
                target = c_void_p.from_address(address + where).value
                if target is not None:
                    self._found[known][2].append((where, self.of(target, self._sizes[target])))
        elif size > self._found[known][1]:
            self._found[known] = (address, size, self._found[known][2])
        return known

    @property
    def nbytes(self):
        """How many bytes they have."""
        return sum(size for _, size, _ in self._found)

    def contents(self):
        """Return the bytes of each block, without the pointers."""
        found = []
        for address, size, pointers in self._found:
            content = bytearray(ctypes.string_at(address, size))
            for where, _ in pointers:
                content[where : where + 8] = bytes(8)
            found.append(bytes(content))
        return found

    def packed(self, before, name):
        """Return them as the driver reads them, now that the call of a function was made."""
        parts = [numbers(len(before))]
        after = [zlib.crc32(content) for content in self.contents()]
        for i, ((_, _, pointers), old) in enumerate(zip(self._found, before, strict=True)):
            checksum = NOT_COMPARED if (name, i) in ROOM_OF_THREADS else after[i]
            parts.append(numbers(len(old), checksum, len(pointers)))
            parts.extend(numbers(*pointer) for pointer in pointers)
            parts.append(old)
        return b"".join(parts)


class Recorder:
    """Writes calls down while it is there.

    Parameters
    ----------
    folder
        Where the files go.
    """

    def __init__(self, folder):
        self._folder, self._file = folder, (folder / CALLS).open("wb")
        self._sizes, self._handles = {}, set()
        self._functions = {}
        self._of_test, self._of_function = Counter(), Counter()
        self._call = Function.__call__

    def start(self):
        """Begin."""
        recorder, kind = self, type(np.empty(0).ctypes)
        data = kind.data

        def noted(self):
            address = data.fget(self)
            recorder._sizes[address] = self._arr.nbytes
            return address

        kind.data = property(noted)
        Function.__call__ = lambda function, *given: recorder.record(function, given)

    def stop(self):
        """Write down the rest."""
        gc.collect()
        Function.__call__ = self._call
        self._file.close()
        self._folder.joinpath(FUNCTIONS).write_text("".join(self._functions))

    def next_test(self):
        """Forget how many calls the last test made."""
        self._of_test.clear()

    def record(self, function, given):
        """Make a call, and write it down unless there are enough."""
        name, handle = function._name, self._handle(given)
        enough = self._of_test[name] >= MOST_OF_A_TEST
        enough = enough or self._of_function[name] >= MOST_OF_A_FUNCTION
        if handle is None and enough:
            return self._call(function, *given)
        if handle is not None and handle not in self._handles:
            return self._call(function, *given)
        blocks = Blocks(self._sizes)
        kinds = function._arguments
        arguments = [self._argument(blocks, *pair) for pair in zip(given, kinds, strict=True)]
        before = blocks.contents() if blocks.nbytes < MOST_BYTES else None
        result = self._call(function, *given)
        if before is None:
            return result
        if arguments[-1][0] == NEW_HANDLE:
            made = given[-1]._obj.value
            self._handles.add(made)
            arguments[-1] = (NEW_HANDLE, made or 0)
        self._write(function, blocks.packed(before, name), arguments, result)
        self._of_test[name] += 1
        self._of_function[name] += 1
        if name == "pg_release":
            self._handles.discard(handle)
        return result

    def _handle(self, given):
        """Return what an earlier call made, or None."""
        first = given[0] if given else None
        return first.value if isinstance(first, c_void_p) else None

    def _argument(self, blocks, value, kind):
        """Return the kind and the bits of an argument."""
        if value is None:
            return NULL, 0
        if isinstance(value, np.ndarray):
            return BLOCK, blocks.of(value.__array_interface__["data"][0], value.nbytes)
        if isinstance(value, ctypes.Structure | ctypes.Array):
            where = pointer_fields(type(value))
            return BLOCK, blocks.of(ctypes.addressof(value), ctypes.sizeof(value), where)
        if isinstance(value, c_void_p):
            return HANDLE, value.value
        if hasattr(value, "_obj"):
            return NEW_HANDLE, 0
        if kind is c_void_p:
            return BLOCK, blocks.of(value, self._sizes[value])
        return BITS, bits(value, kind)

    def _write(self, function, blocks, arguments, result):
        types = [C_TYPES.get(kind, "void*") for kind in function._arguments]
        line = f"FUNCTION({', '.join([function._name, C_TYPES[function._result], *types])})\n"
        number = self._functions.setdefault(line, len(self._functions))
        flat = (number for argument in arguments for number in argument)
        self._file.write(
            numbers(number)
            + blocks
            + numbers(len(arguments), *flat, bits(result, function._result))
        )


def pytest_collection_modifyitems(config, items):
    """Leave out all but some parameters of each test, evenly spaced."""
    of_test = defaultdict(list)
    for item in items:
        of_test[item.nodeid.partition("[")[0]].append(item)
    chosen = [
        found[number * len(found) // min(len(found), MOST_PARAMETERS)]
        for found in of_test.values()
        for number in range(min(len(found), MOST_PARAMETERS))
    ]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen


def pytest_configure(config):
    """Begin to record."""
    config.host_calls = Recorder(Path(os.environ[FOLDER_VARIABLE]))
    config.host_calls.start()


def pytest_unconfigure(config):
    """Write down the rest."""
    config.host_calls.stop()


@pytest.fixture(autouse=True)
def _several_threads(request):
    """Have half of the tests, unless they see to it, share out even the smallest inputs."""
    request.config.host_calls.next_test()
    with pytest.MonkeyPatch.context() as patch:
        if (
            "monkeypatch" not in request.fixturenames
            and zlib.crc32(request.node.nodeid.encode()) % 2
        ):
            patch.setattr(shares, "num_cores", lambda: THREADS)
            patch.setattr(shares, "ENTRIES_PER_THREAD", 1)
        yield
