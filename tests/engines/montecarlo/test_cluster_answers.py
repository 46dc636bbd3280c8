"""Each answer comes by itself: one that cannot be had delays no other."""

from __future__ import annotations

import asyncio
import threading
import time
from types import SimpleNamespace

import pytest

from engines.montecarlo.cluster_answers import Answers
from engines.montecarlo.cluster_work import Attempt, Work


class FutureOf:
    """A task that has ended."""

    def __init__(self, key, status="finished", error=None):
        self.key, self.status, self._error = key, status, error

    def add_done_callback(self, call):
        threading.Thread(target=call, args=(self,)).start()

    def exception(self, timeout):
        assert timeout > 0
        return self._error


class Client:
    """Answers by key; "hangs" never comes, "gone" is nowhere any more."""

    def __init__(self, loop):
        self.loop = SimpleNamespace(
            add_callback=lambda call, *words: loop.call_soon_threadsafe(call, *words)
        )
        self.scheduler = SimpleNamespace(gather=self.gather)

    async def gather(self, keys):
        (key,) = keys
        if key == "hangs":
            await asyncio.sleep(3600)
        if key == "gone":
            return {"status": "error", "keys": keys}
        if key == "cut":
            raise OSError("connection lost")
        return {"status": "OK", "data": {key: f"answer {key}"}}


@pytest.fixture
def answers():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    made = Answers(Client(loop))
    yield made
    made.close()
    asyncio.run_coroutine_threadsafe(asyncio.sleep(0.05), loop).result()
    assert not made._fetching
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def arrived(answers, number):
    found, until = [], time.monotonic() + 10
    while len(found) < number and time.monotonic() < until:
        found += answers.arrivals(0.1)
    return {arrival.attempt.future.key: arrival for arrival in found}


def test_an_answer_that_never_comes_delays_no_other(answers):
    class TaskError(Exception):
        pass

    class KilledWorkerError(Exception):
        pass

    KilledWorkerError.__module__ = "distributed.scheduler"
    futures = [
        FutureOf("hangs"),
        FutureOf("a"),
        FutureOf("gone"),
        FutureOf("cut"),
        FutureOf("lost", "lost"),
        FutureOf("failed", "error", TaskError("a fault of the model")),
        FutureOf("killed", "error", KilledWorkerError()),
        FutureOf("b"),
    ]
    work = Work(0, 10, 1)
    begin = time.monotonic()
    for future in futures:
        answers.expect(work, Attempt("worker", future, 0.0))
    found = arrived(answers, 7)
    assert time.monotonic() - begin < 5
    assert sorted(found) == ["a", "b", "cut", "failed", "gone", "killed", "lost"]
    assert (found["a"].value, found["b"].value) == ("answer a", "answer b")
    assert [key for key, x in sorted(found.items()) if x.lost] == ["cut", "gone", "killed", "lost"]
    assert "fault of the model" in str(found["failed"].error)
    assert found["a"].work is work
