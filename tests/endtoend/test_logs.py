"""The log beside PRISM's own: the same lines where the engine and the method are named.

What may differ is listed in docs/switches.md, under "What the log says".
"""

import re
from itertools import chain

import pytest

pytestmark = pytest.mark.prism

CHAINS = [
    ("simple/dice/dice.pm", "simple/dice/dice.pctl", ""),
    ("dtmcs/brp/brp.pm", "dtmcs/brp/brp.pctl", "N=16,MAX=2"),
    ("dtmcs/herman/herman5.pm", "dtmcs/herman/herman.pctl", "k=2"),
    ("ctmcs/tandem/tandem.sm", "ctmcs/tandem/tandem.csl", "c=5,T=1"),
    ("ctmcs/cluster/cluster.sm", "ctmcs/cluster/cluster.csl", "N=2,T=1"),
    ("ctmcs/polling/poll4.sm", "ctmcs/polling/poll.csl", "T=1"),
    ("ctmcs/kanban/kanban.sm", "ctmcs/kanban/kanban.csl", "t=2"),
    # Jacobi under PRISM's explicit engine takes minutes there.
    ("ctmcs/embedded/embedded.sm", "ctmcs/embedded/embedded.csl", "MAX_COUNT=2,T=1"),
    ("ctmcs/fms/fms.sm", "ctmcs/fms/fms.csl", "n=2"),
]
DECISIONS = [
    ("mdps/consensus/coin2.nm", "mdps/consensus/coin.pctl", "K=2,k=2"),
    ("mdps/csma/csma2_2.nm", "mdps/csma/csma.pctl", "k=2"),
    ("mdps/wlan/wlan0.nm", "mdps/wlan/wlan.pctl", "TRANS_TIME_MAX=10,COL=0,k=0"),
    ("mdps/zeroconf/zeroconf.nm", "mdps/zeroconf/zeroconf.pctl", "N=20,K=2,reset=true,T=5"),
    ("mdps/leader_async/leader3.nm", "mdps/leader_async/leader.pctl", ""),
    ("mdps/rabin/rabin3.nm", "mdps/rabin/rabin.pctl", ""),
    (
        "mdps/firewire/impl/firewire.nm",
        "mdps/firewire/impl/deadline.pctl",
        "delay=3,fast=0.5,deadline=100",
    ),
]
# Each chain under both engines, and with both methods.
CHAIN_RUNS = [
    (*model, engine, ("-jacobi", "-power")[(place + turn) % 2])
    for place, model in enumerate(CHAINS)
    for turn, engine in enumerate(("-explicit", "-sparse"))
]
DECISION_RUNS = [
    (*model, engine, "-valiter") for model in DECISIONS for engine in ("-explicit", "-sparse")
]
NUMBER = re.compile(r"\d+(\.\d+)?([eE][-+]?\d+)?")
# The header, the closing line, and the exceptions of docs/switches.md.
OURS = re.compile(
    r"prism-gpu: version |prism-gpu: # solves? on |"
    r"prism-gpu: .* converges slowly: |prism-gpu: errors not told with the results are at most |"
    r"prism-gpu: of # results? no error is known$|"
    r"Iteration #.*so far$"
)
# Where PRISM claims an accuracy, ours may claim another one.
ACCURACY = re.compile(r"^(Result.*: \S+) \(\+/- .*\)$")
EXPLICIT_STEADY = re.compile(r"^Jacobi(: # iterations in # seconds\.)$")


