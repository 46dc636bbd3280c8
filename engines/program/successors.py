"""The source of a function that goes through the transitions of a state, in PRISM's order.

It is written for one program, in what C and CUDA C++ have in common, after `montecarlo.cuh`, whose
arithmetic it calls. Of the model it holds numbers alone, and of those that are doubles only their
places in a table: a model with other rates or probabilities has the same source.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from engines.errors import UnsupportedError
from engines.program.expressions import Expression, Literal, Type
from engines.program.faults import SUM_TOLERANCE, weights_in_order
from engines.program.order import Alternatives, alternatives, combinations
from engines.program.packing import Packing
from engines.program.program import Command, Program, Update
from engines.program.ranges import range_of
from engines.program.wording import NumberTable, Wording, double


@dataclass(frozen=True)
class SuccessorsTuning:
    """What is written out.

    Parameters
    ----------
    most_written_out
        Transitions under one action: where modules that synchronise have more combinations, they
        are gone through by loops, which are slower, and sooner compiled.
    most_updates
        Of all commands: minutes pass until a compiler is done with many thousands.
    """

    most_written_out: int = 64
    most_updates: int = 4_000


@dataclass(frozen=True)
class _Part:
    """An update of a command that moves: its weight, and what it sets.

    Parameters
    ----------
    weight
        The name of the variable that holds it, or the number.
    certain
        Whether it cannot be 0.
    kept
        Of each word, the bits that it keeps.
    set
        Of each word, the bits that it sets; empty for none.
    """

    weight: str
    certain: bool
    kept: tuple[int, ...]
    set: tuple[str, ...]


class SuccessorSource:
    """Writes the functions of a program.

    Parameters
    ----------
    program
        The model.
    packing
        Of its states.
    tuning
        None for the default.

    Raises
    ------
    UnsupportedError
        If it has more updates than are compiled, or an expression is nested too deeply.
    """

    def __init__(
        self, program: Program, packing: Packing, tuning: SuccessorsTuning | None = None
    ) -> None:
        self._program, self._packing = program, packing
        self.numbers = NumberTable()
        """What `numbers` has to hold, once all functions are written."""
        self._wording = Wording(program.variables, lambda index: f"p->v{index}", self._number_text)
        self._commands = [command for _, _, command in program.commands()]
        self._names = 0
        self._tuning = tuning or SuccessorsTuning()
        count = sum(len(command.updates) for command in self._commands)
        if count > self._tuning.most_updates:
            raise UnsupportedError(
                f"{count} updates of commands; at most {self._tuning.most_updates} are compiled"
            )

    def _number_text(self, value: float) -> str:
        """Return how a double is read."""
        return self.numbers.text(value)

    def _transitions_of(self, unit: Alternatives) -> int:
        """Return how many transitions all combinations of a unit's commands have."""
        return math.prod(
            sum(len(self._commands[number].updates) for number in factor) for factor in unit.factors
        )

    def declarations(self) -> str:
        """Return the type of a state's values, and the function that unpacks them."""
        names = [f"v{index}" for index in range(len(self._program.variables))]
        members = "".join(f" int {name};" for name in names)
        lines = ["p->fail = 0;"]
        for name, field in zip(names, self._packing.fields, strict=True):
            bits = f"(u32)(s[{field.word}] >> {field.shift} & {field.mask}ull)"
            lines.append(f"p->{name} = (int)({bits} + {field.low % 2**32}u);")
        body = "".join(f"  {line}\n" for line in lines)
        return (
            f"#define WORDS {self._packing.words}\n"
            f"typedef struct {{ u32 fail;{members} }} Values;\n"
            f"HD void unpack(Values *p, const u64 *s) {{\n{body}}}\n"
        )

    def expansion(self, name: str, take: str) -> str:
        """Return a function that calls another for each transition of a state.

        Parameters
        ----------
        name
            Of the function: its arguments are a state's words, the other's context and the numbers,
            and it returns whether the state has a fault; then not all transitions are taken.
        take
            The name of the other function: its arguments are the context, the number of the
            choice, the action or -1, the weight, which is not 0, and the words of the target.
        """
        try:
            lines = self._guards()
            for unit in alternatives(self._program):
                written = self._transitions_of(unit) <= self._tuning.most_written_out
                lines += (self._unit if written else self._looped)(unit, take)
        except RecursionError:
            raise UnsupportedError("an expression of the model is nested too deeply") from None
        body = "".join(f"  {line}\n" for line in lines)
        return (
            f"HD int {name}(const u64 *s, void *context, const double *numbers) {{\n"
            f"  Values values, *p = &values;\n  u64 t[WORDS];\n  int choice = 0;\n"
            f"  unpack(p, s);\n{body}  (void)choice; (void)t; (void)numbers;\n"
            "  return p->fail != 0;\n}\n"
        )

    def evaluation(self, name: str, expressions: Sequence[Expression]) -> str:
        """Return a function that evaluates one of some expressions as a double.

        Parameters
        ----------
        name
            Of the function: its arguments are a state's words, which expression, where to set 1 if
            it has no value, and the numbers.
        expressions
            Over the program's variables.
        """
        try:
            cases = "".join(
                f"    case {i}: value = {self._wording.real(expression)}; break;\n"
                if expression.type is not Type.BOOL
                else f"    case {i}: value = {self._wording.value(expression)}; break;\n"
                for i, expression in enumerate(expressions)
            )
        except RecursionError:
            raise UnsupportedError("an expression of the model is nested too deeply") from None
        return (
            f"HD double {name}"
            "(const u64 *s, int which, int *failed, const double *numbers) {\n"
            "  Values values, *p = &values;\n  double value = 0.0;\n  unpack(p, s);\n"
            f"  switch (which) {{\n{cases}  }}\n  (void)numbers;\n"
            "  *failed = p->fail != 0;\n  return value;\n}\n"
        )

    def _guards(self) -> list[str]:
        """Return statements that evaluate each guard once; `_guard` names them."""
        self._guard_names: list[str] = []
        written: dict[Expression, str] = {}
        lines = []
        for command in self._commands:
            if command.guard not in written:
                written[command.guard] = f"g{len(written)}"
                text = self._wording.value(command.guard)
                lines.append(f"const int {written[command.guard]} = {text};")
            self._guard_names.append(written[command.guard])
        return [*lines, "if (p->fail) return 1;"]

    def _unit(self, unit: Alternatives, take: str) -> list[str]:
        lines: list[str] = []
        for numbers in combinations(unit.factors):
            guards = " && ".join(dict.fromkeys(self._guard_names[number] for number in numbers))
            lines.append(f"if ({guards}) {{")
            factors = []
            for number in numbers:
                statements, parts = self._prepared(self._commands[number])
                lines += [f"  {statement}" for statement in statements]
                factors.append(parts)
            action = -1 if unit.action is None else unit.action
            # The updates of the first module's command change fastest.
            for picked in product(*reversed(factors)):
                lines += [f"  {x}" for x in self._taken(picked[::-1], action, take)]
            lines += ["  choice++;", "}"]
        return lines

    def _looped(self, unit: Alternatives, take: str) -> list[str]:
        """Return loops over the combinations of commands, and of their updates."""
        words, count = self._packing.words, len(unit.factors)
        guards = [
            " || ".join(dict.fromkeys(self._guard_names[number] for number in factor))
            for factor in unit.factors
        ]
        lines = [f"if ({' && '.join(f'({guard})' for guard in guards)}) {{"]
        for f, factor in enumerate(unit.factors):
            most = max(len(self._commands[number].updates) for number in factor)
            lines.append(f"  double w_{f}[{most}]; int n_{f};")
            lines.append(f"  u64 k_{f}[{most * words}], b_{f}[{most * words}];")
        # The command of the first module changes fastest.
        for f in reversed(range(count)):
            lines.append(f"  for (int c_{f} = 0; c_{f} < {len(unit.factors[f])}; c_{f}++) {{")
            lines.append(f"    switch (c_{f}) {{")
            for place, number in enumerate(unit.factors[f]):
                lines.append(f"    case {place}: {{ if (!{self._guard_names[number]}) continue;")
                statements, parts = self._prepared(self._commands[number])
                lines += [f"      {statement}" for statement in statements]
                lines += [f"      {text}" for text in self._stored(f, parts)]
                lines.append(f"      n_{f} = {len(parts)}; break; }}")
            lines.append("    }")
        lines += [
            f"    for (int u_{f} = 0; u_{f} < n_{f}; u_{f}++) if (w_{f}[u_{f}] != 0.0)"
            for f in reversed(range(count))
        ]
        weight = "w_0[u_0]"
        for f in range(1, count):
            weight = f"(w_{f}[u_{f}] * {weight})"
        lines.append("    {")
        for word in range(words):
            kept = " & ".join(f"k_{f}[u_{f} * {words} + {word}]" for f in range(count))
            sets = " | ".join(f"b_{f}[u_{f} * {words} + {word}]" for f in range(count))
            lines.append(f"      t[{word}] = (s[{word}] & {kept}) | {sets};")
        action = -1 if unit.action is None else unit.action
        lines += [
            f"      {take}(context, choice, {action}, {weight}, t);",
            "    }",
            "    choice++;",
        ]
        return [*lines, *(["  }"] * count), "}"]

    def _stored(self, factor: int, parts: Sequence[_Part]) -> Iterator[str]:
        words = self._packing.words
        for u, part in enumerate(parts):
            yield f"w_{factor}[{u}] = {part.weight};"
            for word in range(words):
                yield f"k_{factor}[{u * words + word}] = {part.kept[word]}ull;"
                yield f"b_{factor}[{u * words + word}] = {part.set[word] or '0ull'};"

    def _prepared(self, command: Command) -> tuple[list[str], list[_Part]]:
        """Return statements that evaluate and check a command, and its updates."""
        weights = [update.weight for update in command.updates]
        numbers = [float(w.value) if isinstance(w, Literal) else None for w in weights]
        checked = not weights_in_order(numbers, self._program.sums_checked)
        lines, parts, names = [], [], []
        for update, constant in zip(command.updates, numbers, strict=True):
            name = self._number_text(constant) if constant is not None else self._name("w")
            names.append(name)
            if constant is None:
                lines.append(f"const double {name} = {self._wording.real(update.weight)};")
            if constant == 0.0:
                continue
            statements, part = self._update(update, name, constant is not None)
            lines += statements
            parts.append(part)
        if checked:
            lines += self._checks(names)
        return lines, parts

    def _update(self, update: Update, weight: str, certain: bool) -> tuple[list[str], _Part]:
        words = self._packing.words
        kept = [2**64 - 1] * words
        bits: list[list[str]] = [[] for _ in range(words)]
        lines = []
        for assignment in update.assignments:
            field = self._packing.fields[assignment.variable]
            declared = self._program.variables[assignment.variable]
            kept[field.word] &= ~(field.mask << field.shift) & (2**64 - 1)
            value = self._wording.value(assignment.value)
            if not certain and not isinstance(assignment.value, Literal):
                # What an impossible update assigns need not have a value.
                value = f"({weight} != 0.0 ? {value} : {field.low})"
            name = self._name("x")
            lines.append(f"const int {name} = {value};")
            found = range_of(assignment.value, self._program.variables)
            if declared.type is not Type.BOOL and not found.within(declared.low, declared.high):
                outside = f"{name} < {field.low} || {name} > {field.high}"
                possible = "" if certain else f"{weight} != 0.0 && "
                lines.append(f"if ({possible}({outside})) return 1;")
            if isinstance(assignment.value, Literal):
                stored = (int(assignment.value.value) - field.low) & field.mask
                bits[field.word].append(f"{stored << field.shift}ull")
            else:
                stored_at = f"(u64)((u32){name} - {field.low % 2**32}u) << {field.shift}"
                bits[field.word].append(stored_at)
        sets = []
        for word in range(words):
            if not bits[word]:
                sets.append("")
                continue
            name = self._name("b")
            lines.append(f"const u64 {name} = {' | '.join(f'({x})' for x in bits[word])};")
            sets.append(name)
        return lines, _Part(weight, certain, tuple(kept), tuple(sets))

    def _checks(self, weights: Sequence[str]) -> list[str]:
        """Return statements that end where weights are not finite, negative or do not sum to 1."""
        bad = " || ".join(f"!({weight} >= 0.0 && {weight} < INFINITE)" for weight in weights)
        total = self._name("w")
        lines = [f"if ({bad}) return 1;", f"const double {total} = {' + '.join(weights)};"]
        wrong = f"{total} == 0.0"
        if self._program.sums_checked:
            near = f"magnitude(({total} - 1.0) / {total}) < {double(SUM_TOLERANCE)}"
            wrong += f" || !({near})"
        return [*lines, f"if ({wrong}) return 1;"]

    def _weight(self, parts: Sequence[_Part]) -> str:
        """Return the weight of updates together, in the order in which PRISM multiplies."""
        weight = parts[0].weight
        for part in parts[1:]:
            weight = f"({part.weight} * {weight})"
        return weight

    def _target(self, parts: Sequence[_Part]) -> Iterator[str]:
        """Yield each word of the state that updates together lead to."""
        for word in range(self._packing.words):
            kept = 2**64 - 1
            for part in parts:
                kept &= part.kept[word]
            sets = [part.set[word] for part in parts if part.set[word]]
            same = f"s[{word}]" if kept == 2**64 - 1 else f"(s[{word}] & {kept}ull)"
            yield " | ".join([same, *sets])

    def _taken(self, parts: Sequence[_Part], action: int, take: str) -> list[str]:
        lines = [f"t[{word}] = {target};" for word, target in enumerate(self._target(parts))]
        call = f"{take}(context, choice, {action}, {self._weight(parts)}, t);"
        possible = [f"{part.weight} != 0.0" for part in parts if not part.certain]
        lines.append(f"if ({' && '.join(possible)}) {call}" if possible else call)
        return ["{ " + " ".join(lines) + " }"]

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}{self._names}"
