"""Ten tasks of a notebook user, by prism_gpu, stormpy and stormvogel: lines and milliseconds.

    python examples/benchmarks/notebook_tasks.py

Each task is a function for each of them; what they return is compared before anything is timed.
Lines are those of the function's body as ruff formats it, without comments. Times are the least of
15 runs in a warm process, in turns; of 3 where the first takes more than half a second. Measured is
what is installed (`pip install stormpy`; stormvogel, in `notebook_tasks_stormvogel.py`, wants
Python 3.12). Needs neither PRISM nor a GPU.
"""

from __future__ import annotations

import importlib.util
import inspect
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import prism_gpu as pg

CLUSTER = str(Path(__file__).resolve().parents[1] / "models" / "cluster.sm")
RUNS, RUNS_OF_SLOW, SLOW_MILLISECONDS = 15, 3, 500.0

GAMBLER = np.diag(np.full(299, 0.5), 1) + np.diag(np.full(299, 0.5), -1)
GAMBLER[0], GAMBLER[-1] = np.eye(300)[0], np.eye(300)[-1]
WALK = sparse.diags_array([np.full(100_000, 0.5)] * 2, offsets=[1, -1], format="lil")
WALK[0, 0] = WALK[-1, -1] = 0.5
WALK = WALK.tocsr()
QUEUE = np.diag(np.full(200, 1.0), 1) + np.diag(np.full(200, 1.1), -1)
CHOICES = np.array([[0.1, 0.9, 0], [0, 0.5, 0.5], [0, 1, 0], [0.5, 0.5, 0]])
STATE_OF_CHOICE = [0, 0, 1, 2]
COSTS = [2.0, 1.0, 0.0, 1.0]


def our_chain() -> Any:
    """A chain from a NumPy matrix: the probability to reach a state."""
    model = pg.dtmc(GAMBLER, labels={"rich": 299}, initial=150)
    return model.check('P=? [ F "rich" ]').value


def their_chain() -> Any:
    """See `our_chain`."""
    labels = storm.models.StateLabeling(300)
    labels.add_label("init")
    labels.add_label_to_state("init", 150)
    labels.add_label("rich")
    labels.add_label_to_state("rich", 299)
    matrix = storm.datastructures.build_sparse_matrix(GAMBLER)
    parts = storm.models.SparseModelComponents(matrix, labels)
    model = storm.models.SparseDtmc(parts)
    result = storm.model_checking(model, storm.parse_property('P=? [ F "rich" ]'))
    return result.get_value(150)


def our_sparse_chain() -> Any:
    """A chain of 100,001 states from SciPy: a bounded property in all states."""
    model = pg.dtmc(WALK, labels={"start": 0})
    return model.check('P=? [ F<=200 "start" ]').vector


def their_sparse_chain() -> Any:
    """See `our_sparse_chain`."""
    entries = WALK.tocoo()
    builder = storm.datastructures.SparseMatrixBuilder[float](*WALK.shape, WALK.nnz)
    builder.add_next_values(entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), [])
    labels = storm.models.StateLabeling(WALK.shape[0])
    labels.add_label("start")
    labels.add_label_to_state("start", 0)
    parts = storm.models.SparseModelComponents(builder.build(), labels)
    model = storm.models.SparseDtmc(parts)
    asked = storm.parse_property('P=? [ F<=200 "start" ]')
    return np.array(
        storm.model_checking(model, asked, only_initial_states=False).get_value_vector()
    )


def our_queue() -> Any:
    """A queue as a CTMC: the mean number of customers in the long run."""
    model = pg.ctmc(QUEUE, rewards={"customers": range(201)})
    return model.check('R{"customers"}=? [ S ]').value


def their_queue() -> Any:
    """See `our_queue`."""
    labels = storm.models.StateLabeling(201)
    labels.add_label("init")
    labels.add_label_to_state("init", 0)
    customers = storm.models.SparseRewardModel[float]([float(state) for state in range(201)])
    parts = storm.models.SparseModelComponents(
        storm.datastructures.build_sparse_matrix(QUEUE),
        labels,
        {"customers": customers},
        rate_transitions=True,
    )
    model = storm.models.SparseCtmc(parts)
    result = storm.model_checking(model, storm.parse_property('R{"customers"}=? [ LRA ]'))
    return result.get_value(0)


