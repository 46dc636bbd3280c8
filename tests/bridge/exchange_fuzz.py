"""Damaged export folders: an answer, or an error that names file and field.

    python -m tests.bridge.exchange_fuzz [--inputs N] [--seed S]

Each input is an export with results, some of its manifest, its index of results, its values or its
bytes changed, digests made right again or not, or with a pipe, a device or a link in a file's
place. It is solved and reported, without PRISM, in ten seconds at most. Nothing may be written or
run outside the folder.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import numpy as np

from bridge.exchange import results as results_module
from bridge.exchange.manifest import _DIGEST, MANIFEST, _digest, load_manifest
from bridge.exchange.report import Answers, matching_results
from bridge.exchange.results import RESULTS, Answer
from bridge.exchange.solve import Solver
from engines.errors import InvalidModelError

SECONDS = 10
VALUES: list[Any] = [
    *(None, True, False, -1, 0, 1, 7, 2**31, 2**63, 10**400, 0.5, -0.5, 1e300, [], {}, ""),
    *("a", "../x", "/etc/passwd", "model.umb", "a\nResult: 1", "\0", "\ud800", "\u202e", "9" * 30),
    *("-javaparams", "-mainlog", "JACOBI", "SPARSE", [[]], {"a": []}, ["-prism-dir", "/tmp"]),
    *('P=? [ F "won" ]', "(" * 3000, "P=? [ F<=3 true ]", "R=? [ S ]", "P>0.5 [ X true ]"),
]
WORDS = ["-javaparams", "-javaagent:x.jar", "-mainlog", "x", "-exportmodel", "---const", "-const"]
NUMBERS = [np.nan, np.inf, -np.inf, 7.0, -1.0, 1e300, 0.5, -5e-324]
Run = Callable[[Path], None]


class Fuzzer:
    """Makes damaged folders from one that is whole.

    Parameters
    ----------
    whole
        An export with results.
    place
        A folder for the damaged ones.
    report
        Reports on a folder; a fault is an `InvalidModelError`.
    """

    def __init__(self, whole: Path, place: Path, report: Run, seed: int) -> None:
        self.random = random.Random(seed)
        self.place, self.report = place, report
        self.files = {path.name: path.read_bytes() for path in whole.iterdir()}
        self.seen: Counter[str] = Counter()
        self.changed = ""

    def one(self) -> None:
        """Damage a folder, solve it and report on it."""
        folder = self.place / "x"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        files = dict(self.files)
        damage = self.random.choice(
            [self.manifest, self.manifest, self.index, self.index, self.values, self.any_bytes]
        )
        name = damage(files)
        for file, content in files.items():
            (folder / file).write_bytes(content)
        if self.random.random() < 0.05:
            name = self.special(folder)
        steps: list[Run] = [self.report, solve, self.report]
        for step in steps:
            try:
                step(folder)
                told = "an answer"
            except InvalidModelError as error:
                told = "refused"
                self.require_told(str(error), name, folder)
            self.seen[f"{damage.__name__}: {told}"] += 1
        left = {path.name for path in self.place.iterdir()}
        assert left == {"x"}, f"written outside: {left}"

    def require_told(self, error: str, name: str, folder: Path) -> None:
        """Check that an error names a file of the folder, and the field where one was changed."""
        assert str(folder) in error, f"no file is named: {error}"
        assert error.isprintable(), f"signs that steer a terminal: {error!r}"
        if self.changed and f"{name} is damaged" in error and "not what was solved" not in error:
            assert any(part in error for part in self.changed.split("/")), (self.changed, error)

    def manifest(self, files: dict[str, bytes]) -> str:
        plain = json.loads(files[MANIFEST])
        self.change(plain)
        if self.random.random() < 0.9 and isinstance(plain, dict):
            plain.pop(_DIGEST, None)
            plain[_DIGEST] = _digest(plain)
            if self.random.random() < 0.8:
                self.bind(files, plain[_DIGEST])
        files[MANIFEST] = json.dumps(plain).encode()
        return MANIFEST

    def bind(self, files: dict[str, bytes], export: str) -> None:
        index, members = unpacked(files[RESULTS])
        index["export"] = export
        files[RESULTS] = packed(signed(index, members), members)

    def index(self, files: dict[str, bytes]) -> str:
        index, members = unpacked(files[RESULTS])
        self.change(index)
        if self.random.random() < 0.9:
            index = signed(index, members)
        files[RESULTS] = packed(index, members)
        return RESULTS

    def values(self, files: dict[str, bytes]) -> str:
        self.changed = ""
        index, members = unpacked(files[RESULTS])
        name = self.random.choice(sorted(members))
        values = np.frombuffer(members[name]).copy()
        values[self.random.randrange(len(values))] = self.random.choice(NUMBERS)
        members[name] = values.tobytes()[: self.random.choice([None, None, None, 8, 7])]
        if self.random.random() < 0.9:
            index = signed(index, members)
        squeeze = self.random.choice([zipfile.ZIP_STORED] * 4 + [zipfile.ZIP_DEFLATED])
        files[RESULTS] = packed(index, members, squeeze)
        return RESULTS

    def any_bytes(self, files: dict[str, bytes]) -> str:
        self.changed = ""
        name = self.random.choice(sorted(files))
        content = bytearray(files[name])
        for _ in range(self.random.randint(1, 4)):
            start = self.random.randrange(max(1, len(content)))
            removed = self.random.choice([0, 1, 1, 1, 8, 512])
            content[start : start + removed] = self.random.randbytes(self.random.choice([1, 1, 7]))
        files[name] = bytes(content)
        return name

    def special(self, folder: Path) -> str:
        """Put something that is no plain file in a file's place."""
        self.changed = ""
        name = self.random.choice(sorted(self.files))
        path = folder / name
        path.unlink()
        match self.random.randrange(5):
            case 0:
                os.mkfifo(path)
            case 1:
                path.symlink_to("/dev/zero")
            case 2:
                path.mkdir()
            case 3:
                path.symlink_to(path)
            case _:
                os.mkfifo(folder / "model.sta")
        return name

    def change(self, place: Any) -> None:
        """Change something in a JSON document, or take it out."""
        fields: list[str] = []
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                return
            key = self.random.choice(keys)
            fields.append(f"[{key}]" if isinstance(place, list) else str(key))
            if isinstance(place[key], dict | list) and place[key] and self.random.random() < 0.8:
                place = place[key]
                continue
            break
        match self.random.randrange(8):
            case 0:
                del place[key]
            case 1 if isinstance(place, dict):
                name = self.random.choice(["a", "b\0", "../x", "device"])
                place[name] = place.pop(key)
                fields.append(name.rstrip("\0"))
            case 2 if isinstance(place, list):
                place.insert(key, self.random.choice([*WORDS, place[key]]))
            case _:
                place[key] = self.random.choice(VALUES)
        self.changed = "/".join(fields)


