"""What is said of an error that is a fault of ours."""

from __future__ import annotations

import traceback


def unexpected(error: BaseException) -> str:
    """Return the text of PRISM's error for an exception that nothing should have raised.

    Parameters
    ----------
    error
        The exception.
    """
    trace = "".join(traceback.format_exception(error))
    return f"prism-gpu failed unexpectedly; please report this:\n{trace}"
