"""The JUnit XML: what continuous integration reads, and what its schema allows."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bridge.regress.compare import Distance
from bridge.regress.junit import write_junit
from bridge.regress.plan import Case
from bridge.regress.run import CaseResult
from bridge.regress.table import RULE, case_lines, summary_lines
from bridge.regress.verdicts import Finding, Standing, Verdict

# The elements and attributes of the schema that Jenkins' xUnit plug-in holds a file against.
ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "id"},
    "testcase": {"name", "classname", "time"},
    "skipped": {"type", "message"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
}
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"testcase"},
    "testcase": {"skipped", "failure", "error"},
}
FAR = Distance(1, 0, 1.0, 2.0, 1.0, 0.5, 1e-6)


def finding(engine, standing, ours=False):
    text = "" if standing is Standing.AGREES else f'"{engine}" <says> \x01 & more'
    return Finding(engine, ours, standing, text, FAR, 0.5)


@pytest.fixture
def results():
    def verdict(name, prism, ours, judge=""):
        items = finding("explicit", prism), finding("cpu", ours, True)
        return Verdict("a case", name, items, judge)

    verdicts = [
        verdict("P=? [ F x<1 ]", Standing.AGREES, Standing.AGREES),
        verdict("prism wrong", Standing.WRONG, Standing.AGREES, "exact"),
        verdict("within", Standing.WITHIN, Standing.AGREES, "exact"),
        verdict("ours wrong", Standing.AGREES, Standing.WRONG, "exact"),
        verdict("undecided", Standing.DIFFERS, Standing.DIFFERS),
        verdict("missing", Standing.AGREES, Standing.MISSING),
        verdict("refused", Standing.REFUSED, Standing.REFUSED),
        verdict("nothing", Standing.AGREES, Standing.NOTHING),
    ]
    return [
        CaseResult(Case("a case", Path(), ()), verdicts, {"cpu": 1.0}),
        CaseResult(Case("another", Path(), (), left_out="simulation"), [], {}),
    ]


def test_the_elements_are_those_of_the_schema_and_the_counts_add_up(results, tmp_path):
    path = tmp_path / "report.xml"
    write_junit(results, path)
    root = ElementTree.parse(path).getroot()
    assert root.tag == "testsuites"
    for element in root.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag]
        assert {child.tag for child in element} <= CHILDREN.get(element.tag, set())
        assert not (element.text or "").strip()
    assert all(len(case) <= 1 for case in root.iter("testcase"))
    for suite in root:
        found = {
            "tests": len(suite.findall("testcase")),
            "failures": len(suite.findall("testcase/failure")),
            "errors": len(suite.findall("testcase/error")),
            "skipped": len(suite.findall("testcase/skipped")),
        }
        assert found == {name: int(suite.get(name)) for name in found}
        assert suite.get("name")
    assert root.get("tests") == "17"


def test_each_question_and_engine_is_a_test_case_and_fails_where_it_should(results, tmp_path):
    path = tmp_path / "report.xml"
    write_junit(results, path)
    found = {
        (case.get("name"), case.get("classname")): [
            (item.tag, item.get("message")) for item in case
        ]
        for case in ElementTree.parse(path).getroot().iter("testcase")
    }
    assert found["P=? [ F x<1 ]", "a case.cpu"] == []
    ((tag, text),) = found["prism wrong", "a case.explicit"]
    assert tag == "skipped"
    assert text == 'PRISM is wrong: "explicit" <says> \ufffd & more (decided by exact)'
    assert found["prism wrong", "a case.cpu"] == []
    ((tag, text),) = found["within", "a case.explicit"]
    assert tag == "skipped"
    assert text.startswith("within the claimed error: ")
    assert found["ours wrong", "a case.cpu"][0][0] == "failure"
    assert found["ours wrong", "a case.explicit"] == []
    assert found["undecided", "a case.explicit"][0][0] == "failure"
    assert found["missing", "a case.cpu"][0][0] == "error"
    assert found["refused", "a case.cpu"] == []
    assert found["nothing", "a case.cpu"][0][0] == "skipped"
    assert found["another", "case"] == [("skipped", "simulation")]


def test_the_table_counts_outcomes_and_tells_what_does_not_agree(results):
    lines = list(case_lines(results[0]))
    assert (
        lines[0]
        .splitlines()[1]
        .startswith(
            "  1 agree, 1 within the claimed error, 1 refused by all, 1 PRISM wrong, 2 ours wrong, "
            "1 undecided, 1 not compared"
        )
    )
    assert "  PRISM wrong: prism wrong, decided by exact" in lines
    assert not any("F x<1" in line for line in lines)
    summary = "\n".join(summary_lines(results))
    assert "8 questions of 2 cases: 1 agree" in summary
    assert RULE in " ".join(summary.split())
    assert "1 case left out" in summary
    assert "PRISM alone is wrong" not in summary


def test_the_largest_relative_difference_is_the_largest_of_all_that_was_compared(results):
    result = results[0]
    result.verdicts = result.verdicts[1:2]
    wrong, agrees = result.verdicts[0].findings
    near = replace(agrees, distance=replace(FAR, apart=0, relative=1e-9))
    result.verdicts[0] = replace(result.verdicts[0], findings=(wrong, near))
    rows = [line.split() for line in summary_lines(results)]
    largest = {row[0]: row[-2] for row in rows if row and row[0] in ("explicit", "cpu")}
    assert largest == {"explicit": "5.0e-01", "cpu": "1.0e-09"}
