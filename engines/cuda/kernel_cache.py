"""Where CuPy keeps what it compiles: in a folder that nobody else can look into.

Its entries are trusted without a look: who can write there runs code as the user.
"""

from __future__ import annotations

import os

from engines.process.cache import private_folder


def keep_cupy_private() -> None:
    """Have CuPy keep compiled kernels in our cache, or in memory."""
    folder = private_folder("cuda", os.environ.get("CUPY_CACHE_DIR"))
    if folder is None:
        os.environ["CUPY_CACHE_IN_MEMORY"] = "1"
    else:
        os.environ["CUPY_CACHE_DIR"] = str(folder)
