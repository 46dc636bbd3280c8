"""How a run ends: what is closed and flushed, and that threads stop before they print more."""

import os
import subprocess
import sys
import threading
from pathlib import Path

from prism_hooks.exit_gate import ExitGate

ENDS = """
import ctypes, sys, threading
from engines.process import leftovers
from prism_hooks.exit_gate import ExitGate

gate = ExitGate()
gate.close_at_end(lambda: print("closed"))
threading.Thread(target=threading.Event().wait).start()
ctypes.CDLL(None).printf(b"from C\\n")
sys.stdout.write("held back\\n")
with leftovers.temporary_folder() as folder:
    print(folder)
    threading.Thread(target=gate.end, args=(3,)).start()
    threading.Event().wait()
"""


def test_a_thread_stops_at_the_gate_once_the_end_has_begun():
    gate = ExitGate()
    turns = []

    def work():
        while True:
            gate.stop_if_ending()
            turns.append(1)
            threading.Event().wait(0.01)

    threading.Thread(target=work, daemon=True).start()
    while not turns:
        threading.Event().wait(0.01)
    gate.begin_end()
    threading.Event().wait(0.3)
    seen = len(turns)
    threading.Event().wait(0.2)
    assert len(turns) == seen


def test_all_is_closed_once_and_in_order_even_if_some_of_it_fails():
    gate, order = ExitGate(), []

    def fail():
        order.append("first")
        raise RuntimeError("on purpose")

    gate.close_at_end(fail)
    gate.close_at_end(lambda: order.append("second"))
    gate.close()
    gate.close()
    assert order == ["first", "second"]


def test_who_comes_second_waits_until_all_is_closed():
    gate, done = ExitGate(), []
    closing, may_close = threading.Event(), threading.Event()

    def close():
        closing.set()
        may_close.wait(5)
        done.append(1)

    gate.close_at_end(close)
    threading.Thread(target=gate.close, daemon=True).start()
    assert closing.wait(5)
    second = threading.Thread(target=lambda: (gate.close(), done.append(2)), daemon=True)
    second.start()
    second.join(0.2)
    assert not done
    may_close.set()
    second.join(5)
    assert done == [1, 2]


def test_the_end_flushes_and_clears_up_whatever_other_threads_do():
    done = subprocess.run(
        [sys.executable, "-c", ENDS], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (3, "")
    folder, *lines = sorted(done.stdout.splitlines())
    assert lines == ["closed", "from C", "held back"]
    assert not Path(folder).exists()


def test_who_reads_may_be_gone():
    script = "from prism_hooks.exit_gate import ExitGate; print('x'); ExitGate().end(4)"
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    started = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=buffered)
    started.stdout.close()
    assert started.wait(60) == 4
