"""The progress of long solves, in notebooks and on terminals."""

from __future__ import annotations

import math
import sys
import warnings
from typing import Any

from engines.model.progress import SweepReport
from prism_hooks.sweep_bar import number_text


class ProgressBar:
    """Shows the iterations of one solve after the other; call `close` in the end.

    Parameters
    ----------
    seconds_before
        How long a solve goes on before it shows.
    """

    def __init__(self, seconds_before: float = 1.0) -> None:
        self._seconds_before = seconds_before
        self._bar: Any = None

    def __call__(self, report: SweepReport) -> None:
        """Show how far a solve is; see `engines.model.progress.Progress`."""
        if self._bar is not None and report.iterations < self._bar.n:
            # Another solve of the same property.
            self.close()
        if report.iterations == 0 or report.seconds < self._seconds_before:
            return
        if self._bar is None:
            self._bar = bar_type()(unit=" iterations", leave=False)
        left = report.sweeps_to_go
        self._bar.total = report.iterations + math.ceil(left) if math.isfinite(left) else None
        self._bar.set_postfix_str(number_text(report), refresh=False)
        self._bar.update(report.iterations - self._bar.n)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def bar_type() -> Any:
    """Return tqdm's bar for where this runs: a notebook's, or a terminal's.

    In a notebook without ipywidgets tqdm falls back to text, and warns of it; users who have asked
    for no widget need not hear of it.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm
    return tqdm


def progress_bar(wanted: bool | None) -> ProgressBar | None:
    """Return a progress bar, or None where it is not wanted or nobody is watching.

    Parameters
    ----------
    wanted
        What the user said; None for nothing.
    """
    return ProgressBar() if is_shown(wanted) else None


def is_shown(wanted: bool | None) -> bool:
    """Return whether progress is shown.

    Parameters
    ----------
    wanted
        What the user said; None for nothing: then where somebody is watching.
    """
    if wanted is None:
        return sys.stderr.isatty() or "ipykernel" in sys.modules
    return wanted
