"""The results in a folder: a file a job, written whole as the job is done, and one lock."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bridge.files.atomic import write_text
from bridge.reproduce.jobs import Job, Kind
from engines.errors import BridgeError

FORMAT = 2
"""To be raised when the meaning of a result's fields changes."""

Record = dict[str, Any]


class Store:
    """Results by job, for a kind of device, a front end and a version, of whatever machines.

    Parameters
    ----------
    folder
        The folder of the report.
    identity
        Where and with what this run measures, as `bridge.reproduce.host.Host.identity` says it.
    """

    def __init__(self, folder: Path, identity: Mapping[str, object]) -> None:
        self._rows = folder / "rows"
        self._identity = identity
        self.damaged: list[Path] = []
        """Files that held no whole result; their jobs count as not done."""

    def _path(self, job: Job) -> Path:
        # Which machine it was, each result says of itself: so a folder can go from one to another.
        # What PRISM takes does not depend on our version or device.
        needed = {"PRISM": self._version("PRISM")}
        if job.kind is not Kind.PEER:
            names = ("device", "front_end")
            needed = {name: self._identity.get(name) for name in names}
            needed["prism-gpu"] = self._version("prism-gpu")
        content = [FORMAT, job.kind, job.parameters, needed]
        text = json.dumps(content, sort_keys=True)
        digest = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
        slug = re.sub(r"[^a-z0-9]+", "-", job.name.lower()).strip("-")
        return self._rows / f"{slug[:80]}-{digest}.json"

    def _version(self, program: str) -> object:
        versions = self._identity.get("versions")
        return versions.get(program) if isinstance(versions, Mapping) else None

    def get(self, job: Job) -> Record | None:
        """Return the result of a job, or None where there is none, or no whole one.

        Parameters
        ----------
        job
            The job.
        """
        path = self._path(job)
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            if _is_result(record) and record["name"] == job.name:
                return record if self._of_this_commit(job, record) else None
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError, OSError):
            pass
        if path not in self.damaged:
            self.damaged.append(path)
        return None

    def _of_this_commit(self, job: Job, record: Record) -> bool:
        """Tell whether a result is of our present text, as far as both are known."""
        if job.kind is Kind.PEER:
            return True
        made, now = record["versions"].get("commit"), self._version("commit")
        return made is None or now is None or bool(made == now)

    def put(self, job: Job, record: Record) -> Record:
        """Keep the result of a job; return it with when and where it was measured.

        Parameters
        ----------
        job
            The job.
        record
            Its result; JSON's types only.
        """
        self._rows.mkdir(parents=True, exist_ok=True)
        whole = {
            "name": job.name,
            "kind": job.kind,
            "parameters": dict(job.parameters),
            "measured": time.strftime("%Y-%m-%d %H:%M:%S %z"),
            "where": {
                name: self._identity.get(name) for name in ("device_name", "processor", "cores")
            },
            "versions": self._identity.get("versions") or {},
            **record,
        }
        write_text(self._path(job), json.dumps(whole, indent=1) + "\n", follow=False)
        return whole

    def forget(self, job: Job) -> None:
        """Delete the result of a job.

        Parameters
        ----------
        job
            The job.
        """
        self._path(job).unlink(missing_ok=True)


def _is_result(record: object) -> bool:
    if not isinstance(record, dict) or not {"status", "name"} <= record.keys():
        return False
    return bool(record["status"]) and isinstance(record.get("versions"), Mapping)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder against other runs; the lock goes with the process, however that ends.

    Parameters
    ----------
    folder
        The folder of the report, made if it is not there.

    Raises
    ------
    BridgeError
        If another run holds it, or it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise BridgeError(f"{folder} cannot be written to: {error.strerror}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
            raise BridgeError(
                f"another prism-gpu reproduce (process {owner}) writes to {folder}: wait for its "
                "end, or name another folder with --into"
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)
