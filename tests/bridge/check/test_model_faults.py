"""Faults of a model's states have the words of PRISM's explicit engine, and its places."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from bridge.check.explored import explored_model
from engines.errors import InvalidModelError


@dataclass(frozen=True)
class Fault:
    """A model with one module, and what is wrong with it.

    Parameters
    ----------
    kind, commands
        The model's kind, and the commands of its module, which has a variable x from 0 to 5.
    message
        PRISM's error.
    head, tail
        What stands before and after the module.
    """

    kind: str
    commands: str
    message: str
    head: str = ""
    tail: str = ""

    @property
    def text(self) -> str:
        """The model."""
        module = f"module m\n  x : [0..5];\n  {self.commands}\nendmodule"
        return f"{self.kind}\n{self.head}\n{module}\n{self.tail}\n"


ZERO = "zero for updates in state (x=0)"
MODULO = "Attempt to compute modulo with non-positive divisor"
FAULTS = {
    "less than 1": Fault(
        "dtmc",
        "[] x<3 -> 0.5 : (x'=x+1) + 0.4 : true;",
        "Probabilities sum to 0.9 in state (x=0) (line 5, column 13)",
    ),
    "constants": Fault(
        "dtmc",
        "[] x<3 -> 1-p : (x'=N);",
        """Probabilities sum to 0.7 in state (x=0) ("0.7 : (x'=2)", line 5, column 13)""",
        head="const double p=0.3; const int N=2;",
    ),
    "formula": Fault(
        "dtmc",
        "[] x<3 -> f : (x'=1);",
        f"""Probability is {ZERO} ("x/4 : (x'=1)", line 5, column 13)""",
        head="formula f = x/4;",
    ),
    "rounding": Fault(
        "dtmc",
        "[] x<3 -> 0.3333333333 : (x'=x+1) + 0.6666666666:true;",
        "Probabilities sum to 0.9999999999 in state (x=0) (line 5, column 13)",
    ),
    "infinite": Fault(
        "ctmc",
        "[] true -> 1/x : (x'=1);",
        """Rate is not finite in state (x=0) ("1/x : (x'=1)", line 5, column 14)""",
    ),
    "no number": Fault(
        "ctmc",
        "[] true -> x/x : (x'=1);",
        """Rate is not finite in state (x=0) ("x/x : (x'=1)", line 5, column 14)""",
    ),
    "negative": Fault(
        "ctmc",
        "[] true -> x-1 : (x'=1);",
        """Rate is negative in state (x=0) ("x-1 : (x'=1)", line 5, column 14)""",
    ),
    "factor 1": Fault(
        "ctmc",
        "[] true -> k*x : true;",
        f'Rate is {ZERO} ("x : true", line 5, column 14)',
        head="const int k = 1;",
    ),
    "condition": Fault(
        "ctmc",
        "[] true -> (c?x:2) : true;",
        f'Rate is {ZERO} ("x : true", line 5, column 14)',
        head="const bool c=true;",
    ),
    "several rates": Fault(
        "ctmc",
        "[] true -> x : (x'=1) + x : true;",
        f"Rate values sum to {ZERO} (line 5, column 14)",
    ),
    "folded": Fault(
        "mdp",
        "[] true -> 1/2*x : (x'=1);",
        f"""Probability is {ZERO} ("0.5*x : (x'=1)", line 5, column 14)""",
    ),
    "together": Fault(
        "mdp",
        "[a] x<5 -> 0.3:(x'=1); endmodule module n y:[0..1]; [a] true -> 0.2:(y'=1);",
        """Probabilities sum to 0.3 in state (x=0,y=0) ("0.3 : (x'=1)", line 5, column 14)""",
    ),
    "modulo in a guard": Fault(
        "dtmc",
        "[] mod(1,x)=0 -> true;",
        f'{MODULO} ("mod(1, x)", line 5, column 6)',
    ),
    "modulo in a weight": Fault(
        "dtmc",
        "[] true -> mod(1,x) : true;",
        f'{MODULO} ("mod(1, x)", line 5, column 14)',
    ),
    "modulo in a value": Fault(
        "dtmc",
        "[] true -> (x'=mod(1,x));",
        f'{MODULO} ("mod(1, x)", line 5, column 18)',
    ),
    "power": Fault(
        "dtmc",
        "[] true -> (x'=pow(2,x-1));",
        'Negative exponent not allowed for integer power ("pow(2, x-1)", line 5, column 18)',
    ),
    "division": Fault(
        "dtmc",
        "[] true -> (x'=floor(1/x));",
        "Error evaluating floor:Infinity is non-finite, cannot be represented by int "
        '("floor(1/x)", line 5, column 18)',
    ),
    "label": Fault(
        "dtmc",
        "[] x<5 -> (x'=x+1);",
        f'{MODULO} ("mod(5, x)", line 7, column 13)',
        tail='label "a" = mod(5,x)=0;',
    ),
    "initial states": Fault(
        "dtmc",
        "[] x<5 -> (x'=x+1);",
        f'{MODULO} ("mod(5, x)", line 7, column 6)',
        tail="init mod(5,x)=0 endinit",
    ),
}
REWARDS = {
    "negative": Fault(
        "dtmc",
        "[] x<3 -> (x'=x+1);",
        'Reward structure is negative (-1.0) at state (2) ("x-3", line 7, column 25)',
        tail="rewards true : 1; x=2 : x-3; endrewards",
    ),
    "of an action": Fault(
        "mdp",
        "[go] x<3 -> (x'=x+1);",
        'Reward structure is negative (-1.0) at state (0) ("x-1", line 7, column 21)',
        tail="rewards [go] true : x-1; endrewards",
    ),
    "infinite": Fault(
        "dtmc",
        "[] x<3 -> (x'=x+1);",
        'Reward structure is not finite at state (0) ("1/x", line 7, column 16)',
        tail="rewards true : 1/x; endrewards",
    ),
    "modulo": Fault(
        "dtmc",
        "[] x<3 -> (x'=x+1);",
        f'{MODULO} ("mod(2, x)", line 7, column 16)',
        tail="rewards true : mod(2,x); endrewards",
    ),
}
WITH_PRISM = ("constants", "modulo in a guard", "label", "several rates")
"""Those that are compared with PRISM unless slow tests are wanted."""


def built(fault: Fault, **switches: bool):
    """The model of a text with a fault."""
    return explored_model(fault.text, "model.pm", {}, log=lambda _: None, **switches)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_state_is_placed(name):
    with pytest.raises(InvalidModelError, match=f"^{re.escape(FAULTS[name].message)}$"):
        built(FAULTS[name])


@pytest.mark.parametrize("name", REWARDS)
def test_a_fault_of_a_reward_is_placed(name):
    (rewards,) = built(REWARDS[name]).rewards
    assert rewards.fault.words == REWARDS[name].message


@pytest.mark.sampled(2)
@pytest.mark.prism
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=name, marks=() if name in WITH_PRISM else pytest.mark.slow)
        for name, fault in (*FAULTS.items(), *((f"reward {k}", v) for k, v in REWARDS.items()))
    ],
)
def test_the_words_are_those_of_prisms_explicit_engine(fault, prism, tmp_path):
    path = tmp_path / "model.prism"
    path.write_text(fault.text)
    question = "R=? [ F x=3 ]" if "rewards" in fault.tail else "P=? [ F x=5 ]"
    if fault.kind == "mdp":
        question = question.replace("=?", "max=?", 1)
    run = prism(path, "-explicit", "-pf", question)
    assert f"\nError: {fault.message}.\n" in run.output


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        (
            "[a] true -> 0.5 : (x'=x-1) + 0.5 : true;",
            'overflows: -1 is out of its range 0..5, in state (x=0) ("x-1", line 5, column 25)',
        ),
        (
            "[] x<5 -> 0 : (x'=7) + 1 : (x'=x+3);",
            'overflows: 6 is out of its range 0..5, in state (x=3) ("x+3", line 5, column 34)',
        ),
    ],
)
def test_a_variable_out_of_its_range_is_an_error_in_the_words_of_prisms_simulator(
    commands, message
):
    # PRISM's explicit engine lets it pass, and may not end.
    with pytest.raises(InvalidModelError) as caught:
        built(Fault("mdp", commands, ""))
    assert str(caught.value) == f"Value of variable x {message}"


def test_a_factor_of_zero_needs_no_value_of_the_other():
    # PRISM computes c*(1/x) before it looks at a state.
    zero = Fault("ctmc", "[] x<1 -> c*(1/x) : true + 1:(x'=1);", "", head="const int c=0;")
    assert built(zero).model.matrix.num_entries == 2


def test_deadlocks_are_counted_where_they_are_not_to_be_fixed():
    with pytest.raises(InvalidModelError, match=r"^Model contains 1 deadlock states$"):
        built(Fault("dtmc", "[] x<3 -> (x'=x+1);", ""), fix_deadlocks=False)
