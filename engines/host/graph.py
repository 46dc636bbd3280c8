"""Analyses of a model's graph on the CPU."""

from __future__ import annotations

import numpy as np

from engines.arrays import IndexArray, MaskArray
from engines.host.graphs import HostGraph
from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel


class CpuGraph(HostGraph):
    """The graph of a model; see `engines.systems.graph.GraphOperations`.

    Parameters
    ----------
    model
        A model of any kind; stored zeros are no edges.
    """

    def __init__(self, model: ExplicitModel) -> None:
        # Held even where it is not read: see `operations_of`.
        self._given_groups = model.row_group_offsets
        super().__init__(model.num_states, model.row_group_offsets, *_edges(model.matrix))

    def end_component_states(
        self, restrict: MaskArray, choices: MaskArray | None = None
    ) -> tuple[IndexArray, int]:
        """Return the maximal end component of each state, and their number."""
        if choices is None:
            choices = np.ones(self.num_rows, dtype=np.bool_)
        return self.end_components(restrict, choices)[:2]


def _edges(matrix: CsrMatrix) -> tuple[IndexArray, IndexArray]:
    """Return row offsets and columns without the entries of value 0."""
    least, greatest = matrix.extremes
    if least > 0.0 or greatest < 0.0:
        return matrix.row_offsets, matrix.columns
    present = matrix.values != 0.0
    kept = np.concatenate(([0], np.cumsum(present)))[matrix.row_offsets]
    return kept.astype(matrix.row_offsets.dtype), matrix.columns[present]
