"""`-ii` inside PRISM: our bounds, told to PRISM, which prints them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import pytest

from tests.endtoend.references import Entry, instances, model_path

pytestmark = pytest.mark.prism

_RESULT = re.compile(r"^Result.*?: (\S+)(?: \((?:\+/- (\S+?)[;) ]|(exact floating point)).*)?$")


@dataclass(frozen=True)
class Interval:
    """A printed result and the error printed beside it; nothing printed is an infinite one."""

    value: float
    error: float

    def contains(self, wanted: float, uncertainty: float = 0.0) -> bool:
        """Whether the interval has the wanted number, but for its last digits."""
        if math.isinf(wanted) or math.isinf(self.value):
            return wanted == self.value
        return abs(self.value - wanted) <= self.error + (uncertainty + 1e-15) * abs(wanted)


def intervals(output: str) -> list[Interval]:
    """Return the results of a log with their errors."""
    found = []
    for line in output.splitlines():
        match = _RESULT.match(line)
        if match:
            error = 0.0 if match[3] else float(match[2]) if match[2] else math.inf
            found.append(Interval(float(match[1]), error))
    return found


# model, constants, properties with their exact values
EXACT = {
    "dtmc": ("simple/dice/dice.pm", None, {"P=? [ F s=7 & d=3 ]": 1 / 6, "R=? [ F s=7 ]": 11 / 3}),
    "mdp": (
        "mdps/consensus/coin2.nm",
        "K=2",
        {
            'Pmin=? [ F "finished" & "all_coins_equal_1" ]': 0.3828125,
            'Pmax=? [ F "finished" & !"agree" ]': 13 / 120,
            'R{"steps"}min=? [ F "finished" ]': 48.0,
            'R{"steps"}max=? [ F "finished" ]': 75.0,
        },
    ),
}


@pytest.mark.parametrize("more", [(), ("-topological",)], ids=["plain", "topological"])
@pytest.mark.parametrize("name", ["dtmc", "mdp"])
def test_the_printed_interval_contains_the_exact_value(prism_gpu, prism_examples, name, more):
    model, constants, wanted = EXACT[name]
    sized = ("-const", constants) if constants else ()
    words = (prism_examples / model, *sized, "-pctl", "; ".join(wanted), "-ii", *more)
    run = prism_gpu(*words, "-maxiters", "100000")
    found = intervals(run.output)
    assert len(found) == len(wanted), run.output + run.errors
    for interval, value in zip(found, wanted.values(), strict=True):
        assert interval.contains(value), (interval, value)
        assert interval.error <= 1e-6 * value
    assert "estimated" not in run.output


FAST = r"herman[357]\.pm|tandem|cluster|coin2|dice|poll3|brp|nand"
SMALL = ("", "N=2", "N=4", "c=3", "c=7", "c=15", "K=2", "N=16,MAX=2", "N=20,K=1")


def _numeric(entries: list[Entry]) -> list[Entry]:
    return [e for e in entries if not isinstance(e.value, bool)]


def _chosen() -> list[pytest.param]:
    chosen = []
    for param in instances(r".", every_kind=True):
        entries = param.values[0]
        fast = bool(entries) and entries[0].constants in SMALL
        fast = fast and re.search(FAST, entries[0].model) is not None
        marks = param.marks if fast or not entries else [*param.marks, pytest.mark.slow]
        chosen.append(pytest.param(entries, id=param.id, marks=marks))
    return chosen


@pytest.mark.sampled(6)
@pytest.mark.parametrize("entries", _chosen())
def test_reference_values_lie_inside_the_printed_intervals(
    prism_gpu, prism_examples, tmp_path, entries
):
    entries = _numeric(entries)
    if not entries:
        return
    properties = tmp_path / "reference.props"
    properties.write_text("\n".join(f"{e.text};" for e in entries), encoding="utf-8")
    constants = ("-const", entries[0].constants) if entries[0].constants else ()
    model = model_path(prism_examples, entries[0].model)
    run = prism_gpu(model, properties, *constants, "-ii", "-maxiters", "1000000", timeout=3600)
    found = intervals(run.output)
    assert len(found) == len(entries), run.output[-2000:] + run.errors
    # PRISM prints no error of what a filter makes of several values.
    bounded = [i for e, i in zip(entries, found, strict=True) if "filter" not in e.text]
    assert all(math.isfinite(i.error) for i in bounded)
    outside = [
        f"{e.text}: {e.value} outside {i}"
        for e, i in zip(entries, found, strict=True)
        if not i.contains(float(e.value), e.uncertainty)
    ]
    assert not outside, "\n".join(outside)


def test_a_bound_of_a_probability_is_one_of_its_complement(prism_gpu, prism_examples):
    # Of 1 - p the error is p's, and relative to a smaller number.
    model = prism_examples.parent / "prism-tests" / "pmc" / "lec15mdp.nm"
    if not model.is_file():
        pytest.skip(f"needs PRISM's regression tests: there is no {model}")
    run = prism_gpu(model, "-pctl", "Pmin=? [ G F s=7 ]; Pmax=? [ G s!=7 ]", "-ii")
    minimum, maximum = intervals(run.output)
    assert minimum.value != 0.25
    assert minimum.contains(0.25)
    assert maximum.contains(0.75)


def test_the_long_run_is_told_as_precisely_as_asked(prism_gpu, prism_examples):
    model = prism_examples / "ctmcs/cluster/cluster.sm"
    run = prism_gpu(model, "-const", "N=2", "-pctl", 'S=? [ "premium" ]', "-ii")
    (interval,) = intervals(run.output)
    assert interval.error == pytest.approx(1e-6 * interval.value, rel=1e-9)
