"""Random models in PRISM's language, with all that it has for chains and MDPs.

Constants, formulas, global variables, Booleans, ranges and unbounded integers; modules that
synchronise, some of them renamed copies; all functions and operators; several initial states;
labels; rewards of states and of transitions.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

KINDS = ("dtmc", "ctmc", "mdp")
ACTIONS = ("", "", "a", "b", "c")


@dataclass(frozen=True)
class Variable:
    """A variable; its range is `low` to `high`, a Boolean has none."""

    name: str
    low: int | None = None
    high: int = 0
    unbounded: bool = False

    @property
    def is_bool(self) -> bool:
        """Whether it is true or false."""
        return self.low is None


class RandomText:
    """Makes the parts of one model.

    Parameters
    ----------
    seed
        Of the random choices.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.kind = self._pick(KINDS)
        self._many_starts = self._one_in(5)
        self._globals = [self._variable("g0", ranged=True)] if self._one_in(3) else []
        count = self._random.randint(1, 3)
        self._owned = [
            [self._variable(f"v{m}{i}") for i in range(self._random.randint(1, 2))]
            for m in range(count)
        ]
        self._seen = [*self._globals, *(x for own in self._owned for x in own)]
        self._copied = self._one_in(2)
        self._used = {""}

    def text(self) -> str:
        """Return the model."""
        lines = [
            self.kind,
            f"const int K = {self._random.randint(1, 4)};",
            "const int L = K+mod(K,2);",
            f"const double p = {self._pick(('0.1', '1/3', '0.5', '0.25', '1-0.1*L'))};",
            "const bool on = K>2;",
            f"formula f0 = {self._truth(2)};",
            f"formula f1 = {self._number(2)};",
            "formula f2 = f1*2 + (f0 ? 1 : 0);",
        ]
        lines += [f"global {self._declaration(variable)}" for variable in self._globals]
        for m, own in enumerate(self._owned):
            lines += [f"module m{m}", *(f"  {self._declaration(x)}" for x in own)]
            lines += [f"  {self._command(own)}" for _ in range(self._random.randint(1, 4))]
            lines.append("endmodule")
        if self._copied:
            renamed = ", ".join(f"{x.name}=w{x.name}" for x in self._owned[0])
            actions = self._pick(("a=b, b=a", "c=a"))
            lines.append(f"module copy = m0 [ {renamed}, {actions} ] endmodule")
        lines += [f'label "l{i}" = {self._truth(3)};' for i in range(2)]
        lines += ["rewards", f"  {self._truth(1)} : {self._reward()};", "endrewards", 'rewards "r"']
        for action in (self._pick(sorted(self._used)), ""):
            lines.append(f"  [{action}] {self._truth(1)} : {self._reward()};")
        lines += [f"  {self._truth(2)} : {self._reward()};", "endrewards"]
        if self._many_starts:
            least = [f"!{x.name}" if x.is_bool else f"{x.name}={x.low}" for x in self._seen]
            lines.append(f"init ({' & '.join(least)}) | {self._truth(2)} endinit")
        return "\n".join(lines) + "\n"

    def _pick(self, items):
        return self._random.choice(items)

    def _one_in(self, number: int) -> bool:
        return self._random.randrange(number) == 0

    def _variable(self, name: str, *, ranged: bool = False) -> Variable:
        if self._one_in(4) and not ranged:
            return Variable(name)
        low = self._random.randint(-2, 1)
        unbounded = self._one_in(6) and not self._many_starts and not ranged
        return Variable(name, low, low + self._random.randint(1, 3), unbounded)

    def _declaration(self, variable: Variable) -> str:
        if variable.is_bool:
            kind, start = "bool", self._pick(("true", "false", "on"))
        elif variable.unbounded:
            kind, start = "int", str(variable.low)
        else:
            kind = f"[{variable.low}..{variable.high}]"
            start = str(self._random.randint(variable.low or 0, variable.high))
        return f"{variable.name} : {kind}{'' if self._many_starts else f' init {start}'};"

    def _command(self, own: list[Variable]) -> str:
        action = self._pick(ACTIONS)
        self._used.add(action)
        updates = " + ".join(f"{w}:{self._update(own, action)}" for w in self._weights())
        return f"[{action}] {self._truth(2)} -> {updates};"

    def _weights(self) -> list[str]:
        if self.kind == "ctmc":
            rates = ("1", "p", "K*0.5", "pow(2,L-K)", "log(K+1,2)", f"max(0.5, {self._number(1)})")
            return [self._pick(rates) for _ in range(self._random.randint(1, 3))]
        share = f"(1+mod({self._number(0)},3))/4"
        varying, constant = [share, f"1-{share}"], ["pow(0.5,2)", "0.75"]
        return self._pick((["1"], ["p", "1-p"], ["0.5", "0.25", "0.25"], varying, constant))

    def _update(self, own: list[Variable], action: str) -> str:
        # Modules that synchronise must not write the same global variable.
        mine = [*own, *(self._globals if not action else [])]
        chosen = [x for x in mine if not self._one_in(3)]
        parts = [f"({x.name}'={self._value(x)})" for x in chosen]
        return " & ".join(parts) or "true"

    def _value(self, variable: Variable) -> str:
        if variable.is_bool:
            return self._truth(1)
        # PRISM's explicit engine does not look at ranges.
        value, low = self._number(2), variable.low
        size = variable.high - (low or 0) + 1
        return f"mod({value}-({low}),{size})+({low})"

    def _numbers(self) -> list[str]:
        return [x.name for x in self._seen if not x.is_bool]

    def _number(self, depth: int) -> str:
        if depth == 0 or self._one_in(4):
            return self._pick([*self._numbers(), "K", "L", *"1234", "(-1)", "(-3)"])
        one, two = self._number(depth - 1), self._number(depth - 1)
        ways = (
            f"({one}+{two})",
            f"({one}-{two})",
            f"{one}*({two})",
            f"-({one})",
            f"min({one},{two})",
            f"max({one},{two},1)",
            f"mod({one},{self._pick(('3', 'K', 'L+1'))})",
            f"pow({one},2)",
            f"floor({one}/2)",
            f"ceil({one}/K)",
            f"round(p*{one})",
            f"round({one}/4)",
            f"floor(log(pow({one},2)+1,2))",
            f"({self._truth(depth - 1)} ? {one} : {two})",
        )
        return self._pick(ways)

    def _truth(self, depth: int) -> str:
        truths = [x.name for x in self._seen if x.is_bool]
        if depth == 0:
            return self._pick([*truths, *truths, "true", "on", "!on"])
        one, two = self._truth(depth - 1), self._truth(depth - 1)
        relation = self._pick(("=", "!=", "<", "<=", ">", ">="))
        compared = f"{self._number(depth - 1)} {relation} {self._number(0)}"
        ways = (
            *(compared, compared, compared, f"!({one})", f"({one} & {two})", f"({one} | {two})"),
            *(f"({one} => {two})", f"(({one}) <=> ({two}))", f"({one} ? {two} : {compared})"),
            f"{self._number(0)}/2 {relation} p",
        )
        return self._pick(ways)

    def _reward(self) -> str:
        one = self._number(1)
        return self._pick((f"max(0,{one})", "p", "K/3", f"pow({one},2)/7", "(f0 ? 1 : p)", "f2*f2"))
