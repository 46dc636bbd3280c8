"""Probability 0 and 1 inside PRISM: our sets are PRISM's, state by state."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytestmark = pytest.mark.prism

SETS = re.compile(r"^target=.*$", re.MULTILINE)


def write_random(folder, seed: int, *, choices: bool):
    """Write a random model with traps, end components and unreachable parts; return its words."""
    random = np.random.default_rng(seed)
    states = 60
    rows = []
    for state in range(states):
        for choice in range(int(random.integers(1, 4)) if choices else 1):
            near = random.integers(max(0, state - 6), min(states, state + 7), 3)
            targets = np.unique(near[: random.integers(1, 4)])
            if state % 13 == 0:
                targets = np.array([state])
            for target in targets:
                middle = [str(choice)] if choices else []
                rows.append(" ".join([str(state), *middle, str(target), repr(1 / len(targets))]))
    groups = len({tuple(row.split()[:2]) for row in rows}) if choices else None
    head = [str(states), *([str(groups)] if choices else []), str(len(rows))]
    (folder / "random.tra").write_text("\n".join([" ".join(head), *rows]) + "\n", encoding="utf-8")
    label = ['0="init" 1="goal" 2="stay"']
    for state in range(states):
        numbers = (["0"] if state == 30 else []) + (["1"] if random.random() < 0.1 else [])
        numbers += ["2"] if random.random() < 0.9 else []
        if numbers:
            label.append(f"{state}: {' '.join(numbers)}")
    (folder / "random.lab").write_text("\n".join(label) + "\n", encoding="utf-8")
    kind = "-mdp" if choices else "-dtmc"
    files = ("-importtrans", folder / "random.tra", "-importlabels", folder / "random.lab")
    return (*files, kind, "-explicit")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("choices", [False, True], ids=["dtmc", "mdp"])
@pytest.mark.parametrize("seed", range(2))
def test_states_of_probability_0_and_1_are_prisms(prism_gpu, prism, tmp_path, seed, choices):
    words = write_random(tmp_path, seed, choices=choices)
    operators = ("Pmin=?", "Pmax=?") if choices else ("P=?",)
    for operator in operators:
        found = []
        for program, name in ((prism_gpu, "ours"), (prism, "theirs")):
            vector = tmp_path / f"{operator[:-2]}-{name}.txt"
            text = f'{operator} [ "stay" U "goal" ]'
            run = program(*words, "-pf", text, "-exportvector", vector)
            assert run.code == 0, run.output + run.errors
            values = np.array(vector.read_text(encoding="utf-8").split(), dtype=float)
            found.append((SETS.findall(run.output), values == 0.0, values == 1.0))
        (ours, zeros, ones), (theirs, their_zeros, their_ones) = found
        assert ours == theirs
        assert len(ours) == 1
        np.testing.assert_array_equal(zeros, their_zeros)
        np.testing.assert_array_equal(ones, their_ones)


CASES = {
    "coin2": (
        "mdps/consensus/coin2.nm",
        "K=2",
        'Pmin=? [ F "agree" & "finished" ]; Pmax=? [ F pc1=3 ]; R{"steps"}max=? [ F "finished" ]',
    ),
    "brp": ("dtmcs/brp/brp.pm", "N=16,MAX=2", "P=? [ F s=5 ]; P=? [ G s!=4 ]"),
    "cluster": (
        "ctmcs/cluster/cluster.sm",
        "N=2",
        'P=? [ "minimum" U !"premium" ]; R{"num_repairs"}=? [ F !"minimum" ]',
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_sets_of_real_models_have_the_sizes_that_prism_finds(
    prism_gpu, prism, prism_examples, name
):
    model, constants, text = CASES[name]
    words = (prism_examples / model, "-const", constants, "-pctl", text, "-explicit")
    ours = SETS.findall(prism_gpu(*words).output)
    assert ours == SETS.findall(prism(*words).output)
    assert ours


@pytest.mark.parametrize("choices", [False, True], ids=["dtmc", "mdp"])
def test_without_precomputation_the_values_are_the_same(prism_gpu, tmp_path, choices):
    words = write_random(tmp_path, 3, choices=choices)
    for operator in ("Pmin=?", "Pmax=?") if choices else ("P=?",):
        found = []
        for switches in ((), ("-nopre",)):
            vector = tmp_path / "values.txt"
            text = f'{operator} [ "stay" U "goal" ]'
            run = prism_gpu(*words, "-pf", text, "-exportvector", vector, *switches)
            assert run.code == 0, run.output + run.errors
            assert "PRISM's own code" not in run.output
            found.append(np.array(vector.read_text(encoding="utf-8").split(), dtype=float))
        np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("choices", [False, True], ids=["dtmc", "mdp"])
def test_a_named_method_without_precomputation_sweeps_as_prism_does(
    prism_gpu, prism, tmp_path, choices
):
    words = write_random(tmp_path, 3, choices=choices)
    method, operator = ("-valiter", "Pmax=?") if choices else ("-jacobi", "P=?")
    counts = []
    line = r"took (\d+) iterations, \d+ multiplications"
    for program in (prism_gpu, prism):
        run = program(*words, "-pf", f'{operator} [ "stay" U "goal" ]', method, "-nopre")
        assert run.code == 0, run.output + run.errors
        counts.append(re.findall(line, run.output, re.MULTILINE))
    assert counts[0] == counts[1]
    assert len(counts[0]) == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("engine", ["-explicit", "-sparse", "-hybrid"])
@pytest.mark.parametrize("choices", [False, True], ids=["dtmc", "mdp"])
def test_bounds_without_precomputation_are_prisms_own_error(
    prism_gpu, prism, prism_examples, engine, choices
):
    if choices:
        words = (prism_examples / "mdps/consensus/coin2.nm", "-const", "K=2")
        asked = 'Pmax=? [ F "finished" & !"agree" ]'
    else:
        words, asked = (prism_examples / "simple/dice/dice.pm",), "P=? [ F s=7 & d=1 ]"
    found = []
    for program in (prism_gpu, prism):
        run = program(*words, "-pf", asked, engine, "-ii", "-nopre")
        assert "Result" not in run.output
        found.append((run.code, re.findall(r"^Error: .*", run.output, re.MULTILINE)))
    assert found[0] == found[1]
    assert "recomputation" in found[0][1][0]