def our_strategy() -> Any:
    """An MDP: least expected costs, the strategy, and the chain under it."""
    model = pg.mdp(CHOICES, STATE_OF_CHOICE, labels={"goal": 1}, choice_rewards={"c": COSTS})
    result = model.check('R{"c"}min=? [ F "goal" ]', strategy=True)
    chain = model.induced(result.strategy)
    return [result.value, chain.check('P=? [ F<=2 "goal" ]').value]


def their_strategy() -> Any:
    """See `our_strategy`."""
    labels = storm.models.StateLabeling(3)
    labels.add_label("init")
    labels.add_label_to_state("init", 0)
    labels.add_label("goal")
    labels.add_label_to_state("goal", 1)
    matrix = storm.datastructures.build_sparse_matrix(CHOICES, [0, 2, 3])
    costs = storm.models.SparseRewardModel[float](None, COSTS)
    model = storm.models.SparseMdp(storm.models.SparseModelComponents(matrix, labels, {"c": costs}))
    asked = storm.parse_property('R{"c"}min=? [ F "goal" ]')
    result = storm.model_checking(model, asked, extract_scheduler=True)
    chain = model.apply_scheduler(result.get_scheduler())
    bounded = storm.model_checking(chain, storm.parse_property('P=? [ F<=2 "goal" ]'))
    return [result.get_value(0), bounded.get_value(0)]


def our_file() -> Any:
    """A model in PRISM's language with a constant: the long run."""
    return pg.open(CLUSTER, {"N": 16}).check('S=? [ "premium" ]').value


def their_file() -> Any:
    """See `our_file`."""
    program = storm.parse_prism_program(CLUSTER, prism_compatibility=True)
    program, asked = storm.instantiate_constants(
        program, {"N": 16}, storm.parse_properties('LRA=? [ "premium" ]', program)
    )
    model = storm.build_model(program, asked)
    return storm.model_checking(model, asked[0]).get_value(model.initial_states[0])


def our_worst() -> Any:
    """The worst value over the states with a label, in NumPy."""
    model = pg.open(CLUSTER, {"N": 8})
    result = model.check('P=? [ F<=1 !"minimum" ]')
    return result.vector[model.labels["premium"]].max()


def their_worst() -> Any:
    """See `our_worst`."""
    program = storm.parse_prism_program(CLUSTER, prism_compatibility=True)
    program, asked = storm.instantiate_constants(
        program, {"N": 8}, storm.parse_properties('P=? [ F<=1 !"minimum" ]', program)
    )
    options = storm.BuilderOptions([item.get_raw_formula() for item in asked])
    options.set_build_all_labels()
    model = storm.build_model(program, options=options)
    result = storm.model_checking(model, asked[0], only_initial_states=False)
    return np.array(result.get_value_vector())[list(model.labeling.get_states("premium"))].max()


def our_variables() -> Any:
    """The values of a variable in all states."""
    return pg.open(CLUSTER, {"N": 16}).states["left_up"].sum()


def their_variables() -> Any:
    """See `our_variables`."""
    program = storm.parse_prism_program(CLUSTER, prism_compatibility=True)
    program, _ = storm.instantiate_constants(program, {"N": 16})
    options = storm.BuilderOptions()
    options.set_build_state_valuations()
    model = storm.build_model(program, options=options)
    variable = program.expression_manager.get_variable("left_up")
    return np.array(model.state_valuations.get_int64_values(variable)).sum()


def our_sweep() -> Any:
    """A property over ten times, as a table's rows."""
    times = np.linspace(0.5, 5.0, 10)
    rows = pg.sweep(CLUSTER, 'P=? [ F<=T !"minimum" ]', {"N": 8, "T": times}).rows()
    return [row["value"] for row in rows]


def their_sweep() -> Any:
    """See `our_sweep`."""
    program = storm.parse_prism_program(CLUSTER, prism_compatibility=True)
    program, _ = storm.instantiate_constants(program, {"N": 8})
    options = storm.BuilderOptions()
    options.set_build_all_labels()
    model = storm.build_model(program, options=options)
    rows = []
    for bound in np.linspace(0.5, 5.0, 10):
        asked = storm.parse_property(f'P=? [ F<={bound} !"minimum" ]')
        result = storm.model_checking(model, asked)
        rows.append({"N": 8, "T": bound, "value": result.get_value(model.initial_states[0])})
    return [row["value"] for row in rows]


def our_matrix() -> Any:
    """The transition matrix of a model, in SciPy."""
    return pg.open(CLUSTER, {"N": 16}).rate_matrix.sum()


