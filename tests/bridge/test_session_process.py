"""The Python API in programs of their own: their signals, threads, forks and JVMs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "examples" / "models" / "cluster.sm"
HEAD = """
from functools import partial
import bridge
opened = partial(bridge.open, prism_dir=PRISM)
"""

pytestmark = pytest.mark.prism


@pytest.fixture
def program(prism_install, tmp_path):
    """Return a function that runs a Python program and returns the lines that it prints."""
    (tmp_path / "m.pm").write_text(
        "dtmc\nmodule m\n s:[0..2];\n [] s=0 -> 0.25:(s'=1)+0.75:(s'=2);\n [] s>0 -> true;\n"
        'endmodule\nlabel "t" = s=1;\n'
    )

    def run(text: str) -> list[str]:
        file = tmp_path / "program.py"
        head = f"CLUSTER, PRISM = {str(CLUSTER)!r}, {str(prism_install.root)!r}\n{HEAD}"
        file.write_text(head + text)
        done = subprocess.run(
            [sys.executable, str(file)],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert done.stderr == ""
        assert done.returncode == 0
        assert not list(tmp_path.glob("hs_err*"))
        return done.stdout.splitlines()

    return run


def test_a_jvm_of_the_user_s_is_named(program):
    (line,) = program("""
import jpype
jpype.startJVM()
try:
    opened("m.pm")
except RuntimeError as error:
    print(error)
""")
    assert line.startswith("this process has a JVM that prism-gpu did not start")


def test_a_forked_process_is_refused_at_once_and_others_open_models(program):
    lines = program("""
import multiprocessing

def check(number):
    with opened("m.pm") as session:
        return session.check('P=? [ F "t" ]').value

def outcome(method):
    with multiprocessing.get_context(method).Pool(2) as pool:
        try:
            return pool.map_async(check, [1, 2]).get(60)
        except RuntimeError as error:
            return error

if __name__ == "__main__":
    with opened(CLUSTER, {"N": 2}) as session:
        session.check('P=? [ F "premium" ]')
        print({str(outcome("fork")) for _ in range(10)})
        print(outcome("spawn"))
        print(session.num_states)
""")
    assert "forked" in lines[0]
    assert "spawn" in lines[0]
    assert lines[1:] == ["[0.25, 0.25]", "276"]


def test_a_forked_process_ends_as_any_other(program):
    lines = program("""
import os, sys

with opened(CLUSTER, {"N": 2}, symbolic=True) as session:
    states = session.num_states
    child = os.fork()
    if child:
        print(os.waitpid(child, 0)[1])
    else:
        try:
            session.check("true")
        except RuntimeError:
            print(session.num_states, flush=True)
""")
    assert lines == ["276", "0"]


def test_ctrl_c_raises_keyboard_interrupt_wherever_the_program_is(program):
    lines = program("""
import os, signal, threading, time

def interrupted(after, work):
    def press():
        time.sleep(after)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=press).start()
    started = time.perf_counter()
    try:
        work()
    except KeyboardInterrupt:
        print("interrupted", time.perf_counter() - started < after + 2.0)

interrupted(0.3, lambda: opened("m.pm"))
session = opened(CLUSTER, {"N": 64})
interrupted(0.3, lambda: time.sleep(20))
interrupted(0.3, lambda: session.check('P=? [ F<=1000000 !"minimum" ]'))
interrupted(0.3, lambda: opened(CLUSTER, {"N": 250}))
print(opened("m.pm").check('P=? [ F "t" ]').value)
""")
    assert lines == ["interrupted True"] * 4 + ["0.25"]


def test_signals_stay_the_program_s_own(program):
    lines = program("""
import os, signal

signal.signal(signal.SIGTERM, lambda *_: print("mine"))
with opened("m.pm") as session:
    os.kill(os.getpid(), signal.SIGTERM)
    print(session.num_states)
""")
    assert lines == ["mine", "3"]


def test_threads_share_a_session_and_leave_nothing_in_the_jvm(program):
    lines = program("""
import threading

QUESTIONS = ['P=? [ F<=10 !"minimum" ]', 'S=? [ "premium" ]', 'R{"num_repairs"}=? [ F !"minimum" ]']
values, errors = [set() for _ in QUESTIONS], []

def work():
    try:
        for _ in range(20):
            for question, given in zip(QUESTIONS, values):
                given.add(session.check(question).value)
            session.labels["premium"], session.rewards, session.rate_matrix
    except Exception as error:
        errors.append(error)

def in_threads():
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

with opened(CLUSTER, {"N": 3}) as session:
    in_threads()
    import jpype
    count = jpype.JClass("java.lang.management.ManagementFactory").getThreadMXBean().getThreadCount
    before = count()
    in_threads()
    print(errors, [len(given) for given in values], count() - before)
""")
    assert lines == ["[] [1, 1, 1] 0"]
