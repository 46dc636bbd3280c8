"""Reference values of properties without bounds, and an evaluation of them by the engines alone.

Only what a regular expression can take apart: one operator, state formulas over labels and
variables, one filter. The rest of `values.json` needs a front end.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bridge.files.umb import read_umb
from engines.model.environment import SolverEnvironment
from engines.questions.long_run import long_run_probabilities, long_run_rewards
from engines.questions.reachability_rewards import reachability_rewards
from engines.questions.total_rewards import total_rewards
from engines.questions.until import until_probabilities
from engines.systems.one_sided import Direction

FOLDER = Path(__file__).parents[2].parent / "shared" / "reference"
TIGHT = SolverEnvironment(epsilon=1e-10)

SAMPLES = {
    ("herman3.pm", ""): ("herman3", {}),
    ("herman7.pm", ""): ("herman7", {}),
    ("dice.pm", ""): ("dice", {}),
    ("nand.pm", "N=5,K=1"): ("nand_N5_K1", {"N": 5}),
    ("egl.pm", "N=2,L=2"): ("egl_N2_L2", {}),
    ("cluster.sm", "N=2"): ("cluster_N2", {"left_mx": 2}),
    ("tandem.sm", "c=3"): ("tandem_c3", {"c": 3}),
    ("kanban.sm", "t=1"): ("kanban_t1", {}),
    ("fms.sm", "n=1"): ("fms_n1", {}),
    ("poll3.sm", ""): ("poll3", {}),
    ("coin2.nm", "K=2"): ("coin2_K2", {}),
    ("zeroconf.nm", "N=20,K=2,reset=true"): ("zeroconf_N20_K2", {}),
    ("csma2_2.nm", ""): ("csma2_2", {}),
    ("phil3.nm", ""): ("phil3", {}),
    ("firewire_abst.nm", "delay=3"): ("firewire_abst_d3", {}),
    ("leader3.nm", ""): ("leader3", {}),
    ("mutual3.nm", ""): ("mutual3", {}),
}

FILTER = re.compile(r"filter\((min|max|avg|sum), (.*), ([^,]*)\)$")
PROBABILITY = re.compile(r"P(min|max)?=\? \[ (?:(.*) U|F) (.*) \]$")
REWARD = re.compile(r'R(?:\{"(\w+)"\})?(min|max)?=\? ?\[ ?(?:F (.*?)|([CS])) ?\]$')
LONG_RUN = re.compile(r"S=\? \[ (.*) \]$")
COMPARISON = re.compile(r"([\w/]+) ?(<=|>=|=|<|>) ?([\w.]+)")
BEYOND = re.compile(r"[PRSAE]\w*[<>=?]|\b[XFGUW]\b|num_tokens|\b(min|max)_|_collisions|leaders")
"""Nested operators, and names that only the model's source explains."""


@dataclass(frozen=True)
class Published:
    """One property of a sample and its value."""

    sample: str
    constants: tuple[tuple[str, int], ...]
    text: str
    kind: str
    value: float

    def __str__(self) -> str:
        return f"{self.sample} {self.text}"


@functools.cache
def published(kind):
    """The entries of a kind that can be evaluated here; none where the shared folder is absent."""
    file = FOLDER / "values.json"
    if not file.is_file():
        return []
    found = []
    for entry in json.loads(file.read_text()):
        key = (entry["model"].rsplit("/", 1)[1], entry["constants"])
        if key not in SAMPLES or not entry["kind"].startswith(kind):
            continue
        sample, constants = SAMPLES[key]
        item = Published(
            sample, tuple(constants.items()), entry["property"], kind, float(entry["value"])
        )
        if parse(item.text) is not None:
            found.append(item)
    return found


def parse(text):
    """The operator's match, the filter and its states; None for what is beyond this module."""
    chosen = FILTER.match(text)
    how, inner, among = chosen.groups() if chosen else ("first", text, None)
    for form in (PROBABILITY, REWARD, LONG_RUN):
        match = form.match(inner)
        if match:
            formulas = [*match.groups()[1:], among]
            if any(formula and BEYOND.search(formula) for formula in formulas):
                return None
            return form, match, how, among
    return None


@functools.cache
def sample(name):
    return read_umb(FOLDER / "models" / f"{name}.umb")


def states_of(formula, item):
    """The states of a formula over labels and variables, shape (states,)."""
    file = sample(item.sample)
    size = file.model.num_states
    names = {name: file.valuations.values(name) for name in file.valuations.names}
    names |= {"true": np.ones(size, dtype=bool), **dict(item.constants)}

    def label(match):
        name = match.group(1)
        mask = file.model.initial_states if name == "init" else file.model.labels[name]
        names[f"label_{name}"] = mask
        return f"label_{name}"

    formula = re.sub(r'"(\w+)"', label, formula)
    formula = COMPARISON.sub(
        lambda m: f"({m[1]} {'==' if m[2] == '=' else m[2]} {m[3]})", formula
    ).replace("!", "~")
    return np.asarray(eval(formula, {"__builtins__": {}}, names), dtype=bool)


def evaluate(item):
    """The value that the engines give."""
    form, match, how, among = parse(item.text)
    file = sample(item.sample)
    model = file.model
    everywhere = np.ones(model.num_states, dtype=bool)
    if form is LONG_RUN:
        result = long_run_probabilities(model, states_of(match[1], item), TIGHT)
    elif form is PROBABILITY:
        remain = everywhere if match[2] is None else states_of(match[2], item)
        direction = None if match[1] is None else Direction(match[1])
        result = until_probabilities(
            model, remain, states_of(match[3], item), TIGHT, direction=direction
        )
    else:
        name, best, target, horizon = match.groups()
        rewards = next(r for r in model.rewards if name is None or r.name == name)
        direction = None if best is None else Direction(best)
        if horizon == "S":
            result = long_run_rewards(model, rewards, TIGHT)
        elif horizon == "C":
            result = total_rewards(model, rewards, TIGHT, direction=direction)
        else:
            target = states_of(target, item)
            result = reachability_rewards(model, rewards, target, TIGHT, direction=direction)
    result.raise_unless_converged()
    chosen = model.initial_states if among is None else states_of(among, item)
    values = result.values[chosen]
    if how == "first":
        return values[0]
    return {"min": np.min, "max": np.max, "avg": np.mean, "sum": np.sum}[how](values)