def lines_of(log: str) -> list[str]:
    """Return what is compared of a log: no digits, no blank lines, nothing that may differ."""
    plain = (NUMBER.sub("#", line).rstrip() for line in log.splitlines())
    kept = (line for line in plain if line and not OURS.match(line))
    return [
        EXPLICIT_STEADY.sub(r"Power method\1", ACCURACY.sub(r"\1 (#)", line)).replace(
            " MB]", " KB]"
        )
        for line in kept
    ]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("model", "properties", "constants", "engine", "method"),
    [*chain(CHAIN_RUNS, DECISION_RUNS)],
)
def test_the_log_is_prisms_where_engine_and_method_are_named(
    prism_gpu, prism, prism_examples, model, properties, constants, engine, method
):
    words = [prism_examples / model, prism_examples / properties, engine, method]
    words += ["-const", constants] if constants else []
    theirs, ours = prism(*words), prism_gpu(*words, "-nogpu")
    assert ours.code == theirs.code
    # PRISM's exit rates there are sums in another order.
    lines = lines_of if "embedded" in model else lines_with_numbers
    expected = lines(theirs.output)
    assert len(expected) > 9
    assert lines(ours.output) == expected


TIMES = re.compile(r"[-\d.eE]+ seconds( \(average [-\d.eE]+, setup [-\d.eE]+\))?|[-\d.eE]+ secs")
DIGITS = re.compile(r"\d+\.(\d{6,}|0\b)([eE]-?\d+)?")
HEADER = re.compile(
    r"(Version|Date|Hostname|Memory limits|Command line): |"
    r"prism-gpu: version |prism-gpu: \d+ solves? on |"
    r"prism-gpu: .* converges slowly: |prism-gpu: errors not told with the results are at most |"
    r"prism-gpu: of \d+ results? no error is known$"
)


def numbered_lines_of(log: str) -> list[str]:
    """Return the lines with their numbers: of iterations, entries, nodes; without times."""
    kept = (line.rstrip() for line in log.splitlines() if not HEADER.match(line))
    plain = (TIMES.sub("T", ACCURACY.sub(r"\1 (#)", line)) for line in kept)
    return [DIGITS.sub(lambda found: f"{float(found[0]):.4g}", line) for line in plain if line]


def lines_with_numbers(log: str) -> list[str]:
    """Return the lines with their numbers, without those that may differ."""
    return [line for line in numbered_lines_of(log) if not OURS.match(NUMBER.sub("#", line))]


