"""Where the seconds of a run go: parts that add up, whatever is nested in what."""

import re
import threading
import time

from engines.process import timeline
from engines.process.timeline import TIMELINE, Timeline

PART = re.compile(r"([\d.]+) ([^,]+)")


def parts(told):
    """Return the seconds by name, and those of all."""
    whole, _, rest = told.partition(" s in all: ")
    return {name: float(seconds) for seconds, name in PART.findall(rest)}, float(whole)


def test_a_part_within_another_counts_for_itself_alone_and_all_add_up(monkeypatch):
    clock = iter([1.0, 3.0, 6.0, 10.0, 15.0, 21.0])
    monkeypatch.setattr(timeline.time, "perf_counter", lambda: next(clock))
    made = Timeline(0.0)
    with made.part("outer"):
        with made.part("inner"):
            pass
        made.turn_to("rest")
    found, whole = parts(made.told())
    assert found == {"starting": 1.0, "outer": 2.0 + 4.0 + 5.0, "inner": 3.0, "rest": 6.0}
    assert whole == sum(found.values()) == 21.0


def test_a_part_that_fails_ends():
    made = Timeline(time.perf_counter())

    @made.counted("calls")
    def fail():
        raise KeyError

    for _ in range(2):
        try:
            fail()
        except KeyError:
            made.turn_to("after")
    assert list(parts(made.told())[0]) == ["starting", "calls", "after"]


def test_what_a_thread_does_beside_the_run_is_told_apart():
    made = Timeline(time.perf_counter())

    def work():
        with made.beside("opening"), made.part("inside"):
            time.sleep(0.05)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    found, _ = parts(made.told())
    assert list(found) == ["starting", "opening beside it"]
    assert found["opening beside it"] >= 0.05


def test_a_process_begins_before_its_modules_are_loaded():
    age = time.perf_counter() - TIMELINE.begun
    assert 0.05 < age < 86_400.0


def test_another_run_of_a_process_begins_with_nothing(monkeypatch):
    clock = iter([1.0, 9.0])
    monkeypatch.setattr(timeline.time, "perf_counter", lambda: next(clock))
    made = Timeline(0.0)
    made.turn_to("rest")
    made.restart(5.0)
    assert parts(made.told()) == ({"starting": 4.0}, 4.0)
