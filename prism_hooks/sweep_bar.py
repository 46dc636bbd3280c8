"""The progress of long solves, on a terminal only: sweeps, what they change, and when they end."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from engines.model.progress import Measure, SweepReport

ESTIMATED = "{percentage:3.0f}%|{bar}| {n_fmt} sweeps [{elapsed}<{remaining}, {rate_fmt}{postfix}]"
"""With the end that the sweeps so far let expect."""
OPEN = "{n_fmt} sweeps [{elapsed}, {rate_fmt}{postfix}]"


class SweepBar:
    """Shows the sweeps of one solve after the other; call `close` after each.

    Parameters
    ----------
    on_screen
        Told when a line is put on the terminal, and when it is taken off.
    """

    def __init__(self, on_screen: Callable[[bool], None] | None = None) -> None:
        self._on_screen = on_screen
        self._bar: Any = None

    def __call__(self, report: SweepReport) -> None:
        """Show how far a solve is; see `engines.model.progress.Progress`."""
        if report.iterations == 0:
            return
        if self._bar is not None and report.iterations < self._bar.n:
            # Another solve of the same question.
            self.close()
        if report.seconds < 1.0:
            # A solve that is over by then shows no progress.
            return
        if self._bar is None:
            self._bar = self._opened(report)
        bar, left = self._bar, report.sweeps_to_go
        bar.total = report.iterations + math.ceil(left) if math.isfinite(left) else None
        bar.bar_format = OPEN if bar.total is None else ESTIMATED
        bar.set_postfix_str(number_text(report), refresh=False)
        bar.update(report.iterations - bar.n)

    def _opened(self, report: SweepReport) -> Any:
        from tqdm import tqdm

        if self._on_screen is not None:
            self._on_screen(True)
        look = {"position": 0, "miniters": 1, "delay": 1e-3, **terminal_size()}
        bar = tqdm(unit=" sweeps", leave=False, file=sys.stderr, **look)
        bar.start_t = bar.last_print_t = time.time() - report.seconds
        return bar

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Take the line off the terminal while the body prints a line of its own."""
        if self._bar is not None:
            self._bar.clear()
        yield
        if self._bar is not None:
            self._bar.refresh()

    def close(self) -> None:
        """Take the line off the terminal, for good."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
            if self._on_screen is not None:
                self._on_screen(False)


def terminal_size() -> dict[str, Any]:
    """Return tqdm's words for the size of the terminal; one without columns does not know it."""
    with suppress(OSError):
        if os.get_terminal_size(sys.stderr.fileno()).columns == 0:
            return {"ncols": 80, "nrows": 24}
    return {"dynamic_ncols": True}


def number_text(report: SweepReport) -> str:
    """Return in words what the last sweep came to.

    Parameters
    ----------
    report
        How far the solve is.
    """
    kind = "" if report.absolute else "relative "
    return {
        Measure.CHANGE: f"{kind}change {report.number:.2e}",
        Measure.WIDTH: f"{kind}width {report.number:.2e}",
        Measure.STEP: f"change {report.number:.2e}",
        Measure.REMAINDER: f"{100.0 * (1.0 - report.number):.1f} % of the sum",
    }[report.measure]


def sweep_bar(
    *, wanted: bool = True, on_screen: Callable[[bool], None] | None = None
) -> SweepBar | None:
    """Return a display of progress, or None where nobody is watching.

    Parameters
    ----------
    wanted
        Whether the user has not switched it off.
    on_screen
        As for `SweepBar`.
    """
    return SweepBar(on_screen) if wanted and sys.stderr.isatty() else None
