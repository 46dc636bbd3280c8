"""When a GPU is opened ahead of the first solve: once a model has proved to be large."""

from __future__ import annotations

import threading

MOST_STATES_WITHOUT = 500_000
"""Models of so few states are solved on the CPU in less time than a GPU takes to open."""


class ModelsMet:
    """Which models have been met."""

    def __init__(self) -> None:
        self._any = False
        self._large = threading.Event()

    def meet(self, num_states: int) -> None:
        """Note that a model is built or asked about.

        Parameters
        ----------
        num_states
            Its number of states, or of those found so far.
        """
        self._any = True
        if num_states > MOST_STATES_WITHOUT:
            self._large.set()

    @property
    def has_large(self) -> bool:
        """Whether a large one has been met."""
        return self._large.is_set()

    def wait_for_large(self, patience_s: float) -> None:
        """Return with the first large one; sooner where none has been met for so long, large or
        small: one is being built then that is likely to be large.

        Parameters
        ----------
        patience_s
            In seconds.
        """
        if not self._large.wait(patience_s) and self._any:
            self._large.wait()


MODELS = ModelsMet()
"""The models of this process."""
