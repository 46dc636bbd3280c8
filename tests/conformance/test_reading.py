"""How the conformance command reads auto lists, PRISM's verdicts, and the peer's."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.conformance.auto_lists import command_lines
from tests.conformance.compare import Summary, same_but_for_digits, same_result
from tests.conformance.verdicts import Call, Verdict, read_tests

PROGRAM = "/bin/prism-gpu"
OUTPUT = """\
/bin/prism-gpu a.nm a.props -ex -explicit -gpuinfo -testall
Testing result: PASS
Testing result: FAIL (Wrong result)
Error: 1 test failed
To see log file, run:
edit log
To re-run failing test:
/bin/prism-gpu a.nm a.props -ex -explicit -gpuinfo -testall
Testing export a.tra: PASS
Testing export a.tra: FAIL (no tmp.a.tra to compare to)
/bin/prism-gpu b.nm b.props -explicit -gpuinfo -testall
Testing result: UNSUPPORTED: no such engine
Testing result: NOT TESTED
Testing result: FAIL: Did not find a RESULT specification (for k=1) to test against
To re-run failing test:
/bin/prism-gpu b.nm b.props -explicit -gpuinfo -testall
/bin/prism-gpu c.nm -explicit -gpuinfo -testall

Timeout (1.0s)
/bin/prism-gpu d.nm -explicit -gpuinfo -testall
To see log file, run:
edit log
To re-run failing test:
/bin/prism-gpu d.nm -explicit -gpuinfo -testall

Test results:
 Success:            2
 Failure:            4
 Unsupported:        1
 Skipped:            1
"""
LOG = """\
PRISM
=====
Command line: prism a.nm a.props -ex -explicit -testall -mainlog '/x/log:append'
Model checking: P=? [ F x=1 ]
Property constants: k=1
prism-gpu: CPU, kernel NumPy, format csr, solved in 0.1 s
Result: 0.5 (exact floating point)
Testing result: PASS
Model checking: P=? [ X x=1 ]
prism-gpu: a next operator is not done by our engines; PRISM's own code runs it
Result: 0.25
Testing result: FAIL (Wrong result)
PRISM
=====
Command line: prism c.nm -explicit -testall -mainlog '/x/log:append'
prism-gpu: GPU 0, kernel jacobi, format csr
"""


@pytest.fixture
def tests() -> list[Call]:
    return read_tests(OUTPUT, LOG, PROGRAM, ["-explicit", "-gpuinfo"])


def test_a_loop_runs_its_body_for_every_value_and_comments_do_not_count():
    script = """\
#!/bin/csh
foreach N (1 2) # 3)
  foreach K ( 4 )
    prism m"$N"_"$K".pm p.pctl -const L=${N} # the end
  end
