"""Single extension modules of SciPy, without the packages that they lie in.

Importing `scipy.sparse` takes 0.1 s and `scipy.sparse.linalg` 0.3 s, longer than most solves. Some
of their extension modules need NumPy alone, and are loaded in some milliseconds.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any


@cache
def extension(name: str) -> Any:
    """Return an extension module by its file, or with its packages where it lies elsewhere.

    Parameters
    ----------
    name
        Its name in SciPy, such as ``scipy.sparse._sparsetools``.
    """
    whole, *packages, last = name.split(".")
    package = importlib.util.find_spec(whole)
    folders = package.submodule_search_locations if package is not None else None
    if name in sys.modules or not folders:
        return importlib.import_module(name)
    files = (Path(folders[0], *packages, f"{last}{end}") for end in EXTENSION_SUFFIXES)
    file = next(filter(Path.is_file, files), None)
    # A name of our own: SciPy, imported later, is to find its package as it expects it.
    spec = None if file is None else importlib.util.spec_from_file_location(last, file)
    if spec is None or spec.loader is None:
        return importlib.import_module(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
