"""Every reference value at default settings: no epsilon, no limit and no method named."""

from __future__ import annotations

import importlib.util
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
