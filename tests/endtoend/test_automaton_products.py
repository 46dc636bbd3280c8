"""Products with automata are built by the engines, and PRISM's explicit engine's to the byte."""

from __future__ import annotations

import pytest

from tests.endtoend.comparing import assert_same_files, assert_same_lines, comparable

pytestmark = pytest.mark.prism

# model, constants, property
CASES = {
    "mdp": ("mdps/mutual/mutual3.nm", "", "Pmax=? [ G F p1=10 ]"),
    "least": ("mdps/phil/nofair/phil-nofair3.nm", "", 'Pmin=? [ G F "eat" ]'),
    "several atoms": (
        "mdps/phil/nofair/phil-nofair3.nm",
        "",
        'Pmax=? [ (F "eat") & (X ("hungry" | (X "eat"))) ]',
    ),
    "dtmc": ("dtmcs/brp/brp.pm", "N=16,MAX=2", "P=? [ (F s=5) & (G F T=false) ]"),
    "states of interest": ("dtmcs/herman/herman7.pm", "", 'filter(max, P=? [ F G "stable" ])'),
    "ctmc": (
        "ctmcs/cluster/cluster.sm",
        "N=3",
        'P=? [ (!"premium") U ("premium" & (X !"premium")) & (G F "minimum") ]',
    ),
    "co-safe reward": (
        "mdps/consensus/coin2.nm",
        "K=2",
        'R{"steps"}max=? [ (F "finished") & (F pc1=3) ]',
    ),
    "co-safe reward of a chain": (
        "dtmcs/brp/brp.pm",
        "N=16,MAX=2",
        "R=? [ (F s=5) & (F r=1) ]",
    ),
}
EXPORTS = {"prodtrans": "product.tra", "prodstates": "product.sta"}


def runs_of(prism_gpu, prism, tmp_path, *words):
    """Return both runs, and the files that each has written."""
    runs, folders = [], []
    for run, side in ((prism_gpu, "ours"), (prism, "theirs")):
        folder = tmp_path / side
        folder.mkdir()
        exports = [
            word for what, name in EXPORTS.items() for word in (f"-export{what}", folder / name)
        ]
        runs.append(run(*words, *exports))
        folders.append({file.name: file.read_bytes() for file in folder.iterdir()})
    return runs, folders


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_products_are_prisms(prism_gpu, prism, prism_examples, tmp_path, name):
    model, constants, text = CASES[name]
    words = [prism_examples / model, "-explicit", "-pf", text]
    words += ["-const", constants] if constants else []
    runs, folders = runs_of(prism_gpu, prism, tmp_path, *words)
    assert runs[0].code == runs[1].code == 0, runs[0].output
    assert set(folders[0]) == set(EXPORTS.values())
    if name == "ctmc":
        # PRISM adds the rates out of a state in the order of a hash table.
        for file in EXPORTS.values():
            assert_same_files(tmp_path / "ours" / file, tmp_path / "theirs" / file, 1e-14)
    else:
        assert folders[0] == folders[1]
    sizes = [run.output.split("product has ")[1].splitlines()[0] for run in runs]
    assert sizes[0] == sizes[1]


# Choices of an imported MDP may be there twice: its product has them once.
FILES = {
    "dtmc": ("3 4\n0 1 0.5\n0 2 0.5\n1 0 1\n2 2 1\n", "-dtmc", 'P=? [ (G F "a") & (F G !"b") ]'),
    "mdp": (
        "3 6 7\n0 0 1 0.5 go\n0 0 2 0.5 go\n0 1 0 1 a\n0 2 0 1 a\n"
        "1 0 0 1\n2 0 2 1 stay\n2 1 1 1 go\n",
        "-mdp",
        'Pmax=? [ (G F "a") & (F G !"b") ]',
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_model_from_files_has_prisms_product(prism_gpu, prism, tmp_path, name):
    transitions, kind, text = FILES[name]
    (tmp_path / "m.tra").write_text(transitions)
    (tmp_path / "m.lab").write_text('0="init" 1="deadlock" 2="a" 3="b"\n0: 0\n1: 2\n2: 3\n')
    words = ["-importtrans", tmp_path / "m.tra", "-importlabels", tmp_path / "m.lab", kind]
    runs, folders = runs_of(prism_gpu, prism, tmp_path, *words, "-explicit", "-pf", text)
    assert runs[0].code == runs[1].code == 0, runs[0].output
    assert folders[0] == folders[1]
    assert_same_lines(*(comparable(run.output.replace("ours", "theirs")) for run in runs))
