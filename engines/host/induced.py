"""The strong components of the part of a graph that some of its states make up."""

from __future__ import annotations

import numpy as np

from engines.arrays import IndexArray, index_dtype, ranges
from engines.host.graph import CpuGraph
from engines.model.csr import CsrMatrix
from engines.model.explicit import ExplicitModel, ModelKind


def components_within(
    offsets: IndexArray, columns: IndexArray, groups: IndexArray | None, members: IndexArray
) -> IndexArray:
    """Return the strong component of each member, by edges between members alone.

    What it costs follows from the members and their edges, not from the size of the graph.

    Parameters
    ----------
    offsets
        Where the edges of each row start, shape (rows + 1,).
    columns
        Where the edges lead, shape (edges,).
    groups
        Where the rows of each state start, shape (states + 1,); None for a row a state.
    members
        The states, ascending, shape (members,).

    Returns
    -------
    Numbers from 0 on, shape (members,), as `engines.host.graph.CpuGraph.strong_components` gives
    them.
    """
    size = len(members)
    first, last = members, members + 1
    if groups is not None:
        first, last = groups[first], groups[last]
    begins, ends = offsets[first], offsets[last]
    lengths = ends - begins
    targets = columns[ranges(begins, lengths)]
    places = np.minimum(np.searchsorted(members, targets), size - 1)
    inside = members[places] == targets
    own = np.repeat(np.arange(size), lengths)[inside]
    starts = np.zeros(size + 1, dtype=index_dtype(len(own)))
    np.cumsum(np.bincount(own, minlength=size), out=starts[1:])
    kept = places[inside].astype(np.int32)
    graph = CsrMatrix(starts, kept, np.ones(len(kept)), size)
    model = ExplicitModel(ModelKind.DTMC, graph)
    return CpuGraph(model).strong_components(np.ones(size, dtype=np.bool_))[0]
