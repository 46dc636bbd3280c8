"""Strategies: the chain that an exported one induces has the value, as PRISM itself finds it."""

from __future__ import annotations

import re

import pytest

from tests.endtoend.references import relative_error

pytestmark = pytest.mark.prism

TIGHT = ("-epsilon", "1e-10", "-maxiters", "1000000")
METHODS = ((), ("-politer",), ("-modpoliter",), ("-topological",), ("-gs",))

# model, constants, property
CASES = {
    "coin2-Pmin": ("mdps/consensus/coin2.nm", "K=2", "Pmin", "F pc1=3 & pc2=3 & coin1=1 & coin2=1"),
    "coin2-Pmax": ("mdps/consensus/coin2.nm", "K=2", "Pmax", "F pc1=3 & pc2=3 & coin1!=coin2"),
    "coin2-Rmin": ("mdps/consensus/coin2.nm", "K=2", 'R{"steps"}min', "F pc1=3 & pc2=3"),
    "coin2-Rmax": ("mdps/consensus/coin2.nm", "K=2", 'R{"steps"}max', "F pc1=3 & pc2=3"),
    "csma-Rmax": ("mdps/csma/csma2_2.nm", None, 'R{"time"}max', "F s1=4 & s2=4"),
    "zeroconf-Pmax": (
        "mdps/zeroconf/zeroconf.nm",
        "N=20,K=2,reset=true,err=0.1",
        "Pmax",
        "F l=4 & ip=1",
    ),
    "firewire-Pmin": ("mdps/firewire/abst/firewire.nm", "delay=3,fast=0.5", "Pmin", "F s=9"),
}


LONG = ("csma", "zeroconf", "firewire")


def value_of(run, text: str) -> float:
    found = re.search(r"^Result.*?: (\S+)", run.output, re.MULTILINE)
    assert found, f"{text}\n{run.output[-2000:]}{run.errors}"
    return float(found[1])


def lines_of(path) -> list[list[str]]:
    return [line.split() for line in path.read_text(encoding="utf-8").splitlines()[1:]]


def rewards_of(path, structure: str) -> list[list[str]]:
    """Return the lines of the file that is numbered by the structure's place in the model."""
    files = sorted(path.parent.glob(f"{path.stem}*{path.suffix}"))
    for file in files:
        text = file.read_text(encoding="utf-8")
        if f'"{structure}"' in text or len(files) == 1:
            rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
            return rows[1:]
    raise AssertionError(f"{structure} is in none of {files}")


def induce(folder, choices: dict[int, int], structure: str | None) -> None:
    """Write the chain of a strategy, and the rewards of its states, in PRISM's formats."""
    rows = lines_of(folder / "mdp.tra")
    states = 1 + max(int(row[0]) for row in rows)
    chosen = [row for row in rows if int(row[1]) == choices.get(int(row[0]), 0)]
    text = [f"{states} {len(chosen)}"] + [f"{row[0]} {row[2]} {row[3]}" for row in chosen]
    (folder / "chain.tra").write_text("\n".join(text) + "\n", encoding="utf-8")
    if structure is None:
        return
    earned = dict.fromkeys(range(states), 0.0)
    for row in rewards_of(folder / "mdp.srew", structure):
        earned[int(row[0])] += float(row[1])
    of_choices = {
        (int(row[0]), int(row[1])): float(row[3])
        for row in rewards_of(folder / "mdp.trew", structure)
    }
    for state in earned:
        earned[state] += of_choices.get((state, choices.get(state, 0)), 0.0)
    text = [f"{states} {states}"] + [f"{state} {reward!r}" for state, reward in earned.items()]
    (folder / "chain.srew").write_text("\n".join(text) + "\n", encoding="utf-8")


def name_states(folder) -> None:
    """Write the labels of the chain: its first state, and the goal."""
    goals = [row[0][:-1] for row in lines_of(folder / "goal.lab") if row[0].endswith(":")]
    starts = [row[0][:-1] for row in lines_of(folder / "mdp.lab") if "0" in row[1:]]
    numbered = [(start, "0") for start in starts] + [(goal, "1") for goal in goals]
    text = ['0="init" 1="goal"'] + [f"{state}: {label}" for state, label in numbered]
    (folder / "chain.lab").write_text("\n".join(text) + "\n", encoding="utf-8")


