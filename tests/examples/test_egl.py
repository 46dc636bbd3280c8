"""The model of contract signing: against the protocol followed message by message, known sizes."""

from __future__ import annotations

import importlib.util
import itertools
import re
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner

from bridge.reproduce.families import FAMILIES, egl_messages
from tests.warm import run_warm

PROGRAM = Path(__file__).parents[2] / "examples" / "models" / "egl.py"


@pytest.fixture(scope="module")
def egl():
    spec = importlib.util.spec_from_file_location("egl", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def schedule(pairs, bits):
    """The bits that are sent, in order: by whom, of which pair, of which of its two secrets."""
    for secret in (0, 1):
        for _ in range(bits):
            yield "a", 0, secret
            for pair in range(pairs):
                yield "b", pair, secret
            for pair in range(1, pairs):
                yield "a", pair, secret


def knows_a_pair(known, bits):
    return any(first == second == bits for first, second in known)


def expected(pairs, bits):
    """The answers to the program's properties, from the bits known after each message."""
    messages = {"a": 0, "b": 0}
    unfair = {"a": 0, "b": 0}
    choices = list(itertools.product((0, 1), repeat=pairs))
    for of_a, of_b in itertools.product(choices, choices):
        # What is known of a party's secrets, by the other one.
        known = {
            party: [[bits * (chosen == secret) for secret in (0, 1)] for chosen in of]
            for party, of in (("a", of_a), ("b", of_b))
        }
        seen = {"a": False, "b": False}
        for sender, pair, secret in schedule(pairs, bits):
            of = known[sender][pair]
            a_knows, b_knows = knows_a_pair(known["b"], bits), knows_a_pair(known["a"], bits)
            if sender == "b" and b_knows and not a_knows:
                messages["a"] += 1
            if sender == "a" and a_knows and not b_knows:
                messages["b"] += 1
            of[secret] = min(of[secret] + 1, bits)
            a_knows, b_knows = knows_a_pair(known["b"], bits), knows_a_pair(known["a"], bits)
            seen["a"] |= b_knows and not a_knows
            seen["b"] |= a_knows and not b_knows
        for party in "ab":
            unfair[party] += seen[party]
    weight = Fraction(1, len(choices) ** 2)
    counts = (messages["a"], messages["b"], unfair["a"], unfair["b"])
    return [float(count * weight) for count in counts]


@pytest.mark.parametrize("front_end", [pytest.param("prism", marks=pytest.mark.prism), "builtin"])
@pytest.mark.parametrize(
    ("pairs", "bits", "states", "transitions"),
    [(2, 3, 366, 381), (3, 1, 574, 637), (4, 2, 6910, 7165)],
)
def test_answers_are_those_of_the_protocol(
    front_end, pairs, bits, states, transitions, egl, tmp_path, request
):
    where = {}
    if front_end == "prism":
        where["PRISM_DIR"] = str(request.getfixturevalue("prism_install").root)
    model, properties = tmp_path / "egl.pm", tmp_path / "egl.props"
    for file, words in ((model, []), (properties, ["--properties"])):
        assert CliRunner().invoke(egl.main, [str(pairs), "-o", str(file), *words]).exit_code == 0
    words = ["-const", f"L={bits}", "-frontend", front_end, "-nogpu", "-epsilon", "1e-12"]
    run = run_warm([str(model), str(properties), *words], timeout=200, **where)
    assert run.code == 0, run.output + run.errors
    assert f"States:      {states} " in run.output
    assert re.search(rf"^Transitions: {transitions}$", run.output, re.M)
    results = [float(word) for word in re.findall(r"^Result: (\S+)", run.output, re.M)]
    assert results == pytest.approx(expected(pairs, bits), rel=1e-9)


@pytest.mark.parametrize(("pairs", "bits"), [(2, 1), (2, 4), (3, 2), (5, 2)])
def test_the_closed_form_is_the_protocol(pairs, bits):
    assert egl_messages(pairs, bits) == pytest.approx(expected(pairs, bits)[0], rel=1e-12)


def test_the_thesis_sizes_are_known(tmp_path):
    family = FAMILIES["egl"]
    assert family.label(4) == "egl N=10, L=4"
    path, constants = family.model(4, tmp_path)
    assert constants == {"L": 4}
    assert "const int N = 10;" in path.read_text(encoding="utf-8")
    # What PRISM builds of its own model, and the thesis rounds.
    assert [family.counts(bits)[0] for bits in (2, 4)] == [66_060_286, 149_946_366]
    assert family.value("messages", 2)[0] == egl_messages(10, 2)


def test_one_pair_is_refused(egl):
    done = CliRunner().invoke(egl.main, ["1"])
    assert done.exit_code == 2
    assert "at least 2 pairs of secrets; got 1" in done.output
