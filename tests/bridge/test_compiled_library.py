"""The compiled library is missing or damaged: an error that says what to do."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.doctor import examine
from engines.host.compiled.library import FILE_NAME, LibraryMissingError, library
from engines.model.environment import SolverEnvironment
from engines.questions.until import until_probabilities
from tests.engines import models


@pytest.fixture
def library_in(monkeypatch, tmp_path):
    """A folder in which the library is looked for, and nowhere else."""
    path = tmp_path / FILE_NAME
    monkeypatch.setattr("engines.host.compiled.library._candidates", lambda: iter([path]))
    library.cache_clear()
    yield path
    library.cache_clear()


def _found():
    (found,) = (item for item in examine() if item.name == "compiled library")
    return found


@pytest.mark.usefixtures("library_in")
def test_a_missing_library_is_told():
    with pytest.raises(LibraryMissingError, match=r"is missing: build it with `python -m"):
        library()
    found = _found()
    assert (found.ok, found.required) == (False, True)
    assert "engines.host.build" in found.detail


def test_no_other_method_takes_over_in_silence(request):
    chain = models.dtmc([{1: 0.5, 2: 0.5}, {1: 1.0}, {2: 1.0}])
    request.getfixturevalue("library_in")
    everywhere, target = np.ones(3, dtype=bool), models.mask(3, [1])
    with pytest.raises(LibraryMissingError):
        until_probabilities(chain, everywhere, target, SolverEnvironment())


def test_so_is_a_damaged_one(library_in):
    library_in.parent.mkdir()
    library_in.write_bytes(b"\x7fELF and no more")
    with pytest.raises(LibraryMissingError, match="cannot be used"):
        library()
    assert str(library_in) in _found().detail
