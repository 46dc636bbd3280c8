"""Opens, checks and closes many models in one process, and prints what that leaves behind.

    python -m tests.bridge.soak MODELS CHECKS_A_THREAD

Prints a line of JSON: a list of samples, and every value that each question was given.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import bridge
from bridge.session import Session
from engines.errors import InvalidModelError

CLUSTER = Path(__file__).resolve().parents[2] / "examples" / "models" / "cluster.sm"
WALK = """mdp
const int N;
module walk
  s : [0..N];
  [up] s<N -> 0.5:(s'=s+1) + 0.5:(s'=0);
  [leap] s<N -> 0.3:(s'=N) + 0.7:(s'=0);
  [] s=N -> true;
endmodule
init s=0 | s=1 endinit
label "goal" = s=N;
rewards "steps" s<N : 1; endrewards
"""
QUESTIONS = {
    "cluster": [
        'S=? [ "premium" ]',
        'P=? [ F<=10 !"minimum" ]',
        'R{"num_repairs"}=? [ F !"minimum" ]',
        'filter(count, P>0.5 [ F<=1 "premium" ])',
        'P>0.99 [ "minimum" U "premium" ]',
    ],
    "walk": [
        'Pmax=? [ F "goal" ]',
        'R{"steps"}min=? [ F "goal" ]',
        'Pmin=? [ F<=7 "goal" ]',
        "filter(sum, s)",
        'filter(max, Pmax=? [ X "goal" ])',
    ],
}
SYMBOLIC_EVERY, FAULTY_EVERY, DROPPED_EVERY = 5, 7, 3
SAMPLES, THREADS = 10, 20


def opened(walk: Path, number: int, *, symbolic: bool = False) -> Session:
    """Return a session on one of a few models, in turn."""
    if number % 2:
        return bridge.open(CLUSTER, {"N": 1 + number % 3}, epsilon=1e-8, symbolic=symbolic)
    return bridge.open(walk, {"N": 10 + number % 3}, symbolic=symbolic)


def answers(walk: Path, number: int, *, symbolic: bool = False) -> Iterator[tuple[str, object]]:
    """Open a model, read it and ask it everything; close it, or drop it."""
    session = opened(walk, number, symbolic=symbolic)
    size = session.constants["N"]
    for text in QUESTIONS["cluster" if number % 2 else "walk"]:
        result = session.check(text)
        yield f"{text} N={size} {symbolic}", result.value
    yield f"{number % 2} N={size}", float(session.transition_matrix.sum())
    yield f"labels {number % 2} N={size}", sum(int(x.sum()) for x in session.labels.values())
    if symbolic or number % DROPPED_EVERY:
        session.close()


def fail(walk: Path) -> None:
    """Make the faults that users make."""
    for constants, text in [({}, "true"), ({"N": 5}, "P=? ["), ({"N": 5}, 'P=? [ F "none" ]')]:
        for symbolic in (False, True):
            try:
                with bridge.open(walk, constants, symbolic=symbolic) as session:
                    session.check(text)
            except InvalidModelError:
                continue
            raise AssertionError(f"{text} was checked")


def sample(temporary: Path) -> dict[str, float]:
    """Return what the process holds, garbage apart."""
    from bridge.jvm import java_class

    # What Java collects sets free what Python holds for it, and the other way round.
    for _ in range(2):
        gc.collect()
        java_class("java.lang.System").gc()
        time.sleep(0.1)
    management = java_class("java.lang.management.ManagementFactory")
    heap = management.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    threads = management.getThreadMXBean().getThreadCount()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {
        "resident_mb": int(status["VmRSS"].split()[0]) / 1e3,
        "heap_mb": int(heap) / 1e6,
        "threads": int(status["Threads"]),
        "java_threads": int(threads),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "objects": len(gc.get_objects()),
        "files": sum(len(files) for _, _, files in os.walk(temporary)),
    }


def main(models: int, checks: int) -> None:
    """Open the models one after the other, then some at once in many threads."""
    temporary = Path(tempfile.gettempdir())
    walk = temporary / "walk.nm"
    walk.write_text(WALK)
    values: defaultdict[str, set[object]] = defaultdict(set)
    samples, lock = [], threading.Lock()
    for number in range(models):
        if number % FAULTY_EVERY == 0:
            fail(walk)
        for question, value in answers(walk, number, symbolic=number % SYMBOLIC_EVERY == 0):
            values[question].add(value)
        if (number + 1) % (models // SAMPLES) == 0:
            samples.append(sample(temporary))
    errors: list[str] = []

    def work(first: int) -> None:
        try:
            for number in range(first, first + checks):
                for question, value in answers(walk, number):
                    with lock:
                        values[question].add(value)
        except Exception as error:
            errors.append(repr(error))

    for _ in range(2):
        threads = [threading.Thread(target=work, args=(first,)) for first in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        samples.append(sample(temporary))
    answers_given = {question: sorted(map(repr, given)) for question, given in values.items()}
    print(json.dumps({"samples": samples, "values": answers_given, "errors": errors}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
