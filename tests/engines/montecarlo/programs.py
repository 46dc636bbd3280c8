"""Small programs and questions about them, for the tests of paths."""

from __future__ import annotations

import sys
from pathlib import Path

from engines.montecarlo.questions import (
    Bounds,
    CumulativeReward,
    InstantaneousReward,
    Monitor,
    Next,
    ReachabilityReward,
    Until,
)

from .reader import read_model

MODELS = Path(__file__).parents[3] / "examples" / "models"
sys.path.insert(0, str(MODELS))
from herman import herman_model  # noqa: E402
from philosophers import philosophers_model  # noqa: E402

DIE = """dtmc
module die
  s : [0..7]; d : [0..6];
  [] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=2);
  [] s=1 -> 0.5 : (s'=3) + 0.5 : (s'=4);
  [] s=2 -> 0.5 : (s'=5) + 0.5 : (s'=6);
  [] s=3 -> 0.5 : (s'=1) + 0.5 : (s'=7) & (d'=1);
  [] s=4 -> 0.5 : (s'=7) & (d'=2) + 0.5 : (s'=7) & (d'=3);
  [] s=5 -> 0.5 : (s'=7) & (d'=4) + 0.5 : (s'=7) & (d'=5);
  [] s=6 -> 0.5 : (s'=2) + 0.5 : (s'=7) & (d'=6);
  [] s=7 -> (s'=7);
endmodule
rewards "flips" [] s<7 : 1; endrewards
"""

# A server goes round stations, each of which holds at most one job.
POLLING = """ctmc
const int N = 3;
const double walk = 50;
const double work = 4;
const double arrive = work / N;
module server
  at : [1..N]; busy : bool init false;
  [pass1] at=1 & !busy -> walk : (at'=2);
  [stop1] at=1 & !busy -> walk : (busy'=true);
  [done1] at=1 & busy -> work : (busy'=false) & (at'=2);
  [pass2] at=2 & !busy -> walk : (at'=3);
  [stop2] at=2 & !busy -> walk : (busy'=true);
  [done2] at=2 & busy -> work : (busy'=false) & (at'=3);
  [pass3] at=3 & !busy -> walk : (at'=1);
  [stop3] at=3 & !busy -> walk : (busy'=true);
  [done3] at=3 & busy -> work : (busy'=false) & (at'=1);
endmodule
module station1
  job1 : [0..1];
  [] job1=0 -> arrive : (job1'=1);
  [pass1] job1=0 -> true;
  [stop1] job1=1 -> true;
  [done1] job1=1 -> (job1'=0);
endmodule
module station2 = station1 [ job1=job2, pass1=pass2, stop1=stop2, done1=done2 ] endmodule
module station3 = station1 [ job1=job3, pass1=pass3, stop1=stop3, done1=done3 ] endmodule
rewards "waiting" true : job1 + job2 + job3; endrewards
rewards "served" [done1] true : 1; [done2] true : 1; endrewards
"""

# Sensors of which two are needed; a processor that reads them, reboots, or gives up.
SENSORS = """ctmc
const int MOST = 2;
module sensors
  s : [0..3] init 3;
  [] s>0 -> s*0.05 : (s'=s-1);
endmodule
module reader
  r : [0..2] init 2;
  [] r=2 -> 0.02 : (r'=0) + 0.3 : (r'=1);
  [reboot] r=1 -> 4 : (r'=2);
endmodule
module control
  count : [0..MOST+1]; ok : bool init true;
  [reboot] true -> (count'=0);
  [tick] r=2 & s>=2 & ok -> 5 : (count'=0);
  [tick] r!=2 & count<=MOST & ok -> 5 : (count'=min(count+1, MOST+1));
  [] (count>MOST | s<2 | r=0) & ok -> 2 : (ok'=false);
endmodule
rewards "up" ok : 1; r=1 & ok : 0.5*s; [reboot] true : 2; endrewards
"""

# Two components that agree on a step, each with alternatives: a product of choices.
AGREEING = """dtmc
module left
  x : [0..3];
  [go] x<3 -> 0.7 : (x'=x+1) + 0.3 : true;
  [go] x>0 -> 0.5 : (x'=x-1) + 0.25 : (x'=0) + 0.25 : (x'=mod(x+y, 4));
  [] x=3 & y=3 -> (x'=0);
endmodule
module right
  y : [0..3];
  [go] y<3 -> (1/(x+1)) : (y'=y+1) + (x/(x+1)) : (y'=x);
  [go] mod(y, 2)=1 -> (y'=x);
  [halt] x=2 & y=2 -> 1 : true;
endmodule
module counter
  n : [0..2];
  [go] true -> (n'=mod(n+1, 3));
endmodule
rewards "work" [go] true : pow(x, 2) + 0.5*y; n=2 : 0.25; [] true : 3; endrewards
rewards "idle" x=y : 1; endrewards
"""

