"""The connection to a cluster: a dask scheduler somewhere, or processes of this machine.

Who can speak to a scheduler runs code on its workers, and what they answer is code for its clients.
So all that is said goes over TLS, and each end shows a certificate: processes of this machine have
one that is made for them and kept in memory, for a scheduler elsewhere dask's own settings name it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

from engines.errors import CacheError, UnsupportedError
from engines.process.cache import CACHE_VARIABLE, private_folder
from engines.process.cores import num_cores

LOCAL = "local:"
LOW = ":low"
"""After the number of processes: they take what other programs leave of the cores."""
_PRIORITY_VARIABLE = "PRISM_GPU_WORKER_PRIORITY"
REPLACE_S = 1.0
"""How often to see whether processes of this machine must be replaced."""
ENCRYPTED = "tls://"
PLAIN_ALLOWED = "distributed.comm.require-encryption"
"""Dask's setting: False allows a scheduler that anybody may speak to."""
_HOW_TO_INSTALL = 'pip install "prism-gpu[cluster]"'
_SCRATCH = "workers"
_ENDED = ("closing", "closed", "failed")


class OpenCluster:
    """A cluster that stays open for several runs.

    Parameters
    ----------
    address
        Of a dask scheduler (``tls://host:8786``), or ``local:N`` for N processes of this machine,
        which end with this object and with this process; ``local:N:low`` has them run at the
        lowest priority.

    Raises
    ------
    UnsupportedError
        If dask.distributed or cryptography is not installed, the address makes no sense, or nobody
        answers there over TLS.
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
        return None if number is None else max(1, num_cores() // number)

    def replace_lost(self, num_workers: int) -> None:
        """Start processes of this machine anew that have died for good; others are left alone.

        Dask itself starts one again that dies, unless it dies while it starts.

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
        _replace_ended(self.client.cluster, wanted)

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
    number = address.removeprefix(LOCAL).removesuffix(LOW)
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
            f"{_HOW_TO_INSTALL}"
        ) from None
    if number is None:
        return _open_elsewhere(distributed, address, stack)
    return _open_here(distributed, number, stack, low=address.endswith(LOW))


def _open_elsewhere(distributed: Any, address: str, stack: contextlib.ExitStack) -> Any:
    from dask import config

    if not address.startswith(ENCRYPTED) and config.get(PLAIN_ALLOWED, None) is not False:
        raise UnsupportedError(
            f"{address} is no address over TLS: anybody who can reach such a scheduler runs code "
            "on its workers and here; give it certificates and use tls://host:port (docs/"
            "montecarlo.md says how), or, in a network that you trust, set "
            "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=False"
        )
    try:
        connect_s = 10
        client = distributed.Client(address, timeout=connect_s)
    # Dask raises TypeError and RuntimeError where certificates are missing.
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise UnsupportedError(
            f"there is no dask scheduler at {address} that answers: {error}; start one with "
            "`dask scheduler`, see that both have certificates (docs/montecarlo.md), or use "
            "local:N for N processes of this machine"
        ) from error
    stack.callback(client.close)
    return client


def _open_here(
    distributed: Any, number: int, stack: contextlib.ExitStack, *, low: bool = False
) -> Any:
    try:
        security = distributed.Security.temporary()
    except ImportError:
        raise UnsupportedError(
            "processes of this machine speak over TLS, whose keys are made by cryptography, which "
            f"is not installed: {_HOW_TO_INSTALL}"
        ) from None
    from dask import config

    # What others could write into a folder for temporary files would be executed.
    scratch = private_folder(_SCRATCH)
    if scratch is None:
        raise CacheError(f"no folder for workers; name one of your own with {CACHE_VARIABLE}")
    # No pages: they are open to all users of the machine.
    settings: dict[str, Any] = {
        f"distributed.{who}.http.routes": [] for who in ("scheduler", "worker")
    }
    settings["temporary-directory"] = str(scratch)
    stack.enter_context(config.set(settings))
    stack.enter_context(_nothing_imported_from_the_working_folder())
    cluster = distributed.LocalCluster(
        n_workers=0,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        protocol="tls://",
        security=security,
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
        local_directory=str(scratch),
        silence_logs=50,
        preload=[__name__],
        env={_PRIORITY_VARIABLE: "19" if low else "0"},
    )
    stack.callback(cluster.close)
    client = distributed.Client(cluster)
    stack.callback(client.close)
    _start_workers(client, number)
    return client


@contextlib.contextmanager
def _nothing_imported_from_the_working_folder() -> Iterator[None]:
    """Start each Python without the folder that it would look into first."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


def _start_workers(
    client: Any, number: int, *, patience_s: float = 60.0, look_s: float = 0.02
) -> None:
    """Start processes, and those anew that die meanwhile, until all are there.

    With `patience_s` over, one must be there at least.
    """
    client.cluster.scale(number)
    end = time.monotonic() + patience_s
    replaced_s = time.monotonic()
    while (there := len(client.nthreads())) < number:
        now = time.monotonic()
        if now > end:
            if there:
                return
            raise UnsupportedError(
                f"none of {number} processes of this machine could be started in {patience_s:.0f} s"
            )
        if now - replaced_s > REPLACE_S:
            _replace_ended(client.cluster, number)
            replaced_s = now
        time.sleep(look_s)


def _replace_ended(cluster: Any, number: int) -> None:
    """Have dask start others for processes that died while they started: it still counts them."""

    def replace() -> None:
        for name, nanny in list(cluster.workers.items()):
            if nanny.status.name in _ENDED:
                del cluster.workers[name]
                cluster.worker_spec.pop(name, None)
        cluster.scale(number)

    cluster.loop.add_callback(replace)


def dask_setup(_worker: object) -> None:
    """Let a worker of this machine outlive Ctrl-C, which ends it by way of its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What it starts, such as a compiler, inherits that.
    os.nice(int(os.environ.get(_PRIORITY_VARIABLE, "0")))
