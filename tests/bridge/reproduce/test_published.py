"""The published figures agree with each other: factors are quotients of the seconds."""

from __future__ import annotations

import pytest

from bridge.reproduce import published
from bridge.reproduce.families import FAMILIES, herman_three_tokens

PAPERS = (
    published.gpu_prism_2011,
    published.gauss_seidel_2013,
    published.decomposition_2014,
    published.apmc_2005,
)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_paper_names_source_hardware_and_units(paper):
    found = paper()
    assert found.source
    assert found.hardware
    assert found.units
    assert found.rows


@pytest.mark.parametrize(
    ("slow", "fast", "factor"),
    [
        ("cpu_32", "gpu_32", "factor_32"),
        ("cpu_64", "gpu_64", "factor_64"),
        ("cpu_64", "two_gpus_64", "two_factor_64"),
        ("cpu_64", "scan_64", "scan_factor_64"),
    ],
)
def test_the_factors_of_2011_are_quotients_of_its_seconds(slow, fast, factor):
    rows = [row for row in published.gpu_prism_2011().rows if row[fast] is not None]
    assert len(rows) >= 10
    for row in rows:
        # Rounded or cut off, to one or two decimals; one of the paper's own is off by 1 %.
        close = pytest.approx(row[slow] / row[fast], rel=0.015, abs=0.1)
        assert row[factor] == close, (row["family"], row["size"])


def test_states_of_2011_are_those_of_the_models():
    for row in published.gpu_prism_2011().rows:
        assert FAMILIES[row["family"]].counts(row["size"])[0] == row["states"]


def test_factors_of_the_thesis_are_quotients_of_its_seconds():
    for row in published.gauss_seidel_2013().rows:
        close = pytest.approx(row["cpu"] / row["gpu"], rel=0.035, abs=0.1)
        assert row["factor"] == close, (row["figure"], row["size"])


def test_states_of_the_thesis_are_those_of_the_models_but_for_polling():
    rows = published.gauss_seidel_2013().rows
    for row in rows:
        if row["family"] in ("tandem", "kanban", "fms"):
            counts = FAMILIES[row["family"]].counts(row["size"])
            assert row["states"] == pytest.approx(counts[0], rel=0.02)
    # The remark in the data file is about this.
    polling = [row for row in rows if row["family"] == "polling"]
    assert any(FAMILIES["polling"].counts(row["size"])[0] != row["states"] for row in polling)


def test_a_row_that_is_not_there_is_none():
    paper = published.gpu_prism_2011()
    assert paper.row(family="tandem", size=255)["iterations"] == 4212
    assert paper.row(family="tandem", size=256) is None


def test_three_tokens_of_herman_against_published_values():
    # PRISM's page on the case study: 3: 1.33, 5: 3.2, 7: 6.86, 9: 12, 11: 17.45.
    values = [herman_three_tokens(n) for n in (3, 5, 7, 9, 11)]
    assert values == pytest.approx([4 / 3, 3.2, 48 / 7, 12.0, 192 / 11])


def test_known_values_are_probabilities_where_they_must_be():
    for family, asked, size in (("cluster", "premium", 64), ("polling", "before", 10)):
        value, source = published.known_value(family, asked, size)
        assert 0 < value < 1
        assert source
    assert published.known_value("cluster", "premium", 65) is None
    assert published.known_counts("kanban", 99) is None
