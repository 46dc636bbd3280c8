"""Doing jobs one after the other: what is stored is not done again, and nothing runs for ever."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from bridge.reproduce.execute import Failed, Programs, Stopped, end_running
from bridge.reproduce.host import Host
from bridge.reproduce.jobs import RUNS, Job, Kind
from bridge.reproduce.store import Record, Store
from bridge.reproduce.worker import Worker
from prism_hooks.sweep_bar import terminal_size

GIB = float(1 << 30)


@dataclass
class Results:
    """What is known of jobs.

    Parameters
    ----------
    records
        By name of the job.
    reasons
        Why there is no record, by name of the job.
    seconds
        What the jobs of this run took.
    interrupted
        Whether it was interrupted.
    too_slow
        Names of jobs that were not begun because a smaller one was stopped.
    """

    records: dict[str, Record] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    interrupted: bool = False
    too_slow: set[str] = field(default_factory=set)

    def of(self, job: Job) -> Record | None:
        """Return the record of a job whose answer may be shown, or None.

        Parameters
        ----------
        job
            The job.
        """
        record = self.records.get(job.name)
        return record if record is not None and record["status"] == "done" else None

    def partly(self, job: Job) -> Record | None:
        """Return the record of a job that was done, or stopped after a part of it.

        Parameters
        ----------
        job
            The job.
        """
        record = self.records.get(job.name)
        if record is None or record["status"] not in ("done", "stopped"):
            return None
        return record if "states" in record else None

    def why(self, job: Job) -> str:
        """Return in a few words why a job has no result that may be shown.

        Parameters
        ----------
        job
            The job.
        """
        if job.name in self.reasons:
            return self.reasons[job.name]
        record = self.records.get(job.name)
        if record is None:
            return "not measured"
        if record["status"] == "stopped":
            return f"> {record['limit']:g} s, stopped"
        if record["status"] == "wrong":
            return f"WRONG: {record['wrong']}"
        if record["status"] == "refused":
            return str(record["message"])
        return f"failed: {record.get('message', '')}"

    @property
    def wrong(self) -> list[str]:
        """Names of the jobs whose answers are wrong."""
        return [name for name, found in self.records.items() if found["status"] == "wrong"]


@dataclass(frozen=True)
class Limits:
    """How long things may take.

    Parameters
    ----------
    run
        Seconds of a run of a program.
    deadline
        When all jobs must have ended, by `time.monotonic`.
    peers_at_a_time
        How many runs of PRISM share the machine.
    """

    run: float
    deadline: float = float("inf")
    peers_at_a_time: int = 1


class Performer:
    """Does jobs on this machine.

    Parameters
    ----------
    host
        The machine.
    store
        What is done already, and what gets the results.
    programs, worker
        What does the jobs.
    limits
        How long things may take.
    """

    def __init__(
        self, host: Host, store: Store, programs: Programs, worker: Worker, limits: Limits
    ) -> None:
        self._host = host
        self._store = store
        self._programs = programs
        self._worker = worker
        self._limits = limits
        self._begun = time.monotonic()
        self._slow: dict[tuple[str, ...], Job] = {}
        self._ending = False

    def all(self, jobs: Sequence[Job], tell: Callable[[str], None]) -> Results:
        """Do the jobs that are not done yet.

        Parameters
        ----------
        jobs
            In this order.
        tell
            Takes a line on each job that is done.

        Returns
        -------
        What is known of all of them; after an interruption, what was done until then.
        """
        results = Results()
        for job in jobs:
            kept = self._store.get(job)
            if kept is not None and kept["status"] not in ("failed", "refused"):
                results.records[job.name] = kept
                self._learn(job, kept)
        stopped = [job for job in jobs if self._status(results, job) == "stopped"]
        missing = [job for job in jobs if job.name not in results.records]
        with _bar(len(missing) + len(stopped)) as bar:

            def one(job: Job) -> None:
                bar.set_postfix_str(job.name, refresh=True)
                self._one(job, results, tell)
                bar.update()

            try:
                self._do_all(missing, one)
                # What ran out of time before comes last: a budget is spent on what is new. What was
                # not begun because of it has its turn then.
                self._slow = {
                    series: job for series, job in self._slow.items() if job not in stopped
                }
                behind = [job for job in missing if job.name in results.too_slow]
                self._do_all([job for job in jobs if job in (*stopped, *behind)], one)
            except KeyboardInterrupt:
                results.interrupted = True
        for job in missing:
            if job.name not in results.records:
                results.reasons.setdefault(job.name, "interrupted before")
        results.seconds = time.monotonic() - self._begun
        return results

    @staticmethod
    def _status(results: Results, job: Job) -> str | None:
        record = results.records.get(job.name)
        return None if record is None else str(record["status"])

    def _do_all(self, jobs: Sequence[Job], one: Callable[[Job], None]) -> None:
        """Do jobs in turn, and PRISM's several at a time where the limits say so."""
        apart = self._limits.peers_at_a_time > 1
        first = [job for job in jobs if job.kind is not Kind.PEER or not apart]
        rest = [job for job in jobs if job not in first]

        def in_turn() -> None:
            for job in first:
                one(job)

        # PRISM has a core a run; what is ours and on the GPU does not need those.
        if rest and self._host.device == "gpu":
            self._side_by_side(rest, one, in_turn)
        else:
            in_turn()
            self._side_by_side(rest, one)

    def _side_by_side(
        self,
        jobs: Sequence[Job],
        one: Callable[[Job], None],
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        """Do jobs of several series at a time, and those of a series one after the other."""
        chains: dict[tuple[str, ...], list[Job]] = {}
        for job in jobs:
            chains.setdefault(job.series, []).append(job)

        def chain(members: list[Job]) -> None:
            for job in members:
                if not self._ending:
                    one(job)

        with ThreadPoolExecutor(self._limits.peers_at_a_time) as pool:
            waiting = [pool.submit(chain, members) for members in chains.values()]
            try:
                meanwhile()
                for future in waiting:
                    future.result()
            except BaseException:
                self._ending = True
                end_running()
                raise

    def _limit_of(self, kind: Kind) -> float:
        # A task holds several runs, and makes its model.
        return self._limits.run * (1 if kind in RUNS else 4)

    def _one(self, job: Job, results: Results, tell: Callable[[str], None]) -> None:
        kept = results.records.get(job.name)
        reason = self._refusal(job)
        if reason is not None:
            if kept is None:
                self._leave_out(job, reason, results)
            return
        results.reasons.pop(job.name, None)
        limit = self._limit_of(job.kind)
        begun = time.monotonic()
        try:
            record = self._do(job, limit)
        except Stopped:
            record = {"status": "stopped"}
        except Failed as error:
            record = {"status": "failed", "message": str(error)}
        if self._ending:
            # What a run says that was ended from here is no result.
            return
        taken = time.monotonic() - begun
        if record["status"] == "stopped":
            if self._left() <= 0:
                # It is not known to take longer than the limit: the next run tries again.
                if kept is None:
                    results.reasons[job.name] = "the budget ended; run again to go on"
                return
            record["limit"] = limit
        if job.kind is Kind.PEER:
            record["runs_at_a_time"] = self._limits.peers_at_a_time
        record = self._store.put(job, record)
        results.records[job.name] = record
        self._learn(job, record)
        ended = results.why(job) if record["status"] != "done" else f"{taken:.1f} s"
        tell(f"{job.name}: {ended}")

    def _leave_out(self, job: Job, reason: str, results: Results) -> None:
        """Note why a job is not begun; what a machine lacks is kept for reports made elsewhere."""
        if reason.startswith("needs "):
            self._store.put(job, {"status": "refused", "message": reason})
        elif not self._host.computes:
            known = self._store.get(job)
            if known is not None and known["status"] == "refused":
                reason = known["message"]
        results.reasons[job.name] = reason
        if reason.startswith(">"):
            results.too_slow.add(job.name)

    def _do(self, job: Job, limit: float) -> Record:
        deadline = self._limits.deadline
        if job.kind is Kind.OURS:
            return self._programs.ours(job, limit, deadline)
        if job.kind is Kind.PEER:
            return self._programs.peer(job, limit, deadline)
        return self._worker.do(job.kind, job.parameters, min(limit, self._left()))

    def _left(self) -> float:
        return self._limits.deadline - time.monotonic()

    def _learn(self, job: Job, record: Record) -> None:
        if job.kind in RUNS and record["status"] == "stopped":
            known = self._slow.get(job.series)
            if known is None or job.size < known.size:
                self._slow[job.series] = job

    def _refusal(self, job: Job) -> str | None:
        """Return why a job is not begun, or None."""
        host = self._host
        if job.kind is Kind.PEER and host.prism is None:
            return "no PRISM"
        if not (host.computes or job.on_cpu):
            return "no GPU here: to be measured on a host that has one"
        if host.computes and job.parameters.get("gpus", 0) > host.gpus:
            return f"needs {job.parameters['gpus']} GPUs, and there is {host.gpus or 'none'}"
        if "set" in job.parameters and host.examples is None:
            return "PRISM's examples are not here"
        slow = self._slow.get(job.series)
        if slow is not None and job.size > slow.size:
            return f"> {self._limit_of(job.kind):g} s, as size {slow.size} was"
        room = host.available if job.kind is Kind.COMPONENTS else host.room
        if job.bytes_needed > room:
            return (
                f"needs about {job.bytes_needed / GIB:.0f} GiB, and there are {room / GIB:.0f} GiB"
            )
        # With less, nothing is begun.
        if self._left() < 2.0:
            return "the budget ended; run again to go on"
        return None


def _bar(total: int) -> Any:
    """Return a bar of progress, which shows nothing where nobody is watching."""
    from tqdm import tqdm

    watched = sys.stderr.isatty()
    return tqdm(total=total, unit=" jobs", file=sys.stderr, disable=not watched, **terminal_size())
