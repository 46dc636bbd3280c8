"""A and E: the CTL quantifiers over paths."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bridge.check.paths import ltl_formula, simple_path
from bridge.language.ast import Quantifier
from engines.arrays import MaskArray
from engines.automata import ltl
from engines.errors import UnsupportedError
from engines.model.csr import CsrMatrix
from engines.model.environment import Method
from engines.model.explicit import ExplicitModel, ModelKind
from engines.systems.one_sided import Direction

if TYPE_CHECKING:
    from bridge.check.checker import Checker


def satisfied(checker: Checker, node: Quantifier) -> MaskArray:
    """Return the states in which some path (E), or every path (A), satisfies a path formula.

    Parameters
    ----------
    checker
        Evaluates the state formulas in it.
    node
        The quantifier.

    Raises
    ------
    UnsupportedError
        For bounded operators.
    """
    path = simple_path(node.path)
    if path is None:
        return _ltl(checker, node)
    if path.bounded is not None:
        raise UnsupportedError("Model checking of bounded CTL operators is not supported")
    from engines.graph import ctl

    model = checker.engine_model
    target = checker.mask(path.target)
    # A ψ is the complement of E ¬ψ.
    universal = node.name == "A"
    wanted = path.negated == universal
    if path.operator == "X":
        found = ctl.exists_next(model, target if wanted else ~target)
    elif wanted:
        found = ctl.exists_until(model, checker.mask(path.remain), target)
    else:
        found = ctl.exists_never_until(model, checker.mask(path.remain), target)
    return ~found if universal else found


def _ltl(checker: Checker, node: Quantifier) -> MaskArray:
    """Return the states that satisfy a quantifier over an LTL formula.

    Where each transition is a choice that is taken for sure, a path is a strategy: some path
    satisfies a formula if its largest probability is 1, and else that is 0.
    """
    from engines.questions.ltl import ltl_probabilities

    atoms: dict[str, MaskArray] = {}
    formula = ltl_formula(checker, node.path, atoms)
    universal = node.name == "A"
    result = ltl_probabilities(
        _graph(checker.engine_model),
        ltl.negation(formula) if universal else formula,
        atoms,
        # All that is computed is 0 or 1.
        replace(checker.environment, method=Method.AUTO, bounds=False),
        direction=Direction.MAXIMISE,
        progress=checker.progress,
    )
    found = checker.solved(result).numbers > 0.5
    return ~found if universal else found


def _graph(model: ExplicitModel) -> ExplicitModel:
    """Return an MDP whose choices are the transitions of a model."""
    matrix = model.matrix
    offsets = matrix.row_offsets
    if model.row_group_offsets is not None:
        offsets = offsets[model.row_group_offsets]
    rows = np.arange(matrix.num_entries + 1, dtype=offsets.dtype)
    certain = CsrMatrix(rows, matrix.columns, np.ones(matrix.num_entries), matrix.num_columns)
    return ExplicitModel(ModelKind.MDP, certain, offsets)
