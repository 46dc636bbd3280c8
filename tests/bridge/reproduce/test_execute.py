"""Runs of programs: their logs, their limits, and the judgement on their answers."""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path

import pytest

from bridge.install import JavaInstall, PrismInstall
from bridge.reproduce import execute
from bridge.reproduce.execute import Failed, Stopped, in_cpu_time, judge, parsed, printed
from bridge.reproduce.families import FAMILIES
from bridge.reproduce.instances import gauss_seidel, jacobi
from bridge.reproduce.jobs import Kind, Scale, Subject
from tests.bridge.reproduce.made_up import host

PRISM = """
Reachability (BFS): 191 iterations in 0.01 seconds (average 0.000052, setup 0.00)
Time for model construction: 0.048 seconds.
Type:        CTMC
States:      8128 (1 initial)
Transitions: 27971
Jacobi: 1056 iterations in 0.06 seconds (average 0.000057, setup 0.00)
Time for model checking: 0.099 seconds.
Result: 63.822615744541984
"""
OURS = """
Time for model construction: 0.5 seconds.
States:      8128 (1 initial)
Transitions: 27971
Jacobi: 3 iterations in 9.00 seconds (average 3.0, setup 0.00)
Jacobi: 1056 iterations in 0.17 seconds (average 0.000137, setup 0.02)
prism-gpu: CPU, kernel SciPy, format csr, solved in 9.0000 s, 3 sweeps, 3000000 us a sweep, 4 GB/s
prism-gpu: CPU, kernel SciPy, format csr, solved in 0.1654 s, 1056 sweeps, 137.22 us a sweep, 4 GB/s
Time for model checking: 0.228 seconds.
Result: 63.82261574454196 (+/- 6.3E-4 estimated; rel err 9.8E-6)
"""


def test_a_log_of_prism_is_read():
    found = parsed(PRISM)
    assert found["value"] == 63.822615744541984
    assert (found["states"], found["transitions"]) == (8128, 27971)
    assert (found["method"], found["sweeps"]) == ("Jacobi", 1056)
    assert (found["build_seconds"], found["check_seconds"]) == (0.048, 0.099)
    assert (found["solve_seconds"], found["sweep_microseconds"]) == (0.06, pytest.approx(57))


def test_what_prism_measures_in_cpu_time_is_named_so():
    found = in_cpu_time(parsed(PRISM))
    assert (found["solve_cpu_seconds"], found["sweep_cpu_microseconds"]) == (
        0.06,
        pytest.approx(57),
    )
    assert (found["build_seconds"], found["check_seconds"]) == (0.048, 0.099)
    assert not {"solve_seconds", "setup_seconds", "sweep_microseconds"} & found.keys()


def test_the_longest_of_our_solves_counts_to_all_digits():
    found = parsed(OURS)
    assert (found["sweeps"], found["solve_seconds"]) == (1056, 0.1654)
    assert (found["sweep_microseconds"], found["engine"]) == (137.22, "CPU, SciPy, csr")


def test_a_line_of_the_gpu_tells_memory_and_speed():
    line = (
        "prism-gpu: GPU 0, kernel cooperative, format patterns, csr 40 us, patterns 6 us, "
        "solved in 0.0701 s, 1056 sweeps, at most 35.1 MB of device memory, 4.20 us a sweep, "
        "2000 GB/s, 13 % of copy bandwidth, error about 1.9e-05, residual 1.5e-19, one-sided"
    )
    found = parsed(PRISM + line)
    assert (found["solve_seconds"], found["sweep_microseconds"]) == (0.0701, 4.2)
    assert (found["device_megabytes"], found["copy_share_percent"]) == (35.1, 13)
    assert found["engine"] == "GPU 0, cooperative, patterns"


def test_other_names_of_methods_and_results_are_read():
    text = PRISM.replace("Jacobi:", "Backwards Pseudo Gauss-Seidel:")
    text = text.replace("Result:", "Result (maximum value over states satisfying filter):")
    assert parsed(text)["method"] == "Backwards Pseudo Gauss-Seidel"
    assert parsed(text)["value"] == 63.822615744541984


