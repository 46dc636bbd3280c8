"""The way of answers from the workers to this process.

dask asks the scheduler for all answers that are ready at a time, and the scheduler tries for half a
minute to reach a worker that has died with one of them; meanwhile the others wait. Here each answer
is asked for by itself and in the background: an answer that cannot be had delays no other, and who
has died is seen elsewhere in the meantime.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engines.montecarlo.cluster_work import Attempt, Work


@dataclass(frozen=True)
class Arrival:
    """What became of a task.

    Parameters
    ----------
    work, attempt
        Whose.
    value
        What the task returned, if it did.
    error
        What it raised, if it did.
    lost
        Whether neither can be had: the worker died with its answer, or dask gave the task up.
    """

    work: Work
    attempt: Attempt
    value: Any = None
    error: BaseException | None = None
    lost: bool = False


class Answers:
    """Fetches the answers of one run.

    Parameters
    ----------
    client
        The `distributed.Client` that the tasks were submitted by.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._arrived: queue.SimpleQueue[Arrival] = queue.SimpleQueue()
        self._fetching: set[asyncio.Task[None]] = set()

    def expect(self, work: Work, attempt: Attempt) -> None:
        """Have an answer fetched as soon as it is there."""
        attempt.future.add_done_callback(lambda _: self._done(work, attempt))

    def arrivals(self, wait_s: float) -> Iterator[Arrival]:
        """Yield what has arrived.

        Parameters
        ----------
        wait_s
            How many seconds to wait for the first.
        """
        with contextlib.suppress(queue.Empty):
            yield self._arrived.get(timeout=wait_s)
            while True:
                yield self._arrived.get_nowait()

    def close(self) -> None:
        """Fetch nothing more."""
        self._client.loop.add_callback(self._cancel)

    def _cancel(self) -> None:
        for task in self._fetching:
            task.cancel()

    def _done(self, work: Work, attempt: Attempt) -> None:
        """Look at a task that has ended; in a thread of dask's."""
        if attempt.future.status == "finished":
            self._client.loop.add_callback(self._begin, work, attempt)
        elif attempt.future.status == "error":
            seconds = 10.0  # The task is known to have failed.
            error = attempt.future.exception(timeout=seconds)
            self._arrived.put(Arrival(work, attempt, error=error, lost=_is_of_dask(error)))
        else:
            self._arrived.put(Arrival(work, attempt, lost=True))

    def _begin(self, work: Work, attempt: Attempt) -> None:
        task = asyncio.ensure_future(self._fetch(work, attempt))
        self._fetching.add(task)
        task.add_done_callback(self._fetching.discard)

    async def _fetch(self, work: Work, attempt: Attempt) -> None:
        key = attempt.future.key
        try:
            response = await self._client.scheduler.gather(keys=[key])
            arrival = Arrival(work, attempt, response["data"][key])
        except (OSError, KeyError):
            # Nobody has it any more, or the scheduler cannot be reached.
            arrival = Arrival(work, attempt, lost=True)
        except Exception as error:
            arrival = Arrival(work, attempt, error=error, lost=_is_of_dask(error))
        self._arrived.put(arrival)


def _is_of_dask(error: BaseException) -> bool:
    return type(error).__module__.startswith(("distributed", "asyncio", "concurrent"))
