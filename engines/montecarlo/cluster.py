"""Sampling on many processes or machines, some of which are slow, die or lie.

Paths are cut into batches by their numbers. Each batch is a task for one worker of
dask.distributed; what comes back is put in path order and fed to the method, as one machine would
feed it. So the judgement is that of one machine with the same seed, whoever sampled what, and
however often.

What goes wrong, and what is done:

- A worker dies: its batches go to others.
- A worker is slow: the batch that the method waits for is given to another one as well, and the
  first answer counts. The second, if it comes, is compared with it.
- A worker hangs: past the deadline it is cut off and gets no further batch.
- A worker returns garbage: an answer that contradicts itself cuts it off at once. One that is
  wrong without showing it is found by sampling again: the first batch of each worker, and a share
  of the others, are sampled by a second worker too. Where the two differ, this process samples the
  batch itself, and who differs from that is cut off; every answer of that worker that nobody has
  confirmed is withdrawn and sampled anew. With a share of 1 each batch is confirmed, and no wrong
  answer of a single worker can get into the result.

Source of the scheme: the over-generation and the loss of workers in G. Guirado and others,
"Distribution, approximation and probabilistic model checking", PDMC 2005, section 3.2; backup tasks
are from J. Dean, S. Ghemawat, "MapReduce: simplified data processing on large clusters", OSDI 2004.
"""

from __future__ import annotations

import hashlib
import math
import pickle
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from engines.montecarlo.cluster_answers import Answers, Arrival
from engines.montecarlo.cluster_client import OpenCluster
from engines.montecarlo.cluster_options import ClusterError, ClusterOptions, ClusterReport
from engines.montecarlo.cluster_work import (
    Attempt,
    PathSampler,
    PathTaker,
    SamplerSpec,
    Work,
    sample_batch,
)
from engines.montecarlo.tally import InconsistentBatchError, PathBatch, Tally


@dataclass(frozen=True)
class ClusterTuning:
    """How batches are given out and waited for.

    Parameters
    ----------
    poll_s
        How long to wait for answers at most, and how often to look who is there.
    least_deadline_s
        For a batch, however fast others were.
    slow, least_patience_s
        How many times the median time of a batch makes a worker slow, and from when on.
    ahead
        Batches that a worker has at a time: one to sample, one to go on with.
    largest_lead
        How many batches, for each that the workers have, are sampled before the one waited for.
    """

    poll_s: float = 0.1
    least_deadline_s: float = 20.0
    slow: float = 4.0
    least_patience_s: float = 1.0
    ahead: int = 2
    largest_lead: int = 8


ClusterProgress = Callable[[int, ClusterReport], None]
"""Takes the number of the first path that has not been fed, and what happened so far."""


def run_on_cluster(
    sampler: SamplerSpec,
    methods: PathTaker,
    address: str | OpenCluster,
    options: ClusterOptions | None = None,
    progress: ClusterProgress | None = None,
    first_path: int = 0,
) -> ClusterReport:
    """Feed methods with paths that the workers of a cluster sample, until all are finished.

    Parameters
    ----------
    sampler
        Makes the sampler; must be picklable. Its batches hold single outcomes where a method's
        `needs_order` says so.
    methods
        Methods that have seen no path, or what else takes paths; finished on return.
    address
        Of a dask scheduler (``tls://host:8786``), or ``local:N`` for N processes of this machine;
        or a cluster that is open, and stays so.
    options
        How to deal with the workers.
    progress
        Called several times a second.
    first_path
        The first path that the methods want.

    Raises
    ------
    ClusterError
        If no worker is left.
    UnsupportedError
        If dask.distributed is not installed, or the address makes no sense.
    Exception
        What the sampler itself raises for a batch that the result needs.
    """
    options = options or ClusterOptions()
    if isinstance(address, OpenCluster):
        return _Run(address, sampler, methods, options, progress, first_path).to_the_end()
    with OpenCluster(address) as cluster:
        return _Run(cluster, sampler, methods, options, progress, first_path).to_the_end()


