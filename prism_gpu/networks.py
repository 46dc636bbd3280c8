"""Models from graphs of NetworkX, which is not imported: a graph brings what is needed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from numbers import Real
from typing import Any, Unpack

import numpy as np

from bridge.known import require_known
from engines.arrays import FloatArray
from engines.errors import InvalidModelError
from prism_gpu.arrays import real_array
from prism_gpu.matrices import ctmc, dtmc
from prism_gpu.model import Model
from prism_gpu.settings import Settings

KINDS = {"dtmc": dtmc, "ctmc": ctmc}


def from_networkx(
    graph: Any,
    *,
    kind: str = "dtmc",
    weight: str = "weight",
    labels: Mapping[str, Any] | None = None,
    rewards: Mapping[str, Mapping[Any, float] | str] | None = None,
    initial: Any = None,
    **settings: Unpack[Settings],
) -> Model:
    """Return the Markov chain that a directed graph of NetworkX describes.

    State i is the i-th node of the graph: ``dict(zip(graph, result.vector))`` has the values by
    node.

    Parameters
    ----------
    graph
        A `networkx.DiGraph` or `MultiDiGraph`; parallel edges are added.
    kind
        "dtmc" or "ctmc".
    weight
        The edges' attribute that is their probability (DTMC) or rate (CTMC).
    labels
        By name: a node, or several.
    rewards
        By name: a mapping from nodes to numbers, 0 for nodes that are not in there; or the name
        of the nodes' attribute.
    initial
        The initial node, or several; the first node by default.
    **settings
        Settings of all checks of this model; see `Settings`.

    Returns
    -------
    Model
        To be checked, sampled and read.

    Raises
    ------
    InvalidModelError
        For an undirected graph, an edge without the attribute, a node that the graph has not, and
        as `dtmc` and `ctmc`.
    TypeError, ValueError
        For settings that are unknown or out of range.

    Examples
    --------
    >>> import networkx, prism_gpu as pg  # doctest: +SKIP
    >>> graph = networkx.DiGraph()  # doctest: +SKIP
    >>> graph.add_weighted_edges_from([("a", "b", 1.0), ("b", "b", 1.0)])  # doctest: +SKIP
    >>> chain = pg.from_networkx(graph, labels={"end": "b"}, initial="a")  # doctest: +SKIP
    """
    from scipy.sparse import coo_array

    require_known(kind, KINDS, "kind")
    if not hasattr(graph, "is_directed"):
        raise TypeError(f"a graph of NetworkX is wanted, not {graph!r}")
    if not graph.is_directed():
        raise InvalidModelError("the graph must be directed; see networkx.DiGraph")
    places = {node: place for place, node in enumerate(graph)}
    if not places:
        raise InvalidModelError("the graph has no nodes")
    edges = list(graph.edges(data=weight))
    for start, end, value in edges:
        if value is None:
            raise InvalidModelError(f"the edge from {start!r} to {end!r} has no {weight!r}")
    rows = np.array([places[start] for start, _, _ in edges], dtype=np.int64)
    columns = np.array([places[end] for _, end, _ in edges], dtype=np.int64)
    values = real_array([value for _, _, value in edges], f"the weights {weight!r}")
    if values.dtype.kind not in "biuf":
        raise InvalidModelError(f"the weights {weight!r} must be real numbers, not {values.dtype}")
    sets = {name: _states(places, nodes, f"label {name!r}") for name, nodes in _items(labels)}
    earned = {
        name: _rewards(graph, places, given, f"rewards {name!r}") for name, given in _items(rewards)
    }
    first = next(iter(places)) if initial is None else initial
    return KINDS[kind](
        coo_array((values, (rows, columns)), shape=(len(places), len(places))),
        labels=sets,
        rewards=earned,
        initial=_states(places, first, "initial"),
        **settings,
    )


def _items(named: Mapping[str, Any] | None) -> Iterable[tuple[str, Any]]:
    if not isinstance(named, Mapping | None):
        raise InvalidModelError(f"labels and rewards must be given by name, not as {named!r}")
    return () if named is None else named.items()


def _states(places: Mapping[Any, int], nodes: Any, what: str) -> list[int]:
    # A node may be a tuple, which is a single one.
    if isinstance(nodes, Hashable) and nodes in places:
        return [places[nodes]]
    if isinstance(nodes, str) or not isinstance(nodes, Iterable):
        raise InvalidModelError(f"{what}: the graph has no node {nodes!r}")
    found = []
    for node in nodes:
        if node not in places:
            raise InvalidModelError(f"{what}: the graph has no node {node!r}")
        found.append(places[node])
    return found


def _rewards(
    graph: Any, places: Mapping[Any, int], given: Mapping[Any, object] | str, what: str
) -> FloatArray:
    if isinstance(given, str):
        given = {node: value for node, value in graph.nodes(data=given) if value is not None}
        if not given:
            raise InvalidModelError(f"{what}: no node has that attribute")
    if not isinstance(given, Mapping):
        raise InvalidModelError(f"{what} must be an attribute's name, or numbers by node")
    earned = np.zeros(len(places))
    for node, reward in given.items():
        if node not in places:
            raise InvalidModelError(f"{what}: the graph has no node {node!r}")
        if not isinstance(reward, Real):
            raise InvalidModelError(f"{what}: {reward!r} at node {node!r} is no number")
        earned[places[node]] = float(reward)
    return earned
