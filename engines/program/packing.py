"""States packed into words so that their order is PRISM's.

The first variable lies in the highest bits of the first word, each as its value less the least, so
that states sort as PRISM sorts them (`parser.State.compareTo`): by the first variable, then the
second, and so on, false before true. A variable lies within one word, and no word is all ones: a
word has 63 bits at most, and all ones stand for no state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.arrays import IndexArray, MaskArray
from engines.program.expressions import Type
from engines.program.program import Program, State, VariableDeclaration

WORD_BITS = 63
"""Bits of a word that variables may take."""

Words = NDArray[np.uint64]
"""Packed states, shape (states, words)."""


@dataclass(frozen=True)
class Field:
    """Where a variable lies.

    Parameters
    ----------
    word, shift, bits
        Which word, and its bits ``shift`` to ``shift + bits - 1``.
    low, high
        The least value, which is stored as 0, and the greatest.
    """

    word: int
    shift: int
    bits: int
    low: int
    high: int

    @property
    def mask(self) -> int:
        """The greatest number that its bits hold."""
        return (1 << self.bits) - 1


@dataclass(frozen=True)
class Packing:
    """How the states of a program are packed.

    Parameters
    ----------
    declarations, fields
        The variables and where each lies, in the program's order.
    words
        How many words a state has, at least one.
    """

    declarations: tuple[VariableDeclaration, ...]
    fields: tuple[Field, ...]
    words: int

    @classmethod
    def of(cls, program: Program) -> Packing:
        """Return the packing of a program's states.

        Parameters
        ----------
        program
            The model.
        """
        sizes = [(variable.high - variable.low).bit_length() for variable in program.variables]
        ends: list[tuple[int, int]] = []  # Word, and bits of it that are taken up to here.
        word, taken = 0, 0
        for bits in sizes:
            if taken + bits > WORD_BITS:
                word, taken = word + 1, 0
            taken += bits
            ends.append((word, taken))
        totals = dict(ends)  # The last variable of a word is at its lowest bits.
        fields = tuple(
            Field(of, totals[of] - end, bits, variable.low, variable.high)
            for (of, end), bits, variable in zip(ends, sizes, program.variables, strict=True)
        )
        return cls(program.variables, fields, word + 1)

    def packed(self, states: Iterable[Sequence[int]]) -> Words:
        """Return states in words, shape (states, words).

        Parameters
        ----------
        states
            A value a variable, each within its range.
        """
        rows = [self._packed_state(state) for state in states]
        return np.array(rows, dtype=np.uint64).reshape(len(rows), self.words)

    def _packed_state(self, state: Sequence[int]) -> list[int]:
        words = [0] * self.words
        for field, value in zip(self.fields, state, strict=True):
            words[field.word] |= (value - field.low) << field.shift
        return words

    def state(self, words: Sequence[int] | Words) -> State:
        """Return the values of a state's variables.

        Parameters
        ----------
        words
            Its words.
        """
        return tuple(
            ((int(words[field.word]) >> field.shift) & field.mask) + field.low
            for field in self.fields
        )

    def column(self, words: Words, variable: int) -> IndexArray | MaskArray:
        """Return a variable's values, shape (states,): bool or int64.

        Parameters
        ----------
        words
            Packed states.
        variable
            Which variable.
        """
        field = self.fields[variable]
        shifted = words[:, field.word] >> np.uint64(field.shift)
        values: IndexArray = (shifted & np.uint64(field.mask)).astype(np.int64) + field.low
        return values != 0 if self.declarations[variable].type is Type.BOOL else values
