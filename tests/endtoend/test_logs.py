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
    r"Warning: .* converges slowly: |Steady state detected at iteration #$|"
    r"Iteration #.*so far$"
)
NOTE = re.compile(r"-{10,}\n\nNote: There (was|were) \d+ warnings? during computation\.\n")
ACCURACY = re.compile(r"^(Result.*: #) \(.*\)$")
EXPLICIT_STEADY = re.compile(r"^Jacobi(: # iterations in # seconds\.)$")


def lines_of(log: str) -> list[str]:
    """Return what is compared of a log: no digits, no blank lines, nothing that may differ."""
    plain = (NUMBER.sub("#", line).rstrip() for line in NOTE.sub("", log).splitlines())
    kept = (line for line in plain if line and not OURS.match(line))
    return [
        EXPLICIT_STEADY.sub(r"Power method\1", ACCURACY.sub(r"\1", line)).replace(" MB]", " KB]")
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
    expected = lines_of(theirs.output)
    assert len(expected) > 12
    assert lines_of(ours.output) == expected


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


def test_a_method_of_our_choice_is_named_as_it_is(prism_gpu, prism_examples):
    words = (prism_examples / "dtmcs/herman/herman7.pm", "-pf", 'R=? [ F "stable" ]', "-nogpu")
    log = prism_gpu(*words, "-explicit").output
    assert "Starting value iteration" not in log
    named = prism_gpu(*words, "-explicit", "-power").output
    assert "Starting value iteration (with Power method) ..." in named
