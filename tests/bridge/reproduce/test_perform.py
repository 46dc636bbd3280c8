"""Jobs are done once, within their limits, and an interruption loses nothing."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import replace

import pytest

from bridge.reproduce.execute import Failed, Stopped, printed
from bridge.reproduce.jobs import Job, Kind, Solve, Subject
from bridge.reproduce.perform import Limits, Performer
from bridge.reproduce.store import Store
from tests.bridge.reproduce.made_up import host


class Programs:
    """Answers as a test wants it, and what was asked."""

    def __init__(self, **how):
        self.how = how
        self.asked, self.deadlines = [], []

    def ours(self, job, limit, deadline):
        self.deadlines.append(deadline)
        self.asked.append((job.name, limit))
        answer = self.how.get(f"size{job.size}", {"status": "done"})
        if isinstance(answer, BaseException):
            raise answer
        return dict(answer)

    peer = ours


def jobs(*sizes):
    rows = [Solve(Subject.TANDEM, "tandem", size, "customers", (), ()) for size in sizes]
    return [row.job(Kind.OURS) for row in rows]


def perform(folder, wanted, programs, limits=None):
    store = Store(folder, {})
    performer = Performer(host(), store, programs, None, limits or Limits(60))
    return performer.all(wanted, lambda _: None)


def test_what_is_stored_is_not_done_again(tmp_path):
    wanted = jobs(3, 7)
    first = Programs()
    perform(tmp_path, wanted, first)
    second = Programs()
    results = perform(tmp_path, [*wanted, *jobs(15)], second)
    assert [name for name, _ in first.asked] == [job.name for job in wanted]
    assert [name for name, _ in second.asked] == [jobs(15)[0].name]
    assert all(results.of(job) for job in [*wanted, *jobs(15)])


def test_a_fresh_result_says_when_and_where_as_a_stored_one_does(tmp_path):
    (job,) = jobs(3)
    fresh, stored = (perform(tmp_path, [job], Programs()).of(job) for _ in range(2))
    assert fresh == stored
    assert {"measured", "where", "versions"} <= set(fresh)


def test_an_interruption_keeps_what_was_done(tmp_path):
    wanted = jobs(3, 7, 15)
    results = perform(tmp_path, wanted, Programs(size7=KeyboardInterrupt()))
    assert results.interrupted
    assert results.of(wanted[0]) is not None
    assert [results.why(job) for job in wanted[1:]] == ["interrupted before"] * 2
    again = Programs()
    assert not perform(tmp_path, wanted, again).interrupted
    assert [name for name, _ in again.asked] == [job.name for job in wanted[1:]]


def test_larger_ones_than_one_that_was_stopped_are_not_begun(tmp_path):
    wanted = jobs(3, 7, 15)
    programs = Programs(size7=Stopped())
    results = perform(tmp_path, wanted, programs)
    assert results.why(wanted[1]) == "> 60 s, stopped"
    assert results.why(wanted[2]) == "> 60 s, as size 7 was"
    # So it is when the stopped one is tried again and stopped again.
    assert perform(tmp_path, wanted, programs).why(wanted[2]) == "> 60 s, as size 7 was"
    assert len(programs.asked) == 3


def test_one_that_ran_out_of_time_is_tried_again_and_then_those_behind_it(tmp_path):
    wanted = jobs(3, 7, 15)
    perform(tmp_path, wanted, Programs(size7=Stopped()))
    quicker = Programs()
    results = perform(tmp_path, [*wanted, *jobs(5)], quicker)
    # What is new comes first.
    names = [job.name for job in (jobs(5)[0], wanted[1], wanted[2])]
    assert [name for name, _ in quicker.asked] == names
    assert all(results.of(job) for job in wanted)


def test_without_budget_for_another_try_the_stopped_one_stays(tmp_path):
    wanted = jobs(3)
    perform(tmp_path, wanted, Programs(size3=Stopped()))
    results = perform(tmp_path, wanted, Programs(), Limits(60, time.monotonic()))
    assert results.why(wanted[0]) == "> 60 s, stopped"
    assert perform(tmp_path, wanted, Programs()).of(wanted[0]) is not None


def test_without_a_gpu_its_rows_are_left_to_another_host_and_prism_s_are_made(tmp_path):
    machine = replace(host(), prism=object(), computes=False)
    both = [*jobs(3), *peers("tandem", 3)]
    performer = Performer(machine, Store(tmp_path, {}), Programs(), None, Limits(60))
    results = performer.all(both, lambda _: None)
    assert "no GPU here" in results.why(both[0])
    assert results.of(both[1]) is not None


def test_a_failed_one_is_shown_and_tried_again(tmp_path):
    wanted = jobs(3)
    results = perform(tmp_path, wanted, Programs(size3=Failed("out of memory")))
    assert results.why(wanted[0]) == "failed: out of memory"
    assert perform(tmp_path, wanted, Programs()).of(wanted[0]) is not None


def test_a_wrong_one_is_not_shown_and_counts(tmp_path):
    wanted = jobs(3)
    results = perform(tmp_path, wanted, Programs(size3={"status": "wrong", "wrong": "7 states"}))
    assert results.of(wanted[0]) is None
    assert results.why(wanted[0]) == "WRONG: 7 states"
    assert results.wrong == [wanted[0].name]


def test_the_budget_shortens_a_run_and_what_it_cuts_off_is_not_kept(tmp_path):
    class Slow(Programs):
        def ours(self, job, limit, deadline):
            super().ours(job, limit, deadline)
            time.sleep(max(deadline - time.monotonic(), 0))
            raise Stopped

    wanted, programs = jobs(3, 7), Slow()
    results = perform(tmp_path, wanted, programs, Limits(60, time.monotonic() + 2.5))
    assert len(programs.asked) == 1
    assert all("budget ended" in results.why(job) for job in wanted)
    assert results.seconds < 5
    assert perform(tmp_path, wanted, Programs()).of(wanted[0]) is not None


def test_what_the_machine_cannot_hold_is_not_begun(tmp_path):
    (large,) = jobs(40_000)
    programs = Programs()
    assert "needs about" in perform(tmp_path, [large], programs).why(large)
    assert programs.asked == []


def test_what_a_machine_lacks_is_told_by_reports_made_elsewhere(tmp_path):
    (large,) = jobs(40_000)
    reason = perform(tmp_path, [large], Programs()).why(large)
    store, elsewhere = Store(tmp_path, {}), replace(host(), computes=False)
    assert store.get(large)["status"] == "refused"
    told = Performer(elsewhere, store, Programs(), None, Limits(60)).all([large], print)
    assert told.why(large) == reason
    # A machine that has what it takes begins with it.
    larger = replace(host(), device_memory=2**50, memory=2**50, available=2**50)
    programs = Programs()
    Performer(larger, store, programs, None, Limits(60)).all([large], print)
    assert len(programs.asked) == 1


def test_prism_is_not_missed_where_there_is_none(tmp_path):
    job = Solve(Subject.TANDEM, "tandem", 3, "customers", (), ()).job(Kind.PEER)
    assert perform(tmp_path, [job], Programs()).why(job) == "no PRISM"


@pytest.mark.parametrize("kind", [Kind.COLOURS, Kind.COMPONENTS])
def test_tasks_may_take_several_runs(tmp_path, kind):
    class Worker:
        def do(self, kind, parameters, limit):
            del parameters
            asked.append((kind, limit))
            return {"status": "done"}

    asked = []
    job = Job(Subject.SCC, "some graph", kind, {})
    performer = Performer(host(), Store(tmp_path, {}), Programs(), Worker(), Limits(10))
    performer.all([job], lambda _: None)
    assert asked == [(kind, 40)]


def peers(family, *sizes):
    rows = [Solve(Subject.TANDEM, family, size, "customers", (), ()) for size in sizes]
    return [row.job(Kind.PEER) for row in rows]


def side_by_side(folder, wanted, programs):
    machine = replace(host(), prism=object())
    limits = Limits(60, peers_at_a_time=2)
    performer = Performer(machine, Store(folder, {}), programs, None, limits)
    return performer.all(wanted, lambda _: None)


def test_series_go_side_by_side_and_the_members_of_one_in_turn(tmp_path):
    class Slow(Programs):
        def peer(self, job, limit, deadline):
            del limit, deadline
            spans[job.name] = [time.monotonic()]
            time.sleep(0.3)
            spans[job.name].append(time.monotonic())
            if job.size == 7:
                raise Stopped
            return {"status": "done"}

    spans = {}
    tandem, cluster = peers("tandem", 3, 7, 15), peers("cluster", 3, 5)
    results = side_by_side(tmp_path, [*tandem, *cluster], Slow())
    first, second = spans[tandem[0].name], spans[tandem[1].name]
    assert first[1] <= second[0]
    assert spans[cluster[0].name][0] < first[1]
    assert results.why(tandem[2]) == "> 60 s, as size 7 was"
    assert [results.of(job)["runs_at_a_time"] for job in cluster] == [2, 2]


def test_prism_runs_while_the_gpu_does(tmp_path):
    """Each of the two waits for the other to have begun."""

    class Together(Programs):
        def ours(self, *_):
            begun["ours"].set()
            assert begun["peer"].wait(10)
            return {"status": "done"}

        def peer(self, *_):
            begun["peer"].set()
            assert begun["ours"].wait(10)
            return {"status": "done"}

    begun = {"ours": threading.Event(), "peer": threading.Event()}
    machine = replace(host(), prism=object(), device="gpu")
    wanted = [*jobs(3), *peers("tandem", 3)]
    performer = Performer(
        machine, Store(tmp_path, {}), Together(), None, Limits(60, peers_at_a_time=2)
    )
    results = performer.all(wanted, lambda _: None)
    assert all(results.of(job) for job in wanted)


def test_an_interruption_ends_all_that_run_side_by_side(tmp_path):
    class Runs(Programs):
        def peer(self, job, limit, deadline):
            del deadline
            if job.size == 4:
                time.sleep(0.5)
                raise KeyboardInterrupt
            code = "import time; time.sleep(60)"
            return {"status": "done", "text": printed([sys.executable, "-c", code], limit, {})}

    wanted = [*peers("cluster", 4), *peers("tandem", 3, 7)]
    begun = time.monotonic()
    results = side_by_side(tmp_path, wanted, Runs())
    assert time.monotonic() - begun < 20
    assert results.interrupted
    assert [results.why(job) for job in wanted] == ["interrupted before"] * 3
