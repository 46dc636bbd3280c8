"""What is remembered of large models, for whom the GPU is opened at once."""

from __future__ import annotations

import pytest

from bridge import large_models
from bridge.arguments import parse
from engines.process import cache


@pytest.fixture
def folder(tmp_path, monkeypatch):
    place = tmp_path / "cache"
    place.mkdir(mode=0o700)
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(place))
    return place / large_models.FOLDER


def command(*words):
    return parse([str(word) for word in words], {})


@pytest.mark.usefixtures("folder")
def test_a_model_is_known_with_its_constants_whatever_else_is_typed(tmp_path):
    model, other = tmp_path / "m.sm", tmp_path / "n.sm"
    model.write_text("ctmc")
    other.write_text("ctmc")
    assert not large_models.is_known(command(model))
    large_models.note(command(model, "-const", "N=5", "-pf", "P=? [ F a ]"))
    assert large_models.is_known(command("-explicit", model, "props", "--const", "N=5"))
    assert not large_models.is_known(command(model, "-const", "N=6"))
    assert not large_models.is_known(command(model))
    assert not large_models.is_known(command(other, "-const", "N=5"))
    model.write_text("ctmc ")
    assert not large_models.is_known(command(model, "-const", "N=5"))


def test_what_is_no_file_is_not_noted(folder, tmp_path):
    for words in ((), (tmp_path / "missing.sm",)):
        large_models.note(command(*words))
        assert not large_models.is_known(command(*words))
    assert not folder.exists() or not list(folder.iterdir())


def test_there_is_an_end_of_files(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(large_models, "MOST_KEPT", 3)
    model = tmp_path / "m.sm"
    model.write_text("ctmc")
    for n in range(5):
        large_models.note(command(model, "-const", f"N={n}"))
        assert large_models.is_known(command(model, "-const", f"N={n}"))
        assert len(list(folder.iterdir())) <= 3


@pytest.mark.usefixtures("folder")
def test_a_full_disk_is_no_error(tmp_path, monkeypatch):
    model = tmp_path / "m.sm"
    model.write_text("ctmc")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(large_models.Path, "touch", full)
    large_models.note(command(model))
    assert not large_models.is_known(command(model))
