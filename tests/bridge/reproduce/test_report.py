"""Tables, pictures and the report: what is shown, what is not, and that it stands alone."""

from __future__ import annotations

import csv
import io
import json
from html.parser import HTMLParser

import pytest

from bridge.reproduce import plots, report
from bridge.reproduce.instances import decomposition, jacobi
from bridge.reproduce.jobs import Kind, Scale, Subject
from bridge.reproduce.tables import all_tables
from bridge.reproduce.tables.table import Column, Table
from tests.bridge.reproduce.made_up import all_done, record_of

EVERYTHING = tuple(Subject)


def column(table, title):
    """Return the cells of a column; one that has none is left out of a table."""
    heads = [head.title for head in table.columns]
    return [row[heads.index(title)] if title in heads else "" for row in table.rows]


def tables_of(machine, results, scale=Scale.SMALL):
    return {table.name: table for table in all_tables(EVERYTHING, scale, machine, results)}


@pytest.mark.parametrize("scale", list(Scale))
@pytest.mark.parametrize("device", ["gpu", "cpu"])
def test_every_row_has_a_cell_a_column(scale, device):
    tables = tables_of(*all_done(scale, device), scale)
    of_gauss_seidel = ("gauss-seidel-means", "gauss-seidel-methods")
    derived = ("colours", *of_gauss_seidel, "apmc_workers", "tandem-memory")
    assert set(tables) == {*EVERYTHING, *derived}
    for table in tables.values():
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.columns)}
        found = list(csv.reader(io.StringIO(table.as_csv())))
        assert found[0] == [head.title for head in table.columns]
        assert len(found) == len(table.rows) + 1


@pytest.mark.parametrize("scale", [Scale.PAPER, Scale.MAX])
def test_the_runs_of_2005_have_rows_at_its_scale(scale):
    machine, results = all_done(scale)
    tables = tables_of(machine, results, scale)
    table = tables["apmc"]
    rows = list(
        zip(
            *(column(table, name) for name in ("philosophers", "paths", "workers", "synchronised")),
            strict=True,
        )
    )
    # Both runs of section 4, beside the published times.
    for paths in ("940,000", "9,400,000"):
        assert ("160", paths, "the GPU", "") in rows
        assert ("160", paths, "500 computers", "compile") in rows
    for way in ("compile", "runtime", "lazy"):
        numbers = [int(n) for n, _, workers, how in rows if (workers, how) == ("32 threads", way)]
        assert (numbers[0], numbers[-1]) == (3, 130)
    shared = tables["apmc_workers"]
    places = column(shared, "which are")
    assert set(places) == {
        "processes", "network namespaces", "processes of the lowest priority"
    }  # fmt: skip
    counts, kept = column(shared, "workers"), column(shared, "t1 / (x tx)")
    whole = {(place, n): share for place, n, share in zip(places, counts, kept, strict=True)}
    # One takes 0.1 + 100 s, and 16 take 1.6 + 100/16.
    assert whole["processes", "16"] == f"{100.1 / (16 * (1.6 + 100 / 16)):.2f}"
    assert whole["processes of the lowest priority", "4"] == ""
    assert set(column(shared, "t1 / (x tx), warm")) == {"1.00", ""}


def test_columns_without_a_cell_are_left_out():
    machine, results = all_done()
    for name in list(results.records):
        if "PRISM" in name:
            del results.records[name]
    table = tables_of(machine, results)["tandem"]
    heads = [head.title for head in table.columns]
    assert "speed-up, check" not in heads
    assert "ours: solve s" in heads
    assert "2011: GPU s, 32 bit" in heads


def test_published_figures_stand_beside_ours():
    table = tables_of(*all_done(Scale.PAPER), Scale.PAPER)["tandem"]
    row = column(table, "instance").index("tandem c=2047")
    assert column(table, "2011: CPU s, 32 bit")[row] == "9,672"
    assert column(table, "2011: iterations")[row] == "24,141"
    assert column(table, "speed-up, check")[row] == "18 ×"


def test_at_the_scale_of_the_papers_no_published_row_of_ours_is_missing():
    tables = tables_of(*all_done(Scale.PAPER), Scale.PAPER)
    for name in ("herman", "cluster", "tandem", "gauss-seidel"):
        remarks = column(tables[name], "remarks")
        assert "published only" not in remarks


def spoilt(kind, **changes):
    machine, results = all_done()
    row = jacobi.solves(Subject.TANDEM, Scale.SMALL, machine)[0]
    results.records[row.job(kind).name] |= changes
    return tables_of(machine, results)["tandem"]


