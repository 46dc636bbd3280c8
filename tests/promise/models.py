"""Random models whose numbers are exact decimals or simple fractions."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from bridge.files.umb_writer import write_umb
from bridge.files.writer import write_model
from engines.model.explicit import ExplicitModel, ModelKind, RewardStructure
from tests.engines import models

Row = dict[int, Fraction]

DTMC, CTMC, MDP = ModelKind.DTMC, ModelKind.CTMC, ModelKind.MDP
SIZES = (2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 10, 14, 20, 40)
STRUCTURES = ("random", "ring", "walk", "acyclic", "classes", "exits")
SPANS = (0, 0, 2, 5, 9)
"""Rates lie between 10^-span and 10^span."""
PAYMENTS = tuple(Fraction(text) for text in ("0", "0", "0", "1", "1", "2.5", "0.125", "7", "1000"))
RARE_PAYMENTS = (Fraction("1e-6"), Fraction("1e6"))


@dataclass(frozen=True)
class Case:
    """A model with rational numbers.

    Parameters
    ----------
    kind
        DTMC, CTMC or MDP.
    choices
        For each state its choices, of a chain one: the probabilities of its successors, of a CTMC
        their rates; an absorbing state of a CTMC has an empty row.
    state_rewards, choice_rewards
        The latter a number for each choice of each state, 0 for chains.
    left, right
        The states with label a and those with label b.
    start
        The initial state.
    """

    kind: ModelKind
    choices: tuple[tuple[Row, ...], ...]
    state_rewards: tuple[Fraction, ...]
    choice_rewards: tuple[tuple[Fraction, ...], ...]
    left: frozenset[int]
    right: frozenset[int]
    start: int

    @property
    def size(self) -> int:
        """The number of states."""
        return len(self.choices)

    @property
    def finest(self) -> Fraction:
        """The smallest probability, rate or reward that is not 0, a CTMC's jumps among them."""
        rows = [row for rows in self.choices for row in rows if row]
        numbers = [p for row in rows for p in row.values()]
        numbers += [p / sum(row.values()) for row in rows for p in row.values()]
        paid = [*self.state_rewards, *(p for some in self.choice_rewards for p in some)]
        return min(number for number in (*numbers, *paid, Fraction(1)) if number)

    def read(self) -> Case:
        """Return the model as a computer reads it: each number the nearest double.

        The probabilities of a choice are scaled to a sum of 1, exactly.
        """

        def scaled(row: Row) -> Row:
            near = {s: Fraction(float(p)) for s, p in row.items()}
            total = 1 if self.kind is CTMC else sum(near.values(), Fraction(0))
            return near if total == 1 else {s: p / total for s, p in near.items()}

        def doubles(numbers: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
            return tuple(Fraction(float(number)) for number in numbers)

        return replace(
            self,
            choices=tuple(tuple(scaled(row) for row in rows) for rows in self.choices),
            state_rewards=doubles(self.state_rewards),
            choice_rewards=tuple(doubles(paid) for paid in self.choice_rewards),
        )

    def text(self) -> str:
        """Return the model in PRISM's language."""
        lines = [self.kind.lower(), "module m"]
        lines.append(f"  s : [0..{self.size - 1}] init {self.start};")
        for state, rows in enumerate(self.choices):
            for number, row in enumerate(rows):
                updates = " + ".join(f"{number_text(p)}:(s'={t})" for t, p in row.items())
                if updates:
                    lines.append(f"  [c{number}] s={state} -> {updates};")
        lines.append("endmodule")
        for name, states in (("a", self.left), ("b", self.right)):
            lines.append(f'label "{name}" = {" | ".join(f"s={s}" for s in sorted(states))};')
        lines.append('rewards "r"')
        for state, (paid, of_choices) in enumerate(
            zip(self.state_rewards, self.choice_rewards, strict=True)
        ):
            lines += [f"  s={state} : {number_text(paid)};"] if paid else []
            for number, more in enumerate(of_choices):
                lines += [f"  [c{number}] s={state} : {number_text(more)};"] if more else []
        return "\n".join((*lines, "endrewards", ""))

    def arrays(self) -> ExplicitModel:
        """Return the model as arrays, each number rounded once."""
        rows = [[{s: float(p) for s, p in row.items()} for row in some] for some in self.choices]
        if self.kind is MDP:
            plain, of_choices = (
                models.mdp(rows),
                [float(p) for some in self.choice_rewards for p in some],
            )
        else:
            plain, of_choices = models.chain(self.kind, [some[0] for some in rows]), []
        paid = np.array([float(payment) for payment in self.state_rewards])
        more = np.array(of_choices) if any(of_choices) else None
        return replace(
            plain,
            initial_states=models.mask(self.size, [self.start]),
            labels={
                "a": models.mask(self.size, sorted(self.left)),
                "b": models.mask(self.size, sorted(self.right)),
            },
            rewards=(RewardStructure("r", paid, more),),
        )

    def write(self, folder: Path, form: str) -> Path:
        """Write the model's files; return the one that the command is given.

        Parameters
        ----------
        folder
            Where.
        form
            "prism", "tra" or "umb".
        """
        path = folder / f"model.{form}"
        if form == "prism":
            path.write_text(self.text(), encoding="utf-8")
        elif form == "umb":
            write_umb(self.arrays(), path)
        else:
            write_model(self.arrays(), folder / "model")
        return path


def number_text(number: Fraction) -> str:
    """Return a number exactly: a decimal, or a fraction where there is none."""
    rest = number.denominator
    places = 0
    for prime in (2, 5):
        count = 0
        while rest % prime == 0:
            rest, count = rest // prime, count + 1
        places = max(places, count)
    if rest != 1:
        return f"{number.numerator}/{number.denominator}"
    digits = str(number.numerator * 10**places // number.denominator)
    if len(digits.rstrip("0")) <= 2 and not 1e-3 <= number < 10_000:
        plain = digits.rstrip("0") or "0"
        return f"{plain}e{len(digits) - len(plain) - places}" if number else "0"
    whole = digits.zfill(places + 1)
    return f"{whole[:-places]}.{whole[-places:]}" if places else whole


def draw(seed: int, kind: ModelKind | None = None, most: int = 40) -> Case:
    """Return the model of a seed.

    Parameters
    ----------
    seed
        Of all choices.
    kind
        DTMC, CTMC or MDP; drawn where None.
    most
        The most states.
    """
    pick = random.Random(f"promise {seed}")
    kind = kind or pick.choice((DTMC, CTMC, MDP))
    size = min(pick.choice(SIZES), most)
    structure, span, rare = pick.choice(STRUCTURES), pick.choice(SPANS), pick.random() < 0.5
    choices = []
    for state in range(size):
        rows: list[Row] = []
        for _ in range(pick.choice((1, 2, 2, 3)) if kind is MDP else 1):
            successors = _successors(pick, structure, state, size)
            if structure == "exits":
                rows.append(_exits(pick, kind, successors, state, size))
            elif kind is CTMC:
                rows.append(_rates(pick, successors, state, span, structure == "walk"))
            else:
                rows.append(_probabilities(pick, successors, state, rare) or {state: Fraction(1)})
        choices.append(tuple(rows))
    payments = PAYMENTS + (RARE_PAYMENTS if rare else ())
    most_of_all = [s for s in range(size) if pick.random() < 0.75]
    targets = {size - 1} if pick.random() < 0.3 else set(pick.sample(range(size), 1 + size // 4))
    return Case(
        kind,
        tuple(choices),
        tuple(pick.choice(payments) for _ in range(size)),
        tuple(
            tuple(pick.choice(payments) if kind is MDP else Fraction(0) for _ in rows)
            for rows in choices
        ),
        frozenset(most_of_all or [0]),
        frozenset(targets),
        0 if pick.random() < 0.6 else pick.randrange(size),
    )


def _successors(pick: random.Random, structure: str, state: int, size: int) -> list[int]:
    """Return where a row leads, without repetition; nowhere for an absorbing state."""
    if structure == "ring":
        period = 2 if size % 2 == 0 else size
        steps = [1] if pick.random() < 0.6 else [1, 1 + period]
        found = [(state + step) % size for step in steps]
    elif structure == "walk":
        found = [state - 1, state + 1] if 0 < state < size - 1 else []
        if not found and pick.random() < 0.5:
            found = [1 if state == 0 else size - 2]
    elif structure == "acyclic":
        later = range(state + 1, size)
        found = pick.sample(later, min(len(later), pick.randint(1, 3)))
    elif structure == "exits":
        # All but the last states lead to one another, and now and then to one of those.
        absorbing = range(_first_exit(size), size)
        if state in absorbing:
            return []
        inside = [s for s in range(absorbing.start) if s != state]
        found = pick.sample(inside, min(len(inside), pick.randint(1, 3)))
        if pick.random() < 0.6 or not found:
            found += pick.sample(absorbing, min(len(absorbing), pick.randint(1, 2)))
    elif structure == "classes":
        # The first third is left for good, into one of two classes.
        first, middle = size // 3, (size // 3 + size) // 2
        inside = range(size) if state < first else range(first, middle)
        inside = inside if state < middle else range(middle, size)
        found = pick.sample(inside, min(len(inside), pick.randint(1, 3)))
    else:
        found = pick.sample(range(size), min(size, pick.randint(1, 4)))
        if pick.random() < 0.25:
            found = []
    if pick.random() < 0.12 and found:
        found.append(state)
    return list(dict.fromkeys(found))


def _probabilities(pick: random.Random, successors: list[int], state: int, rare: bool) -> Row:
    """Return a distribution."""
    if len(successors) <= 1 and not (rare and successors and pick.random() < 0.5):
        return {s: Fraction(1) for s in successors}
    if rare and pick.random() < 0.5:
        # All but a little stays, or goes one way.
        kept = state if pick.random() < 0.4 else pick.choice(successors)
        others = [s for s in successors if s != kept]
        little = Fraction(pick.randint(1, 9), 10 ** pick.choice((2, 3, 4, 6, 9, 12, 15)))
        row = {
            s: little * Fraction(weight, 10)
            for s, weight in zip(others, (5, 3, 2, 1), strict=False)
        }
        return {**row, kept: 1 - sum(row.values(), Fraction(0))}
    weights = [pick.randint(1, 9) for _ in successors]
    if pick.random() < 0.5:
        # Tenths.
        cuts = sorted(pick.sample(range(1, 10), len(successors) - 1))
        weights = [b - a for a, b in itertools.pairwise((0, *cuts, 10))]
    return {s: Fraction(w, sum(weights)) for s, w in zip(successors, weights, strict=True)}


def _first_exit(size: int) -> int:
    """Return the first of the absorbing states of a model that others leave rarely."""
    return max(1, size - 1 - size // 3)


def _exits(
    pick: random.Random, kind: ModelKind, successors: list[int], state: int, size: int
) -> Row:
    """Return a row of ordinary numbers, but for exits at widely different ones."""
    if not successors:
        return {} if kind is CTMC else {state: Fraction(1)}
    exits = [s for s in successors if s >= _first_exit(size)]
    row = {s: Fraction(pick.randint(1, 9), 10 ** pick.choice((1, 3, 6, 9, 12))) for s in exits}
    others = [s for s in successors if s not in row]
    if kind is CTMC:
        return {**row, **{s: Fraction(pick.randint(1, 9)) for s in others}}
    row = {s: p / 10 for s, p in row.items()}
    left = 1 - sum(row.values(), Fraction(0))
    shares = {1: (10,), 2: (3, 7), 3: (5, 3, 2), 4: (4, 3, 2, 1)}[len(others)] if others else (10,)
    for s, share in zip(others or [state], shares, strict=True):
        row[s] = row.get(s, Fraction(0)) + left * Fraction(share, 10)
    return row


def _rates(pick: random.Random, successors: list[int], state: int, span: int, repair: bool) -> Row:
    """Return rates over orders of magnitude; on a line, those of failures and of repairs."""
    row = {}
    for successor in successors:
        power = pick.randint(-span, span)
        if repair and span:
            power = -abs(power) if successor > state else abs(power)
        row[successor] = Fraction(10) ** power * pick.randint(1, 9)
    return row