# A chain that ends in a state without a choice.
DEADLOCK = """dtmc
module chain
  x : [0..4];
  [] x<2 -> 0.5 : (x'=x+1) + 0.5 : (x'=4);
  [] x=2 -> (x'=3);
endmodule
rewards "x" true : x; [] true : 1; endrewards
"""

ENDING = DEADLOCK.replace("dtmc", "ctmc")


def in_bounds(e, left, right, *bounds, **strict):
    return Until(e(left), e(right), Bounds(*bounds, **strict))


def cases():
    """Name, program, and questions with exact answers that the tests know how to compute."""
    program, e = read_model(DIE)
    yield (
        "die",
        program,
        [
            Until(e("true"), e("s=7 & d=4")),
            Until(e("d=0"), e("s=7"), negated=True),
            in_bounds(e, "true", "s=7", 0.0, 4.0),
            in_bounds(e, "s<5", "d>1", 2.0, 5.0, lower_strict=True, upper_strict=True),
            Next(e("s=2")),
            ReachabilityReward(0, e("s=7")),
            CumulativeReward(0, 5.0),
        ],
    )
    program, e = read_model(herman_model(5))
    yield (
        "herman",
        program,
        [
            ReachabilityReward(0, e("num_tokens=1")),
            in_bounds(e, "true", "num_tokens=1", 0.0, 3.0),
            Next(e("num_tokens=3"), negated=True),
        ],
    )
    program, e = read_model((MODELS / "tandem.sm").read_text(), c=3)
    yield (
        "tandem",
        program,
        [
            in_bounds(e, "true", "first=c & second=c", 0.0, 2.0),
            in_bounds(e, "true", "first=c", 0.5, 0.9),
            CumulativeReward(0, 1.0),
            InstantaneousReward(0, 1.0),
        ],
    )
    program, e = read_model(POLLING)
    yield (
        "polling",
        program,
        [
            Until(e("!(busy & at=2)"), e("busy & at=1")),
            in_bounds(e, "true", "job1=1 & job2=1 & job3=1", 0.0, 1.0),
            in_bounds(e, "job1=0", "job2=1", 0.2, 0.7),
            CumulativeReward(0, 2.0),
            CumulativeReward(1, 2.0),
            InstantaneousReward(0, 0.5),
            Next(e("at=2")),
        ],
    )
    program, e = read_model(SENSORS)
    yield (
        "sensors",
        program,
        [
            in_bounds(e, "true", "!ok", 0.0, 10.0),
            in_bounds(e, "ok", "r=1", 1.0),
            CumulativeReward(0, 5.0),
            ReachabilityReward(0, e("!ok")),
        ],
    )
    program, e = read_model(AGREEING)
    yield (
        "agreeing",
        program,
        [
            Until(e("n<2 | x<2"), e("x=3 & y=3")),
            in_bounds(e, "true", "x=2 & y=2", 1.0, 6.0),
            CumulativeReward(0, 7.0),
            InstantaneousReward(1, 6.0),
            ReachabilityReward(0, e("x=3 & y=3")),
        ],
    )
    program, e = read_model(DEADLOCK)
    yield (
        "deadlock",
        program,
        [
            Until(e("true"), e("x=3")),
            in_bounds(e, "true", "x=4", 6.0, 9.0),
            CumulativeReward(0, 9.0),
            InstantaneousReward(0, 9.0),
        ],
    )
    program, e = read_model(ENDING)
    yield (
        "ending",
        program,
        [
            in_bounds(e, "true", "x=4", 6.0, 9.0),
            in_bounds(e, "true", "x=3", 0.1, 9.0),
            CumulativeReward(0, 9.0),
            InstantaneousReward(0, 9.0),
        ],
    )
    program, e = read_model(philosophers_model(3))
    yield (
        "philosophers",
        program,
        [
            in_bounds(e, "p2!=6", "p1=6", 0.0, 12.0),
            CumulativeReward(0, 5.0),
            Next(e("p3=1")),
        ],
    )


def twice(e, first, second, length):
    """Whether `first` holds at some state and `second` at that or a later one."""
    transitions = ((0, 1, 0, 2), (1, 1, 2, 2), (2, 2, 2, 2))
    return Monitor((e(first), e(second)), transitions, (2, 2, 1), (False, False, True), 0, length)
