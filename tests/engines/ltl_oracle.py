"""LTL on lasso words and on Markov chains without automata, on formulas that are nested tuples.

A formula is True, False, an atom's name, or a tuple of an operator's name and operands. A word is a
list of sets of atoms with the position to which the last letter leads back.
"""

from __future__ import annotations

import numpy as np

from engines.automata import ltl

UNARY = {"!": ltl.negation, "X": ltl.next_, "F": ltl.eventually, "G": ltl.always}
BINARY = {
    "&": ltl.conjunction,
    "|": ltl.disjunction,
    "=>": ltl.implies,
    "<=>": ltl.iff,
    "U": ltl.until,
    "W": ltl.weak_until,
    "R": ltl.release,
}


def to_formula(tree):
    """The same formula through the constructors under test."""
    if isinstance(tree, bool):
        return ltl.true() if tree else ltl.false()
    if isinstance(tree, str):
        return ltl.atom(tree)
    operator, *operands = tree
    return (UNARY | BINARY)[operator](*map(to_formula, operands))


def to_prism(tree):
    """The same formula in PRISM's language, atoms as labels."""
    if isinstance(tree, bool):
        return "true" if tree else "false"
    if isinstance(tree, str):
        return f'"{tree}"'
    operator, *operands = tree
    if len(operands) == 1:
        return f"({operator} {to_prism(operands[0])})"
    return f"({to_prism(operands[0])} {operator} {to_prism(operands[1])})"


def satisfied_positions(tree, letters, back):
    """Whether each suffix of the lasso satisfies the formula, one truth value a position."""
    size = len(letters)
    following = [*range(1, size), back]
    if isinstance(tree, bool):
        return [tree] * size
    if isinstance(tree, str):
        return [tree in letter for letter in letters]
    operator, *operands = tree
    sides = [satisfied_positions(operand, letters, back) for operand in operands]
    if operator == "X":
        return [sides[0][following[i]] for i in range(size)]
    if operator in ("F", "G"):
        sides = [[operator == "F"] * size, sides[0]]
        operator = "U" if operator == "F" else "R"
        if operator == "R":
            sides[0] = [False] * size
    if operator in ("U", "W", "R"):
        return [_at(operator, *sides, i, following) for i in range(size)]
    plain = {
        "!": lambda a: not a,
        "&": lambda a, b: a and b,
        "|": lambda a, b: a or b,
        "=>": lambda a, b: not a or b,
        "<=>": lambda a, b: a == b,
    }[operator]
    return [plain(*values) for values in zip(*sides, strict=True)]


def _at(operator, left, right, position, following):
    """Walk on until the operator is decided; after as many steps as positions nothing is new."""
    for _ in range(len(following) + 1):
        if operator == "R":
            if not right[position]:
                return False
            if left[position]:
                return True
        else:
            if right[position]:
                return True
            if not left[position]:
                return False
        position = following[position]
    return operator != "U"


def satisfies(tree, prefix, loop):
    """Whether the word prefix loop^omega satisfies the formula."""
    return satisfied_positions(tree, [*prefix, *loop], len(prefix))[0]


def random_tree(rng, size, atoms=("a", "b")):
    """A random formula with `size` operators and atoms."""
    if size == 1:
        return rng.choice([*atoms, *atoms, *atoms, True, False])
    if size == 2 or rng.random() < 0.4:
        return (rng.choice(["!", "X", "F", "G", "F", "G"]), random_tree(rng, size - 1, atoms))
    left = rng.randrange(1, size - 1)
    operator = rng.choice(["&", "|", "&", "|", "=>", "<=>", "U", "U", "W", "R"])
    return (operator, random_tree(rng, left, atoms), random_tree(rng, size - 1 - left, atoms))


