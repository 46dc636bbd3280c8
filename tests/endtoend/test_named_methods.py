"""A named method does what PRISM's does: its values, and its number of iterations."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from tests.endtoend.comparing import remarks
from tests.endtoend.references import answers, relative_error

pytestmark = pytest.mark.prism

METHODS = (("-power",), ("-jacobi",), ("-jor", "-omega", "0.9"))
GAUSS_SEIDEL = (("-gs",), ("-bgs",), ("-pgs",), ("-bpgs",), ("-sor", "-omega", "0.9"))
_SPARSE_COUNT = re.compile(
    r"^(?:Jacobi|JOR|Power method|Iterative method): (\d+) iterations", re.MULTILINE
)
_EXPLICIT_COUNT = re.compile(
    r"^(?:Jacobi|JOR|Power method|Iterative method): (\d+) iterations"
    r"|^Value iteration.* took (\d+) iterations",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Case:
    """A model instance and its properties."""

    model: str
    constants: str | None
    properties: str

    def words(self, examples) -> list[object]:
        words = [examples / self.model, "-pctl", self.properties]
        return [*words, "-const", self.constants] if self.constants else words


CHAINS = {
    "tandem": Case("ctmcs/tandem/tandem.sm", "c=15", "R=? [ S ]; S=? [ sc=c ]; R=? [ F sc=c ]"),
    "cluster": Case(
        "ctmcs/cluster/cluster.sm",
        "N=32",
        'S=? [ "premium" ]; P=? [ left_n>30 U right_n<31 ]; R{"percent_op"}=? [ S ]',
    ),
    "herman": Case(
        "dtmcs/herman/herman7.pm",
        None,
        'filter(max, R=? [ F "stable" ]); filter(min, S=? [ x1=1 ])',
    ),
    "brp": Case("dtmcs/brp/brp.pm", "N=16,MAX=2", "P=? [ F s=5 ]; P=? [ F s=5 & srep=1 & i>8 ]"),
    "polling": Case(
        "ctmcs/polling/poll5.sm",
        None,
        "S=? [ s1=1 & !(s=1 & a=1) ]; P=? [ !(s=2 & a=1) U (s=1 & a=1) ]; "
        'R{"served"}=? [ F s1=1 & s2=1 & s3=1 ]',
    ),
    "embedded": Case(
        "ctmcs/embedded/embedded.sm",
        "MAX_COUNT=2",
        "P=? [ m=1 & count<3 U i=2 & s<2 ]; P=? [ F count=3 ]",
    ),
    "fms": Case("ctmcs/fms/fms.sm", "n=2", 'R{"productivity"}=? [ S ]; S=? [ P1=0 ]'),
}
DECISIONS = {
    "coin2": Case(
        "mdps/consensus/coin2.nm",
        "K=2",
        'Pmin=? [ F "finished" & "all_coins_equal_0" ]; Pmax=? [ F "finished" & !"agree" ]; '
        'R{"steps"}min=? [ F "finished" ]; R{"steps"}max=? [ F "finished" ]',
    ),
    "csma2_2": Case(
        "mdps/csma/csma2_2.nm",
        None,
        'Pmin=? [ F max_collisions>=2 ]; Pmax=? [ !"collision_max_backoff" U "all_delivered" ]; '
        'R{"time"}min=? [ F "all_delivered" ]; R{"time"}max=? [ F "all_delivered" ]',
    ),
    "zeroconf": Case(
        "mdps/zeroconf/zeroconf.nm",
        "N=20,K=2,reset=true,err=100",
        "Pmin=? [ F l=4 & ip=1 ]; Pmax=? [ F l=4 & ip=1 ]; Rmin=? [ F l=4 ]; Rmax=? [ F l=4 ]",
    ),
}
LONG = ("cluster", "embedded", "fms", "polling")
NAMES = [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in CHAINS]
GAUSS_SEIDEL_CASES = [
    pytest.param(m, id=m[0], marks=[] if m[0] in ("-gs", "-sor") else pytest.mark.slow)
    for m in GAUSS_SEIDEL
]
EPSILONS = (None, pytest.param("1e-8", marks=pytest.mark.slow))


def iterations(pattern: re.Pattern[str], output: str) -> list[int]:
    """Return the number of iterations of each solve."""
    counts = [int(next(filter(None, found.groups()))) for found in pattern.finditer(output)]
    # The explicit engine sweeps once over a component of one state; ours need not.
    return [count for count in counts if count > 1]


def assert_same(ours: str, theirs: str, pattern: re.Pattern[str]) -> None:
    """Values agree to 1e-9 relative, and iteration counts to one."""
    expected = answers(theirs)
    for mine, other in zip(answers(ours), expected, strict=True):
        if other.startswith("Error") or mine.startswith("Error"):
            assert mine == other
        else:
            value = other == "true" if other in ("true", "false") else float(other)
            assert relative_error(mine, value) <= 1e-9
    found, wanted = iterations(pattern, ours), iterations(pattern, theirs)
    assert len(found) == len(wanted)
    assert all(abs(x - y) <= 1 for x, y in zip(found, wanted, strict=True)), (found, wanted)


def with_epsilon(words: list[object], epsilon: str | None) -> list[object]:
    return words if epsilon is None else [*words, "-epsilon", epsilon]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("method", METHODS, ids=" ".join)
@pytest.mark.parametrize("name", NAMES)
def test_a_named_method_repeats_prism_s_sparse_engine(
    prism_gpu, prism, prism_examples, name, method, epsilon
):
    words = with_epsilon([*CHAINS[name].words(prism_examples), *method], epsilon)
    ours, theirs = prism_gpu(*words), prism(*words, "-sparse")
    assert_same(ours.output, theirs.output, _SPARSE_COUNT)
    assert ours.code == theirs.code


# JOR is left out: PRISM's explicit engine runs Gauss-Seidel in its place.
@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("method", METHODS[:2], ids=" ".join)
@pytest.mark.parametrize("name", CHAINS)
def test_a_method_named_with_the_explicit_engine_repeats_that_engine(
    prism_gpu, prism, prism_examples, name, method, epsilon
):
    words = with_epsilon([*CHAINS[name].words(prism_examples), *method, "-explicit"], epsilon)
    ours, theirs = prism_gpu(*words), prism(*words)
    assert_same(ours.output, theirs.output, _EXPLICIT_COUNT)
    assert ours.code == theirs.code


@pytest.mark.sampled(2)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("engine", ["sparse", "explicit"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name == "zeroconf" else name
        for name in DECISIONS
    ],
)
def test_named_value_iteration_repeats_prism_s(
    prism_gpu, prism, prism_examples, name, engine, epsilon
):
    words = with_epsilon([*DECISIONS[name].words(prism_examples), "-valiter"], epsilon)
    named = ["-explicit"] if engine == "explicit" else []
    ours, theirs = prism_gpu(*words, *named), prism(*words, f"-{engine}")
    pattern = _EXPLICIT_COUNT if engine == "explicit" else _SPARSE_COUNT
    assert_same(ours.output, theirs.output, pattern)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "constants", "text", "count"),
    [
        # Bošnački, Edelkamp, Sulewski, Wijs: Parallel probabilistic model checking on GPGPUs
        # (2011), whose counts are those of Jacobi in PRISM's sparse engine.
        ("ctmcs/tandem/tandem.sm", "c=255", "R=? [ S ]", 4212),
        ("ctmcs/cluster/cluster.sm", "N=122", 'S=? [ "premium" ]', 1077),
        ("dtmcs/herman/herman15.pm", None, 'filter(max, R=? [ F "stable" ], num_tokens=3)', 245),
    ],
    ids=["tandem-255", "cluster-122", "herman-15"],
)
def test_jacobi_takes_the_published_number_of_iterations(
    prism_gpu, prism_examples, model, constants, text, count
):
    words = Case(model, constants, text).words(prism_examples)
    run = prism_gpu(*words, "-jacobi", "-maxiters", "100000", timeout=600)
    (found,) = iterations(_SPARSE_COUNT, run.output)
    assert abs(found - count) <= 1


@pytest.mark.parametrize("method", GAUSS_SEIDEL_CASES)
def test_gauss_seidel_and_sor_are_swept_in_colours(prism_gpu, prism_examples, method):
    case = CHAINS["polling"]
    words = [*case.words(prism_examples), *method, "-epsilon", "1e-10", "-maxiters", "1000000"]
    run = prism_gpu(*words)
    said = [line for line in run.output.splitlines() if re.search(r"in \d+ colours", line)]
    assert said
    assert all(line.startswith("prism-gpu: ") for line in said)
    assert re.search(r"^(Backwards )?(Gauss-Seidel|SOR): \d+ iterations", run.output, re.M)
    # PRISM's pseudo methods, by blocks of its hybrid engine, are ours without blocks.
    pseudo = "p" in method[0]
    assert ("runs as" in run.output) == pseudo
    # values.json, poll5.
    wanted = [0.1449270936758439, 0.535740585606554, 4.161773100794414]
    assert [float(answer) for answer in answers(run.output)] == pytest.approx(wanted, rel=1e-6)


def test_colours_take_no_more_sweeps_than_prism_s_blocks(prism_gpu, prism, prism_examples):
    words = CHAINS["polling"].words(prism_examples)
    count = re.compile(r"Gauss-Seidel: (\d+) iterations")
    ours = iterations(count, prism_gpu(*words, "-gs").output)
    theirs = iterations(count, prism(*words, "-hybrid", "-pgs").output)
    assert len(ours) == len(theirs) > 0
    assert all(a <= b for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("method", ["-gs", "-modpoliter"])
def test_another_method_named_for_decisions_gives_the_right_value(
    prism_gpu, prism_examples, method
):
    words = [*DECISIONS["coin2"].words(prism_examples), method]
    run = prism_gpu(*words, "-epsilon", "1e-10", "-maxiters", "1000000")
    # values.json, coin2 with K=2: 49/128, 13/120, and 48 and 75 steps.
    found = [float(answer) for answer in answers(run.output)]
    assert found == pytest.approx([49 / 128, 13 / 120, 48.0, 75.0], rel=1e-6)
    assert remarks(run.output)


def test_gmres_ends_what_contracts_slowly_and_says_what_it_is_not_for(prism_gpu, prism_examples):
    cluster = [prism_examples / "ctmcs/cluster/cluster.sm", "-const", "N=8", "-gpumethod", "gmres"]
    repairs = 'R{"num_repairs"}=? [ F !"minimum" ]'
    output = prism_gpu(*cluster, "-pctl", repairs).output
    (value,) = (float(answer) for answer in answers(output))
    assert value == pytest.approx(54836.7408785, rel=1e-6)
    # Jacobi's sweeps are millions.
    count = re.search(r"^GMRES: (\d+) iterations", output, re.MULTILINE)
    assert count is not None
    assert int(count[1]) < 1_000
    output = prism_gpu(*cluster, "-pctl", 'S=? [ "premium" ]').output
    assert "for steady states try multilevel" in output
    assert "PRISM's own code runs it" in output
    output = prism_gpu(*cluster, "-explicit", "-topological", "-pctl", repairs).output
    assert "GMRES of one component after the other" in output


@pytest.mark.slow
def test_a_slow_chain_ends_by_gmres_where_no_method_is_named(prism_gpu, prism_examples):
    model = prism_examples / "ctmcs/cluster/cluster.sm"
    question = 'R{"num_repairs"}=? [ F !"minimum" ]'
    output = prism_gpu(model, "-const", "N=64", "-pctl", question, "-nogpu").output
    assert "solved by GMRES over stretches of sweeps" in output
    (value,) = (float(answer) for answer in answers(output))
    # By sparse LU.
    assert value == pytest.approx(489547.7429868404, rel=1e-6)


SLOW_POLICIES = """mdp
module m
  x : [0..3] init 1;
  [] x=0 -> 0.75 : (x'=0) + 0.25 : (x'=3);
  [] x=1 -> 3/1000004 : (x'=0) + 1000000/1000004 : (x'=2) + 1/1000004 : (x'=3);
  [] x=2 -> (x'=1);
  [] x=2 -> 1000/1007 : (x'=0) + 7/1007 : (x'=3);
  [] x=2 -> 0.5 : (x'=1) + 0.5 : (x'=2);
  [] x=3 -> 0.2 : (x'=0) + 0.6 : (x'=1) + 0.2 : (x'=3);
  [] x=3 -> true;
  [] x=3 -> 2/1000001 : (x'=0) + (1-2/1000001) : (x'=1);
endmodule
"""


def test_policies_that_end_far_from_the_solution_are_warned_of(prism_gpu, tmp_path):
    model = tmp_path / "slow.nm"
    model.write_text(SLOW_POLICIES)
    words = (model, "-pf", "Pmax=? [ G x>0 ]", "-explicit", "-modpoliter", "-nogpu")
    run = prism_gpu(*words)
    assert run.numbers() == pytest.approx([0.4], abs=1e-4)  # where 1/4 is right
    assert "\nprism-gpu: Modified policy iteration stopped" in run.output