def read_choices(path) -> dict[int, int]:
    """Return the choice of each state that has one; any will do where a file has no number."""
    pairs = (line.split("=") for line in path.read_text(encoding="utf-8").split())
    return {int(state): int(choice) for state, choice in pairs if choice.isdigit()}


def _runs() -> list[pytest.param]:
    runs = []
    for name in CASES:
        for method in METHODS:
            long = name.startswith(LONG) or method not in METHODS[:2]
            marks = [pytest.mark.slow] if long else []
            runs.append(pytest.param(name, method, id="".join((name, *method)), marks=marks))
    return runs


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "method"), _runs())
def test_prism_finds_the_value_again_in_the_chain_of_an_exported_strategy(
    prism_gpu, prism, prism_examples, tmp_path, name, method
):
    model, constants, operator, path = CASES[name]
    sized = ("-const", constants) if constants else ()
    goal = path.removeprefix("F ")
    properties = tmp_path / "goal.props"
    properties.write_text(f'label "goal" = {goal};\n{operator}=? [ F "goal" ]\n', encoding="utf-8")
    exports = ("trans", "labels", "staterewards", "transrewards")
    suffixes = ("tra", "lab", "srew", "trew")
    # Without it PRISM writes transitions in the order of diagrams, and strategies in its own.
    words = [prism_examples / model, properties, "-explicit", *sized, *TIGHT, *method]
    for what, suffix in zip(exports, suffixes, strict=True):
        words += [f"-export{what}", tmp_path / f"mdp.{suffix}"]
    strategy = tmp_path / "strategy.txt"
    run = prism_gpu(
        *words,
        "-exportproplabels",
        tmp_path / "goal.lab",
        "-exportstrat",
        f"{strategy}:type=indices",
    )
    assert "not done by our engines" not in run.output
    value = value_of(run, name)
    structure = operator.split('"')[1] if '"' in operator else None
    induce(tmp_path, read_choices(strategy), structure)
    name_states(tmp_path)
    kind = "R" if structure else "P"
    rewards = ("-importstaterewards", tmp_path / "chain.srew") if structure else ()
    again = prism(
        *("-importtrans", tmp_path / "chain.tra", "-importlabels", tmp_path / "chain.lab", "-dtmc"),
        *rewards,
        *("-explicit", "-gs", *TIGHT, "-pf", f'{kind}=? [ F "goal" ]'),
    )
    assert relative_error(str(value_of(again, name)), value) <= 1e-6


AVOIDABLE = """mdp
module m
  x : [0..5] init 0;
  [a] x=0 -> (x'=1);  [b] x=0 -> (x'=3);
  [c] x=1 -> (x'=3);  [d] x=1 -> 0.1:(x'=2) + 0.9:(x'=3);  [e] x=1 -> (x'=4);
  [f] x=2 -> (x'=3);  [g] x=2 -> true;  [h] x=2 -> 0.5:(x'=2) + 0.5:(x'=3);
  [i] x=3 -> true;
  [j] x=4 -> (x'=3);  [k] x=4 -> (x'=5);
  [l] x=5 -> (x'=3);
endmodule
rewards "steps"  true : 1;  endrewards
"""


@pytest.mark.parametrize("engine", ["-explicit", "-sparse"])
def test_a_strategy_of_infinite_reward_may_miss_the_goal(prism_gpu, tmp_path, engine):
    # PRISM would stay in 2 by [h], which leaves it for the goal.
    model = tmp_path / "avoidable.nm"
    model.write_text(AVOIDABLE, encoding="utf-8")
    question = ("-pf", 'R{"steps"}max=? [ F x=3 ]', "-exportstrat", "stdout:type=actions")
    run = prism_gpu(model, *question, engine, "-valiter")
    assert "not done by our engines" not in run.output
    chosen = dict(re.findall(r"^\((\d)\)=(\w)$", run.output, re.MULTILINE))
    assert (chosen["0"], chosen["1"], chosen["2"]) == ("a", "d", "g")
    assert chosen["4"] == "k"