def chain_probabilities(tree, rows, atoms):
    """The probability of a formula in each state of a Markov chain, by refining the chain.

    Operators are taken from the inside out. The probability of one is computed by linear algebra;
    then each state is split into one where it holds and one where it does not, so that what was an
    operator is a set of states of the new chain.

    Source: C. Courcoubetis, M. Yannakakis, "The Complexity of Probabilistic Verification", J. ACM
    42, 1995, section 3.1.

    Parameters
    ----------
    rows
        Transition probabilities: of each state, a dictionary from successor to probability.
    atoms
        The set of atoms of each state.
    """
    matrix = np.array([[row.get(j, 0.0) for j in range(len(rows))] for row in rows])
    names = {name for letter in atoms for name in letter}
    masks = {name: np.array([name in letter for letter in atoms]) for name in names}
    chain = RefinedChain(matrix, masks)
    name = chain.name_of(core(tree))
    weights = chain.share * chain.masks[name]
    return np.bincount(chain.origin, weights=weights, minlength=len(rows))


def core(tree):
    """The same formula with !, &, X and U only."""
    if not isinstance(tree, tuple):
        return tree
    operator, *operands = tree
    a, b = [*map(core, operands), None][:2]
    if operator == "F":
        return ("U", True, a)
    if operator == "G":
        return ("!", ("U", True, ("!", a)))
    if operator == "|":
        return ("!", ("&", ("!", a), ("!", b)))
    if operator == "=>":
        return ("!", ("&", a, ("!", b)))
    if operator == "<=>":
        return ("&", core(("=>", a, b)), core(("=>", b, a)))
    if operator == "R":
        return ("!", ("U", ("!", a), ("!", b)))
    if operator == "W":
        return ("!", ("U", ("!", b), ("&", ("!", a), ("!", b))))
    return (operator, *filter(lambda side: side is not None, (a, b)))


class RefinedChain:
    """A chain whose states stand for shares of the original ones."""

    def __init__(self, matrix, masks):
        self.matrix, self.masks = matrix, dict(masks)
        self.share, self.origin = np.ones(len(matrix)), np.arange(len(matrix))

    def name_of(self, tree):
        """The name of the set of states where `tree` holds, after the chain has been refined."""
        if isinstance(tree, str):
            return self.named(self.masks.get(tree, np.zeros(len(self.matrix), bool)))
        if isinstance(tree, bool):
            return self.named(np.full(len(self.matrix), tree))
        operator, *operands = tree
        names = [self.name_of(operand) for operand in operands]
        first, last = self.masks[names[0]], self.masks[names[-1]]
        if operator == "!":
            return self.named(~first)
        if operator == "&":
            return self.named(first & last)
        if operator == "X":
            return self.split(self.matrix @ first, np.ones(len(first), bool), first)
        return self.split(self.until(first, last), first & ~last, None)

    def named(self, mask):
        name = f"#{len(self.masks)}"
        self.masks[name] = mask
        return name

    def until(self, remain, target):
        probability = target.astype(float)
        reaching = target.copy()
        for _ in self.matrix:
            reaching |= remain & (self.matrix @ reaching > 0)
        rest = reaching & ~target
        system = np.eye(rest.sum()) - self.matrix[np.ix_(rest, rest)]
        right = self.matrix[np.ix_(rest, target)].sum(axis=1)
        probability[rest] = np.linalg.solve(system, right)
        return probability

    def split(self, probability, depends, witness):
        """Split by whether an operator holds.

        In the states that `depends` marks, it holds now if and only if the successor is in
        `witness`, or, where that is None, if it holds in the successor.
        """
        probability = np.where(probability < 1e-9, 0.0, probability)
        probability = np.where(probability > 1 - 1e-9, 1.0, probability)
        yes, no = np.flatnonzero(probability > 0), np.flatnonzero(probability < 1)
        old = np.concatenate([yes, no])
        weight = np.concatenate([probability[yes], 1 - probability[no]])
        holds = np.arange(len(old)) < len(yes)
        later = holds if witness is None else witness[old]
        fits = ~depends[old][:, None] | (holds[:, None] == later[None, :])
        matrix = np.where(fits, self.matrix[np.ix_(old, old)] * weight[None, :], 0.0)
        self.matrix = matrix / weight[:, None]
        np.testing.assert_allclose(self.matrix.sum(axis=1), 1.0, atol=1e-6)
        self.masks = {name: mask[old] for name, mask in self.masks.items()}
        self.share, self.origin = self.share[old] * weight, self.origin[old]
        return self.named(holds)
