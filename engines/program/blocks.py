"""The source of a function that goes through the transitions of a block of states.

It is the CPU's form of `engines.program.successors`: guards are evaluated for all states of a
block, then each transition in a loop over the states that have it, where no branch is mispredicted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from engines.errors import UnsupportedError
from engines.program.expressions import variables_of
from engines.program.order import alternatives, combinations
from engines.program.packing import Packing
from engines.program.program import Program
from engines.program.ranges import range_of
from engines.program.successors import SuccessorSource, SuccessorsTuning
from engines.program.wording import Wording, double

_FAULT, _FAILED = "failed[i] = 1;", "failed[i] |= p->fail != 0;"

_BEGINNING = """
#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("tree-vectorize")
#endif
#define BLOCK 256
typedef struct Found {
  void (*take)(struct Found *, int count, const uint16_t *places, const u64 *targets,
               const double *weights, const u8 *absent, int choice, int action, u32 key);
  u64 *targets;
  double *weights;
  u8 *absent;
} Found;

/* Makes bits of bytes that are 0 or 1. */
static void pack(const u8 *truths, int count, u64 *mask) {
  for (int part = 0; part < BLOCK / 64; part++) {
    u64 bits = 0, eight;
    for (int at = 0; at < 8; at++) {
      memcpy(&eight, truths + 64 * part + 8 * at, 8);
      bits |= (eight * 0x0102040810204080ull >> 56) << (8 * at);
    }
    int here = count - 64 * part;
    mask[part] = here >= 64 ? bits : here > 0 ? bits & (((u64)1 << here) - 1) : 0;
  }
}

