"""Engines that are loaded beside PRISM: who asks them waits, and nobody else does."""

from __future__ import annotations

import threading

import pytest

from prism_hooks import backend, loading
from prism_hooks.answers import METHODS_OF_JAVA, Answers
from prism_hooks.backend import EngineBackend
from prism_hooks.loading import LoadedBeside
from prism_hooks.options import HookOptions


def test_every_method_of_java_is_answered():
    engines = LoadedBeside(HookOptions())
    assert all(callable(getattr(engines, name)) for name in METHODS_OF_JAVA)


def test_only_who_asks_the_engines_waits_for_them(monkeypatch):
    ready = threading.Event()

    class Slow(EngineBackend):
        def __init__(self, *given):
            assert ready.wait(10)
            super().__init__(*given)

        def smallestGraph(self, task):  # noqa: N802 - the name is Java's
            return len(task)

    monkeypatch.setattr(backend, "EngineBackend", Slow)
    engines = LoadedBeside(HookOptions(engine_named=True, max_states=7))
    answered = (engines.mayChooseEngine(), engines.mostStates(), engines.leftToPrism())
    assert answered == (False, 7, "")
    found: list[int] = []
    asking = threading.Thread(target=lambda: found.append(engines.smallestGraph("task")))
    asking.start()
    asking.join(0.05)
    assert found == []
    ready.set()
    asking.join(10)
    assert found == [4]


def test_engines_that_cannot_be_loaded_end_the_run_with_an_error(monkeypatch, capfd):
    def broken(*_):
        raise ImportError("a module is damaged")

    class Ended(Exception):  # noqa: N818 - no error
        pass

    def end(code):
        raise Ended(code)

    monkeypatch.setattr(backend, "EngineBackend", broken)
    monkeypatch.setattr(loading.GATE, "end", end)
    engines = LoadedBeside(HookOptions())
    with pytest.raises(Ended, match="1"):
        engines.solve(None)
    assert "Error: prism-gpu failed unexpectedly" in capfd.readouterr().out


def test_engines_answer_options_as_the_answers_do():
    options = HookOptions(simulation_method="ours", show_solves=True)
    for answers in (Answers(options), EngineBackend(options)):
        assert (answers.simulationMethod(), answers.showsSolves()) == ("ours", True)
        assert answers.mayChooseEngine()
