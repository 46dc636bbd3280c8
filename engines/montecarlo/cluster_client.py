"""The connection to a cluster: a dask scheduler somewhere, or processes of this machine."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import time
from typing import Any

from engines.errors import UnsupportedError

LOCAL = "local:"
CONNECT_S = 10
REPLACE_S = 1.0
"""How often to see whether processes of this machine must be replaced."""


class OpenCluster:
    """A cluster that stays open for several runs.

    Parameters
    ----------
    address
        Of a dask scheduler (``tcp://host:8786``), or ``local:N`` for N processes of this machine,
        which end with this object and with this process.

    Raises
    ------
    UnsupportedError
        If dask.distributed is not installed, or the address makes no sense.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._replaced_s = time.monotonic()
        self._closing = contextlib.ExitStack()
        with contextlib.ExitStack() as opening:
            self.client = _open(address, opening)
            self._closing = opening.pop_all()

    @property
    def num_workers(self) -> int:
        """How many workers there are just now."""
        return len(self.client.nthreads())

    @property
    def threads(self) -> int | None:
        """How many threads a worker should sample with; None for one a core of its machine."""
        number = local_workers(self.address)
        return None if number is None else max(1, _cores() // number)

    def replace_lost(self, num_workers: int) -> None:
        """Start processes of this machine anew that have died for good; others are left alone.

        dask starts one again that dies, unless it dies while it starts.

        Parameters
        ----------
        num_workers
            How many there are.
        """
        wanted = local_workers(self.address)
        now = time.monotonic()
        if wanted is None or num_workers >= wanted or now - self._replaced_s < REPLACE_S:
            return
        self._replaced_s = now
        self.client.cluster.scale(wanted)

    def close(self) -> None:
        """Part from the cluster; processes of this machine end."""
        self._closing.close()

    def __enter__(self) -> OpenCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def local_workers(address: str) -> int | None:
    """Return how many processes of this machine an address stands for; None for a scheduler's.

    Parameters
    ----------
    address
        As `OpenCluster` has it.

    Raises
    ------
    UnsupportedError
        If it names no number of processes.
    """
    if not address.startswith(LOCAL):
        return None
    number = address.removeprefix(LOCAL)
    if not (number.isdecimal() and int(number) > 0):
        raise UnsupportedError(f"{address} names no number of processes: use local:4, for example")
    return int(number)


def _open(address: str, stack: contextlib.ExitStack) -> Any:
    number = local_workers(address)
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise UnsupportedError(
            "sampling on a cluster needs dask.distributed, which is not installed: "
            'pip install "prism-gpu[cluster]"'
        ) from None
    if number is None:
        try:
            client = distributed.Client(address, timeout=CONNECT_S)
        except (OSError, ValueError) as error:
            raise UnsupportedError(
                f"there is no dask scheduler at {address}: {error}; start one with "
                "`dask scheduler`, or use local:N for N processes of this machine"
            ) from error
        stack.callback(client.close)
        return client
    cluster = distributed.LocalCluster(
        n_workers=number,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
        preload=[__name__],
    )
    stack.callback(cluster.close)
    client = distributed.Client(cluster)
    stack.callback(client.close)
    return client


def dask_setup(_worker: object) -> None:
    """Let a worker of this machine outlive Ctrl-C, which ends it by way of its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
