"""What the command line says about the engines, apart from PRISM's own settings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from engines.model.choice import Format
from engines.model.environment import (
    BoundMethod,
    Convention,
    DeviceChoice,
    IntervalOptions,
    Method,
    Precision,
)

SIMULATION = "simulation"
"""What `-sim` asks for: no engine of PRISM's, but our sampler where it can."""


SYNCHRONISATIONS = {
    "compile": "commands combined beforehand",
    "runtime": "commands combined at each step",
    "lazy": "commands drawn before their guards are evaluated",
}
"""The values of `-gpusimsync`, and what each does."""


@dataclass(frozen=True)
class HookOptions:
    """Options of a run.

    Parameters
    ----------
    device, device_number
        Where to solve.
    method
        A method for linear equations, named by `-gpumethod`; None for what PRISM's switches say.
    matrix_format
        How a GPU lays matrices out.
    device_memory
        Bytes of a GPU's memory that a solve may take; None for what is free.
    num_devices
        How many GPUs share a solve; 0 for all.
    slice_size, colours
        Gauss-Seidel and SOR: how many consecutive states are swept together, and in how many
        colours; None for a choice.
    precision
        What one-sided sweeps are made in.
    convention
        Which of PRISM's engines a named method repeats, sweep for sweep.
    engine_named
        Whether the user named one of PRISM's engines, which is then kept.
    symbolic_engine
        "sparse" or "hybrid" where the user named that engine; else empty.
    left_to_prism
        What the user named that PRISM's own code does as a whole, such as "simulation".
    linear_method_named, mdp_method_named
        Whether the user named a method for linear equations, or for MDPs.
    max_iterations_named
        Whether the user set a limit of iterations.
    max_states
        How many states a model may have that is built; None for any number.
    likely
        Explore only states that are reached with at least this estimated probability, which is not
        done by PRISM; None for all states.
    show_solves
        Whether to print a line on each solve.
    smallest_graph
        From how many states and transitions on graphs are decomposed by the engines; None for what
        was measured. With 0 they also search the graphs of diagrams from the start.
    simulation_method
        A method of ours that judges simulated paths; empty for PRISM's.
    simulation
        The switches of a simulation that PRISM takes, with their values.
    simulation_seed
        Seed of the paths that a simulation samples; None for a new one each time.
    simulation_states
        How many states of each path formulas are asked of, the first ones; None for whole paths.
    simulation_sync
        How commands that synchronise are brought together: a key of `SYNCHRONISATIONS`, or empty
        for a choice.
    simulation_source
        File that gets the source text of the programs that sample paths; None for none.
    simulation_cluster
        The cluster that samples: a scheduler's address, or ``local:N``; empty for this process.
    show_progress
        Whether long solves show their progress on a terminal.
    """

    device: DeviceChoice = DeviceChoice.AUTO
    device_number: int = 0
    method: Method | None = None
    matrix_format: Format = Format.AUTO
    device_memory: int | None = None
    num_devices: int = 1
    slice_size: int | None = None
    colours: int | None = None
    precision: Precision = Precision.DOUBLE
    convention: Convention = Convention.SPARSE
    engine_named: bool = False
    symbolic_engine: str = ""
    left_to_prism: str = ""
    linear_method_named: bool = False
    mdp_method_named: bool = False
    max_iterations_named: bool = False
    max_states: int | None = None
    likely: float | None = None
    show_solves: bool = False
    smallest_graph: int | None = None
    simulation_method: str = ""
    simulation: tuple[tuple[str, str], ...] = ()
    simulation_seed: int | None = None
    simulation_states: int | None = None
    simulation_sync: str = ""
    simulation_source: str | None = None
    simulation_cluster: str = ""
    show_progress: bool = True

    @property
    def repeats_prism(self) -> bool:
        """Whether the user named one of PRISM's engines and a method, be it for other models."""
        named = self.linear_method_named or self.mdp_method_named
        return self.engine_named and named and self.method is None


def only_sampled_here(options: HookOptions) -> str:
    """Return what was asked of a simulation that PRISM does not have, or nothing.

    Parameters
    ----------
    options
        The options of the run.

    Returns
    -------
    str
        What follows the word "simulation" in an error.
    """
    found = []
    if options.simulation_method:
        found.append(f"by the method {options.simulation_method}")
    if options.simulation_states is not None:
        found.append(f"of the first {options.simulation_states} states of paths")
    if options.simulation_sync:
        found.append(f"with {SYNCHRONISATIONS[options.simulation_sync]}")
    return " ".join(found)


def interval_options(intervals: Any) -> IntervalOptions:
    """Return the sub-switches that a `prismgpu.Intervals` holds.

    Parameters
    ----------
    intervals
        The Java object.
    """
    return IntervalOptions(
        bound_method=BoundMethod(str(intervals.boundMethod)),
        lower=_bound(intervals.lower),
        upper=_bound(intervals.upper),
        select_midpoint=bool(intervals.selectMidpoint),
        monotonic_below=bool(intervals.monotonicBelow),
        monotonic_above=bool(intervals.monotonicAbove),
        check_monotonic=bool(intervals.checkMonotonic),
    )


def _bound(number: float) -> float | None:
    return None if math.isnan(number) else float(number)
