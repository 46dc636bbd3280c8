"""Where numba keeps what it compiles: in a folder that nobody else can look into.

Its indexes are pickles: who can write there runs code as the user. By default they lie in a folder
that others may own, and are made with the process's umask.
"""

from __future__ import annotations

import os
import sys

from engines.cache import private_folder


def keep_numba_private() -> None:
    """Have numba keep compiled kernels in our cache, or nowhere."""
    folder = private_folder("jit", os.environ.get("NUMBA_CACHE_DIR"))
    if folder is None:
        from numba.core.dispatcher import Dispatcher

        # numba has no switch for it; mypy would not let a method be assigned to.
        setattr(Dispatcher, "enable_caching", _do_nothing)  # noqa: B010
        return
    os.environ["NUMBA_CACHE_DIR"] = str(folder)
    if "numba" in sys.modules:  # which has read the variable already
        sys.modules["numba"].config.CACHE_DIR = str(folder)


def _do_nothing(_dispatcher: object) -> None:
    pass
