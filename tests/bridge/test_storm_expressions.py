"""Expressions that Storm evaluates mean what PRISM means by them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bridge import storm
from bridge.language.evaluate import Scope, evaluate
from bridge.language.parser import parse_expression
from engines.errors import InvalidModelError

pytest.importorskip("stormpy", reason="needs stormpy")

START, END = -4, 4
NUMBERS = (
    "mod(x,3)", "mod(-x,3)", "mod(x-5,3)", "mod(-6,3)+x", "mod(x,mod(x,2)+2)", "-mod(-x,4)",
    "mod(f,3)", "x=1?mod(-3,3):mod(-2,3)", "min(x,1)-mod(-2*x,x+9)", "x*mod(-x,3)", "-x^2+20",
    "(-x)^2", "2^3^1", "pow(x,3)", "2-(x-1)", "floor(-x/2)", "round(-x/2)", "ceil(-0.5*x)",
)  # fmt: skip
CONDITIONS = (
    "mod(-x,3)=0", "!mod(-x,3)=0", "mod(-x,3)/3=0", "-x<mod(-x,3)", "-x^2=-4", "x=1<=>x>0",
    "x=1=>x>2=>x=3", "!x=1", "x>0=true", "x=1=false", "(x=1)!=(x>0)", "x>0?true:x=-3", "x/2=0.5",
)  # fmt: skip
MOD_EVERYWHERE = """dtmc
formula third = mod(x-6,3);
module m
  x : [0..3] init 3;
  [] third!=0 -> true;
  [] third=0 -> (1+mod(-x,3))/3 : (x'=max(x+mod(-x,3)-1,0)) + mod(-x-1,3)/3 : (x'=mod(-3,3));
endmodule
module other = m [ x=y ] endmodule
label "l" = mod(x-6,3)=0;
rewards "m" true : mod(x-6,3); endrewards
"""


def build(folder: Path, text: str):
    path = folder / "model.prism"
    path.write_text(text)
    return storm.build_model(path, {}, log=print)


def asked(folder: Path, texts: tuple[str, ...], *commands: str) -> dict[str, np.ndarray]:
    """Return what commands make of texts for every x; those of a text hold for its own `step`."""
    last, variables = len(texts), [f"y{i}" for i in range(len(texts))]
    again = " & ".join([f"({name}'=0)" for name in variables])
    text = "\n".join([
        "dtmc", "formula f = x-6;", "module m",
        f" x : [{START}..{END}] init {START}; step : [0..{last}] init 0;",
        *(f" {name} : [-200..200] init 0;" for name in variables), *commands,
        f" [] step={last} & x<{END} -> (x'=x+1) & (step'=0) & {again};",
        f" [] step={last} & x={END} -> true;", "endmodule",
    ])  # fmt: skip
    found = build(folder, text).variables
    done = found["step"] == last
    np.testing.assert_array_equal(found["x"][done], np.arange(START, END + 1))
    return {text: found[name][done] for text, name in zip(texts, variables, strict=True)}


def expected(text: str) -> np.ndarray:
    states = np.arange(START, END + 1)
    scope = Scope(len(states), {"x": states}, {}, {"f": parse_expression("x-6")})
    return np.broadcast_to(np.asarray(evaluate(parse_expression(text), scope)), len(states))


@pytest.fixture(scope="module")
def updated(tmp_path_factory) -> dict[str, np.ndarray]:
    """Return what updates by each number store; one process of Storm's answers for all."""
    commands = [
        f" [] step={i} -> (y{i}'={text}) & (step'={i + 1});" for i, text in enumerate(NUMBERS)
    ]
    return asked(tmp_path_factory.mktemp("updates"), NUMBERS, *commands)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory) -> dict[str, np.ndarray]:
    """Return where each condition lets a command be taken."""
    commands = []
    for i, text in enumerate(CONDITIONS):
        commands += [f" [] step={i} & ({text}) -> (y{i}'=1) & (step'={i + 1});"]
        commands += [f" [] step={i} & !({text}) -> (step'={i + 1});"]
    return asked(tmp_path_factory.mktemp("guards"), CONDITIONS, *commands)


@pytest.mark.parametrize("text", NUMBERS)
def test_updates(text, updated):
    np.testing.assert_array_equal(updated[text], expected(text))


@pytest.mark.parametrize("text", CONDITIONS)
def test_guards(text, guarded):
    np.testing.assert_array_equal(guarded[text], expected(text).astype(int))


def test_mod_is_right_in_formulas_probabilities_labels_rewards_and_renamed_modules(tmp_path):
    built = build(tmp_path, MOD_EVERYWHERE)
    x, y = built.variables["x"], built.variables["y"]
    reached = dict.fromkeys(zip(x.tolist(), y.tolist(), strict=True))
    assert list(reached) == [(a, b) for a in (0, 2, 3) for b in (0, 2, 3)]
    np.testing.assert_array_equal(built.model.labels["l"], x % 3 == 0)
    np.testing.assert_array_equal(built.rewards[0].instantaneous, x % 3)
    start = int(np.flatnonzero(built.model.initial_states)[0])
    first, last = built.model.matrix.row_offsets[start : start + 2]
    matrix = built.model.matrix
    np.testing.assert_allclose(matrix.values[first:last], [1 / 3, 1 / 6, 1 / 3, 1 / 6])


@pytest.mark.parametrize("divisor", ["-3", "0", "x-3", "x"])
def test_a_divisor_that_is_not_positive_is_an_error(divisor, tmp_path):
    text = f"dtmc\nmodule m\n x:[0..4];\n [] true -> (x'=mod(7,{divisor}));\nendmodule\n"
    with pytest.raises(InvalidModelError, match="modulo with non-positive divisor") as caught:
        build(tmp_path, text)
    assert "line 4, column 17" in str(caught.value)
