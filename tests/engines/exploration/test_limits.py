"""Models at the limits: many variables, few of the states of their ranges, too little memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

from engines.errors import DeviceMemoryError
from engines.exploration import build as building
from engines.exploration.build import ExplorationTuning, build
from engines.host.expansion import room
from engines.host.exploring.explorer import HostExplorer
from tests.engines.montecarlo.reader import read_model

from .test_build import require_same

COMPILED = ExplorationTuning(states_before_compiling=0)
COUNTER = "dtmc module m x : int; [] x<50000 -> 0.5 : (x'=x+1) + 0.5 : (x'=0); endmodule"
ENDLESS = "dtmc module m x : int; y : int; [] true -> 0.5 : (x'=x+1) + 0.5 : (y'=y+1); endmodule"
LARGE = 2**40


def booleans(count):
    """A model whose Booleans become true one after the other, the first two in any order."""
    text = "mdp module m " + " ".join(f"b{i} : bool;" for i in range(count))
    text += " [] !b0 -> 0.5 : (b0'=true) + 0.5 : true; [up] !b1 -> (b1'=true);"
    for i in range(2, count):
        text += f" [up] b{i - 2} & b{i - 1} & !b{i} -> (b{i}'=true);"
    last = f"b{count - 1}"
    return (
        f'{text} [] {last} -> true; endmodule label "all" = b0 & {last}; rewards b7 : 2; endrewards'
    )


@pytest.mark.parametrize("tuning", [None, COMPILED], ids=["byte code", "compiled"])
def test_250_booleans(tuning):
    program, _ = read_model(booleans(250))
    built = build(program, tuning=tuning)
    assert built.packing.words == 4
    assert len(require_same(program, built).states) == 252
    assert built.model.labels["all"].sum() == 1


@pytest.mark.parametrize("tuning", [None, COMPILED], ids=["byte code", "compiled"])
def test_few_of_the_states_of_the_ranges_are_reachable(tuning):
    variables = 12
    text = "ctmc " + " ".join(
        f"module m{i} x{i} : [-50000..50000] init {i}; "
        f"[go] x{i}<{i + 1000} -> {1 if i else 0.5} : (x{i}'=x{i}+1); endmodule"
        for i in range(variables)
    )
    program, _ = read_model(text)
    built = build(program, tuning=tuning)
    # 10^57 times as many are in the ranges.
    assert len(require_same(program, built).states) == 1001


STAGES = {
    "search": (
        0,
        r"\d+ were found, and their table needs [\d.]+ [KM]iB more; it may take 7\.8 KiB",
    ),
    "order": (1, r"a list of 50001 states needs 390\.6 KiB; 9\.8 KiB are free, of which 80% may"),
    "matrix": (
        2,
        r"the matrix of 50001 states and up to \d+ transitions needs [\d.]+ MiB; 9\.8 KiB are free",
    ),
}


@pytest.mark.parametrize("stage", STAGES)
def test_memory_is_asked_for_at_each_stage_before_it_is_taken(monkeypatch, stage):
    short, message = STAGES[stage]
    calls = []

    def available():
        calls.append(stage)
        return LARGE if len(calls) <= short else 10_000

    def taken(*_):
        raise AssertionError("memory was taken")

    for module in (building, room):
        monkeypatch.setattr(module, "available_host_bytes", available)
    monkeypatch.setattr(HostExplorer, "empty_rows", taken)
    if stage == "order":
        monkeypatch.setattr(HostExplorer, "states", taken)
    program, _ = read_model(COUNTER)
    with pytest.raises(DeviceMemoryError, match=message):
        build(program, tuning=ExplorationTuning(memory_share=0.8))


SHORT_OF_MEMORY = f"""
import resource
from engines.errors import DeviceMemoryError
from engines.exploration.build import build
from tests.engines.montecarlo.reader import read_model
program, _ = read_model({ENDLESS!r})
build(read_model({COUNTER!r})[0], threads=THREADS)
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, used + 2**28))
try:
    build(program, threads=THREADS)
except DeviceMemoryError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the size of a process is read from /proc")
@pytest.mark.parametrize("threads", [1, 2])
def test_memory_that_cannot_be_had_is_an_error_of_the_search(threads):
    script = SHORT_OF_MEMORY.replace("THREADS", str(threads))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False
    )
    assert "the states of the model do not fit into memory" in done.stdout, done.stderr