def test_a_log_without_a_result_fails_with_what_it_says():
    with pytest.raises(Failed, match="did not converge"):
        parsed("Error: Iterative method did not converge within 3 iterations.\n")
    with pytest.raises(Failed, match="no result"):
        parsed("States: 4\n")


def test_a_command_that_takes_too_long_is_ended_with_its_children(tmp_path):
    mark = tmp_path / "mark"
    child = f"import time, pathlib; time.sleep(2); pathlib.Path({str(mark)!r}).touch()"
    parent = (
        "import subprocess, sys, time; "
        f"subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(30)"
    )
    begun = time.monotonic()
    with pytest.raises(Stopped):
        printed([sys.executable, "-c", parent], 1.0, {})
    assert time.monotonic() - begun < 10
    time.sleep(2.5)
    assert not mark.exists()


def test_a_command_that_fails_says_why():
    with pytest.raises(Failed, match=r"^boom$"):
        printed([sys.executable, "-c", "import sys; sys.exit('boom')"], 30, {})
    code = "print('Error: no such model.'); raise SystemExit(1)"
    with pytest.raises(Failed, match="no such model"):
        printed([sys.executable, "-c", code], 30, {})


def record(**changes):
    return {"value": 2.0, "states": 10, "transitions": 30, **changes}


def test_a_right_answer_is_done_with_its_error():
    found = record(value=2.0001)
    judge(found, 2.0, 1e-4, (10, 30))
    assert found["status"] == "done"
    assert found["error"] == pytest.approx(5e-5)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"value": 2.001}, "the value is 2.001, and 2 was expected"),
        ({"value": float("nan")}, "the value is nan"),
        ({"value": float("inf")}, "the value is inf"),
        ({"states": 11}, "11 states, and 10 were expected"),
        ({"transitions": 29}, "29 transitions, and 30 were expected"),
    ],
)
def test_a_wrong_answer_is_wrong_and_says_how(changes, said):
    found = record(**changes)
    judge(found, 2.0, 1e-4, (10, 30))
    assert found["status"] == "wrong"
    assert said in found["wrong"]


def test_ours_is_given_nothing_that_needs_decision_diagrams(tmp_path, monkeypatch):
    # They take longer to build the models of 2011 than the solves take.
    root = Path("/nowhere")
    prism = PrismInstall(root, "4.10", root / "classes", (), root / "lib", "PRISM_DIR")
    java = JavaInstall(root, root / "libjvm.so", "17", 17, True, "", "JAVA_HOME")
    machine = dataclasses.replace(host(), prism=prism, java=java, memory=128 << 30)
    asked: list[list[str]] = []

    def noted(command, *_rest):
        asked.append(list(command))
        return OURS

    monkeypatch.setattr(execute, "printed", noted)
    row = jacobi.solves(Subject.TANDEM, Scale.PAPER, machine)[0]
    programs = execute.Programs(machine, tmp_path)
    programs.ours(row.job(Kind.OURS), 1.0, time.monotonic() + 60)
    ours = [word for command in asked for word in command]
    assert not {"-sparse", "-hybrid", "-mtbdd", "-cuddmaxmem"} & set(ours)
    programs.peer(row.job(Kind.PEER), 1.0, time.monotonic() + 60)
    assert {"-sparse", "-cuddmaxmem"} <= set(asked[-1])


def test_the_run_that_names_no_method_is_made_once_for_all_rows_of_a_question(
    tmp_path, monkeypatch
):
    asked: list[list[str]] = []

    def noted(command, *_rest):
        asked.append(list(command))
        return OURS

    monkeypatch.setattr(execute, "printed", noted)
    machine = host()
    row = next(
        row
        for row in gauss_seidel.solves(Scale.PAPER)
        if FAMILIES[row.family].value(row.asked, row.size) is None
    )
    programs = execute.Programs(machine, tmp_path)
    for colours in ("2", "3", "4"):
        job = row.variant(Kind.OURS, ("-gs", "-gpucolours", colours))
        record = programs.ours(job, 1.0, time.monotonic() + 60)
        assert record["expected"] == 63.82261574454196
    assert [command for command in asked if "-gs" not in command] == asked[:1]