end
#prism left.pm
prism last.pm"""
    assert [" ".join(words) for words in command_lines(script)] == [
        "m1_4.pm p.pctl -const L=1",
        "m2_4.pm p.pctl -const L=2",
        "last.pm",
    ]


@pytest.mark.parametrize(
    "script", ["rm -r x", "foreach a (1)\nprism x", "end", "prism $x"], ids=repr
)
def test_a_line_that_is_not_understood_is_refused(script):
    with pytest.raises(ValueError, match="line 1"):
        command_lines(script)


def test_commands_are_told_without_the_switches_that_all_have(tests):
    assert [test.command for test in tests] == ["a.nm a.props -ex", "b.nm b.props", "c.nm", "d.nm"]


def test_each_verdict_of_prism_auto_is_read_with_its_property(tests):
    told = [(verdict.name, verdict.outcome, verdict.about) for verdict in tests[0].verdicts]
    assert told == [
        ("result 1", "passed", "P=? [ F x=1 ] [k=1]"),
        ("result 2", "failed", "P=? [ X x=1 ]"),
        ("error 1", "failed", ""),
        ("export a.tra", "passed", ""),
    ]
    assert [verdict.outcome for verdict in tests[1].verdicts] == [
        "unsupported",
        "skipped",
        "skipped",
    ]


def test_exports_that_prism_auto_looks_for_after_a_skipped_duplicate_do_not_count(tests):
    exports = [verdict for verdict in tests[0].verdicts if verdict.name.startswith("export")]
    assert [verdict.outcome for verdict in exports] == ["passed"]


def test_a_time_out_and_an_end_without_a_message_are_failures(tests):
    assert [verdict.name for verdict in tests[2].verdicts] == ["time-out"]
    assert [verdict.name for verdict in tests[3].verdicts] == ["end"]
    assert all(test.verdicts[0].outcome == "failed" for test in tests[2:])


def test_solves_and_reasons_are_counted_for_the_test_whose_log_it_is(tests):
    assert tests[0].solved == Counter({"CPU": 1})
    assert tests[0].handed_back == Counter({"a next operator": 1})
    assert tests[0].results == ["0.5 (exact floating point)", "0.25"]
    assert tests[1].solved.total() == 0
    assert tests[2].solved == Counter({"GPU 0": 1})


def test_verdicts_that_do_not_add_up_to_prism_autos_totals_are_refused():
    with pytest.raises(ValueError, match="counted 3 passed"):
        read_tests(OUTPUT.replace("Success:            2", "Success: 3"), LOG, PROGRAM, [])
    with pytest.raises(ValueError, match="without its totals"):
        read_tests(OUTPUT.partition("Test results")[0], LOG, PROGRAM, [])


def test_a_test_survives_being_stored(tests):
    assert [Call.from_json(test.as_json()) for test in tests] == tests


@pytest.mark.parametrize(
    ("mine", "other", "count"),
    [
        (("result 1", "failed", "x"), ("result 1", "passed", "y"), 1),
        (("result 1", "failed", "x"), ("result 1", "failed", "y"), 0),
        (("result 1", "failed", "x"), ("result 2", "failed", "x"), 1),
        (("result 1", "unsupported", "x"), ("result 1", "passed", "y"), 1),
        (("result 1", "unsupported", "x"), ("result 1", "unsupported", "y"), 0),
        (("result 1", "passed", "x"), ("result 1", "failed", "y"), 0),
        (("export a", "failed", "digest 1"), ("export a", "failed", "digest 1"), 0),
        (("export a", "failed", "digest 1"), ("export a", "failed", "digest 2"), 1),
    ],
)
def test_a_failure_is_new_if_plain_prism_does_better(mine, other, count):
    summary = Summary("tests", "")
    summary.add(Call("a", [Verdict(*mine)]), Call("a", [Verdict(*other)]))
    assert len(summary.new_failures) == count


def test_results_that_prism_does_not_test_are_compared_with_the_peers():
    untested = [Verdict("result 1", "skipped", "NOT TESTED")]
    summary = Summary("examples", "")
    summary.add(Call("a", untested, ["0.5", "0.25"]), Call("a", untested, ["0.5", "0.26"]))
    summary.add(Call("b", untested, ["0.5"]), Call("b", untested, ["0.5", "0.25"]))
    assert [failure.test for failure in summary.new_failures] == ["a", "b"]
    assert summary.compared == 3


def test_a_result_that_plain_prism_reaches_at_a_smaller_epsilon_is_no_failure():
    untested = [Verdict("result 1", "skipped", "NOT TESTED")]
    ours, peer = Call("a", untested, ["48", "2"]), Call("a", untested, ["47.99", "1"])
    summary = Summary("examples", "")
    summary.add(ours, peer, Call("a", untested, ["47.9999999", "1"]))
    assert summary.inexact == 1
    assert [failure.message for failure in summary.new_failures] == ["result 2: 2; PRISM's: 1"]


@pytest.mark.parametrize(
    ("mine", "expected", "same"),
    [
        ("7:(7,1)=0.1666666", "7:(7,1)=0.1666665", True),
        ("7:(7,1)=0.1667", "7:(7,1)=0.1666", False),
        ("8:(7,1)=0.1666666", "7:(7,1)=0.1666666", False),
        ("1000000", "1000001", False),
        ("1.0E-9", "1.0E-8", False),
        ("a=0.5", "b=0.5", False),
    ],
)
def test_exports_agree_in_all_but_the_late_digits_of_their_fractions(mine, expected, same):
    assert same_but_for_digits(mine, expected) is same


@pytest.mark.parametrize(
    ("mine", "other", "same"),
    [
        ("true", "true (in all states)", True),
        ("true", "false", False),
        ("0.500001", "0.5", True),
        ("0.5001", "0.5", False),
        ("0.5001", "0.5 (+/- 2.0E-4 estimated; rel err 4E-4)", True),
        ("0.5001 (+/- 2.0E-4; rel err 4E-4)", "0.5", True),
        ("Infinity", "Infinity", True),
        ("[0,1]", "[0,1]", True),
        ("Infinity", "1.0", False),
    ],
)
def test_results_agree_within_tolerance_and_the_errors_that_they_admit(mine, other, same):
    assert same_result(mine, other) is same
