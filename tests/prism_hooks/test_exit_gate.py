"""The gate that keeps the JVM from ending while a thread is where that would crash it."""

import threading
from contextlib import suppress

import pytest

from prism_hooks.exit_gate import CLOSING, ENDING, SOLVE, WARM_UP, ExitGate


def test_a_busy_thread_is_seen_and_a_finished_one_is_not():
    gate = ExitGate()
    with gate.busy(SOLVE):
        assert gate._flags[SOLVE] == 1
        assert gate._flags[WARM_UP] == 0
    assert gate._flags[SOLVE] == 0


def test_a_body_that_fails_leaves_the_gate_open():
    gate = ExitGate()
    try:
        with gate.busy(WARM_UP):
            raise RuntimeError("on purpose")
    except RuntimeError:
        pass
    assert gate._flags[WARM_UP] == 0


def test_once_the_end_has_begun_a_thread_stops_and_holds_nothing_up():
    gate = ExitGate()
    started, inside = threading.Event(), threading.Event()

    def work():
        started.set()
        with gate.busy(SOLVE):
            inside.set()

    gate._flags[ENDING] = 1
    threading.Thread(target=work, daemon=True).start()
    assert started.wait(5)
    assert not inside.wait(0.3)
    assert gate._flags[SOLVE] == 0


def test_a_thread_at_work_stops_at_its_next_look():
    gate = ExitGate()
    turns, stopped = [], threading.Event()

    def work():
        with gate.busy(SOLVE):
            while True:
                gate.stop_if_ending(SOLVE)
                turns.append(1)
                stopped.wait(0.01)

    threading.Thread(target=work, daemon=True).start()
    while not turns:
        stopped.wait(0.01)
    gate._flags[ENDING] = 1
    stopped.wait(0.3)
    seen = len(turns)
    stopped.wait(0.2)
    assert len(turns) == seen
    assert gate._flags[SOLVE] == 0


@pytest.mark.parametrize("who", [SOLVE, WARM_UP])
@pytest.mark.parametrize("fails", [False, True], ids=["done", "failed"])
def test_no_solve_goes_back_to_java_once_the_end_has_begun(who, fails):
    gate = ExitGate()
    entered, left = threading.Event(), threading.Event()

    def work():
        with suppress(RuntimeError), gate.busy(who):
            gate._flags[ENDING] = 1
            entered.set()
            if fails:
                raise RuntimeError("on purpose")
        left.set()

    threading.Thread(target=work, daemon=True).start()
    assert entered.wait(5)
    # What warms up is left, so that the JVM can forget its thread.
    assert left.wait(0.3 if who == SOLVE else 5) == (who == WARM_UP)
    assert gate._flags[who] == 0


def test_what_is_to_be_closed_holds_the_end_up_until_it_is():
    gate = ExitGate()
    closed, may_close = threading.Event(), threading.Event()

    def close():
        may_close.wait(5)
        closed.set()

    gate.close_at_end(close)
    assert not closed.wait(0.1)
    gate._flags[ENDING] = 1
    assert gate._flags[CLOSING] == 1
    may_close.set()
    assert closed.wait(5)
    for _ in range(100):
        if not gate._flags[CLOSING]:
            break
        threading.Event().wait(0.02)
    assert gate._flags[CLOSING] == 0


def test_all_is_closed_in_order_even_if_some_of_it_fails(monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    gate, order, done = ExitGate(), [], threading.Event()

    def fail():
        order.append("first")
        raise RuntimeError("on purpose")

    gate.close_at_end(fail)
    gate.close_at_end(lambda: order.append("second"))
    gate.close_at_end(done.set)
    gate._flags[ENDING] = 1
    assert done.wait(5)
    assert order == ["first", "second"]
    for _ in range(100):
        if not gate._flags[CLOSING]:
            break
        threading.Event().wait(0.02)
    assert gate._flags[CLOSING] == 0