def their_matrix() -> Any:
    """See `our_matrix`."""
    program = storm.parse_prism_program(CLUSTER, prism_compatibility=True)
    program, _ = storm.instantiate_constants(program, {"N": 16})
    model = storm.build_model(program)
    matrix = model.transition_matrix
    rows, columns, values = [], [], []
    for row in range(matrix.nr_rows):
        for entry in matrix.get_row(row):
            rows.append(row)
            columns.append(entry.column)
            values.append(entry.value)
    shape = (matrix.nr_rows, matrix.nr_columns)
    return sparse.csr_array((values, (rows, columns)), shape=shape).sum()


def our_paths() -> Any:
    """A thousand paths of a hundred steps: where they end on average."""
    model = pg.dtmc(GAMBLER, initial=150)
    return model.simulate(100, paths=1_000, seed=1).states[:, -1].mean()


def their_paths() -> Any:
    """See `our_paths`."""
    labels = storm.models.StateLabeling(300)
    labels.add_label("init")
    labels.add_label_to_state("init", 150)
    matrix = storm.datastructures.build_sparse_matrix(GAMBLER)
    model = storm.models.SparseDtmc(storm.models.SparseModelComponents(matrix, labels))
    simulator = simulators.create_simulator(model, seed=1)
    ends = []
    for _ in range(1_000):
        state, _, _ = simulator.restart()
        for _ in range(100):
            state, _, _ = simulator.step()
        ends.append(state)
    return np.mean(ends)


TASKS: list[tuple[Callable[[], Any], Callable[[], Any], float]] = [
    (our_chain, their_chain, 1e-4),
    (our_sparse_chain, their_sparse_chain, 1e-4),
    (our_queue, their_queue, 1e-4),
    (our_strategy, their_strategy, 1e-4),
    (our_file, their_file, 1e-4),
    (our_worst, their_worst, 1e-4),
    (our_variables, their_variables, 1e-4),
    (our_sweep, their_sweep, 1e-4),
    (our_matrix, their_matrix, 1e-4),
    (our_paths, their_paths, 0.02),
]
"""Ours, theirs, and by how much their values may differ."""


def body_lines(task: Callable[[], Any]) -> int:
    """Return the number of lines of a function without its head, docstring and comments."""
    lines = [line.strip() for line in inspect.getsource(task).splitlines()[2:]]
    return sum(bool(line) and not line.startswith("#") for line in lines)


def milliseconds(tasks: list[Callable[[], Any]]) -> list[float]:
    """Return the least time of each task, in turns, so that other work slows all of them alike."""
    taken: list[list[float]] = [[] for _ in tasks]
    for turn in range(RUNS):
        for task, times in zip(tasks, taken, strict=True):
            if turn >= RUNS_OF_SLOW and times[0] > SLOW_MILLISECONDS:
                continue
            started = time.perf_counter()
            task()
            times.append(1e3 * (time.perf_counter() - started))
    return [min(times) for times in taken]


def main() -> None:
    """Compare, measure, and print a table in Markdown."""
    columns = [[ours for ours, _, _ in TASKS]]
    names = ["prism_gpu"]
    if importlib.util.find_spec("stormpy") is not None:
        columns.append([theirs for _, theirs, _ in TASKS])
        names.append("stormpy")
    if importlib.util.find_spec("stormvogel") is not None:
        columns.append(list(importlib.import_module("notebook_tasks_stormvogel").TASKS))
        names.append("stormvogel")
    print(
        f"| task | {' | '.join(f'{name}, {unit}' for unit in ('lines', 'ms') for name in names)} |"
    )
    print("|---" * (1 + 2 * len(names)) + "|")
    for (*tasks,), (_, _, tolerance) in zip(zip(*columns, strict=True), TASKS, strict=True):
        name = (tasks[0].__doc__ or "").rstrip(".")
        found = [task() for task in tasks]
        if not all(np.allclose(found[0], other, rtol=tolerance) for other in found):
            raise SystemExit(f"{name}: {found} differ")
        lines = [str(body_lines(task)) for task in tasks]
        times = [f"{time:.3g}" for time in milliseconds(tasks)]
        print(f"| {name} | {' | '.join([*lines, *times])} |", flush=True)


if importlib.util.find_spec("stormpy") is not None:
    import stormpy as storm
    import stormpy.simulator as simulators

if __name__ == "__main__":
    main()
