"""Long-run answers of chains with a single recurrent class, without a matrix: S, R [ S ], -ss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from engines.arrays import FloatArray
from engines.devices.recurrent import RecurrentClass, recurrent_class
from engines.diagrams.diagram import Diagram, StateNumbering
from engines.errors import UnsupportedError
from engines.model.environment import SolverEnvironment
from engines.model.progress import Progress
from engines.model.result import SolveResult
from engines.model.row_runs import RowRuns
from engines.questions.without_matrix import (
    BalanceMatrices,
    balance_matrices,
    balance_of_runs,
    require_steady_state,
    steady_state_of_matrices,
)


class LongRun:
    """The long run of a Markov chain whose matrix is never expanded.

    Parameters
    ----------
    matrices
        Returns its balance equations.
    num_states
        Number of states.

    Notes
    -----
    What is found of the chain is kept, so that several questions walk through it once.
    """

    def __init__(self, matrices: Callable[[], BalanceMatrices], num_states: int) -> None:
        self._make, self._num_states = matrices, num_states
        self._known: RecurrentClass | str | None = None

    @classmethod
    def of_diagram(cls, diagram: Diagram, numbering: StateNumbering) -> LongRun:
        """Return the long run of a chain from its decision diagram.

        Parameters
        ----------
        diagram
            The rates of a CTMC, or the transition probabilities of a DTMC.
        numbering
            The states.
        """
        return cls(lambda: balance_matrices(diagram, numbering), numbering.num_states)

    @classmethod
    def of_runs(cls, runs: RowRuns) -> LongRun:
        """Return the long run of a chain whose rows are kept as runs.

        Parameters
        ----------
        runs
            The rates of a CTMC, or the transition probabilities of a DTMC.
        """
        return cls(lambda: balance_of_runs(runs), runs.num_rows)

    @cached_property
    def _matrices(self) -> BalanceMatrices:
        return self._make()

    def _found(self, environment: SolverEnvironment) -> RecurrentClass | str:
        if self._known is None:
            matrices = self._matrices
            self._known = recurrent_class(matrices.rates, matrices.into, environment)
            if isinstance(self._known, str):
                # Nothing here will sweep them.
                del self._matrices
        return self._known

    def refusal(self, environment: SolverEnvironment) -> str:
        """Return why the long run needs a matrix, or nothing.

        Parameters
        ----------
        environment
            Method, format, device.

        Raises
        ------
        MemoryError
            When the host cannot hold what the diagram shares.
        """
        try:
            require_steady_state(environment, self._num_states)
            found = self._found(environment)
        except UnsupportedError as error:
            return str(error)
        return found if isinstance(found, str) else ""

    def average(
        self, earned: FloatArray, environment: SolverEnvironment, progress: Progress | None = None
    ) -> SolveResult:
        """Compute the long-run reward of a step (DTMC) or a unit of time (CTMC), from every state.

        Parameters
        ----------
        earned
            Shape (states,): reward of a state, finite and not negative.
        environment, progress
            As in `engines.questions.until.until_probabilities`; there are no bounds.

        Returns
        -------
        The result; its values, of shape (states,), are all the same.

        Raises
        ------
        DeviceMemoryError, MemoryError
            As in `engines.questions.without_matrix.solve_steady_state_without_matrix`.
        UnsupportedError
            As `refusal` says.
        """
        found = self._class(environment)
        inside = earned if found.members is None else earned[found.members]
        least, most = float(inside.min()), float(inside.max())
        if least == most:
            return SolveResult.exact(np.full(len(earned), least), environment.method)
        result = self._steady_state(found, environment, progress)
        value = float(result.values @ earned)
        error = result.error_of_mean(earned, value)
        if environment.absolute:
            # As in `engines.questions.long_run`: it counts once for each state, times its reward.
            error = result.error_estimate * float(inside.sum())
        values = np.full(len(earned), value)
        return replace(SolveResult.combined(values, [result], error), trusted_above=0.0)

    def distribution(
        self, initial: FloatArray, environment: SolverEnvironment, progress: Progress | None = None
    ) -> SolveResult:
        """Compute the long-run distribution over the states, from an initial distribution.

        Parameters
        ----------
        initial
            Shape (states,): the initial distribution, of which only the sum matters.
        environment, progress
            As in `average`.

        Returns
        -------
        The result; its values, of shape (states,), sum to 1.

        Raises
        ------
        DeviceMemoryError, MemoryError, UnsupportedError
            As in `average`.
        """
        found = self._class(environment)
        if found.size == 1:
            values = np.zeros(len(initial))
            values[found.state] = float(initial.sum())
            return SolveResult.exact(values, environment.method)
        result = self._steady_state(found, environment, progress)
        values = float(initial.sum()) * result.values
        return SolveResult.combined(values, [result], result.error_estimate)

    def _class(self, environment: SolverEnvironment) -> RecurrentClass:
        require_steady_state(environment, self._num_states)
        found = self._found(environment)
        if isinstance(found, str):
            raise UnsupportedError(found)
        return found

    def _steady_state(
        self, found: RecurrentClass, environment: SolverEnvironment, progress: Progress | None
    ) -> SolveResult:
        result = steady_state_of_matrices(
            self._matrices, found.members, environment, progress=progress
        )
        return replace(result, events=found.events + result.events)
