"""The forward-backward searches of 2014, their kernels compiled for the CPU: a thread a block."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from bridge.reproduce.forward_backward import (
    VARIANTS,
    WARP,
    ForwardBackward,
    edges_of,
    interleaved,
    turned,
)
from bridge.reproduce.graph_families import GENERATED
from bridge.reproduce.graphs import generate
from bridge.reproduce.textbook import Textbook, numbered
from engines.cuda import src
from engines.host.build import compiler
from tests.bridge.reproduce.test_textbook import drawn

SHIM = """
#define __global__
#define __device__
#define __restrict__
#define __shared__ static
#define OFFSET int
struct Size { int x; };
static Size blockIdx{0}, threadIdx{0}, blockDim{1}, gridDim{1};
static void __syncthreads() {}
static int atomicCAS(int* at, int compare, int value) {
    int old = *at;
    if (old == compare) *at = value;
    return old;
}
static int atomicExch(int* at, int value) { int old = *at; *at = value; return old; }
extern "C" void place(int block, int blocks) { blockIdx.x = block; gridDim.x = blocks; }
"""
BLOCKS = 3


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """The module as functions of the CPU: what stands for a GPU."""
    if shutil.which(compiler()[0]) is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("kernels")
    source, library = folder / "kernels.cpp", folder / "kernels.so"
    text = Path(src.__file__).with_name("forward_backward.cu").read_text(encoding="utf-8")
    source.write_text(SHIM + text, encoding="utf-8")
    command = [*compiler(), "-std=gnu++20", "-O1", "-shared", "-fPIC", "-Wall"]
    subprocess.run([*command, "-o", str(library), str(source)], check=True)
    return OnCpu(ctypes.CDLL(str(library)))


class OnCpu:
    """Blocks of one thread each, one after the other."""

    def __init__(self, functions):
        self._functions = functions
        self.launched = []

    def array(self, values):
        return values.copy()

    def host(self, array):
        return array.copy()

    def launch(self, name, _threads, *arguments):
        self.launched.append(name)
        given = [item if isinstance(item, int) else item.ctypes.data for item in arguments]
        types = [ctypes.c_int if isinstance(item, int) else ctypes.c_void_p for item in arguments]
        function = getattr(self._functions, name)
        function.argtypes, function.restype = types, None
        for block in range(BLOCKS):
            self._functions.place(block, BLOCKS)
            function(*given)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("source", [*range(6), "wlan", "coin", "phil"])
def test_every_variant_finds_tarjan_s_components(kernels, name, source):
    named = isinstance(source, str)
    model = generate(GENERATED[source](0.0001)) if named else drawn(source)
    labels, count = ForwardBackward(model, VARIANTS[name], kernels).strong_components()
    wanted, found = Textbook(model).strong_components()
    assert count == found
    np.testing.assert_array_equal(labels, numbered(wanted, found))


@pytest.mark.parametrize("name", VARIANTS)
def test_each_variant_launches_its_own_kernels(kernels, name):
    kernels.launched.clear()
    ForwardBackward(drawn(1), VARIANTS[name], kernels).strong_components()
    launched = set(kernels.launched)
    variant = VARIANTS[name]
    assert ("search_both" in launched) is (variant.hybrid and variant.transposed)
    assert ("search_behind" in launched) is not variant.transposed


def test_a_cache_saves_looks_at_all_states(kernels):
    # A ring is as deep as it is long.
    ring = drawn(0)
    chain = type(ring.matrix)(
        np.arange(401, dtype=np.int32),
        (np.arange(400) + 1).astype(np.int32) % 400,
        np.ones(400),
        400,
    )
    model = type(ring)(ring.kind, chain, np.arange(401, dtype=np.int32))
    looks = {}
    for name in ("F0,1", "F3,1"):
        kernels.launched.clear()
        _, count = ForwardBackward(model, VARIANTS[name], kernels).strong_components()
        assert count == 1
        looks[name] = sum("search" in launched for launched in kernels.launched)
    assert looks["F3,1"] < 0.6 * looks["F0,1"]


@pytest.mark.parametrize("interval", [1, 2, 7])
def test_interleaving_keeps_every_edge(interval):
    model = drawn(4)
    offsets, columns = edges_of(model)
    edges, order = interleaved(offsets, columns, interval)
    degrees = np.diff(offsets)
    assert edges.segments == np.count_nonzero(degrees <= interval) // WARP
    found = {state: [] for state in range(400)}
    for state in range(400):
        if state < WARP * edges.segments:
            at = state // WARP * WARP * interval + state % WARP
            row = edges.columns[at : at + WARP * interval : WARP]
        else:
            here = state - WARP * edges.segments
            row = edges.columns[edges.offsets[here] : edges.offsets[here + 1]]
        found[int(order[state])] = sorted(int(order[t]) for t in row if t >= 0)
    wanted = {s: sorted(map(int, columns[offsets[s] : offsets[s + 1]])) for s in range(400)}
    assert found == wanted
    into = turned(offsets, columns, order)
    assert len(into.columns) == len(columns)
    pairs = {
        (int(order[s]), int(order[t]))
        for t in range(400)
        for s in into.columns[into.offsets[t] : into.offsets[t + 1]]
    }
    assert pairs == {(s, t) for s, row in wanted.items() for t in row}
