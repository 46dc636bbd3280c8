"""A and E: the CTL quantifiers over paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bridge.check.paths import simple_path
from bridge.language.ast import Quantifier
from engines.errors import UnsupportedError
from engines.formats.csr import MaskArray

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
        For bounded operators, and for path formulas with several temporal operators.
    """
    path = simple_path(node.path)
    if path is None:
        raise UnsupportedError(f"{node}: CTL takes a single temporal operator over state formulas")
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
