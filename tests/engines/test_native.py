"""Compiled sources are kept, and loaded only as they were written."""

from __future__ import annotations

import ctypes

import pytest

from engines.errors import UnsupportedError
from engines.process.cache import CACHE_VARIABLE
from engines.program import native
from engines.program.source import arithmetic_constants, kernel

SOURCE = "int answer(void) { return 42; }\n"


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """Return a cache of this test's own."""
    try:
        native.compiler()
    except UnsupportedError as error:
        pytest.skip(str(error))
    folder = tmp_path / "cache"
    monkeypatch.setenv(CACHE_VARIABLE, str(folder))
    return folder


def only_library(cache):
    (library,) = cache.glob("native-*/model.so")
    return library


def test_a_source_is_compiled_once(cache, monkeypatch):
    assert native.load(SOURCE).answer() == 42
    assert only_library(cache).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in cache.iterdir()] == [only_library(cache).parent.name]
    monkeypatch.setattr(native, "_compile", None)
    assert native.load(SOURCE).answer() == 42


@pytest.mark.parametrize("damage", ["truncated", "flipped", "another"])
def test_a_library_that_is_not_as_it_was_written_is_not_loaded(cache, monkeypatch, damage):
    # Not loaded before it is damaged: the linker knows a library by its path.
    with monkeypatch.context() as patch:
        patch.setattr(native, "_opened", str)
        native.load(SOURCE)
    library = only_library(cache)
    whole = library.read_bytes()
    if damage == "truncated":
        library.write_bytes(whole[: len(whole) // 2])
    elif damage == "flipped":
        library.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    else:
        native._compile(SOURCE.replace("42", "41"), library)
    assert native.load(SOURCE).answer() == 42
    assert library.read_bytes() == whole


def test_a_library_that_cannot_be_loaded_there_is_kept_elsewhere(cache, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    opened = native._opened

    def no_exec(folder):
        if cache in folder.parents:
            raise OSError("failed to map segment from shared object")
        return opened(folder)

    monkeypatch.setattr(native, "_opened", no_exec)
    assert native.load(SOURCE).answer() == 42


def test_draws_lie_between_0_and_1_and_those_for_logarithms_are_never_0():
    probe = "double probe(int positive, unsigned long long bits)"
    text = [
        *arithmetic_constants(),
        kernel("montecarlo"),
        f"{probe} {{ return positive ? positive_unit(bits) : unit(bits); }}",
    ]
    draw = native.load("\n".join(text)).probe
    draw.restype, draw.argtypes = ctypes.c_double, [ctypes.c_int, ctypes.c_uint64]
    most = 2**64 - 1
    assert [draw(0, bits) for bits in (0, 2**11, most)] == [0.0, 2.0**-53, 1.0 - 2.0**-53]
    assert [draw(1, bits) for bits in (0, 2**11, most)] == [2.0**-53, 2.0**-52, 1.0]
