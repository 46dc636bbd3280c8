"""Every reference value at default settings: no epsilon, no limit and no method named."""

from __future__ import annotations

import importlib.util
import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.endtoend.references import instances, model_path

pytestmark = pytest.mark.prism

FAST = re.compile(
    r"herman(3|5)\.pm|egl.*L=2$|dice\.pm|cluster.*N=[24]$|tandem.*c=(3|7|15)$|poll[345]\.sm"
    r"|kanban.*t=1$|fms.*n=[12]$|coin2\.nm K=[24]$|zeroconf\.nm N=20,K=2,reset=true$"
    r"|firewire_abst\.nm delay=3$|dining_crypt3|wlan0\.nm COL=1"
)
"""Slow chains, consensus rewards, polling, rare events in time: where defaults go wrong."""


def _load_benchmark() -> Any:
    # examples/ is not a package; dataclasses look their module up by its name.
    file = Path(__file__).parents[2] / "examples" / "benchmarks" / "default_settings.py"
    spec = importlib.util.spec_from_file_location("default_settings", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


default_settings = _load_benchmark()


def cases() -> list[pytest.param]:
    """Return each model instance with all its entries, the long ones marked slow."""
    found = []
    for case in instances(".", every_kind=True):
        entries = case.values[0]
        name = f"{entries[0].model} {entries[0].constants}".strip() if entries else ""
        marks = case.marks if not name or FAST.search(name) else (*case.marks, pytest.mark.slow)
        found.append(pytest.param(*case.values, id=case.id, marks=marks))
    return found


@pytest.mark.sampled(6)
@pytest.mark.parametrize("entries", cases())
def test_default_settings_are_right_to_1e_5_and_say_how_far_to_trust_them(
    prism_gpu, prism_examples, tmp_path, entries
):
    first = entries[0]
    properties = tmp_path / "reference.props"
    properties.write_text("\n".join(f"{entry.text};" for entry in entries), encoding="utf-8")
    constants = ("-const", first.constants) if first.constants else ()
    model = model_path(prism_examples, first.model)
    run = prism_gpu(model, properties, *constants, "-gpuinfo", timeout=3600)
    references = [{"value": entry.value} for entry in entries]
    found = list(default_settings.answers(run.output, references))
    wrong = [
        (entry.text, entry.value, answer)
        for entry, answer in zip(entries, found, strict=True)
        if default_settings.wrong(answer.error, entry.value)
    ]
    assert not wrong
    silent = [
        entry.text
        for entry, answer in zip(entries, found, strict=True)
        if answer.residual is None and not answer.remark and not isinstance(entry.value, bool)
    ]
    # What the graph alone decides, or a filter counts, has neither residual nor error.
    assert not [text for text in silent if "=?" in text and "filter(" not in text]


def test_of_repeated_runs_the_least_seconds_count_with_our_worst_answer_and_prisms_best(
    monkeypatch,
):
    answer, row = default_settings.Answer, default_settings.Row
    runs = [
        (answer("1", 1e-9, 0.9), answer("1.1", 0.1, 0.5)),
        (answer("1", 2e-9, 0.8), answer("no result", math.inf, math.nan)),
        (answer("1", 1e-9, 0.7), answer("1.1", 0.1, 0.6)),
        (answer("1", 1e-9, 0.1), answer("1.1", 0.1, 0.1)),
    ]
    asked = iter(runs)

    def compare(*_):
        ours, prism = next(asked)
        return [row("model.pm", "", "P=? [ F a ]", 1.0, ours, prism)]

    monkeypatch.setattr(default_settings, "compare", compare)
    arguments = (None, None, [], [], 1.0)
    (once,) = default_settings.measured(*arguments, repeat=0)
    assert (once.ours, once.prism, once.slower) == (*runs[0], True)
    asked = iter(runs)
    # A run of PRISM without a result excuses nothing.
    (twice,) = default_settings.measured(*arguments, repeat=1)
    assert (twice.ours, twice.prism) == (answer("1", 2e-9, 0.8), answer("1.1", 0.1, 0.5))
    assert twice.slower
    asked = iter([runs[0], runs[2], runs[3]])
    (thrice,) = default_settings.measured(*arguments, repeat=2)
    assert (thrice.ours.seconds, thrice.prism.seconds, thrice.slower) == (0.1, 0.1, False)
