"""The component benchmark: its graphs have the components that they are built to have."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click import ClickException
from click.testing import CliRunner

from bridge.reproduce import graphs
from engines.graph.components import sccs
from engines.graph.mec import maximal_end_components
from engines.host.graph import CpuGraph
from engines.model.explicit import ModelKind
from tests.engines.component_checks import end_components, strong_components
from tests.engines.graph_models import everywhere
from tests.engines.graph_shapes import drawn


@pytest.fixture(scope="module")
def cases(load):
    return load("component_cases")


FAMILIES = (
    *("wlan", "phil", "dining_crypt", "test-and-set", "leader", "phil_lss", "coin", "mutual"),
    *("zeroconf_dl", "firewire_dl"),
)


def test_every_family_of_the_paper_is_generated(cases):
    assert tuple(cases.GENERATED) == tuple(cases.PAPER) == FAMILIES
    assert {model.family for model in cases.MODELS["small"]} == set(FAMILIES)


@pytest.mark.parametrize("scale", [0.0002, pytest.param(0.01, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_generated_graph_has_the_components_of_its_construction(cases, family, scale):
    graph = cases.GENERATED[family](scale)
    model = graphs.generate(graph, threads=2)
    assert model.num_states == graph.states
    assert model.matrix.row_lengths().min() > 0
    model.matrix.check()
    assert sccs(model).count == graph.sccs
    assert maximal_end_components(model).count == graph.mecs


@pytest.mark.parametrize("family", FAMILIES)
def test_at_full_size_a_graph_has_the_size_of_the_papers(cases, family):
    graph, paper = cases.GENERATED[family](1.0), cases.PAPER[family]
    assert graph.states == pytest.approx(paper.states, rel=0.12)
    assert graph.sccs == pytest.approx(paper.sccs, rel=0.12)
    # Any states are as good as others: they are taken all over the graph.
    some = np.linspace(0, graph.states - 1, 20_011).astype(np.int32)
    targets, present, begins = graph.edges(some)
    assert present.sum() / len(some) == pytest.approx(paper.transitions / paper.states, rel=0.08)
    assert not (begins & ~present).any()
    assert ((targets[present] >= 0) & (targets[present] < graph.states)).all()


def test_blocks_make_the_same_graph_however_they_are_cut(cases):
    whole = graphs.generate(cases.GENERATED["coin"](0.0005))
    cut = graphs.generate(cases.GENERATED["coin"](0.0005), threads=3, block_states=999)
    for mine, other in (
        (whole.matrix.columns, cut.matrix.columns),
        (whole.matrix.row_offsets, cut.matrix.row_offsets),
        (whole.row_group_offsets, cut.row_group_offsets),
    ):
        np.testing.assert_array_equal(mine, other)


def test_peers_number_components_as_the_engines_do(load, tmp_path, capfd):
    peers = load("component_peers")
    for seed in range(40):
        found = drawn(seed)
        if found.model.kind is not ModelKind.MDP or not (found.model.matrix.values != 0).all():
            continue
        peers.save(found.model, tmp_path)
        model = peers.load(tmp_path)
        peers.by_scipy(model)
        peers.by_cpu(model)
        peers.by_textbook(model)
        said = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
        labels, count = strong_components(model, everywhere(model))
        assert {(line["count"], line["digest"]) for line in said if line["what"] == "scc"} == {
            (count, peers.digest(labels))
        }
        rows = np.ones(model.matrix.num_rows, dtype=np.bool_)
        labels, count, _ = end_components(model, everywhere(model), rows)
        assert [(line["count"], line["digest"]) for line in said if line["what"] == "mec"] == 2 * [
            (count, peers.digest(labels))
        ]
        assert CpuGraph(model).strong_components(everywhere(model))[1] == sccs(model).count


@pytest.mark.prism
@pytest.mark.parametrize("family", ["wlan", pytest.param("leader", marks=pytest.mark.slow)])
def test_prism_finds_what_is_constructed(load, cases, tmp_path, prism_install, family):
    peers, graph = load("component_peers"), cases.GENERATED[family](0.0001)
    peers.save(graphs.generate(graph), tmp_path)
    said = load("components").ask_peers(tmp_path, ("prism", "cpu"), 200)
    assert prism_install is not None
    prism, ours = ([json.loads(line) for line in said[peer]] for peer in ("prism", "cpu"))
    assert [line["count"] for line in prism] == [graph.sccs, graph.mecs]
    assert [line["digest"] for line in prism] == [line["digest"] for line in ours]


@pytest.mark.prism
def test_mutual_exclusion_of_other_sizes_is_that_of_the_examples(cases, prism_examples):
    folder = prism_examples / "mdps" / "mutual"
    made = cases.with_processes((folder / "mutual5.nm").read_text(encoding="utf-8"), 3)

    def essence(text):
        lines = (line.partition("//")[0].strip() for line in text.splitlines())
        kept = (line for line in lines if line and not line.startswith(("label", "formula num")))
        return "".join("".join(kept).split())

    assert essence(made) == essence((folder / "mutual3.nm").read_text(encoding="utf-8"))


def test_a_difference_is_an_error_that_says_who(load):
    benchmark = load("components")
    row = benchmark.Row("coin", "coin", "generated", 3, 3, 3, 0.0)
    row.take("construction", "scc", 2, None)
    row.take("GPU", "scc", 2, "a")
    with pytest.raises(ClickException, match=r"scipy finds other components than .*GPU"):
        row.take("scipy", "scc", 2, "b")
    with pytest.raises(ClickException, match="storm finds 3 components"):
        row.take("storm", "scc", 3, None)


def test_of_an_earlier_run_the_peers_alone_are_taken(load):
    benchmark = load("components")
    before = {
        "checked": {"scc": ["construction", "GPU", "tarjan"], "mec": ["GPU"]},
        "counts": {"scc": 2, "mec": 1},
        "digests": {"scc": "a", "mec": "b"},
        "times": {"gpu scc": 1.0, "tarjan scc": 2.0, "tarjan mec prepare": 3.0, "own mec": 4.0},
        "notes": ["GPU, mec: 3 states left to the CPU", "prism: took more than 90 s"],
    }
    row = benchmark.Row("coin", "coin", "generated", 3, 3, 3, 0.0)
    row.take("GPU", "scc", 2, "a")
    benchmark.take_earlier(row, before)
    assert row.checked == {"scc": ["GPU", "tarjan"]}
    assert row.times == {"tarjan scc": 2.0, "tarjan mec prepare": 3.0}
    assert row.notes == ["prism: took more than 90 s"]
    row = benchmark.Row("coin", "coin", "generated", 3, 3, 3, 0.0)
    row.take("GPU", "scc", 2, "other")
    with pytest.raises(ClickException, match="tarjan finds other components"):
        benchmark.take_earlier(row, before)


def test_times_of_what_nobody_else_has_found_are_not_shown(load):
    tables = load("component_tables")
    row = {"name": "mine", "checked": {"scc": ["GPU", "GPU"]}, "notes": []}
    assert tables.compared([row], "scc") == tables.compared([row], "mec") == []
    row["checked"]["scc"].append("scipy")
    assert tables.compared([row], "scc") == [row]


def test_a_run_on_the_cpu_writes_the_tables(load, tmp_path):
    page, file = tmp_path / "page.md", tmp_path / "rows.json"
    words = ["--device", "cpu", "--scale", "0.0002", "--only", "leader", "--peers", "scipy"]
    words += ["--json", str(file), "--markdown", str(page)]
    result = CliRunner().invoke(load("components").main, words)
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())["rows"]
    assert [row["name"] for row in rows] == ["leader-like"]
    assert rows[0]["checked"]["scc"] == ["construction", "CPU engine", "scipy"]
    again, asked_before = tmp_path / "again.json", ["--peers-from", str(file)]
    result = CliRunner().invoke(
        load("components").main, [*words, *asked_before, "--json", str(again)]
    )
    assert result.exit_code == 0, result.output
    other = [word if word != "leader" else "coin" for word in words]
    result = CliRunner().invoke(load("components").main, [*other, *asked_before])
    assert result.exit_code == 2
    assert "does not have coin-like" in result.output
    repeated = json.loads(again.read_text())["rows"][0]
    assert repeated["checked"]["scc"] == ["construction", "CPU engine", "scipy"]
    assert repeated["times"]["scipy scc"] == rows[0]["times"]["scipy scc"]
    assert "| leader-like |" in page.read_text()
    page.write_text("Before\n<!-- tables -->\nold\n<!-- end of tables -->\nAfter\n")
    tables = load("component_tables")
    result = CliRunner().invoke(tables.main, [str(file), "--into", str(page)])
    assert result.exit_code == 0, result.output
    text = page.read_text()
    assert text.startswith("Before\n")
    assert text.endswith("After\n")
    assert "| leader-like |" in text
    assert "old" not in text
