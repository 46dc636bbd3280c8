"""The source that goes through the transitions of a state: compiled as C, against plain loops."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from engines.errors import UnsupportedError
from engines.program import native
from engines.program.arithmetic import EvaluationError
from engines.program.evaluate import evaluate
from engines.program.packing import Packing
from engines.program.source import arithmetic_constants, kernel
from engines.program.successors import SuccessorSource, SuccessorsTuning
from tests.engines.montecarlo.reader import read_model

from .plain import FaultError, after, choices_of, initial_states
from .programs import random_program

MOST = 4096
HARNESS = """
typedef struct { int count; int choices[MOST], actions[MOST]; double weights[MOST];
                 u64 targets[MOST * WORDS]; } Taken;
static void take(void *context, int choice, int action, double weight, const u64 *target) {
  Taken *into = context;
  int i = into->count++;
  into->choices[i] = choice;
  into->actions[i] = action;
  into->weights[i] = weight;
  for (int word = 0; word < WORDS; word++) into->targets[i * WORDS + word] = target[word];
}
"""
ENTRIES = """
EXPORTED int expand_state(const u64 *state, Taken *taken, const double *numbers) {
  taken->count = 0;
  return expand(state, taken, numbers);
}
EXPORTED double evaluate_state(const u64 *state, int which, int *failed, const double *numbers) {
  return value(state, which, failed, numbers);
}
"""


def begins(program):
    """Whether a program has an initial state."""
    try:
        return bool(initial_states(program))
    except FaultError:
        return False


BEGINNING = [seed for seed in range(12) if begins(random_program(seed))]


class Compiled:
    """A program's functions, compiled by the C compiler."""

    def __init__(self, program, expressions=(), tuning=None):
        self.packing = Packing.of(program)
        writer = SuccessorSource(program, self.packing, tuning)
        parts = [
            f"#define MOST {MOST}",
            *arithmetic_constants(),
            kernel("montecarlo"),
            writer.declarations(),
            HARNESS,
            writer.expansion("expand", "take"),
            writer.evaluation("value", expressions),
            ENTRIES,
        ]
        library = native.load("\n".join(parts))
        words = self.packing.words

        class Taken(ctypes.Structure):
            _fields_ = (
                ("count", ctypes.c_int),
                ("choices", ctypes.c_int * MOST),
                ("actions", ctypes.c_int * MOST),
                ("weights", ctypes.c_double * MOST),
                ("targets", ctypes.c_uint64 * (MOST * words)),
            )

        self._taken, self._words, self._library = Taken(), words, library
        self._numbers = (ctypes.c_double * 4096)(*writer.numbers.values())
        library.evaluate_state.restype = ctypes.c_double

    def _packed(self, state):
        return np.ascontiguousarray(self.packing.packed([state])[0])

    def choices(self, state):
        """The choices of a state as `plain.choices_of` has them; None for a fault."""
        words, taken = self._packed(state), self._taken
        pointer = words.ctypes.data_as(ctypes.c_void_p)
        if self._library.expand_state(pointer, ctypes.byref(taken), self._numbers):
            return None
        found = []
        for i in range(taken.count):
            if taken.choices[i] == len(found):
                action = taken.actions[i]
                found.append((None if action < 0 else action, []))
            words = taken.targets[i * self._words : (i + 1) * self._words]
            found[taken.choices[i]][1].append((self.packing.state(words), taken.weights[i]))
        return found

    def value(self, state, which):
        """The value of an expression; None where it has none."""
        words, failed = self._packed(state), ctypes.c_int()
        pointer = words.ctypes.data_as(ctypes.c_void_p)
        how = (which, ctypes.byref(failed), self._numbers)
        value = self._library.evaluate_state(pointer, *how)
        return None if failed.value else value


def reachable(program, most=300):
    """Reachable states, the first of them, with their choices; None for those with a fault."""
    waiting, found = list(initial_states(program)), {}
    while waiting and len(found) < most:
        state = waiting.pop()
        if state in found:
            continue
        try:
            choices = choices_of(program, state)
        except (FaultError, EvaluationError):
            found[state] = None
            continue
        found[state] = [
            (action, [(after(state, new), weight) for weight, new in transitions])
            for action, transitions in choices
        ]
        waiting += [target for _, transitions in found[state] for target, _ in transitions]
    return found


def require_same(program, tuning=None):
    """Compare the choices of reachable states with plain loops, to the last bit."""
    compiled, states = Compiled(program, tuning=tuning), reachable(program)
    for state, expected in states.items():
        assert compiled.choices(state) == expected
    return states


@pytest.mark.parametrize("most_written_out", [64, 0], ids=["written out", "looped"])
@pytest.mark.parametrize("seed", BEGINNING)
def test_random_programs(seed, most_written_out):
    tuning = SuccessorsTuning(most_written_out=most_written_out)
    assert require_same(random_program(seed), tuning)


def test_expressions_have_their_values():
    text = "dtmc module m x : [-3..4] init 0; [] true -> (x'=x); endmodule "
    labels = ["mod(7, x)=1", "x*1000000000>0", "x<0 => pow(2, x)>1", "x/2=-1.5"]
    text += " ".join(f'label "l{i}"={label};' for i, label in enumerate(labels))
    program, read = read_model(text)
    expressions = [*(label.expression for label in program.labels), read("x/3")]
    compiled, failures = Compiled(program, expressions), 0
    for x in range(-3, 5):
        for which, expression in enumerate(expressions):
            try:
                expected = float(evaluate(expression, (x,)))
            except EvaluationError:
                expected, failures = None, failures + 1
            assert compiled.value((x,), which) == expected
    assert failures > 2


def test_states_of_two_words():
    variables = " ".join(f"x{i} : [0..{10**9}] init {i};" for i in range(5))
    program, _ = read_model(f"mdp module m {variables} [a] x4<9 -> (x0'=x4)&(x4'=x4+1); endmodule")
    assert Packing.of(program).words == 3
    assert len(require_same(program)) == 6


def test_too_many_updates_are_refused():
    program, _ = read_model("dtmc module m x : [0..1]; [] true -> (x'=1-x); endmodule")
    with pytest.raises(UnsupportedError, match="1 updates of commands; at most 0"):
        SuccessorSource(program, Packing.of(program), SuccessorsTuning(most_updates=0))