/* Writes the places of the states in order; returns how many there are. */
static int places_in(const u64 *mask, uint16_t *places) {
  int count = 0;
  for (int part = 0; part < BLOCK / 64; part++)
    for (u64 left = mask[part]; left; left &= left - 1)
      places[count++] = (uint16_t)(64 * part + __builtin_ctzll(left));
  return count;
}
"""


@dataclass(frozen=True)
class BlocksTuning:
    """What is written out.

    Parameters
    ----------
    most_transitions
        Under one action: with more, compiling takes many seconds.
    most_updates
        Of all commands.
    """

    most_transitions: int = 512
    most_updates: int = 2_000


class BlockSource(SuccessorSource):
    """Writes the function of a program.

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
        If it has more updates, or modules that synchronise in more ways, than are compiled.
    """

    def __init__(
        self, program: Program, packing: Packing, tuning: BlocksTuning | None = None
    ) -> None:
        chosen = tuning or BlocksTuning()
        super().__init__(program, packing, SuccessorsTuning(most_updates=chosen.most_updates))
        self._most = chosen.most_transitions
        self._choices = self._keys = 0
        self.at_once = 1
        """Of how many transitions the function writes the targets before any is taken."""

    def _number_text(self, value: float) -> str:
        """Return the double itself: the compiler is run once for a model, whatever its numbers."""
        return double(value)

    def block_expansion(self, name: str) -> str:
        """Return the function, which is a `PgExpand` of explore_compiled.hpp.

        Parameters
        ----------
        name
            Of the function, which is exported.
        """
        try:
            lines = self._masks()
            for unit in alternatives(self._program):
                ways = self._transitions_of(unit)
                if ways > self._most:
                    raise UnsupportedError(
                        f"{ways} transitions under one action; at most {self._most} are compiled"
                    )
                for numbers in combinations(unit.factors):
                    lines += self._combination(numbers, unit.action)
        except RecursionError:
            raise UnsupportedError("an expression of the model is nested too deeply") from None
        body = "".join(f"  {line}\n" for line in lines)
        return (
            f"{_BEGINNING}\nEXPORTED void {name}"
            f"(const u64 *states, int count, Found *found, u8 *failed) {{\n"
            f"  uint16_t places[BLOCK];\n  memset(failed, 0, count);\n{body}}}\n"
        )

    def _masks(self) -> list[str]:
        """Return statements that evaluate each guard for each state of the block.

        A guard that cannot fail has a loop of its own over arrays of values, which the compiler
        makes vector instructions of.
        """
        variables = self._program.variables
        wording = Wording(variables, lambda index: f"v{index}[j]")
        guards = list(dict.fromkeys(command.guard for command in self._commands))
        simple = [guard for guard in guards if not range_of(guard, variables).can_fail]
        used = sorted(set().union(*(variables_of(guard) for guard in simple)))
        lines = [f"u64 masks[{max(1, len(guards))}][BLOCK / 64];"]
        # Eight bytes are made bits by one multiplication: those behind the last state count too.
        lines.append("u8 truths[BLOCK] = {0};")
        # What cannot fail is still told where to say so.
        lines += ["Values unused, *p = &unused;", "(void)p;"]
        lines += self._values(used)
        for place, guard in enumerate(guards):
            if guard in simple:
                text = wording.value(guard)
                lines.append(f"for (int j = 0; j < BLOCK; j++) truths[j] = (u8)({text});")
            else:
                text = self._wording.value(guard)
                lines += self._loop("count", "j", f"truths[j] = (u8)({text});", _FAILED)
            lines.append(f"pack(truths, count, masks[{place}]);")
        self._mask_of = {guard: f"masks[{place}]" for place, guard in enumerate(guards)}
        return lines

    def _values(self, used: Sequence[int]) -> list[str]:
        """Return statements that unpack variables of all states of the block."""
        lines = []
        for index in used:
            field = self._packing.fields[index]
            bits = f"(u32)(states[j * WORDS + {field.word}] >> {field.shift} & {field.mask}ull)"
            value = f"(int)({bits} + {field.low % 2**32}u)"
            lines.append(f"int v{index}[BLOCK];")
            lines.append(f"for (int j = 0; j < count; j++) v{index}[j] = {value};")
            lines.append(f"for (int j = count; j < BLOCK; j++) v{index}[j] = {field.low};")
        return lines

    def _loop(self, count: str, place: str, *statements: str) -> list[str]:
        """Return a loop over states by j: the state at `place` is s, its values are p."""
        return [
            f"for (int j = 0; j < {count}; j++) {{",
            f"  const int i = {place};",
            "  const u64 *s = states + i * (i64)WORDS;",
            "  Values values, *p = &values;",
            "  unpack(p, s);",
            *(f"  {statement}" for statement in statements),
            "}",
        ]

    def _combination(self, numbers: tuple[int, ...], action: int | None) -> list[str]:
        """Return what finds the transitions of some commands together: one choice of a state."""
        masks = list(dict.fromkeys(self._mask_of[self._commands[n].guard] for n in numbers))
        statements, factors = [], []
        for number in numbers:
            prepared, parts = self._prepared(self._commands[number])
            statements += prepared
            factors.append(parts)
        taken = []
        count = math.prod(len(parts) for parts in factors)
        self.at_once = max(self.at_once, count)
        # The updates of the first module's command change fastest.
        for place, picked in enumerate(product(*reversed(factors))):
            together = picked[::-1]
            at = f"{place} * BLOCK"
            possible = [f"({part.weight} == 0.0)" for part in together if not part.certain]
            statements += [
                f"found->targets[({at} + j) * WORDS + {word}] = {target};"
                for word, target in enumerate(self._target(together))
            ]
            statements.append(f"found->weights[{at} + j] = {self._weight(together)};")
            if possible:
                statements.append(f"found->absent[{at} + j] = (u8)({' | '.join(possible)});")
            absent = f"found->absent + {at}" if possible else "0"
            taken.append(
                f"  found->take(found, n, places, found->targets + {at} * WORDS, "
                f"found->weights + {at}, {absent}, {self._choices}, "
                f"{-1 if action is None else action}, {self._keys}u);"
            )
            self._keys += 1
        self._choices += 1
        statements = [statement.replace("return 1;", _FAULT) for statement in statements]
        both = [f"  both[part] = {' & '.join(f'{mask}[part]' for mask in masks)};"]
        return [
            "{",
            "  u64 both[BLOCK / 64];",
            "  for (int part = 0; part < BLOCK / 64; part++)",
            *both,
            "  const int n = places_in(both, places);",
            *self._loop("n", "places[j]", *statements, _FAILED),
            "  if (n) {",
            *taken,
            "  }",
            "}",
        ]
