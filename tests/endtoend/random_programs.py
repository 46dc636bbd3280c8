"""Random programs in PRISM's language, with properties: small, full of what examples rarely have.

Modules that synchronise, parallel transitions, deadlocks, end components, loops without reward,
several initial states; probabilities near 0 and 1.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

KINDS = ("dtmc", "ctmc", "mdp", "mdp")
CONSTANTS = ("0.1", "1/3", "0.5", "0.25", "0.9", "1e-3", "0.999")
RATES = ("1", "2", "0.5", "p", "10", "0.01")
SPLITS = (("1",), ("p", "1-p"), ("0.5", "0.5"), ("0.25", "0.25", "0.5"))


@dataclass(frozen=True)
class Variable:
    """A variable of a module; without an upper end it is true or false."""

    name: str
    module: int
    top: int | None


@dataclass
class Program:
    """A program in the making, and its properties.

    Parameters
    ----------
    seed
        Of the random choices.
    """

    seed: int
    variables: list[Variable] = field(default_factory=list)
    actions: list[str] = field(default_factory=lambda: [""])

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.kind = self.random.choice(KINDS)
        self.any_start = self.random.random() < 0.12
        for module in range(self.random.randint(1, 3)):
            for number in range(self.random.randint(1, 2)):
                top = None if self.random.random() < 0.2 else self.random.randint(1, 4)
                self.variables.append(Variable(f"v{module}{number}", module, top))

    def text(self) -> str:
        """Return the program."""
        lines = [self.kind, f"const double p = {self.random.choice(CONSTANTS)};"]
        for module in sorted({variable.module for variable in self.variables}):
            lines += [f"module m{module}", *self._declarations(module)]
            lines += [self._command(module) for _ in range(self.random.randint(1, 4))]
            lines.append("endmodule")
        lines += [f'label "l{number}" = {self._guard()};' for number in range(3)]
        for name in ("r0", "r1"):
            lines += [f'rewards "{name}"', *self._rewards(), "endrewards"]
        if self.any_start:
            lines.append(f"init {self._guard()} endinit")
        return "\n".join(lines) + "\n"

    def properties(self, count: int) -> str:
        """Return so many properties, one a line."""
        return "\n".join(self._property() for _ in range(count)) + "\n"

    def _pick(self, *options: str) -> str:
        return self.random.choice(options)

    def _declarations(self, module: int) -> list[str]:
        lines = []
        for variable in self.variables:
            if variable.module != module:
                continue
            if variable.top is None:
                kind, start = "bool", self._pick("true", "false")
            else:
                kind, start = f"[0..{variable.top}]", str(self.random.randint(0, variable.top))
            lines.append(f"  {variable.name} : {kind}{'' if self.any_start else f' init {start}'};")
        return lines

    def _command(self, module: int) -> str:
        action = self._pick("", "", "a", "b")
        if action not in self.actions:
            self.actions.append(action)
        if self.kind == "ctmc":
            weights = [self.random.choice(RATES) for _ in range(self.random.randint(1, 3))]
        else:
            weights = list(self.random.choice(SPLITS))
        updates = " + ".join(f"{weight}:{self._update(module)}" for weight in weights)
        return f"  [{action}] {self._guard()} -> {updates};"

    def _update(self, module: int) -> str:
        if self.random.random() < 0.12:
            return "true"
        own = [variable for variable in self.variables if variable.module == module]
        parts = []
        for variable in self.random.sample(own, self.random.randint(1, len(own))):
            name, top = variable.name, variable.top
            if top is None:
                value = self._pick("true", "false", f"!{name}")
            else:
                steps = (f"min({name}+1,{top})", f"max({name}-1,0)", f"mod({name}+1,{top + 1})")
                value = self._pick(*steps, name, str(self.random.randint(0, top)))
            parts.append(f"({name}'={value})")
        return " & ".join(parts)

    def _atom(self) -> str:
        variable = self.random.choice(self.variables)
        if variable.top is None:
            return self._pick(variable.name, f"!{variable.name}")
        relation = self._pick("=", "!=", "<", "<=", ">", ">=")
        return f"{variable.name}{relation}{self.random.randint(0, variable.top)}"

    def _guard(self, depth: int = 2) -> str:
        chance = self.random.random()
        if depth == 0 or chance < 0.5:
            return self._atom()
        if chance < 0.6:
            return "true"
        return f"({self._guard(depth - 1)} {self._pick('&', '|')} {self._guard(depth - 1)})"

    def _rewards(self) -> list[str]:
        names = [variable.name for variable in self.variables if variable.top is not None]
        items = []
        for _ in range(self.random.randint(1, 3)):
            action = "" if self.random.random() < 0.5 else f"[{self.random.choice(self.actions)}] "
            items.append(f"  {action}{self._guard()} : {self._pick('1', '2', '0.5', 'p', *names)};")
        return items

    def _states(self, depth: int = 1) -> str:
        chance = self.random.random()
        if chance < 0.5:
            return f'"l{self.random.randint(0, 2)}"'
        if chance < 0.75 or depth == 0:
            return self._atom()
        if chance < 0.8:
            return self._pick("true", "false", '"init"', '"deadlock"')
        if chance < 0.9:
            joined = self._pick("&", "|", "=>")
            return f"({self._states(depth - 1)} {joined} {self._states(depth - 1)})"
        bound = f"{self._pick('>', '>=', '<', '<=')}{self._pick('0.5', '0.3')}"
        return f"P{bound} [ {self._path(0)} ]"

    def _bound(self) -> str:
        if self.kind == "ctmc":
            low = self.random.choice((0.1, 0.5, 1.0, 2.5, 10.0))
            return self._pick(f"<={low}", f"[{low},{low + 3}]", f">={low}")
        low = self.random.randint(0, 12)
        return self._pick(f"<={low}", f"<{low + 1}", f"[{low},{low + 4}]")

    def _path(self, depth: int = 1) -> str:
        one, two = self._states(depth), self._states(depth)
        plain = (f"X {one}", f"F {one}", f"G {one}", f"{one} U {two}", f"{one} W {two}")
        timed = (f"F{self._bound()} {one}", f"{one} U{self._bound()} {two}", f"{one} R {two}")
        return self._pick(*plain, *timed, self._ltl(2))

    def _ltl(self, depth: int) -> str:
        if depth == 0:
            return f'"l{self.random.randint(0, 2)}"'
        one, two = self._ltl(depth - 1), self._ltl(depth - 1)
        unary = (f"(G {one})", f"(F {one})", f"(X {one})", f"!({one})")
        return self._pick(*unary, f"({one} U {two})", f"({one} & {two})", f"({one} | {two})")

    def _query(self, operator: str) -> str:
        least_or_most = self._pick("min", "max") if self.kind == "mdp" else ""
        return f"{operator}{least_or_most}=?"

    def _reward_property(self) -> str:
        operator = self._query(f'R{{"{self._pick("r0", "r1")}"}}')
        steps = self.random.randint(0, 12)
        co_safe = f"F ({self._states()} & (X F {self._states()}))"
        reached = f"F {self._states()}"
        more = () if self.kind == "mdp" else ("S", "C")
        return f"{operator} [ {self._pick(reached, f'C<={steps}', f'I={steps}', co_safe, *more)} ]"

    def _property(self) -> str:
        chance = self.random.random()
        if chance < 0.55:
            return f"{self._query('P')} [ {self._path()} ]"
        if chance < 0.85:
            return self._reward_property()
        if chance < 0.92 and self.kind != "mdp":
            return f"S=? [ {self._states()} ]"
        summary = self._pick("max", "min", "avg", "sum", "range")
        return f"filter({summary}, {self._query('P')} [ {self._path()} ], {self._states(0)})"
