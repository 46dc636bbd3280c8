"""The benchmark of the paper's variants: labels are compared, and the paper's seconds shown."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from bridge.reproduce.textbook import Textbook, numbered


@pytest.fixture(scope="module")
def variants(load):
    return load("component_variants")


def by_textbook(model):
    labels, count = Textbook(model).strong_components()
    return numbered(labels, count), count


@pytest.fixture
def on_cpu(variants, monkeypatch):
    """All algorithms are the textbook's."""

    def algorithms(model, wanted):
        return {name: lambda: lambda: by_textbook(model) for name in (variants.OURS, *wanted)}

    monkeypatch.setattr(variants, "algorithms", algorithms)
    return algorithms


@pytest.mark.usefixtures("on_cpu")
def test_a_line_a_family_with_the_paper_s_seconds(variants):
    words = ["--scale", "0.0002", "--only", "wlan", "--variant", "F0,7", "--variant", "F3,1"]
    done = CliRunner().invoke(variants.main, words)
    assert done.exit_code == 0, done.output
    assert "| graph | states | ours | F0,7 | F3,1 |" in done.output
    (line,) = (line for line in done.output.splitlines() if line.startswith("| wlan"))
    assert "/ 20.71 |" in line
    assert line.endswith("/ 119 |")


def test_other_labels_are_an_error(variants, on_cpu, monkeypatch):
    def wrong(model, wanted):
        found = on_cpu(model, wanted)
        labels, count = by_textbook(model)
        found["F0,1"] = lambda: lambda: (np.roll(labels, 1), count)
        return found

    monkeypatch.setattr(variants, "algorithms", wrong)
    words = ["--scale", "0.0002", "--only", "coin", "--variant", "F0,1"]
    done = CliRunner().invoke(variants.main, words)
    assert done.exit_code == 1
    assert "F0,1 finds" in done.output
