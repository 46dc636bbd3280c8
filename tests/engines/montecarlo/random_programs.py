"""Random programs: modules that synchronise in all ways, with questions about their paths."""

from __future__ import annotations

import numpy as np

from engines.montecarlo.questions import (
    Bounds,
    CumulativeReward,
    InstantaneousReward,
    Next,
    ReachabilityReward,
    Until,
)

from .reader import read_model


def _weights(rng, discrete, count):
    if not discrete:
        return [rng.choice(["0.5", "2", "x0+1", "0.25*(x1+2)"]) for _ in range(count)]
    if count == 1:
        return [rng.choice(["1", "1", "(x0+1)/(x0+1)"])]
    if count == 2:
        return rng.choice([["0.25", "0.75"], ["(x0+1)/9", "(8-x0)/9"], ["0", "1"]]).tolist()
    return ["0.5", "0.25", "0.25"]


def random_text(seed, discrete):
    """The text of a program of four modules with a variable each, and two actions."""
    rng = np.random.default_rng(seed)
    modules = []
    for m in range(4):
        commands = []
        for action in ["", *rng.permutation(["a", "a", "b", "b"])[:3]]:
            updates = []
            count = int(rng.integers(1, 4))
            for weight in _weights(rng, discrete, count):
                other = int(rng.integers(4))
                effect = rng.choice(
                    [
                        f"(x{m}'=mod(x{m}+1, 4))",
                        f"(x{m}'=x{other})",
                        f"(x{m}'=3-x{m})",
                        "true",
                    ]
                )
                updates.append(f"{weight} : {effect}")
            guard = rng.choice(
                [
                    "true",
                    f"x{m}<{rng.integers(1, 4)}",
                    f"x{m}!=x{int(rng.integers(4))}",
                    f"x{m}=3 | x{int(rng.integers(4))}>1",
                ]
            )
            commands.append(f"  [{action}] {guard} -> {' + '.join(updates)};")
        modules.append(f"module m{m}\n  x{m} : [0..3];\n" + "\n".join(commands) + "\nendmodule")
    rewards = 'rewards "r" x0>1 : 0.3*x1; [a] true : 2; [] x2=1 : x3/3; endrewards'
    return "\n".join(["dtmc" if discrete else "ctmc", *modules, rewards])


def random_program(seed, discrete):
    """A program and six questions."""
    program, e = read_model(random_text(seed, discrete))
    questions = [
        Until(e("x0<3 | x1<2"), e("x2=3 & x3=3")),
        Until(e("true"), e("x0=2 & x1=2"), Bounds(2.0, 9.0)),
        Next(e("x0=x1"), negated=True),
        CumulativeReward(0, 6.0),
        InstantaneousReward(0, 5.0),
        ReachabilityReward(0, e("x0+x1+x2>=6")),
    ]
    return program, questions