def test_no_time_is_shown_of_a_wrong_answer():
    table = spoilt(Kind.OURS, status="wrong", wrong="the value is 3")
    assert column(table, "ours: solve s")[0] == ""
    assert column(table, "ours: whole run s")[0] == ""
    assert column(table, "speed-up, check")[0] == ""
    assert "WRONG: the value is 3" in column(table, "remarks")[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"value": 2.6}, "PRISM says 2.6"),
        ({"states": 5}, "PRISM builds 5 states"),
        ({"sweeps": 102}, "PRISM makes 102 sweeps"),
    ],
)
def test_no_time_is_shown_where_the_programs_differ(changes, said):
    table = spoilt(Kind.PEER, **changes)
    assert column(table, "ours: solve s")[0] == ""
    assert column(table, "ours: check s")[0] == ""
    assert column(table, "PRISM today: check s")[0] in ("", "–")
    assert f"DIFFERENT: {said}" in column(table, "remarks")[0]


def test_a_run_of_prism_that_was_stopped_says_so_in_its_cells():
    table = spoilt(Kind.PEER, status="stopped", limit=120.0)
    assert column(table, "PRISM today: check s")[0] == "> 120 s"
    assert column(table, "ours: solve s")[0] != ""
    assert column(table, "speed-up, check")[0] == ""


def test_cpu_time_is_named_and_compared_with_nothing():
    # Whatever PRISM's solve took of the CPU, it was checking as long as ours.
    table = spoilt(Kind.PEER, solve_cpu_seconds=100.0, check_seconds=0.1)
    assert column(table, "PRISM today: solve, CPU time s")[0] == "100"
    assert column(table, "PRISM today: check s")[0] == column(table, "ours: check s")[0]
    assert column(table, "speed-up, check")[0] == "1 ×"
    heads = [head.title for head in table.columns]
    assert [head for head in heads if head.startswith("speed-up")] == [
        "speed-up, check",
        "speed-up, whole run",
    ]
    assert "CPU time" in table.caption


def test_no_time_is_shown_of_a_decomposition_that_nobody_confirmed():
    machine, results = all_done()
    job = decomposition.jobs({Subject.SCC}, Scale.SMALL, machine)[0]
    record = record_of(job) | {"checked": {"scc": ["gpu"], "mec": ["gpu", "cpu"]}}
    results.records[job.name] = record
    tables = tables_of(machine, results)
    assert column(tables["scc"], "ours: GPU s")[0] == ""
    assert column(tables["mec"], "ours: GPU s")[0] != ""


def test_the_textbook_the_memory_and_the_papers_variants_stand_beside_ours():
    table = tables_of(*all_done(Scale.PAPER), Scale.PAPER)["scc"]
    row = column(table, "graph").index("wlan-like")
    assert column(table, "textbook: CPU s")[row] == "3.00"
    assert column(table, "textbook : GPU")[row] == "30 ×"
    # 2 · 1000 + 3000 + 1 integers of four bytes.
    assert column(table, "2|V| + |E| + 1 integers MB")[row] == "0.02"
    assert column(table, "ours: GPU memory MB")[row] == "0.04"
    assert [column(table, f"2014: {name} s")[row] for name in ("F0,1", "F3,1", "F3,7")] == [
        *("29.2", "119", "61.9")
    ]


@pytest.mark.parametrize("width", [60, 100, 300])
def test_a_terminal_is_not_overrun(width):
    for table in tables_of(*all_done()).values():
        lines = table.as_text(width).splitlines()[2:]
        words = max(len(row[-1]) for row in table.rows)
        first = max(len(row[0]) for row in table.rows)
        assert max(len(line) for line in lines) <= max(width, first + 2 + words)
        broken = width == 60 and len(table.columns) > 6
        assert sum(line.startswith("--") for line in lines) >= (2 if broken else 1)


def test_a_long_reason_is_cut_on_a_terminal_and_nowhere_else():
    reason = "failed: " + "very " * 40 + "long"
    columns = [Column("model"), Column("remarks", text=True)]
    table = Table("t", "s", "Title", "", columns, [["a", "short"], ["b", reason]])
    lines = table.as_text(100).splitlines()
    assert max(map(len, lines)) <= 70
    assert lines[-1].endswith(" very v…")
    assert reason in table.as_csv()


def test_in_a_file_numbers_lose_their_commas_and_names_keep_them():
    columns = [Column("model", text=True), Column("states"), Column("remarks", text=True)]
    table = Table("t", "s", "Title", "", columns, [["x K=2,N=1000", "1,234,567", "F0,1 of 12,345"]])
    found = list(csv.reader(io.StringIO(table.as_csv())))
    assert found[1] == ["x K=2,N=1000", "1234567", "F0,1 of 12345"]


