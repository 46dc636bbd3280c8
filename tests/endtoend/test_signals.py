"""How a run ends on SIGINT, SIGTERM and SIGHUP, and what is left of it; see `tests.signals`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bridge.exchange.results import load_results
from tests.signals.scenarios import scenarios
from tests.signals.sending import SIGNALS, send

pytestmark = pytest.mark.prism

# Has an answer to the first question, and none to the second.
SLOW_SOLVE = """
import sys, time
import numpy as np
import bridge.check.checker
from bridge.check.outcome import Outcome

class Slow:
    def __init__(self, model, *_, **__):
        self.size, self.asked = model.model.num_states, 0
    def outcome(self, expression):
        self.asked += 1
        if self.asked == 2:
            print("waiting", flush=True)
            time.sleep(60)
        return Outcome(np.zeros(self.size))

bridge.check.checker.Checker = Slow
from bridge.cli import main
main(["solve", sys.argv[1]])
"""


def by_name(name: str):
    return next(item for item in scenarios() if item.name == name)


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("delay", [0.1, 0.4, 0.8])
def test_a_signal_while_starting_ends_the_run_silently(prism_install, number, delay):
    assert prism_install is not None
    outcome = send(by_name("start"), number, delay)
    assert outcome.faults == [], outcome.output
    # Before a handler is there, the signal's own action ends the process: 128 and more in a shell.
    assert outcome.code in (128 + number, -number), outcome.output


@pytest.mark.sampled(5)
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("name", ["first run", "explore", "solve", "solve on files"])
def test_a_signal_during_work_leaves_nothing_behind(prism_install, name, number):
    assert prism_install is not None
    outcome = send(by_name(name), number, 0.6 if name in ("first run", "explore") else 0.1)
    assert outcome.faults == [], outcome.output
    assert outcome.code == 128 + number, outcome.output


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_what_is_solved_is_kept_whatever_ends_the_rest(prism_gpu, tmp_path, number):
    model = tmp_path / "coin.pm"
    model.write_text("dtmc module m x:[0..2]; [] x=0 -> 0.5:(x'=1)+0.5:(x'=2); endmodule")
    export = tmp_path / "export"
    words = (model, "-pctl", "P=? [ F x=1 ]; P=? [ F x=2 ]", "-fixdl", "-to", export)
    assert prism_gpu("export", *words).code == 0
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_SOLVE, str(export)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        assert any(line.startswith("waiting") for line in process.stdout)
        process.send_signal(number)
        assert process.wait(20) == 128 + number
    kept = load_results(export, 3)
    assert kept is not None
    assert len(kept.answers) == 1
    assert not list(export.glob(".*"))


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL], ids=lambda number: number.name)
def test_no_worker_outlives_a_comparison(prism_install, tmp_path, number):
    model = tmp_path / "long.pm"
    model.write_text(
        "ctmc module m x:[0..20000]; [] x<20000 -> 1:(x'=x+1); [] x>0 -> 1:(x'=x-1); endmodule"
    )
    words = (model, "-pctl", "S=? [ x=3 ]", "-epsilon", "1e-300", "-maxiters", "2000000000")
    with subprocess.Popen(
        [sys.executable, "-m", "bridge", "regress", *map(str, words), "--engines", "explicit"],
        env={**os.environ, "PRISM_DIR": str(prism_install.root), "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        deadline = time.monotonic() + 60
        while not (workers := workers_of(process.pid)):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(1.0)
        process.send_signal(number)
        assert process.wait(20) == (129 if number == signal.SIGHUP else -number)
    deadline = time.monotonic() + 5
    while running := [worker for worker in workers if is_running(worker)]:
        if time.monotonic() > deadline:
            for worker in running:
                os.kill(worker, signal.SIGKILL)
            pytest.fail("a worker goes on")
        time.sleep(0.05)


def workers_of(process: int) -> list[int]:
    found = []
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, children.read_text(encoding="ascii").split()):
            command = Path(f"/proc/{child}/cmdline").read_bytes()
            found += [child] if b"bridge.regress.worker" in command else []
    return found


def is_running(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