DICE = "simple/dice/dice.pm"
DICE_LONG_RUN = ("-pf", "S=? [ d=1 ]; S>0.1 [ d=1 ]; R=? [ S ]; S=? [ d=7 ]")
TANDEM_LONG_RUN = ("-const", "c=4", "-pf", "S=? [ sc>0 ]; R=? [ S ]")
TWO_DICE = "simple/dice/two_dice.nm"
WINNING = ("-pf", "Pmax=? [ F<=9 s1=7 & s2=7 ]; Rmin=? [ F s1=7 & s2=7 ]; Rmax=? [ C<=5 ]")
REACHED = (
    "-pf",
    "P=? [ F s=7 & d=1 ]; filter(state, P=? [ F d=1 ], d=2); P=? [ F s=7 ]; "
    "P>0.1 [ X (P=? [ F d=1 ] > 0.2) ]",
)
COIN = ("mdps/consensus/coin2.nm", "-const", "K=2")
REACHED_BY_CHOICES = (
    "-pf",
    'Pmax=? [ F "finished" & "all_coins_equal_1" ]; Pmin=? [ F "finished" ]; Pmax=? [ F<=9 false ]',
)
MUTUAL = "mdps/mutual/mutual3.nm"
CRITICAL = ("-pf", "Pmax=? [ F p1=10 ]; Pmin=? [ F p1=10 ]")
# Nobody asks for the value of the inner formula.
NOWHERE = ("-pf", "P=? [ P>=0 [ X d=1 ] W P>0.99 [ G F d=2 ] ]")
NOWHERE_BY_CHOICES = ("-pf", "Pmin=? [ P>=0 [ X d1=1 ] W P>0.99 [ G F d1=2 ] ]")
TANDEM = ("ctmcs/tandem/tandem.sm", "-const", "c=4")
CONSTANT = ("-pf", "S=? [ sc>=0 ]; S>0.2 [ sc>=0 ]; S=? [ sc>9 ]")
REPEATED = (
    "-pf",
    "Pmax=? [ G F s1=7 & s2=7 ]; Pmax=? [ (F d1=1) & (F d2=2) ]; Pmin=? [ F G d1=1 ]",
)
NUMBERED = {
    "products with automata": (TWO_DICE, *REPEATED, "-sparse", "-valiter"),
    "an empty product": (DICE, *NOWHERE, "-explicit", "-jacobi"),
    "an empty product of choices": (TWO_DICE, *NOWHERE_BY_CHOICES, "-explicit", "-valiter"),
    "the long run of a constant": (*TANDEM, *CONSTANT, "-sparse", "-power"),
    "the same, not converged": (*TANDEM, *CONSTANT, "-sparse", "-jacobi", "-maxiters", "4"),
    "products, explicit": (TWO_DICE, *REPEATED, "-explicit", "-valiter"),
    "several components": (DICE, *DICE_LONG_RUN, "-sparse", "-jacobi"),
    "the same by powers": (DICE, *DICE_LONG_RUN, "-sparse", "-power"),
    "each value": (DICE, "-pf", "S=? [ d=1 ]", "-sparse", "-jacobi", "-v"),
    "single states": (DICE, *DICE_LONG_RUN, "-explicit", "-jacobi"),
    "distribution": (DICE, "-ss", "-sparse", "-power"),
    "distribution over one of two": ("dtmcs/herman/herman3.pm", "-ss", "-sparse", "-jacobi"),
    "distribution, explicit": (DICE, "-ss", "-explicit", "-jacobi"),
    "distribution of rates": (
        "ctmcs/tandem/tandem.sm",
        "-const",
        "c=4",
        "-ss",
        "-explicit",
        "-power",
    ),
    "one component": ("ctmcs/tandem/tandem.sm", *TANDEM_LONG_RUN, "-sparse", "-power"),
    "distribution over one": (
        "ctmcs/tandem/tandem.sm",
        "-const",
        "c=4",
        "-ss",
        "-sparse",
        "-power",
    ),
    "no convergence": (
        "ctmcs/tandem/tandem.sm",
        *TANDEM_LONG_RUN,
        "-sparse",
        "-jacobi",
        "-maxiters",
        "9",
    ),
    "total rewards": (DICE, "-pf", "R=? [ C ]; R=? [ F d=1 ]", "-explicit", "-jacobi"),
    "total rewards, sparse": (DICE, "-pf", "R=? [ C ]", "-sparse", "-jacobi"),
    "total rewards by powers": (DICE, "-pf", "R=? [ C ]", "-sparse", "-power"),
    "endless rewards": (
        "ctmcs/tandem/tandem.sm",
        *("-const", "c=4", "-pf", "R=? [ C ]; R=? [ I=0 ]", "-explicit", "-power"),
    ),
    "a lower bound": (DICE, "-pf", "P=? [ F>=2 s=7 ]", "-explicit", "-jacobi"),
    "bounds from below and above": (
        *(DICE, "-pf", "P=? [ F=2 s=2 ]; P=? [ F[3,4] s=2 ]; P=? [ G[1,1] s=2 ]"),
        *("-explicit", "-jacobi"),
    ),
    "the same with choices": (
        *(TWO_DICE, "-pf", "Pmin=? [ F=2 s1=2 ]; Pmax=? [ F[3,4] s1=2 ]; Pmax=? [ F<=0 s1=2 ]"),
        *("-explicit", "-valiter"),
    ),
    "one relation a model": (
        *(DICE, "-pf", "P=? [ F s=2 ]; P=? [ G F s=2 ]; P=? [ F s=3 ]"),
        *("-explicit", "-jacobi"),
    ),
    "choices to stay": (MUTUAL, *CRITICAL, "-sparse", "-valiter", "-nopre"),
    "choices to stay, found before": (MUTUAL, *CRITICAL, "-sparse", "-valiter"),
    "a report on reachability": (DICE, *DICE_LONG_RUN, "-sparse", "-jacobi", "-extrareachinfo"),
    "a report on diagrams": (MUTUAL, *CRITICAL, "-sparse", "-valiter", "-extraddinfo"),
    "no report without diagrams": (
        *(DICE, *DICE_LONG_RUN, "-explicit", "-jacobi"),
        *("-extrareachinfo", "-extraddinfo"),
    ),
    "policies": (
        "mdps/consensus/coin2.nm",
        *("-const", "K=2", "-pf", 'Rmax=? [ F "finished" ]', "-explicit", "-politer"),
    ),
    "bounds": (DICE, *REACHED, "-explicit", "-ii", "-jacobi"),
    "bounds by powers, absolute": (DICE, *REACHED, "-explicit", "-ii", "-power", "-abs"),
    "bounds, sparse": (DICE, *REACHED, "-sparse", "-ii", "-jacobi"),
    "bounds by powers, sparse": (DICE, *REACHED, "-sparse", "-ii", "-power", "-abs"),
    "bounds that stay apart": (DICE, *REACHED, "-sparse", "-ii", "-power", "-maxiters", "5"),
    "the same, explicit": (DICE, *REACHED, "-explicit", "-ii", "-jacobi", "-maxiters", "5"),
    "bounds that may fall": (
        *(DICE, *REACHED, "-explicit", "-jacobi"),
        "-intervaliter:nomonotonicbelow,nomonotonicabove",
    ),
    "bounds with choices": (*COIN, *REACHED_BY_CHOICES, "-explicit", "-ii", "-valiter"),
    "bounds with choices, sparse": (
        *COIN,
        *("-pf", 'Pmin=? [ F "finished" & "all_coins_equal_1" ]; Pmin=? [ F<=9 "finished" ]'),
        *("-sparse", "-ii", "-valiter"),
    ),
    "earning transitions": (TWO_DICE, *WINNING, "-sparse", "-valiter"),
    "a chain's method for choices": (TWO_DICE, *WINNING, "-sparse", "-jacobi"),
    "a method of choices for a chain": (DICE, *DICE_LONG_RUN, "-sparse", "-valiter"),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", NUMBERED)
def test_the_numbers_in_the_log_are_prisms_too(prism_gpu, prism, prism_examples, name):
    model, *words = NUMBERED[name]
    theirs = prism(prism_examples / model, *words)
    ours = prism_gpu(prism_examples / model, *words, "-nogpu")
    assert ours.code == theirs.code
    expected = numbered_lines_of(theirs.output)
    assert len(expected) > 12
    assert numbered_lines_of(ours.output) == expected


EARNING = """mdp
module walk
  s : [0..5];
  [paid] s=0 -> 0.5:(s'=1) + 0.5:(s'=2);
  [] s=0 -> 0.2:(s'=3) + 0.8:(s'=0);
  [] s=1 -> 0.9:(s'=1) + 0.1:(s'=4);
  [] s=1 -> (s'=5);
  [] s=2 -> 0.3:(s'=3) + 0.7:(s'=4);
  [] s=3 -> 0.6:(s'=2) + 0.4:(s'=4);
  [] s=4 -> true;
  [] s=5 -> (s'=1);
endmodule
init true endinit
rewards "finite" s=0 : 1; s=2 : 0.5; s=3 : 1; [paid] true : 3; endrewards
rewards "infinite_in_a_loop" s=2 : 2; s=5 : 1; endrewards
rewards "infinite" true : 1; endrewards
"""


@pytest.mark.parametrize("engine", ["-explicit", "-sparse"])
def test_total_rewards_of_choices_have_prisms_lines(prism_gpu, prism, tmp_path, engine):
    model = tmp_path / "walk.nm"
    model.write_text(EARNING)
    names = ("finite", "infinite_in_a_loop", "infinite")
    asked = "; ".join(f'filter(print, R{{"{name}"}}max=? [ C ])' for name in names)
    words = (model, "-pf", asked, engine, "-valiter")
    expected = numbered_lines_of(prism(*words).output)
    assert len(expected) > 40
    assert numbered_lines_of(prism_gpu(*words, "-nogpu").output) == expected


SELF_LOOP = """ctmc
module walk
  s : [0..1];
  [] s=0 -> 2:(s'=1) + 100:(s'=0);
  [] s=1 -> 1:(s'=0);
endmodule
rewards s=1 : 1; endrewards
"""


@pytest.mark.parametrize("only_loops", [False, True], ids=["a walk", "loops alone"])
@pytest.mark.parametrize("engine", ["-explicit", "-sparse"])
def test_sums_over_time_are_prisms_where_states_have_loops(
    prism_gpu, prism, tmp_path, engine, only_loops
):
    model = tmp_path / "walk.sm"
    model.write_text(SELF_LOOP.replace("(s'=1)", "(s'=0)") if only_loops else SELF_LOOP)
    asked = "P=? [ F<=1 s=1 ]; P=? [ F=1 s=1 ]; R=? [ I=1 ]; R=? [ C<=1 ]"
    words = (model, "-pf", asked, engine, "-jacobi")
    ours, theirs = prism_gpu(*words, "-nogpu").output, prism(*words).output
    assert numbered_lines_of(ours) == numbered_lines_of(theirs)
    results = [re.findall(r"^Result: (\S+)", log, re.M) for log in (ours, theirs)]
    for found, expected in zip(*results, strict=True):
        assert float(found) == pytest.approx(float(expected), rel=1e-12)


VALUE = re.compile(r"(?<=^Result: )\S+|(?<=^Value in the initial state: )\S+")
STEADY = {
    "bounds": ("-pf", "P=? [ F<=50 sc=5 ]; P=? [ true U[2,30] sc=5 ]; P=? [ G<=100 sc<5 ]"),
    "rewards": ("-pf", 'R{"customers"}=? [ C<=40 ]; R{"customers"}=? [ I=100 ]'),
    "coarse": ("-pf", "P=? [ F<=50 sc=5 ]", "-absolute", "-epsilon", "1e-3"),
    "by switch": ("-tr", "60"),
    "not looked for": ("-pf", "P=? [ F<=50 sc=5 ]", "-nossdetect"),
}


@pytest.mark.parametrize("asked", STEADY.values(), ids=STEADY)
def test_sums_are_told_to_end_where_prism_ends_them(prism_gpu, prism, prism_examples, asked):
    """PRISM leaves an error there; what we print is the whole sum."""
    words = (
        prism_examples / "ctmcs/tandem/tandem.sm",
        "-const",
        "c=5",
        *asked,
        "-sparse",
        "-power",
    )
    ours, theirs = prism_gpu(*words, "-nogpu").output, prism(*words).output
    assert ("Steady state detected" in theirs) == ("-nossdetect" not in asked)
    lines = [[VALUE.sub("", line) for line in numbered_lines_of(log)] for log in (ours, theirs)]
    assert lines[0] == lines[1]
    whole = prism(*words, *() if "-nossdetect" in asked else ("-nossdetect",)).output
    results = [re.findall(r"^Result: (\S+)", log, re.M) for log in (ours, whole)]
    for found, expected in zip(*results, strict=True):
        assert float(found) == pytest.approx(float(expected), rel=1e-6, abs=1e-12)


def test_steps_are_told_to_end_where_prism_ends_them(prism_gpu, prism, tmp_path):
    model = tmp_path / "walk.pm"
    model.write_text(
        SELF_LOOP.replace("ctmc", "dtmc").replace("2:", "0.2:").replace("100:", "0.8:")
    )
    for more in ((), ("-absolute", "-epsilon", "1e-3"), ("-nossdetect",)):
        words = (model, "-tr", "200", "-sparse", "-jacobi", *more)
        ours, theirs = prism_gpu(*words, "-nogpu").output, prism(*words).output
        assert ("Steady state detected" in theirs) == ("-nossdetect" not in more)
        assert numbered_lines_of(ours) == numbered_lines_of(theirs)


@pytest.mark.parametrize("engine", ["-explicit", "-sparse"])
@pytest.mark.parametrize("bound", ["P<=1", "P>=0", "P>=1", "P>0.5"])
def test_what_is_not_searched_for_is_compared_all_the_same(
    prism_gpu, prism_examples, bound, engine
):
    asked = ("-pf", f"{bound} [ s<7 W s=8 ]; {bound} [ G s<6 ]; {bound} [ F s=7 ]")
    run = prism_gpu(prism_examples / DICE, *asked, engine, "-jacobi", "-nopre", "-nogpu")
    trivial = str(bound in ("P<=1", "P>=0")).lower()
    assert re.findall(r"^Result: (\S+)", run.output, re.M) == [trivial, trivial, "true"]


def test_a_single_state_has_nothing_to_compute(prism_gpu, prism, tmp_path):
    model = tmp_path / "one.pm"
    model.write_text("dtmc module one s : [0..1]; [] true -> true; endmodule")
    words = (model, "-pf", "S=? [ s=0 ]; S=? [ s=1 ]", "-sparse", "-jacobi")
    ours, theirs = prism_gpu(*words, "-nogpu").output, prism(*words).output
    assert numbered_lines_of(ours) == numbered_lines_of(theirs)


def test_total_rewards_that_do_not_converge_have_prisms_lines(prism_gpu, prism, prism_examples):
    asked = ("-pf", "R=? [ C ]", "-explicit", "-power", "-maxiters", "3")
    words = (prism_examples / DICE, *asked)
    ours, theirs = prism_gpu(*words, "-nogpu").output, prism(*words).output
    assert "did not converge" in ours
    assert numbered_lines_of(ours) == numbered_lines_of(theirs)


def test_more_terms_than_java_counts_are_summed(prism_gpu, tmp_path):
    model = tmp_path / "walk.sm"
    model.write_text(SELF_LOOP)
    run = prism_gpu(model, "-pf", "P=? [ F=1e8 s=1 ]", "-explicit", "-jacobi", "-nogpu", "-gpuinfo")
    found = re.search(r"^Result: (\S+) \(\+/- (\S+) ", run.output, re.M)
    assert found is not None
    assert abs(float(found[1]) - 2 / 3) <= float(found[2]) < 1e-3


def test_gauss_seidel_has_prisms_lines(prism_gpu, prism, prism_examples):
    words = (prism_examples / DICE, "-pf", "P=? [ F d=1 ]; R=? [ F s=7 ]", "-sparse", "-gs")
    assert lines_of(prism_gpu(*words, "-nogpu").output) == lines_of(prism(*words).output)


def test_rewards_are_solved_by_our_choice_where_prism_leaves_its_method(prism_gpu, prism_examples):
    words = (prism_examples / TWO_DICE, *WINNING, "-explicit", "-modpoliter", "-nogpu")
    run = prism_gpu(*words)
    assert len(re.findall(r"^Result: ", run.output, re.M)) == 3
    assert "failed unexpectedly" not in run.output
    assert "policy iteration with elimination" in run.output


@pytest.mark.parametrize("method", ["-politer", "-modpoliter"])
def test_policy_iteration_has_prisms_lines(prism_gpu, prism, prism_examples, method):
    asked = ("-const", "K=2", "-pf", 'Pmin=? [ F "finished" & "all_coins_equal_1" ]')
    words = (prism_examples / "mdps/consensus/coin2.nm", *asked, "-explicit", method)
    log = prism_gpu(*words, "-nogpu").output
    assert "olicy iteration took" in log
    assert lines_of(log) == lines_of(prism(*words).output)


def test_total_rewards_by_policies_have_prisms_lines(prism_gpu, prism, prism_examples):
    words = (prism_examples / TWO_DICE, "-pf", "Rmax=? [ C ]", "-explicit", "-politer")
    log = prism_gpu(*words, "-nogpu").output
    assert "solve on the CPU" in log
    assert lines_of(log) == lines_of(prism(*words).output)


def test_near_to_a_bound_the_long_run_is_one_question(prism_gpu, prism_examples):
    # The power method stops at 0.16666650772…
    asked = ("-pf", "S>0.1666666 [ d=1 ]; S>0.1666667 [ d=1 ]")
    log = prism_gpu(prism_examples / DICE, *asked, "-sparse", "-power", "-nogpu").output
    assert re.findall(r"^Result: (\w+)", log, re.M) == ["true", "false"]


def test_remarks_of_ours_are_behind_gpuinfo(prism_gpu, prism_examples):
    words = (
        *(prism_examples / "ctmcs/tandem/tandem.sm", "-const", "c=5"),
        *("-pf", "P=? [ true U<=1 sc=c ]"),
    )
    brief = prism_gpu(*words, "-sparse", "-jacobi", "-nogpu").output
    full = prism_gpu(*words, "-sparse", "-jacobi", "-nogpu", "-gpuinfo").output
    assert "truncation below" in full
    assert "truncation below" not in brief
    assert "Fox-Glynn: left = 0, right = " in brief


AT_THE_END = re.compile(r"^prism-gpu: errors not told with the results are at most (\S+) ", re.M)


@pytest.mark.parametrize("engine", ["-explicit", "-sparse"])
def test_the_end_tells_the_errors_that_prisms_log_has_no_place_for(
    prism_gpu, prism_examples, engine
):
    asked = "P=? [ F<=1 sc=c ]; P=? [ G<=1 sc<c ]; R=? [ S ]"
    words = (prism_examples / "ctmcs/tandem/tandem.sm", "-const", "c=5", "-pf", asked)
    log = prism_gpu(*words, engine, "-power", "-nogpu").output
    each = prism_gpu(*words, engine, "-power", "-nogpu", "-gpuinfo").output
    assert len(re.findall(r"^Result: \S+$", log, re.M)) == 3
    errors = re.findall(r"^Result: \S+ \(\+/- (\S+) estimated", each, re.M)
    assert len(errors) == 3
    assert AT_THE_END.findall(log) == [str(max(errors, key=float))]
    assert AT_THE_END.findall(each) == []


def test_the_end_tells_of_the_method_that_stopped_farthest_from_a_solution(
    prism_gpu, prism_examples
):
    asked = 'Pmax=? [ F "finished" & "agree" ]; Rmax=? [ F "finished" ]'
    words = (prism_examples / COIN[0], *COIN[1:], "-pf", asked, "-explicit", "-valiter", "-nogpu")
    log, told = prism_gpu(*words).output, prism_gpu(*words, "-gpuinfo").output
    warnings = re.findall(r"^Warning: (Iterative method stopped .* (\S+))$", told, re.M)
    assert warnings
    worst = max(warnings, key=lambda warning: float(warning[1]))[0]
    assert f"\nprism-gpu: {worst}" in log
    assert "Warning: Iterative method stopped" not in log


def test_values_that_the_last_iteration_left_are_exact_by_prisms_account(prism_gpu, prism_examples):
    words = (prism_examples / "dtmcs/brp/brp.pm", "-const", "N=16,MAX=2")
    words += ("-pf", "P=? [ true U s=5 ]", "-explicit", "-power", "-nogpu", "-epsilon", "1e-99")
    log = prism_gpu(*words).output
    assert re.search(r"^Result: \S+E-4 \(exact floating point\)$", log, re.M)
    each = prism_gpu(*words, "-gpuinfo").output
    told = re.search(r"^Result: \S+ \(\+/- (\S+) estimated", each, re.M)
    assert told is not None
    assert AT_THE_END.findall(log) == [told[1]]


def test_a_method_of_our_choice_is_named_as_it_is(prism_gpu, prism_examples):
    words = (prism_examples / "dtmcs/herman/herman7.pm", "-pf", 'R=? [ F "stable" ]', "-nogpu")
    log = prism_gpu(*words, "-explicit").output
    assert "Starting value iteration" not in log
    named = prism_gpu(*words, "-explicit", "-power").output
    assert "Starting value iteration (with Power method) ..." in named
