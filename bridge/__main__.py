"""`python -m bridge` is the command `prism-gpu`."""

import _signal  # type: ignore[import-not-found]  # What `signal` is made of has no stub.
import contextlib

with contextlib.suppress(ValueError):
    # Python's own handler would print where Ctrl-C came, in the middle of an import. This module
    # of Python is there before any other is loaded.
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from bridge.cli import main

if __name__ == "__main__":
    main()