def unpacked(archive: bytes) -> tuple[Any, dict[str, bytes]]:
    """Return the index of results and the other members."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        members = {name: opened.read(name) for name in opened.namelist()}
    return json.loads(members.pop("results.json")), members


def packed(index: Any, members: dict[str, bytes], squeeze: int = zipfile.ZIP_STORED) -> bytes:
    """Return results as an archive."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", squeeze) as archive:
        archive.writestr("results.json", json.dumps(index))
        for name, content in members.items():
            archive.writestr(name, content)
    return written.getvalue()


def signed(index: Any, members: dict[str, bytes]) -> Any:
    """Return an index of results with digests that fit, where it has the shape for them."""
    try:
        for place, fields in enumerate(index["answers"]):
            plain = {name: value for name, value in fields.items() if "sha256" not in name}
            text, solved = plain.pop("text"), plain.pop("solved")
            values = np.frombuffer(members[f"values/{place}.f8"]) if solved else None
            fields[results_module._DIGEST] = results_module._digest(
                index["export"], Answer(text, plain, values)
            )
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    return index


def solve(folder: Path) -> None:
    """Solve a folder on the CPU."""
    Solver(folder, log=lambda _: None).run()


def report(questions: list[tuple[str, Any]], built: Run) -> Run:
    """Return what reports on a folder as PRISM would, for questions with their sets of states."""

    def run(folder: Path) -> None:
        manifest = load_manifest(folder)
        answers = Answers(folder, manifest, matching_results(folder, manifest))
        asked = SimpleNamespace(modelId=1, say=lambda _: None, error=None)
        built(folder)
        answers.model(asked, None)
        for text, *sets in questions if asked.error is None else []:
            found = SimpleNamespace(
                **{"key": text, "text": text, "sets": sets, "values": None, "error": None},
                remark=None,
            )
            answers.operator(found)
            asked.error = asked.error or found.error
            if found.values is not None and text.startswith("P"):
                assert ((found.values >= -1e-5) & (found.values <= 1 + 1e-5)).all()
        if asked.error is not None:
            raise InvalidModelError(asked.error)

    return run


def forbid_outside(place: Path) -> Callable[[], None]:
    """Raise on whatever is run, or opened to be written, outside a folder; return the end."""
    active = [True]

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if not active:
            return
        if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork"):
            raise AssertionError(f"{event}: {given}")
        if event == "open" and isinstance(given[0], str | bytes):
            writes = (given[1] or "r")[0] in "wax" or bool(given[2] & (os.O_WRONLY | os.O_RDWR))
            path = os.fsdecode(given[0])
            if writes and not path.startswith((str(place), "/dev/null", "/proc/", "/sys/")):
                raise AssertionError(f"written outside: {path}")

    sys.addaudithook(hook)
    return active.clear


def fuzz(fuzzer: Fuzzer, inputs: int) -> None:
    """Let damaged folders be read, each in ten seconds at most."""

    def hang(signum: int, frame: object) -> None:
        del signum, frame
        raise TimeoutError(f"more than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, hang)
    allow = forbid_outside(fuzzer.place)
    try:
        for number in range(inputs):
            signal.alarm(SECONDS)
            try:
                fuzzer.one()
            except BaseException as error:
                error.add_note(f"input {number}: {fuzzer.changed}; it is in {fuzzer.place}")
                raise
    finally:
        allow()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@click.command()
@click.option("--inputs", default=5000, show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(inputs: int, seed: int) -> None:
    """Read damaged export folders until all are read or one breaks a command."""
    from tests.bridge.test_exchange_fuzz import whole_and_report

    place = Path(tempfile.mkdtemp(prefix="fuzz", dir="/dev/shm"))
    whole, reporter = whole_and_report(place / "whole")
    (place / "damaged").mkdir()
    fuzzer = Fuzzer(whole, place / "damaged", reporter, seed)
    started = time.perf_counter()
    fuzz(fuzzer, inputs)
    shutil.rmtree(place)
    print(f"{inputs} inputs in {time.perf_counter() - started:.0f} s, seed {seed}")
    for outcome, count in sorted(fuzzer.seen.items()):
        print(f"{count:9} {outcome}")


if __name__ == "__main__":
    main()
