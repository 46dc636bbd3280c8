"""The progress of long solves, on a terminal only."""

from __future__ import annotations

import sys
from typing import Any

QUIET_SECONDS = 1.0
"""A solve that is over by then shows no progress."""


class SweepProgress:
    """Shows the sweeps of one solve after the other; call `close` between them."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._shown = 0

    def __call__(self, iterations: int, change: float, seconds: float) -> None:
        """Show how far a solve is; see `engines.iterate.Progress`."""
        if seconds < QUIET_SECONDS:
            return
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(unit=" sweeps", leave=False, file=sys.stderr)
            self._shown = 0
        self._bar.update(iterations - self._shown)
        self._bar.set_postfix_str(f"change {change:.2e}", refresh=False)
        self._shown = iterations

    def close(self) -> None:
        """Take the line off the terminal."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def sweep_progress() -> SweepProgress | None:
    """Return a display of progress, or None where nobody is watching."""
    return SweepProgress() if sys.stderr.isatty() else None
