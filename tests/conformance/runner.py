"""Running prism-auto on units, several at a time, and keeping what each run told."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import queue
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bridge.install import PrismInstall
from tests.conformance.compare import same_but_for_digits
from tests.conformance.plan import Unit, copy_suite, suite_folder
from tests.conformance.verdicts import DIGITS, FAILED, Call, Verdict, read_tests

ROOT = Path(__file__).resolve().parents[2]
OURS, PEER = "prism-gpu", "prism"
PROGRAMS = (OURS, PEER)
_SOURCES = ("bridge", "engines", "prism_hooks")
_SUFFIXES = (".py", ".java", ".cu", ".cuh")


@dataclass(frozen=True)
class Job:
    """A unit, with the program and the switches to run it with."""

    unit: Unit
    program: str
    switches: str


class Runner:
    """Runs jobs in a work folder, and remembers those that are finished.

    Parameters
    ----------
    install
        PRISM: prism-auto, the peer and the suites are its.
    work
        Folder for copies of the suites, logs and `results.jsonl`.
    timeout
        Seconds that a test may take.
    extra
        Switches for prism-gpu alone, `-gpu` say.
    """

    def __init__(self, install: PrismInstall, work: Path, timeout: float, extra: str = "") -> None:
        self.install = install
        self.work = work.absolute()
        self.timeout = timeout
        self.extra = f"-gpuinfo {extra}".split()
        self.work.mkdir(parents=True, exist_ok=True)
        self.store = self.work / "results.jsonl"
        self.programs = {OURS: self._launcher(), PEER: install.root / "bin" / "prism"}
        self.identity = {
            OURS: f"{source_digest()} {' '.join(self.extra)}",
            PEER: f"{install.version} {install.root}",
        }
        self.finished = self._load()
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def _launcher(self) -> Path:
        """Write the program that prism-auto calls: this checkout's command, as one file."""
        program = self.work / "prism-gpu"
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        program.write_text(
            "#!/bin/sh\n"
            f"PYTHONPATH={shlex.quote(path)} PRISM_DIR={shlex.quote(str(self.install.root))} "
            f'exec {shlex.quote(sys.executable)} -m bridge "$@"\n',
            encoding="utf-8",
        )
        program.chmod(0o755)
        return program

    def _key(self, job: Job) -> str:
        return "\t".join((job.unit.suite, job.unit.name, job.program, job.switches))

    def _load(self) -> dict[str, tuple[float, list[Call]]]:
        """Return the finished jobs of these very programs; a line cut short is left out."""
        found = {}
        if self.store.is_file():
            for line in self.store.read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(json.JSONDecodeError):
                    record: dict[str, Any] = json.loads(line)
                    if record["identity"] == self.identity[record["program"]]:
                        tests = [Call.from_json(test) for test in record["tests"]]
                        found[record["key"]] = (record["timeout"], tests)
        return found

    def tests(self, job: Job) -> list[Call] | None:
        """Return the tests of a finished job; None if it is yet to run.

        A job with a test that ran out of time is not finished for a longer time-out.
        """
        timeout, tests = self.finished.get(self._key(job), (0.0, None))
        if tests is None:
            return None
        cut = any(verdict.name == "time-out" for test in tests for verdict in test.verdicts)
        return None if cut and timeout < self.timeout else tests

    def run(self, jobs: list[Job], workers: int) -> Iterator[Job]:
        """Run the jobs that are not finished, and yield each when it is.

        Parameters
        ----------
        jobs
            What to run.
        workers
            How many at a time; each has copies of the suites of its own.
        """
        copies: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in range(workers):
            copies.put(number)

        def work(job: Job) -> tuple[Job, list[Call], bool]:
            number = copies.get()
            try:
                return job, self._run(job, number), True
            except ValueError as error:
                return job, [Call(job.unit.name, [Verdict("end", FAILED, str(error))])], False
            finally:
                copies.put(number)

        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(work, job) for job in jobs if self.tests(job) is None]
            try:
                for future in as_completed(futures):
                    job, tests, understood = future.result()
                    self._keep(job, tests, store=understood)
                    yield job
            except BaseException:
                self._stop()
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _keep(self, job: Job, tests: list[Call], *, store: bool) -> None:
        key = self._key(job)
        self.finished[key] = (self.timeout, tests)
        if not store:
            return
        record = {
            "key": key,
            "program": job.program,
            "identity": self.identity[job.program],
            "timeout": self.timeout,
            "tests": [test.as_json() for test in tests],
        }
        with self.store.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def _run(self, job: Job, number: int) -> list[Call]:
        unit = job.unit
        copy = self.work / f"copy{number}" / unit.suite
        copy.parent.mkdir(exist_ok=True)
        copy_suite(suite_folder(self.install, unit.suite), copy)
        folder = copy / unit.folder
        if unit.line:
            (folder / unit.target).write_text(unit.line + "\n", encoding="utf-8")
        log = self.work / f"copy{number}" / "log.txt"
        log.unlink(missing_ok=True)
        program = str(self.programs[job.program])
        common = job.switches.split() + (self.extra if job.program == OURS else [])
        command = [
            *(sys.executable, str(self.install.root / "etc" / "scripts" / "prism-auto")),
            *("--test", "--test-all", "--matching", "--skip-duplicate-runs", "--colour", "no"),
            *("--timeout", str(self.timeout), "--single-log", str(log), "--prog", program),
            *(("--extra", " ".join(common)) if common else ()),
            unit.target,
        ]
        output = self._call(command, folder)
        text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
        tests = read_tests(output, text, program, common)
        return _judge_exports(tests, (folder / unit.target).parent)

    def _call(self, command: list[str], folder: Path) -> str:
        with self._lock:
            if self._stopped:
                raise KeyboardInterrupt
            process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                # prism-auto reads PRISM's log in the locale's encoding.
                env={**os.environ, "PYTHONUTF8": "1"},
                start_new_session=True,
            )
            self._running.add(process)
        output, _ = process.communicate()
        with self._lock:
            self._running.discard(process)
            if self._stopped:
                raise KeyboardInterrupt
        return output

    def _stop(self) -> None:
        """End what runs: prism-auto and its PRISM, which share a process group."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


def source_digest() -> str:
    """Return a digest of our sources, by which results of older ones are told apart."""
    digest = hashlib.sha256()
    for package in _SOURCES:
        for path in sorted((ROOT / package).rglob("*")):
            if path.suffix in _SUFFIXES:
                digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _judge_exports(tests: list[Call], folder: Path) -> list[Call]:
    """Tell failed exports by content, and remove what prism-auto left behind.

    Exports that differ in late digits alone get an outcome of their own.
    """
    for test in tests:
        for place, verdict in enumerate(test.verdicts):
            if not verdict.name.startswith("export ") or verdict.outcome != FAILED:
                continue
            expected = folder / verdict.name.removeprefix("export ")
            left = expected.with_name("tmp." + expected.name)
            content, wanted = (
                path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
                for path in (left, expected)
            )
            digest = hashlib.sha256(content.encode()).hexdigest()[:8]
            test.verdicts[place] = replace(
                verdict,
                message=f"{verdict.message}; {len(content)} characters, digest {digest}",
                outcome=DIGITS if content and same_but_for_digits(content, wanted) else FAILED,
            )
    for left in folder.glob("tmp.*"):
        left.unlink()
    return tests