class _Run:
    def __init__(
        self,
        cluster: OpenCluster,
        sampler: SamplerSpec,
        methods: PathTaker,
        options: ClusterOptions,
        progress: ClusterProgress | None,
        first_path: int,
        tuning: ClusterTuning = ClusterTuning(),
    ) -> None:
        self._tuning = tuning
        self._cluster, self._client = cluster, cluster.client
        self._make_sampler = sampler
        self._pickled = pickle.dumps(sampler)
        self._own: PathSampler | None = None
        self._methods = methods
        self._options = options
        self._progress = progress
        self._tally = Tally()
        self._work: dict[int, Work] = {}
        # Those of them that are not done, or that somebody is at: in a long run few.
        self._open: dict[int, Work] = {}
        self._answers = Answers(cluster.client)
        self._workers: set[str] = set()
        self._seen: set[str] = set()
        self._answered: set[str] = set()
        self._durations: list[float] = []
        self._report = ClusterReport()
        self._first_path = self._fed = self._planned = first_path
        self._last_worker_s = time.monotonic()
        self._looked_s = -math.inf

    def to_the_end(self) -> ClusterReport:
        try:
            while not self._complete():
                if time.monotonic() - self._looked_s > self._tuning.poll_s:
                    # Who has died is known before anybody is said to hang.
                    self._look_for_workers()
                    self._cut_off_hanging()
                    self._looked_s = time.monotonic()
                self._give_out()
                self._collect()
                self._feed()
                self._close_what_is_done()
        finally:
            self._answers.close()
            for work in self._work.values():
                for attempt in work.attempts:
                    attempt.future.cancel()
        self._report.batches = sum(1 for work in self._work.values() if self._needed(work))
        return self._report

    def _needed(self, work: Work) -> bool:
        return work.first_path < self._methods.num_paths

    def _complete(self) -> bool:
        """Whether the methods are finished and what they were fed is confirmed as wanted."""
        return self._methods.finished and all(
            work.done for work in self._open.values() if self._needed(work)
        )

    def _close_what_is_done(self) -> None:
        for work in list(self._open.values()):
            if work.done and not work.attempts:
                del self._open[work.first_path]

    # Workers

    def _look_for_workers(self) -> None:
        now = time.monotonic()
        alive = set(self._client.nthreads())
        self._cluster.replace_lost(len(alive))
        for worker in (self._workers - alive) - set(self._report.cut_off):
            self._report.lost += 1
            self._take_back(worker)
        self._workers = alive
        self._report.workers = len(self._usable())
        if self._report.workers:
            self._last_worker_s = now
        elif now - self._last_worker_s > self._options.patience_s:
            reasons = "; ".join(f"{x}: {why}" for x, why in self._report.cut_off.items())
            raise ClusterError(
                f"no worker is left after {self._report.lost} died and "
                f"{len(self._report.cut_off)} were cut off ({reasons or 'none'}): start more, or "
                "sample on this machine alone"
            )

    def _usable(self) -> list[str]:
        return sorted(self._workers - set(self._report.cut_off))

    def _take_back(self, worker: str) -> None:
        """Forget what a worker was to do; others will."""
        for work in self._open.values():
            kept = [attempt for attempt in work.attempts if attempt.worker != worker]
            for attempt in work.attempts:
                if attempt.worker == worker:
                    attempt.future.cancel()
                    self._report.repeated += 1
            work.attempts = kept

    def _cut_off(self, worker: str, reason: str, *, trusted: bool = False) -> None:
        """Give a worker nothing more and, unless trusted, drop what nobody confirmed of it."""
        if worker in self._report.cut_off:
            return
        self._report.cut_off[worker] = reason
        self._take_back(worker)
        if trusted:
            return
        withdrawn = False
        for work in self._work.values():
            answer = work.answers.get(worker)
            if answer is None or len(work.answers) > 1 or work.settled:
                continue
            del work.answers[worker]
            self._open[work.first_path] = work
            self._tally.withdraw(work.first_path)
            self._report.repeated += 1
            withdrawn = True
        if withdrawn:
            self._start_over()

    def _start_over(self) -> None:
        """Feed the methods again from the first path, with the answers that are left."""
        self._methods.start_over()
        self._fed = self._first_path

    def _deadline_s(self, worker: str) -> float:
        if self._options.deadline_s is not None:
            return self._options.deadline_s
        if not self._durations or worker not in self._answered:
            # The first batch may begin with a compilation.
            return 10 * self._tuning.least_deadline_s
        return max(self._tuning.least_deadline_s, 20 * statistics.median(self._durations[-99:]))

    def _cut_off_hanging(self) -> None:
        now = time.monotonic()
        attempts = [attempt for work in self._open.values() for attempt in work.attempts]
        for attempt in attempts:
            deadline = self._deadline_s(attempt.worker)
            if now - attempt.since > deadline:
                reason = f"no answer within {deadline:.0f} s"
                self._cut_off(attempt.worker, reason, trusted=True)

    # Giving out

    def _load(self) -> dict[str, int]:
        load = dict.fromkeys(self._usable(), 0)
        for work in self._open.values():
            for attempt in work.attempts:
                if attempt.worker in load:
                    load[attempt.worker] += 1
        return load

    def _give_out(self) -> None:
        load = self._load()
        for _ in range(self._tuning.ahead * len(load)):
            free = [worker for worker in load if load[worker] < self._tuning.ahead]
            if not free:
                return
            given = self._next_for(min(free, key=lambda worker: (load[worker], worker)), load)
            if given is None:
                return
            load[given] += 1

    def _next_for(self, worker: str, load: dict[str, int]) -> str | None:
        """Give the most urgent batch to a worker that may have it; None if there is none."""
        for work in sorted(self._open.values(), key=lambda work: work.first_path):
            if not work.missing or (self._methods.finished and not self._needed(work)):
                continue
            others = [x for x in load if load[x] < self._tuning.ahead and work.may_go_to(x)]
            if others:
                chosen = worker if worker in others else min(others, key=lambda x: load[x])
                return self._submit(work, chosen)
            if work.answers and not any(map(work.may_go_to, load)):
                # Nobody is left who could confirm it. Who has changed by this is seen next time.
                self._settle(work)
                return None
        return self._duplicate(load) or self._plan(worker)

    def _plan(self, worker: str) -> str | None:
        """Cut the next batch off the paths that nobody has yet, if more may be needed."""
        paths = self._options.batch_paths
        room = self._tuning.largest_lead * self._tuning.ahead * max(1, len(self._workers)) * paths
        if self._methods.finished or self._planned - self._fed > room:
            return None
        if not self._methods.needs_order:
            # Counts cannot be cut, so a batch ends where a method does.
            stops = self._methods.stops
            left = [stop - self._planned for stop in stops if stop > self._planned]
            if not left:
                return None
            paths = min(paths, *left)
        number = self._planned // self._options.batch_paths
        first = worker not in self._seen
        work = Work(self._planned, paths, 2 if first or self._is_drawn(number) else 1)
        self._planned += paths
        self._work[work.first_path] = self._open[work.first_path] = work
        return self._submit(work, worker)

    def _is_drawn(self, number: int) -> bool:
        drawn = int.from_bytes(hashlib.blake2b(str(number).encode(), digest_size=4).digest())
        return drawn < self._options.confirmed_share * 2**32

    def _submit(self, work: Work, worker: str) -> str:
        future = self._client.submit(
            sample_batch,
            self._pickled,
            work.first_path,
            work.num_paths,
            workers=[worker],
            allow_other_workers=False,
            pure=False,
            retries=0,
        )
        attempt = Attempt(worker, future, time.monotonic())
        self._seen.add(worker)
        work.attempts.append(attempt)
        self._answers.expect(work, attempt)
        return worker

    def _duplicate(self, load: dict[str, int]) -> str | None:
        """Give a batch whose worker is slow, and which is waited for, to one more worker."""
        now = time.monotonic()
        patience = (
            self._tuning.slow * statistics.median(self._durations[-99:])
            if self._durations
            else math.inf
        )
        for work in self._open.values():
            waited_for = self._needed(work) or work.first_path == self._fed
            if work.done or not waited_for or len(work.attempts) != 1:
                continue
            if now - work.attempts[0].since < max(patience, self._tuning.least_patience_s):
                continue
            for worker in load:
                if load[worker] < self._tuning.ahead and work.may_go_to(worker):
                    self._report.repeated += 1
                    return self._submit(work, worker)
        return None

    # Taking in

    def _collect(self) -> None:
        """Take the answers that have arrived, waiting a little for the first."""
        for arrival in self._answers.arrivals(self._tuning.poll_s):
            self._take(arrival)

    def _take(self, arrival: Arrival) -> None:
        work, attempt = arrival.work, arrival.attempt
        if attempt not in work.attempts:
            return
        work.attempts.remove(attempt)
        worker, answer = attempt.worker, arrival.value
        if arrival.lost:
            self._report.repeated += 1
            return
        if arrival.error is not None:
            self._time(attempt)
            self._judge_error(work, worker, arrival.error)
            return
        self._time(attempt)
        problem = self._problem_of(work, answer)
        if problem:
            self._cut_off(worker, problem)
        else:
            self._accept(work, worker, answer[0])

    def _time(self, attempt: Attempt) -> None:
        now = time.monotonic()
        self._report.sampled += 1
        self._answered.add(attempt.worker)
        self._durations.append(now - attempt.since)
        for work in self._open.values():
            for other in work.attempts:
                if other.worker == attempt.worker:
                    other.since = now

    def _problem_of(self, work: Work, answer: object) -> str | None:
        """Return what is wrong with an answer at sight, if anything."""
        if not (isinstance(answer, tuple) and len(answer) == 2):
            return "an answer that is no batch"
        batch, digest = answer
        if not isinstance(batch, PathBatch):
            return "an answer that is no batch"
        if (batch.first_path, batch.num_paths) != (work.first_path, work.num_paths):
            return "an answer about other paths"
        problem = batch.problem(self._methods.num_questions)
        if problem is None and batch.digest() != digest:
            problem = "an answer that does not match its checksum"
        return problem

    def _accept(self, work: Work, worker: str, batch: PathBatch) -> None:
        work.answers[worker] = batch
        if work.errors and not work.settled:
            self._settle(work)
        elif work.settled:
            known = next(self._tally.ready(work.first_path))
            if known.digest() != batch.digest():
                self._cut_off(worker, "answers that differ from this machine's")
            return
        try:
            self._tally.add(batch)
        except InconsistentBatchError:
            self._settle(work)

    def _settle(self, work: Work) -> None:
        """Sample a batch here, and cut off who answered differently."""
        if self._own is None:
            self._own = self._make_sampler()
        truth = self._own.run(work.first_path, work.num_paths)
        kept = next(self._tally.ready(work.first_path), None)
        self._tally.withdraw(work.first_path)
        self._tally.add(truth)
        work.settled = True
        if kept is not None and kept.digest() != truth.digest():
            self._start_over()
        for worker, answer in list(work.answers.items()):
            if answer.digest() != truth.digest():
                del work.answers[worker]
                self._cut_off(worker, "answers that differ from this machine's")
        for worker, error in work.errors.items():
            self._cut_off(worker, f"an error that this machine does not make: {error}")

    def _judge_error(self, work: Work, worker: str, error: BaseException) -> None:
        """Remember an error; it counts only if the result needs the batch, as on one machine."""
        work.errors[worker] = error
        if work.answers or work.settled:
            self._settle(work)

    def _feed(self) -> None:
        for batch in self._tally.ready(self._fed):
            if self._methods.finished:
                return
            self._methods.feed(batch)
            self._fed = batch.end
        waited_for = self._work.get(self._fed)
        if waited_for is not None and waited_for.errors and not self._methods.finished:
            # Either this process makes the error too, and raises it, or the worker is to blame.
            self._settle(waited_for)
        if self._progress is not None:
            self._progress(self._fed, self._report)
