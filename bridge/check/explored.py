"""Models that are built from their text without PRISM, ready to be checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from bridge.check.model_faults import placed_fault, placed_reward_fault
from bridge.check.model_text import ModelText
from bridge.language.ast import Value
from bridge.language.model_check import check_with_constants
from bridge.language.text import seconds_text
from bridge.model import (
    CheckableModel,
    NamedRewards,
    RewardFault,
    StateVector,
    deadlocks_note,
)
from engines.arrays import FloatArray
from engines.exploration.build import ExploredModel, Limits, build
from engines.exploration.rewards import InvalidRewardError, greatest_rewards
from engines.exploration.run_matrix import runs_of_matrix
from engines.model.events import told
from engines.model.explicit import RewardStructure
from engines.program.faults import StateFaultError
from engines.program.program import Program

UNBOUNDED = "Model contains one or more unbounded variables: model construction may not terminate"


def explored_model(
    text: str,
    source: str,
    constants: Mapping[str, Value],
    *,
    fix_deadlocks: bool = True,
    sums_checked: bool = True,
    gpu: int | None = None,
    gpu_memory: int | None = None,
    most_states: int | None = None,
    likely: float | None = None,
    log: Callable[[str], None],
) -> CheckableModel:
    """Return the model that a text in PRISM's language describes.

    Parameters
    ----------
    text, source
        The model, and what error messages call it.
    constants
        The values of the constants that it does not define.
    fix_deadlocks
        Whether states without a choice get a transition to themselves; else they are an error.
    sums_checked
        Whether probabilities that do not sum to 1 are an error.
    gpu
        Which GPU builds a large model; None for the CPU alone.
    gpu_memory
        Bytes of it that may be taken; None for all.
    most_states
        With more states it is an error; with `likely`, so many are explored at most.
    likely
        Explore only states that are reached with at least this estimated probability; None for all.
    log
        Takes a line for the report.

    Returns
    -------
    The model with states, choices and rewards in the order of PRISM's explicit engine. The labels
    of the model are all in `model.labels`.

    Raises
    ------
    InvalidModelError
        For faults of the text, and of commands and labels in reachable states.
    ModelSizeError
        For more states than `most_states`.
    UnsupportedError
        For constructs that are not built here.
    DeviceMemoryError
        When the memory does not suffice.
    """
    described = ModelText(text, source)
    values = described.constants(constants)
    check_with_constants(described.outline, values)
    program = described.built_program(values, checked=sums_checked)
    if described.is_unbounded:
        log(f"\nWarning: {UNBOUNDED}")
    begin = time.perf_counter()
    try:
        built = build(
            # A reward that makes no sense is an error of the properties that are about it.
            replace(program, reward_structures=()),
            fix_deadlocks=fix_deadlocks,
            gpu=gpu,
            gpu_memory=gpu_memory,
            limits=Limits(most_states),
            likely=likely,
            # What a transition earns depends on its action, of which runs know nothing.
            in_runs=not any(structure.transitions for structure in program.reward_structures),
            progress=_Progress(log),
        )
    except StateFaultError as error:
        raise placed_fault(error, described, values) from None
    if runs_of_matrix(built.model.matrix) is None:  # they would be written out for that
        built.model.require_finite_exit_rates()
    seconds = time.perf_counter() - begin
    log(f"Reachable states and matrix: {seconds_text(seconds)} seconds.")
    if built.events:
        log(f"prism-gpu: {told(built.events)}")
    return _checkable(described, values, program, built)


class _Progress:
    """Says now and then how many states were found.

    Parameters
    ----------
    log
        Takes a line for the report.
    seconds_between_lines
        As PRISM waits.
    """

    def __init__(self, log: Callable[[str], None], seconds_between_lines: float = 3.0) -> None:
        self._log, self._between = log, seconds_between_lines
        self._last = time.perf_counter()

    def __call__(self, found: int) -> None:
        if time.perf_counter() - self._last > self._between:
            self._last = time.perf_counter()
            self._log(f"{found} states found so far")


class _EarnedRewards(NamedRewards):
    """A reward structure whose rewards are worked out when they are asked for.

    Parameters
    ----------
    name
        Its name.
    work_out
        Returns them.
    """

    _work_out: Callable[[], NamedRewards]

    def __init__(self, name: str, work_out: Callable[[], NamedRewards]) -> None:
        # The fields of its base cannot be assigned to.
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "_work_out", work_out)

    @cached_property
    def _known(self) -> NamedRewards:
        return self._work_out()

    @property
    def expected(self) -> RewardStructure:
        return self._known.expected

    @property
    def instantaneous(self) -> FloatArray:
        return self._known.instantaneous

    @property
    def fault(self) -> RewardFault | None:
        return self._known.fault

    @property
    def most(self) -> float:
        return self._known.most

    @property
    def most_instantaneous(self) -> float:
        return self._known.most_instantaneous


class _Columns(Mapping[str, StateVector]):
    """The values of variables in all states, unpacked when they are asked for.

    Parameters
    ----------
    names
        The variables, in the model's order.
    built
        The model.
    """

    def __init__(self, names: Sequence[str], built: ExploredModel) -> None:
        self._places = {name: place for place, name in enumerate(names)}
        self._packing, self._states = built.packing, built.states
        self._columns: dict[str, StateVector] = {}

    def __getitem__(self, name: str) -> StateVector:
        if name not in self._columns:
            self._columns[name] = self._packing.column(self._states, self._places[name])
        return self._columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _checkable(
    described: ModelText,
    constants: Mapping[str, Value],
    program: Program,
    built: ExploredModel,
) -> CheckableModel:
    """Return a built model with the names that properties use."""

    def earned(number: int) -> NamedRewards:
        name = program.reward_structures[number].name
        how = (described, constants, program, built, number)
        return _EarnedRewards(name, partial(_named, *how))

    notes = [*deadlocks_note(int(np.count_nonzero(built.deadlocks)))]
    if built.unexplored is not None:
        count = int(np.count_nonzero(built.unexplored))
        notes.append(f'{count} of the states are unexplored and have the label "unexplored"')
    outline = described.outline
    return CheckableModel(
        built.model,
        rewards=tuple(map(earned, range(len(program.reward_structures)))),
        variables=_Columns(outline.variables, built),
        constants=constants,
        formulas=outline.formulas,
        source=described.source,
        modules=outline.modules,
        notes=tuple(notes),
        action_names=("", *program.actions),
        actions=None if built.actions is None else built.actions + 1,
        unexplored=built.unexplored,
    )


def _named(
    described: ModelText,
    constants: Mapping[str, Value],
    program: Program,
    built: ExploredModel,
    number: int,
) -> NamedRewards:
    """Return a reward structure of a program; one with a fault has no rewards, and says why."""
    structure = program.reward_structures[number]
    try:
        (earned,) = built.earned(replace(program, reward_structures=(structure,)))
    except InvalidRewardError as error:
        state = built.packing.state(built.states[error.state])
        placed = placed_reward_fault(error, number, structure, state, described, constants)
        fault = RewardFault(error.value, error.state, str(placed))
        nothing = np.zeros(built.model.num_states)
        return NamedRewards(
            structure.name, RewardStructure(structure.name, nothing), nothing, fault
        )
    expected = RewardStructure(earned.name, earned.expected, earned.of_choices)
    most = greatest_rewards(structure, program)
    return NamedRewards(earned.name, expected, earned.of_states, None, *most)
