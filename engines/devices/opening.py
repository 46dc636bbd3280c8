"""When a GPU is opened ahead of the first solve: once a model has proved to be large."""

from __future__ import annotations

import threading

MOST_STATES_WITHOUT = 500_000
"""Models of so few states are solved on the CPU in less time than a GPU takes to open."""


class ModelsMet:
    """Which models have been asked about."""

    def __init__(self) -> None:
        self._any = False
        self._large = threading.Event()

    def meet(self, num_states: int) -> None:
        """Note that a model is asked about.

        Parameters
        ----------
        num_states
            Its number of states.
        """
        self._any = True
        if num_states > MOST_STATES_WITHOUT:
            self._large.set()

    def wait_while_small(self) -> None:
        """Return at once if none has been asked about, which is being built then; else with the
        first large one."""
        if self._any:
            self._large.wait()


MODELS = ModelsMet()
"""The models of this process."""
