"""Compiled sources are kept, and loaded only from where nobody else can put one."""

from __future__ import annotations

import os

import pytest

from engines.errors import UnsupportedError
from engines.montecarlo import native

SOURCE = "int answer(void) { return 42; }\n"

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owners here")


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """Return a cache of this test's own."""
    try:
        native.compiler()
    except UnsupportedError as error:
        pytest.skip(str(error))
    folder = tmp_path / "cache"
    monkeypatch.setenv(native.CACHE_VARIABLE, str(folder))
    return folder


def test_a_source_is_compiled_once_into_a_folder_of_the_user_s_own(cache, monkeypatch):
    old = os.umask(0o002)
    try:
        library = native.build(SOURCE)
    finally:
        os.umask(old)
    assert library.parent == cache / "paths"
    assert [folder.stat().st_mode & 0o777 for folder in (cache, library.parent)] == [0o700] * 2
    monkeypatch.setattr(native, "_compile", None)
    assert native.build(SOURCE) == library


@pytest.mark.parametrize("writable", [".", "paths"])
@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_library_that_others_may_have_written_is_not_loaded(cache, writable, mode):
    native.build(SOURCE)
    (cache / writable).chmod(mode)
    with pytest.raises(UnsupportedError, match=r"writable by others.*chmod 700"):
        native.build(SOURCE)
    (cache / writable).chmod(0o700)
    assert native.build(SOURCE).is_file()


def test_a_folder_of_another_user_or_behind_a_link_is_refused(cache, monkeypatch, tmp_path):
    native.build(SOURCE)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(UnsupportedError, match=f"belongs to another user .number {user}"):
        native.build(SOURCE)
    monkeypatch.undo()
    (tmp_path / "link").symlink_to(cache)
    monkeypatch.setenv(native.CACHE_VARIABLE, str(tmp_path / "link"))
    with pytest.raises(UnsupportedError, match="not a folder of its own"):
        native.build(SOURCE)


def test_a_folder_that_cannot_be_made_is_told(cache):
    cache.write_text("a file")
    with pytest.raises(UnsupportedError, match="cannot be kept"):
        native.build(SOURCE)
