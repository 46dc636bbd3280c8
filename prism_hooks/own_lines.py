"""What a log without PRISM says of solves once they have ended."""

from __future__ import annotations

from collections.abc import Callable

from engines.model.result import SolveResult
from prism_hooks.report import iterations_line, note_and_warnings, solve_line


class Once:
    """Tells each remark and each warning once a run."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def tell(self, text: str, tell: Callable[[str], None]) -> None:
        """Tell something, unless it was told before.

        Parameters
        ----------
        text
            What to tell.
        tell
            Tells it.
        """
        if text not in self._said:
            self._said.add(text)
            tell(text)


class OwnLines:
    """Prints lines to a log without PRISM.

    Parameters
    ----------
    log
        Prints a line; one that an empty line precedes begins with a line's end.
    each
        Whether a line on engine, memory and speed is printed for each solve.
    device_number
        Which GPU the run uses.
    """

    def __init__(self, log: Callable[[str], None], each: bool, device_number: int) -> None:
        self._log, self._each, self._device_number = log, each, device_number
        self._once = Once()

    def report(self, result: SolveResult) -> None:
        """Print how a solve went.

        Parameters
        ----------
        result
            What it has found.
        """
        if result.iterations:
            self._log(f"\n{iterations_line(result)}")
        note, warnings = note_and_warnings(result)
        if note:
            self._once.tell(f"prism-gpu: {note}", self._log)
        for warning in warnings:
            self._once.tell(f"\nWarning: {warning}", self._log)
        if self._each:
            self._log(solve_line(result, self._device_number))
