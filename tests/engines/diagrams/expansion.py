"""Matrices and choices of diagrams, from the survey to the arrays."""

from __future__ import annotations

from collections.abc import Sequence

from engines.arrays import IndexArray
from engines.diagrams.choices import choice_roots
from engines.diagrams.diagram import Diagram, StateNumbering
from engines.diagrams.hybrid import HybridMatrix
from engines.diagrams.survey import survey
from engines.host.expansion.build import build
from engines.host.expansion.expand import Choices, expand_surveyed, expand_surveyed_choices
from engines.host.expansion.walks import surveyed_or_walked
from engines.model.csr import CsrMatrix


def hybrid_matrix(
    diagram: Diagram,
    numbering: StateNumbering,
    *,
    level: int | None = None,
    roots: Sequence[int] | IndexArray | None = None,
) -> HybridMatrix:
    return build(survey(diagram, numbering, roots), level)


def expand_matrix(diagram: Diagram, numbering: StateNumbering) -> CsrMatrix:
    return expand_surveyed(surveyed_or_walked(diagram, numbering))


def expand_choices(
    diagram: Diagram, numbering: StateNumbering, choice_variables: Sequence[int] | IndexArray
) -> Choices:
    roots, assignments = choice_roots(diagram, choice_variables)
    return expand_surveyed_choices(
        surveyed_or_walked(diagram, numbering, roots), roots, assignments
    )
