"""Probabilities of linear temporal logic: P, Pmin and Pmax of a formula.

1. The product of the model with the deterministic initial part of the formula's automaton.
2. Its end components (chains: bottom components), where runs end with probability 1. A component
   is won if the automaton's accepting part, jumped to inside of it, accepts with probability 1;
   that is a question about graphs only.
3. The probability of reaching the won components, and the nodes where the formula is satisfied
   already.

Step 2 is exact: given an optimal strategy of finite memory, the probability of the formula is 0 or
1 in each bottom component of what the strategy induces, and there the right guess at a jump, which
is the same for almost all of its runs, accepts almost surely (see `engines.automata.ldba`). So only
step 3 computes with numbers, on a product without jumps: a chain's is a chain.

The smallest probability of a formula is 1 minus the largest of its negation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from engines.arrays import FloatArray, IndexArray, MaskArray, index_dtype, sums_by_row
from engines.automata import ltl
from engines.automata.ldba import ACCEPTED, REJECTED, LimitDeterministicAutomaton
from engines.automata.ltl import Formula
from engines.errors import UnsupportedError
from engines.graph.components import bsccs
from engines.graph.mec import maximal_end_components
from engines.graph.prob01 import prob1
from engines.graph.product import Letters, Product, build_product
from engines.model.csr import CsrMatrix
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.progress import Progress
from engines.model.result import SolveResult, of_complements
from engines.questions.until import until_probabilities
from engines.solve.two_sided import bounded_result
from engines.systems.one_sided import Direction
from engines.systems.plain import direction_of

MOST_ATOMS = 62


def ltl_probabilities(
    model: ExplicitModel,
    formula: Formula,
    atoms: Mapping[str, MaskArray],
    environment: SolverEnvironment,
    *,
    direction: Direction | None = None,
    progress: Progress | None = None,
) -> SolveResult:
    """Compute the probability that a path satisfies a formula, for every state.

    Parameters
    ----------
    model
        A DTMC, a CTMC (its embedded chain is meant), or an MDP.
    formula
        The formula, from the constructors of `engines.automata.ltl`.
    atoms
        The states where each atom holds, shape (states,); at least the formula's.
    environment, direction, progress
        As in `engines.questions.until.until_probabilities`.

    Returns
    -------
    The result; its values have shape (states,).

    Raises
    ------
    ValueError
        For an MDP without a direction, and for an atom without a mask of the right shape.
    UnsupportedError
        For a formula whose automaton is too large.
    """
    for name in ltl.atom_names(formula):
        if name not in atoms:
            raise ValueError(f'no states are given for the atom "{name}" of the LTL formula')
        if atoms[name].shape != (model.num_states,):
            raise ValueError(
                f'the mask of the atom "{name}" has shape {atoms[name].shape}, but the model has '
                f"{model.num_states} states"
            )
    direction = direction_of(model, direction)
    if direction is not Direction.MINIMISE:
        return _largest(model, formula, atoms, environment, direction, progress)
    opposite = ltl.negation(formula)
    result = _largest(model, opposite, atoms, environment, Direction.MAXIMISE, progress)
    if result.bounds is not None:
        return _complement(result, result.bounds, environment)
    return result.complement()


def _largest(
    model: ExplicitModel,
    formula: Formula,
    atoms: Mapping[str, MaskArray],
    environment: SolverEnvironment,
    direction: Direction | None,
    progress: Progress | None,
) -> SolveResult:
    automaton = LimitDeterministicAutomaton(formula)
    size = model.num_states
    if automaton.initial in (REJECTED, ACCEPTED):
        decided = np.full(size, float(automaton.initial == ACCEPTED))
        return SolveResult.exact(decided, environment.method, two_sided=True)
    steps = with_probabilities_above_zero(model)
    letters = letters_of(automaton.atoms, atoms, size)
    first = np.full(size, automaton.initial)
    product = build_product(steps, letters, automaton.initial_part, np.arange(size), first)
    target = product.accepted | _won(steps, letters, automaton, product, environment)
    result = until_probabilities(
        product.model,
        np.ones(len(target), dtype=np.bool_),
        target,
        environment,
        direction=direction,
        progress=progress,
    )
    # The first nodes are those of the states.
    return result.of_parts(np.arange(size))


def _complement(
    result: SolveResult, bounds: tuple[FloatArray, FloatArray], environment: SolverEnvironment
) -> SolveResult:
    """Return the complementary probabilities, with the width that they have themselves."""
    lower, upper = 1.0 - bounds[1], 1.0 - bounds[0]
    # A subtraction from 1 is right to one unit, and where it is exact nothing is to be said.
    moved = (bounds[0] > 0.0) & (bounds[0] < 1.0), (bounds[1] > 0.0) & (bounds[1] < 1.0)
    lower = np.where(moved[1], np.maximum(np.nextafter(lower, -1.0), 0.0), lower)
    upper = np.where(moved[0], np.minimum(np.nextafter(upper, 2.0), 1.0), upper)
    complement = bounded_result(np.maximum(lower, 0.0), upper, [result], environment)
    # What the sweeps came to rest by is the width of what they computed.
    exactly = of_complements(result.exactly)
    return replace(complement, status=result.status, exactly=exactly)


def with_probabilities_above_zero(model: ExplicitModel) -> ExplicitModel:
    """Return the model's graph with probabilities; a CTMC's is that of its embedded chain.

    A CTMC's state without transitions stays where it is. Entries that are 0 are no transitions.

    Parameters
    ----------
    model
        A model of any kind; its rows keep their numbers.
    """
    rows, columns, values = model.matrix.row_of_entry(), model.matrix.columns, model.matrix.values
    is_ctmc = model.kind is ModelKind.CTMC
    if not is_ctmc and values.all():
        return model
    positive = values > 0
    rows, columns, values = rows[positive], columns[positive], values[positive]
    if is_ctmc:
        exits = sums_by_row(rows, values, model.num_states)
        values = values / exits[rows]
        stuck = np.flatnonzero(exits == 0)
        # Keep the entries sorted by row.
        order = np.argsort(np.concatenate([rows, stuck]), kind="stable")
        rows = np.concatenate([rows, stuck])[order]
        columns = np.concatenate([columns, stuck])[order]
        values = np.concatenate([values, np.ones(len(stuck))])[order]
    offsets = np.zeros(model.matrix.num_rows + 1, dtype=index_dtype(len(values)))
    np.cumsum(np.bincount(rows, minlength=model.matrix.num_rows), out=offsets[1:])
    matrix = CsrMatrix(offsets, columns, values, model.num_states)
    kind = ModelKind.DTMC if is_ctmc else model.kind
    return replace(model, kind=kind, matrix=matrix)


def letters_of(names: tuple[str, ...], atoms: Mapping[str, MaskArray], size: int) -> Letters:
    """Return what each state lets an automaton read.

    Parameters
    ----------
    names
        The automaton's atoms, in its order.
    atoms
        The states where each holds, shape (states,).
    size
        Number of states.

    Raises
    ------
    UnsupportedError
        For more atoms than a letter has bits.
    """
    if len(names) > MOST_ATOMS:
        raise UnsupportedError(
            f"the LTL formula has {len(names)} atoms; at most {MOST_ATOMS} fit in a letter"
        )
    letter = np.zeros(size, dtype=np.int64)
    for i, name in enumerate(names):
        letter |= atoms[name].astype(np.int64) << i
    distinct, of_state = np.unique(letter, return_inverse=True)
    return Letters(distinct, of_state)


def _won(
    model: ExplicitModel,
    letters: Letters,
    automaton: LimitDeterministicAutomaton,
    product: Product,
    environment: SolverEnvironment,
) -> MaskArray:
    """Return the nodes of the end components from which the formula can be satisfied for sure."""
    labels, count, choices = _end_components(product.model, product.undecided, environment)
    nodes = np.flatnonzero(labels >= 0)
    if choices is None:
        # All nodes of a bottom component agree; ask one of each.
        nodes = nodes[np.unique(labels[nodes], return_index=True)[1]]
    won = np.zeros(count, dtype=np.bool_)
    jumps: list[tuple[IndexArray, int]] = []
    for state in np.unique(product.automaton_states[nodes]):
        here = nodes[product.automaton_states[nodes] == state]
        entered = automaton.jumps(int(state))
        if ACCEPTED in entered or automaton.is_safety(int(state)):
            won[labels[here]] = True
        else:
            jumps += [(here, accepting) for accepting in entered]
    jumps = [(here[~won[labels[here]]], accepting) for here, accepting in jumps]
    if any(len(here) for here, _ in jumps):
        origins = np.concatenate([here for here, _ in jumps])
        entered_states = np.concatenate([np.full(len(here), to) for here, to in jumps])
        rows = None if choices is None else product.model_rows[choices]
        accepts = _accepts_surely(
            model,
            letters,
            automaton,
            product.states[origins],
            entered_states,
            rows,
            environment,
        )
        won[labels[origins[accepts]]] = True
    # From one node of an end component every other can be reached for sure.
    mask: MaskArray = (labels >= 0) & won[labels] if count else np.zeros(len(labels), np.bool_)
    return mask


def _end_components(
    model: ExplicitModel, among: MaskArray, environment: SolverEnvironment
) -> tuple[IndexArray, int, MaskArray | None]:
    """Return labels and number of the end components among the given states, and their choices.

    Those of a chain are its bottom components, and choices None.
    """
    if model.kind is ModelKind.MDP:
        components = maximal_end_components(model, among, environment=environment)
        return components.labels, components.count, components.choices
    bottom = bsccs(model, environment)
    # A bottom component has a decided state only where it is that state alone.
    return np.where(among, bottom.labels, -1), bottom.count, None


def _accepts_surely(
    model: ExplicitModel,
    letters: Letters,
    automaton: LimitDeterministicAutomaton,
    states: IndexArray,
    entered: IndexArray,
    rows: IndexArray | None,
    environment: SolverEnvironment,
) -> MaskArray:
    """Tell for each jump whether the accepting part can be made to accept with probability 1.

    Parameters
    ----------
    model, letters, automaton
        What the product is made of.
    states, entered
        Model state and state of the accepting part after each jump, shape (jumps,).
    rows
        The rows of the model's matrix that may be used; None for all.
    environment
        Device.
    """
    part = automaton.accepting_part
    keys, start_of_jump = np.unique(entered * model.num_states + states, return_inverse=True)
    automaton_states, model_states = np.divmod(keys, model.num_states)
    usable = None
    if rows is not None:
        usable = np.zeros(model.matrix.num_rows, dtype=np.bool_)
        usable[rows] = True
    product = build_product(model, letters, part, model_states, automaton_states, usable)
    labels, count, _ = _end_components(product.model, product.undecided, environment)
    inside = np.flatnonzero(labels >= 0)
    met = np.zeros(count, dtype=np.int64)
    np.bitwise_or.at(met, labels[inside], product.goals[inside])
    known, known_of_node = np.unique(product.automaton_states[inside], return_inverse=True)
    goals = np.array([part.goals(int(state)) for state in known], dtype=np.int64)
    accepting = product.accepted
    # All nodes of a component have the same goals: a step never changes them.
    accepting[inside] |= met[labels[inside]] == goals[known_of_node]
    direction = Direction.MAXIMISE if model.kind is ModelKind.MDP else None
    everywhere = np.ones(len(accepting), dtype=np.bool_)
    sure = prob1(product.model, everywhere, accepting, direction, environment=environment)
    return sure[: len(keys)][start_of_jump]
