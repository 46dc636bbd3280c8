"""How analyses of graphs on a GPU share their work out, and when they leave it to the CPU."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Patience:
    """How many steps, rounds or sweeps, an operation may make.

    Parameters
    ----------
    steps
        So many are granted to any operation.
    states_a_step
        One more is granted for so many further states, about what the CPU does in a step's time:
        the rest of a graph that is as deep as it is large, such as a line, is its to do.
    """

    steps: int
    states_a_step: int

    def granted(self, states: int) -> int:
        """Return the steps that are granted to an operation that has done so many states."""
        return self.steps + states // self.states_a_step


@dataclass(frozen=True)
class ListKernels:
    """What `engines/cuda/src/worklist.cuh` is compiled with.

    Parameters
    ----------
    longest_item_edges
        The most edges of an item of a list.
    team_blocks
        Blocks that work off short lists together; the blocks of a round are a multiple of it.
    least_capability
        The least compute capability, times ten, of a device that knows teams; on others a team is
        one block.
    team_threads
        Threads of a team's blocks.
    member_items
        Items of a level that each block of a team has room for.
    """

    longest_item_edges: int = 4096
    team_blocks: int = 8
    least_capability: int = 90
    team_threads: int = 1024
    member_items: int = 1024


@dataclass(frozen=True)
class WorklistTuning:
    """Worklists over edges (`engines.cuda.worklist`).

    Parameters
    ----------
    kernels
        What the kernels are compiled with.
    most_blocks
        Blocks of a round: eight for each multiprocessor of a large device.
    block_levels
        Levels that a block goes on for by itself in a round.
    team_levels
        Levels that a team works off in one launch: a level takes it about three microseconds.
    rounds_a_look
        Rounds between two looks of the host.
    first_look_rounds
        Rounds before the first look at a list of a decomposition, many of which are soon worked
        off.
    patience
        For a whole operation.
    most_restarts
        How often states are removed before the CPU, which never starts anew, takes over.
    """

    kernels: ListKernels = ListKernels()
    most_blocks: int = 1056
    block_levels: int = 32
    team_levels: int = 256
    rounds_a_look: int = 8
    first_look_rounds: int = 2
    patience: Patience = Patience(steps=64, states_a_step=1000)
    most_restarts: int = 64


@dataclass(frozen=True)
class NamesTuning:
    """The propagation of names, in sweeps over the states (`engines.cuda.components`).

    Parameters
    ----------
    sweeps_a_look
        Sweeps between two looks of the host: a batch.
    passes
        How often a warp repeats its part of a sweep while that changes something.
    sweeps_by_number
        Sweeps that are granted to names in the order of the states' numbers. They need few of them
        or, as along a ring, may need as many as there are states; shuffled names do not.
    sweeps_of_all
        Sweeps that all states take part in before only those do that have something to pass on.
    moving_states
        Of fewer states all take part in every sweep: it costs little, and they learn more in it.
    batches_between_all
        In one batch of so many all states take part once, for the names that other names tell of.
    patience
        For a propagation, in sweeps.
    """

    sweeps_a_look: int = 8
    passes: int = 4
    sweeps_by_number: int = 24
    sweeps_of_all: int = 32
    moving_states: int = 1 << 20
    batches_between_all: int = 4
    patience: Patience = Patience(steps=512, states_a_step=1000)


@dataclass(frozen=True)
class SearchTuning:
    """Searches for strongly connected components (`engines.cuda.components`).

    Parameters
    ----------
    patience
        For a trimming or a search.
    most_looks
        Looks at numbers before other steps.
    fewest_parts
        Fewer parts than these are not worth a look at all edges to part them.
    most_searches
        Searches from a state of each region, before names are propagated.
    worthwhile_share
        Another search follows if the last one named at least one in so many states.
    deep_rounds
        A graph is deep whose trimming or search takes so many rounds: names pass on by few levels
        in a sweep, which costs far more than a level of a search.
    most_searches_in_depth
        Searches of a deep graph.
    names
        How names are propagated.
    """

    patience: Patience = Patience(steps=64, states_a_step=1000)
    most_looks: int = 4
    fewest_parts: int = 16
    most_searches: int = 4
    worthwhile_share: int = 8
    deep_rounds: int = 8
    most_searches_in_depth: int = 16
    names: NamesTuning = NamesTuning()


@dataclass(frozen=True)
class RefinementTuning:
    """Refinements to maximal end components (`engines.cuda.end_components`).

    Parameters
    ----------
    patience
        For a refinement, whose states are settled or removed: the CPU need not look at all of a
        component to split a small set off it.
    most_looks
        Looks at numbers before the first search.
    """

    patience: Patience = Patience(steps=64, states_a_step=10_000)
    most_looks: int = 16


@dataclass(frozen=True)
class GraphTuning:
    """All analyses of a graph (`engines.cuda.graph.CudaGraph`).

    Parameters
    ----------
    worklists, search, refinement
        How these go about it.
    kept_share
        A graph stays on the device between operations if it takes at most one part in so many of
        the device's memory.
    """

    worklists: WorklistTuning = WorklistTuning()
    search: SearchTuning = SearchTuning()
    refinement: RefinementTuning = RefinementTuning()
    kept_share: int = 64
