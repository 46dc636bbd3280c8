"""Chains from graphs; NetworkX itself where it is installed, else a graph with its methods."""

from __future__ import annotations

import importlib.util

import pytest

import prism_gpu as pg


class Graph:
    """What `from_networkx` asks of a `networkx.DiGraph`."""

    def __init__(self, edges, attributes=()):
        self._edges = edges
        self._attributes = dict(attributes)
        self._nodes = list(dict.fromkeys(node for edge in edges for node in edge[:2]))

    def is_directed(self):
        return True

    def __iter__(self):
        return iter(self._nodes)

    def edges(self, data):
        return [(start, end, given.get(data)) for start, end, given in self._edges]

    def nodes(self, data):
        return [(node, self._attributes.get(node, {}).get(data)) for node in self._nodes]


def of_networkx(edges, attributes=()):
    import networkx

    graph = networkx.DiGraph(edges)
    for node, given in dict(attributes).items():
        graph.nodes[node].update(given)
    return graph


needs_networkx = pytest.mark.skipif(
    importlib.util.find_spec("networkx") is None, reason="needs networkx"
)


@pytest.fixture(params=[Graph, pytest.param(of_networkx, marks=needs_networkx)])
def graph(request):
    return request.param


EDGES = [
    ("home", ("bar", 1), {"weight": 0.75, "rate": 3.0}),
    ("home", "work", {"weight": 0.25, "rate": 1.0}),
    (("bar", 1), ("bar", 1), {"weight": 1.0}),
    ("work", "home", {"weight": 1.0, "rate": 2.0}),
]


def test_a_chain_of_a_graph(graph):
    made = graph(EDGES, {"home": {"cost": 2.0}})
    model = pg.from_networkx(
        made, labels={"bar": ("bar", 1), "busy": ["work"]}, rewards={"cost": "cost"}, epsilon=1e-10
    )
    assert model.kind == "DTMC"
    result = model.check('R{"cost"}=? [ F "bar" ]')
    values = dict(zip(made, result.vector, strict=True))
    assert values["home"] == pytest.approx(2 / 0.75)
    assert values["work"] == pytest.approx(2 / 0.75)
    assert model.check('P=? [ F<=1 "busy" ]').value == 0.25
    model = pg.from_networkx(made, rewards={"cost": {"work": 5}}, initial="work")
    assert model.check("R=? [ C<=1 ]").value == 5.0


def test_rates_of_a_graph(graph):
    edges = [edge for edge in EDGES if "rate" in edge[2]]
    model = pg.from_networkx(graph(edges), kind="ctmc", weight="rate")
    assert sorted(model.rate_matrix.data.tolist()) == [1.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"weight": "rate"}, "edge from .'bar', 1. to .'bar', 1. has no 'rate'"),
        ({"labels": {"a": "pub"}}, "label 'a': the graph has no node 'pub'"),
        ({"labels": {"a": ["home", "pub"]}}, "no node 'pub'"),
        ({"rewards": {"r": "price"}}, "rewards 'r': no node has that attribute"),
        ({"rewards": {"r": {"pub": 1}}}, "no node 'pub'"),
        ({"rewards": {"r": {"home": "much"}}}, "rewards 'r': 'much' at node 'home' is no number"),
        ({"initial": 17}, "initial: the graph has no node 17"),
        ({"labels": ["home"]}, "must be given by name"),
        ({"rewards": {"r": [1, 2, 3]}}, "an attribute's name, or numbers by node"),
    ],
)
def test_wrong_graphs(graph, more, message):
    with pytest.raises(pg.InvalidModelError, match=message):
        pg.from_networkx(graph(EDGES), **more)


@pytest.mark.parametrize("value", ["1.0", [1.0], 10**400])
def test_weights_that_are_no_numbers(graph, value):
    with pytest.raises(pg.InvalidModelError, match="the weights 'weight' must be"):
        pg.from_networkx(graph([("a", "b", {"weight": 0.5}), ("b", "b", {"weight": value})]))


def test_an_undirected_graph_and_none(graph):
    made = graph(EDGES)
    made.is_directed = lambda: False
    with pytest.raises(pg.InvalidModelError, match="must be directed"):
        pg.from_networkx(made)
    with pytest.raises(TypeError, match="a graph of NetworkX is wanted, not 3"):
        pg.from_networkx(3)
    with pytest.raises(pg.InvalidModelError, match="no nodes"):
        pg.from_networkx(graph([]))
