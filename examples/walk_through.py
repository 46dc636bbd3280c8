"""One model from its first line to pictures.

A walk through the workstation cluster of Haverkort, Hermanns and Katoen (2000): what its states
are, what the matrix looks like, how the solve goes, what the long run brings. Each `# %%` begins a
cell of a notebook, as VS Code, Spyder and Jupytext read it; run as a program it writes its pictures
to a folder:

    python examples/walk_through.py [FOLDER]

It needs matplotlib (`pip install "prism-gpu[plots]"`), and PRISM with a JDK.
"""

# %%
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import bridge
from engines.model.environment import Method, SolverEnvironment
from engines.model.progress import SweepReport
from engines.questions.steady_state import solve_steady_state

MODEL = Path(__file__).resolve().parent / "models" / "cluster.sm"
FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "walk_through")
FOLDER.mkdir(parents=True, exist_ok=True)
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"


def saved(figure: Figure, name: str) -> None:
    """Write a picture to the folder, and say so."""
    path = FOLDER / f"{name}.png"
    figure.savefig(path, dpi=150)
    print(f"picture: {path}")


# %% [markdown]
# ## The model
# Two sub-clusters of N workstations, each behind a switch, joined by a backbone, and one repair
# unit. `bridge.open` has PRISM parse and build it; then its matrices are SciPy's, its labels
# NumPy's.

# %%
N = 8
session = bridge.open(MODEL, constants={"N": N}, epsilon=1e-10, symbolic=True)
rates = session.rate_matrix
print(f"{session.kind} of {session.num_states} states and {rates.nnz} transitions")
for name in ("minimum", "premium"):
    print(f"  {name}: {np.count_nonzero(session.labels[name])} states")

# %% [markdown]
# ## Its matrix
# The order of the states is PRISM's: sorted by the values of the variables. So the number of
# workstations that are up on the left makes the large blocks.

# %%
figure = Figure(figsize=(6.0, 6.0), layout="constrained")
axes = figure.subplots()
axes.spy(rates, markersize=0.4, color=BLUE)
axes.set_title(f"Transitions of the cluster, N = {N}")
axes.set_xlabel("to state")
axes.set_ylabel("from state")
saved(figure, "matrix")

# %% [markdown]
# ## Rates of many sizes
# A workstation fails every 500 hours, the backbone every 5,000, and a repair takes hours. That exit
# rates differ so much is why sweeps of this model contract slowly.

# %%
exits = np.asarray(rates.sum(axis=1)).ravel()
figure = Figure(figsize=(7.0, 4.0), layout="constrained")
axes = figure.subplots()
axes.hist(exits, bins=np.geomspace(exits.min(), exits.max(), 40).tolist(), color=BLUE)
axes.set_xscale("log")
axes.set_yscale("log")
axes.set_title(f"Exit rates of the states, N = {N}")
axes.set_xlabel("exit rate (1 / hour)")
axes.set_ylabel("states")
saved(figure, "exit_rates")

# %% [markdown]
# ## A property
# The share of time with premium quality, in PRISM's own property language.

# %%
premium = session.check('S=? [ "premium" ]')
print(f"premium quality: {premium.value:.12f} of the time ({premium.accuracy})")

# %% [markdown]
# ## How the solve goes
# The engines below are plain functions on arrays. A `progress` callback hears of every batch of
# sweeps, with the change that each sweep made. Jacobi, PRISM's default, swings for ever on this
# model; relaxed (JOR) it converges.

# %%
everything = np.ones(session.num_states, dtype=np.bool_)
figure = Figure(figsize=(7.0, 4.0), layout="constrained")
axes = figure.subplots()
for method, colour, style in ((Method.JACOBI, ORANGE, "--"), (Method.JOR, BLUE, "-")):
    changes: list[float] = []

    def heard(report: SweepReport, changes: list[float] = changes) -> None:
        """Keep the change of every sweep."""
        changes.extend(report.numbers.tolist())

    environment = SolverEnvironment(method=method, epsilon=1e-10, max_iterations=1000, omega=0.9)
    result = solve_steady_state(session.model, everything, environment, progress=heard)
    print(f"{method}: {result.status} after {result.iterations} sweeps")
    axes.plot(np.arange(1, len(changes) + 1), changes, style, color=colour, label=str(method))
axes.axhline(1e-10, color="0.35", linewidth=0.8, linestyle=":", label="epsilon")
axes.set_yscale("log")
axes.set_title(f"Sweeps to the long run, N = {N}")
axes.set_xlabel("sweeps made")
axes.set_ylabel("largest change of a sweep (relative)")
axes.legend(loc="upper right")
axes.grid(alpha=0.3)
saved(figure, "sweeps")

# %% [markdown]
# ## Every state at once
# A result is a vector, one value a state. From the states below the minimum quality: how likely is
# it to be premium again within T hours?

# %%
times = np.arange(0.0, 10.5, 0.5)
below = ~session.labels["minimum"]
curves = []
for time in times:
    result = session.check(f'P=? [ F<={time} "premium" ]')
    curves.append(np.quantile(result.vector[below], [0.0, 0.5, 1.0]))
worst, median, best = np.array(curves).T
figure = Figure(figsize=(7.0, 4.0), layout="constrained")
axes = figure.subplots()
axes.fill_between(times, worst, best, color=BLUE, alpha=0.2, label="all states")
axes.plot(times, median, color=BLUE, label="median")
axes.set_title(f"Back to premium quality, from {np.count_nonzero(below)} states below the minimum")
axes.set_xlabel("time T (hours)")
axes.set_ylabel("probability within T")
axes.set_ylim(0.0, 1.0)
axes.legend(loc="upper left")
axes.grid(alpha=0.3)
saved(figure, "recovery")
session.close()

# %% [markdown]
# ## Growing clusters
# PRISM holds one decision diagram at a time, so the first session is closed by now.

# %%
sizes, shares = [2, 4, 8, 16, 32], []
for size in sizes:
    with bridge.open(MODEL, constants={"N": size}, epsilon=1e-10, symbolic=True) as larger:
        shares.append(1.0 - float(larger.check('S=? [ "premium" ]').value))
figure = Figure(figsize=(7.0, 4.0), layout="constrained")
axes = figure.subplots()
axes.plot(sizes, shares, marker="o", color=BLUE)
axes.set_xscale("log", base=2)
axes.set_yscale("log")
axes.set_xticks(sizes, [str(size) for size in sizes])
axes.set_title("Time without premium quality")
axes.set_xlabel("workstations a side (N)")
axes.set_ylabel("share of the time")
axes.grid(alpha=0.3)
saved(figure, "premium")
