"""`python -m bridge` is the command `prism-gpu`."""

import _signal  # type: ignore[import-not-found]  # What `signal` is made of has no stub.
import os
import sys

TYPE_CHECKING = False
"""As in `typing`, which is not loaded: where there is a server, nothing else is."""

if TYPE_CHECKING:
    from typing import NoReturn

try:
    # Python's own handler would print where Ctrl-C came, in the middle of an import. This module
    # of Python is there before any other is loaded.
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
except ValueError:
    pass


def main() -> "NoReturn":
    """Have the server make the run, if there is one that takes it; else make it here."""
    # NumPy's linear algebra, which nothing here uses, starts a thread a core as it is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from bridge.server.client import served

    code = served(sys.argv[1:])
    if code is not None:
        os._exit(code)
    from bridge.cli import main as make

    make()


if __name__ == "__main__":
    main()
