"""The ten tasks of `notebook_tasks.py`, by stormvogel, whose models are built by callbacks.

stormvogel (`pip install stormvogel stormpy`) needs Python 3.12 or newer. It has no matrices, so
tasks that begin with one hand it row by row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import stormpy as storm
import stormvogel as vogel
from notebook_tasks import CHOICES, CLUSTER, COSTS, GAMBLER, QUEUE, WALK
from scipy import sparse
from stormvogel.stormpy_utils import mapping
from stormvogel.transformations.eliminate_transition_rewards import (
    eliminate_transition_rewards,
)


def chain() -> Any:
    """A chain from a NumPy matrix: the probability to reach a state."""
    model = vogel.bird.build_bird(
        lambda state: [(GAMBLER[state, to], int(to)) for to in np.flatnonzero(GAMBLER[state])],
        init=150,
        labels=lambda state: ["rich"] if state == 299 else [],
        modeltype=vogel.ModelType.DTMC,
    )
    return vogel.model_checking(model, 'P=? [ F "rich" ]').at_init()


def sparse_chain() -> Any:
    """A chain of 100,001 states from SciPy: a bounded property in all states."""
    starts = WALK.indptr
    model = vogel.bird.build_bird(
        lambda state: [
            (WALK.data[entry], int(WALK.indices[entry]))
            for entry in range(starts[state], starts[state + 1])
        ],
        init=0,
        labels=lambda state: ["start"] if state == 0 else [],
        modeltype=vogel.ModelType.DTMC,
        max_size=WALK.shape[0],
    )
    result = vogel.model_checking(model, 'P=? [ F<=200 "start" ]')
    return np.array([result.at(state) for state in model])


def queue() -> Any:
    """A queue as a CTMC: the mean number of customers in the long run."""
    model = vogel.bird.build_bird(
        lambda state: [(QUEUE[state, to], int(to)) for to in np.flatnonzero(QUEUE[state])],
        init=0,
        rewards=lambda state: {"customers": state},
        modeltype=vogel.ModelType.CTMC,
    )
    return vogel.model_checking(model, 'R{"customers"}=? [ LRA ]').at_init()


def strategy() -> Any:
    """An MDP: least expected costs, the strategy, and the chain under it."""
    rows = {0: [0, 1], 1: [2], 2: [3]}
    model = vogel.bird.build_bird(
        lambda _, action: [
            (CHOICES[int(action), to], int(to)) for to in np.flatnonzero(CHOICES[int(action)])
        ],
        init=0,
        labels=lambda state: ["goal"] if state == 1 else [],
        available_actions=lambda state: [str(row) for row in rows[state]],
        modeltype=vogel.ModelType.MDP,
    )
    costs = model.new_reward_model("c")
    for state in model:
        for action in state.available_actions():
            for _, to in state.get_outgoing_transitions(action):
                costs.set_transition_reward(state, action, to, COSTS[int(action.label)])
    # Only rewards of states are checked; each step becomes two.
    model = eliminate_transition_rewards(model)
    result = vogel.model_checking(model, 'R{"c"}min=? [ F "goal" ]')
    chain = result.scheduler.generate_induced_dtmc()
    return [result.at_init(), vogel.model_checking(chain, 'P=? [ F<=4 "goal" ]').at_init()]


def file() -> Any:
    """A model in PRISM's language with a constant: the long run."""
    program = storm.parse_prism_program(CLUSTER, prism_compatibility=True)
    program, _ = storm.instantiate_constants(program, {"N": 16})
    options = storm.BuilderOptions()
    options.set_build_all_labels()
    model = mapping.stormpy_to_stormvogel(storm.build_model(program, options=options))
    return vogel.model_checking(model, 'LRA=? [ "premium" ]').at_init()


def worst() -> Any:
    """The worst value over the states with a label, in NumPy."""
    program = storm.parse_prism_program(CLUSTER, prism_compatibility=True)
    program, _ = storm.instantiate_constants(program, {"N": 8})
    options = storm.BuilderOptions()
    options.set_build_all_labels()
    model = mapping.stormpy_to_stormvogel(storm.build_model(program, options=options))
    result = vogel.model_checking(model, 'P=? [ F<=1 !"minimum" ]')
    return max(result.at(state) for state in model.get_states_with_label("premium"))


def variables() -> Any:
    """The values of a variable in all states."""
    program = storm.parse_prism_program(CLUSTER, prism_compatibility=True)
    program, _ = storm.instantiate_constants(program, {"N": 16})
    model = mapping.from_prism(program)
    (variable,) = (item for item in model.variables if item.label == "left_up")
    return sum(state.get_valuation(variable) for state in model)


def sweep() -> Any:
    """A property over ten times, as a table's rows."""
    program = storm.parse_prism_program(CLUSTER, prism_compatibility=True)
    program, _ = storm.instantiate_constants(program, {"N": 8})
    options = storm.BuilderOptions()
    options.set_build_all_labels()
    model = mapping.stormpy_to_stormvogel(storm.build_model(program, options=options))
    rows = []
    for bound in np.linspace(0.5, 5.0, 10):
        result = vogel.model_checking(model, f'P=? [ F<={bound} !"minimum" ]')
        rows.append({"N": 8, "T": bound, "value": result.at_init()})
    return [row["value"] for row in rows]


def matrix() -> Any:
    """The transition matrix of a model, in SciPy."""
    program = storm.parse_prism_program(CLUSTER, prism_compatibility=True)
    program, _ = storm.instantiate_constants(program, {"N": 16})
    model = mapping.from_prism(program, valuations=False)
    places = {state: place for place, state in enumerate(model)}
    rates = sparse.lil_array((len(places), len(places)))
    for state in model:
        for rate, to in state.get_outgoing_transitions():
            rates[places[state], places[to]] = rate
    return rates.tocsr().sum()


def paths() -> Any:
    """A thousand paths of a hundred steps: where they end on average."""
    model = vogel.bird.build_bird(
        lambda state: [(GAMBLER[state, to], int(to)) for to in np.flatnonzero(GAMBLER[state])],
        init=150,
        friendly_names=str,
        modeltype=vogel.ModelType.DTMC,
    )
    ends = []
    for seed in range(1_000):
        path = vogel.simulate_path(model, steps=100, seed=101 * seed)
        ends.append(int(path.get_state_in_step(99).friendly_name))
    return np.mean(ends)


TASKS = (chain, sparse_chain, queue, strategy, file, worst, variables, sweep, matrix, paths)
"""In the order of `notebook_tasks.TASKS`."""
