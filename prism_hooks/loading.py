"""The engines, loaded by a thread while PRISM starts and parses."""

from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING, Any

from engines.process.timeline import STARTING, TIMELINE
from prism_hooks.answers import Answers
from prism_hooks.exit_gate import GATE
from prism_hooks.failure import unexpected

if TYPE_CHECKING:
    from prism_hooks.backend import EngineBackend
    from prism_hooks.options import HookOptions
    from prism_hooks.record import RunRecord


class LoadedBeside(Answers):
    """Engines that a thread loads while PRISM starts and parses; who asks them waits for it.

    Parameters
    ----------
    options, record, header
        As for `Answers`.
    """

    def __init__(
        self, options: HookOptions, record: RunRecord | None = None, header: str = ""
    ) -> None:
        super().__init__(options, record, header)
        self._loaded: EngineBackend | None = None
        self._failure = ""
        self._thread = threading.Thread(target=self._run, name="load-engines", daemon=True)
        self._thread.start()

    def __getattr__(self, name: str) -> Any:
        # Only what no option answers comes here.
        if self._thread.is_alive():
            with TIMELINE.part(STARTING):
                self._thread.join()
        if self._failure:
            print(f"\nError: {self._failure}.", flush=True)
            GATE.end(1)
        return getattr(self._loaded, name)

    def summary(self) -> str:
        """Return the lines that close the log; nobody waits for them."""
        return "" if self._loaded is None else self._loaded.summary()

    def _run(self) -> None:
        try:
            with TIMELINE.beside(STARTING):
                from prism_hooks.backend import EngineBackend

                self._loaded = EngineBackend(self.options, self._record)
        except Exception as error:
            self._failure = unexpected(error)
        # What is loaded by now stays: collections of garbage need not look at it again.
        gc.freeze()