class Seen(HTMLParser):
    """What a page holds, and whether its tags are closed."""

    VOID = ("meta", "img", "link", "br")

    def __init__(self):
        super().__init__()
        self.open, self.sources, self.others, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag == "img":
            assert attributes["alt"]
            self.sources.append(attributes["src"])
        if "href" in attributes:
            self.others.append(attributes["href"])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_the_report_needs_nothing_but_itself(tmp_path):
    pytest.importorskip("matplotlib")
    machine, results = all_done()
    tables = list(tables_of(machine, results).values())
    pictures = plots.draw_all(EVERYTHING, Scale.SMALL, machine, results, tmp_path / "plots")
    assert {picture.name for picture in pictures} == {figure.name for figure in plots.FIGURES}
    for picture in pictures:
        assert picture.file.read_bytes().startswith(b"\x89PNG")
    file = tmp_path / "report.html"
    report.write_html({"date": "<today>"}, tables, pictures, ["a & b"], file)
    seen = Seen()
    seen.feed(file.read_text(encoding="utf-8"))
    assert seen.open == []
    assert len(seen.sources) == len(pictures)
    assert all(source.startswith("data:image/png;base64,") for source in seen.sources)
    assert all(link.startswith("#") for link in seen.others)
    assert "<today>" in seen.text
    assert "url(" not in file.read_text(encoding="utf-8")


def test_a_row_says_when_and_where_each_of_its_results_was_measured():
    machine, results = all_done()
    row = jacobi.solves(Subject.TANDEM, Scale.SMALL, machine)[0]
    for kind, device in ((Kind.OURS, "NVIDIA One"), (Kind.PEER, "unused")):
        results.records[row.job(kind).name] |= {
            "kind": str(kind),
            "measured": "2026-11-28 12:34:56 +0000",
            "where": {"device_name": device, "processor": "Two CPU", "cores": 2},
        }
    cells = column(tables_of(machine, results)["tandem"], "measured")
    assert cells[0] == "ours 2026-11-28 12:34, NVIDIA One; PRISM 2026-11-28 12:34, Two CPU"
    assert cells[1] == ""


def test_the_report_lists_the_origin_of_every_result(tmp_path):
    where = {"device_name": "NVIDIA <One>", "processor": "p", "cores": 2}
    record = {"kind": "paths", "measured": "2026-11-28 12:34:56 +0000", "where": where}
    tables = list(tables_of(*all_done()).values())
    report.write_html({}, tables, [], [], tmp_path / "report.html", {"3 philosophers": record})
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "2026-11-28 12:34, NVIDIA &lt;One&gt;" in text
    assert "3 philosophers" in text


@pytest.mark.parametrize("points", [0, 1, 2])
def test_no_plot_has_fewer_than_two_measured_points(tmp_path, points):
    pytest.importorskip("matplotlib")
    machine, results = all_done()
    rows = jacobi.solves(Subject.TANDEM, Scale.SMALL, machine)
    for row in rows[points:]:
        results.records.pop(row.job(Kind.OURS).name)
        results.records.pop(row.job(Kind.PEER).name)
    drawn = plots.draw_all((Subject.TANDEM,), Scale.SMALL, machine, results, tmp_path)
    assert ("tandem_time" in {picture.name for picture in drawn}) is (points > 1)
    assert (tmp_path / "tandem_time.png").exists() is (points > 1)


def test_a_picture_closes_up_where_axes_show_nothing(tmp_path):
    image = pytest.importorskip("matplotlib.image")
    machine, results = all_done()
    whole = tmp_path / "whole"
    plots.draw_all((Subject.TANDEM,), Scale.SMALL, machine, results, whole)
    # Without PRISM's runs there is nothing to compare with: of two axes one is left.
    for row in jacobi.solves(Subject.TANDEM, Scale.SMALL, machine):
        results.records.pop(row.job(Kind.PEER).name)
    plots.draw_all((Subject.TANDEM,), Scale.SMALL, machine, results, tmp_path)
    tall, wide = image.imread(whole / "tandem_time.png").shape[:2]
    left = image.imread(tmp_path / "tandem_time.png").shape
    assert left[0] == tall
    assert left[1] < 0.7 * wide


def test_without_matplotlib_the_report_says_how_to_get_pictures(tmp_path):
    tables = list(tables_of(*all_done()).values())
    report.write_html({}, tables, None, [], tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "prism-gpu[plots]" in text
    assert "<img" not in text


def test_nothing_is_drawn_of_nothing(tmp_path):
    pytest.importorskip("matplotlib")
    machine, results = all_done()
    results.records.clear()
    assert plots.draw_all(EVERYTHING, Scale.SMALL, machine, results, tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_json_holds_provenance_tables_and_results(tmp_path):
    machine, results = all_done()
    tables = list(tables_of(machine, results).values())
    file = tmp_path / "report.json"
    report.write_json(machine.described(), tables, results.records, file)
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["provenance"]["versions"] == {"prism-gpu": "1"}
    assert len(found["results"]) == len(results.records)
    herman = next(table for table in found["tables"] if table["name"] == "herman")
    assert "2011: GPU s, 32 bit" in herman["published_columns"]
