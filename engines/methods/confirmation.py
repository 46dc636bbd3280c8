"""Sweeping until a result of the automatic method is known to be right, and not just at rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engines.arrays import FloatArray
from engines.diagrams.system import System
from engines.errors import DeviceMemoryError
from engines.methods.iterate import ROUNDING, GiveUp, Iteration, iterate
from engines.model.environment import SolverEnvironment
from engines.model.progress import Progress
from engines.model.result import Status
from engines.proofs.doubling import Doubling
from engines.proofs.induction import proven_error
from engines.proofs.mixing import change_of_a_sweep, sweeps_of_memory
from engines.systems.one_sided import HasTwin, Scaling, Scheme, Sweeper


@dataclass(frozen=True)
class ConfirmationTuning:
    """How much is spent to confirm a result.

    Parameters
    ----------
    most_attempts, finer
        How often a result is looked at, and what epsilon is multiplied by in between.
    fewest_sweeps_of_a_proof
        That an upper bound of an MDP is given, however few sweeps found the values.
    most_proven_error
        How many times epsilon an upper bound may lie above the values.
    guess, closest_guess
        How far above the values of an MDP an upper bound is guessed first: so many times the error
        to be expected, but not so close that rounding decides.
    fewest_sweeps_to_mix, sweeps_to_mix
        For so many times the sweeps that a steady state took it is watched how a start far from it
        comes nearer. What takes longer is solved directly.
    smallest_change
        A smaller change of a sweep counts as this.
    first_batch
        Of sweeps that others confirm: there are few of them, and each is dear.
    """

    most_attempts: int = 4
    finer: float = 0.1
    fewest_sweeps_of_a_proof: int = 64
    most_proven_error: float = 4.0
    guess: float = 10.0
    closest_guess: float = 1e-12
    fewest_sweeps_to_mix: int = 512
    sweeps_to_mix: int = 4
    smallest_change: float = 1e-16
    first_batch: int = 16


def never(_iterations: int, _expected: float) -> bool:
    """Return that the sweeps are not given up."""
    return False


@dataclass
class AutomaticSweeps:
    """Sweeps of a method of our choice.

    Parameters
    ----------
    sweeper
        The prepared solve.
    scheme
        What prepared it.
    system
        What is solved, before any scaling.
    environment
        Epsilon and limits.
    doubling
        For a system whose sweeps rise from 0; what it proves needs no confirmation.
    progress
        Called after each batch of sweeps.
    others_confirm
        Whether what is prepared to confirm a result makes other sweeps of the system.
    tuning
        How much is spent to confirm it.
    """

    sweeper: Sweeper
    scheme: Scheme[Any]
    system: System
    environment: SolverEnvironment
    doubling: Doubling | None
    progress: Progress | None
    others_confirm: bool = False
    tuning: ConfirmationTuning = ConfirmationTuning()

    def run(self, give_up: GiveUp, before: Iteration | None = None) -> Iteration:
        """Sweep until the values are right, the sweeps are given up, or the limit is reached.

        Parameters
        ----------
        give_up
            Asked after each batch: is another method better?
        before
            How the sweeps ended before, where they are to go on.
        """
        outcome = self._swept(self.environment, give_up, before)
        if self.system.has_choices:
            return self._proven(outcome, give_up)
        if self.system.scaling is Scaling.BALANCE:
            return self._mixed(outcome, give_up)
        return outcome

    def _swept(
        self, environment: SolverEnvironment, give_up: GiveUp, before: Iteration | None
    ) -> Iteration:
        return iterate(
            self.sweeper,
            environment,
            progress=self.progress,
            give_up=give_up,
            doubling=self.doubling,
            made=0 if before is None else before.iterations,
            first_batch=self.tuning.first_batch if self.others_confirm else None,
        )

    def _finer(self, factor: float) -> SolverEnvironment:
        return replace(self.environment, epsilon=self.environment.epsilon * factor)

    def _prepared(self, system: System) -> Sweeper:
        """Return sweeps of the system from another start, which do not stop by themselves."""
        twin = None
        if isinstance(self.sweeper, HasTwin):
            twin = self.sweeper.twin(system.start, -1.0)
        return twin or self.scheme.sweeper(system, -1.0, self.environment.absolute)

    def judged(self, outcome: Iteration, tolerance: float) -> Iteration:
        """Return the outcome with an error that later sweeps confirm, or an infinite one.

        Parameters
        ----------
        outcome
            How sweeps ended that are not to go on.
        tolerance
            A smaller error need not be told from this one.
        """
        error, values, tuning = outcome.error_estimate, np.array(self.sweeper.values()), self.tuning
        if not np.isfinite(error):
            return outcome
        try:
            if self.system.has_choices:
                allowed = max(tuning.fewest_sweeps_of_a_proof, outcome.iterations // 2)
                for distance in (2.0 * error, 2.0 * tuning.guess * error):
                    error = proven_error(
                        *(self.system, self._prepared, values, distance),
                        *(self.environment.absolute, allowed),
                    )
                    if np.isfinite(error):
                        break
            elif self.system.scaling is Scaling.BALANCE:
                allowed = max(
                    tuning.fewest_sweeps_to_mix, tuning.sweeps_to_mix * outcome.iterations
                )
                enough = tolerance / max(outcome.change, tuning.smallest_change)
                memory = sweeps_of_memory(self.system, self._prepared, values, enough, allowed)
                error = max(error, outcome.change * memory)
        except DeviceMemoryError:
            error = np.inf
        return replace(outcome, error_estimate=float(error))

    def _proven(self, outcome: Iteration, give_up: GiveUp) -> Iteration:
        """Return the outcome of sweeping until an upper bound of an MDP's values is found.

        With choices, the contraction that was observed is that of the present policy, and another
        one may still overtake it, however little a sweep changes.
        """
        epsilon, absolute = self.environment.epsilon, self.environment.absolute
        tuning = self.tuning
        for attempt in range(1, tuning.most_attempts):
            if outcome.status is not Status.CONVERGED:
                return outcome
            allowed = max(tuning.fewest_sweeps_of_a_proof, outcome.iterations // 2)
            values, error = np.array(self.sweeper.values()), np.inf
            try:
                for distance in self._guesses(outcome, values):
                    error = proven_error(
                        self.system, self._prepared, values, distance, absolute, allowed
                    )
                    if np.isfinite(error):
                        break
            except DeviceMemoryError:
                return outcome
            if error < tuning.most_proven_error * epsilon:
                return replace(outcome, error_estimate=error)
            if outcome.change == 0.0:
                return outcome
            if give_up(outcome.iterations, float("inf")):
                break
            outcome = self._swept(self._finer(tuning.finer**attempt), give_up, outcome)
        if outcome.given_up or outcome.change < ROUNDING:
            return outcome
        return replace(outcome, status=Status.CHANGE_ONLY, given_up=True)

    def _guesses(self, outcome: Iteration, values: FloatArray) -> tuple[float, float]:
        """Return how far above the values to guess an upper bound, first and then."""
        scale, epsilon, tuning = 1.0, self.environment.epsilon, self.tuning
        if self.environment.absolute:
            scale = float(np.max(values[np.isfinite(values)], initial=0.0))
        near = max(tuning.guess * outcome.error_estimate, tuning.closest_guess * scale)
        return min(near, epsilon), epsilon

    def _mixed(self, outcome: Iteration, give_up: GiveUp) -> Iteration:
        """Return the outcome of sweeping until a steady state has forgotten where it came from.

        The contraction that was observed is that of what changes most. A slower part may lie
        beneath; then nothing is known of the weights of the parts.
        """
        if outcome.status is not Status.CONVERGED:
            return outcome
        epsilon, tuning = self.environment.epsilon, self.tuning
        allowed = max(tuning.fewest_sweeps_to_mix, tuning.sweeps_to_mix * outcome.iterations)
        try:
            change, values = self._change(outcome), self.sweeper.values()
            enough = epsilon / max(change, tuning.smallest_change)
            memory = sweeps_of_memory(self.system, self._prepared, values, enough, allowed)
        except DeviceMemoryError:
            return outcome
        for attempt in range(1, tuning.most_attempts):
            error = max(outcome.error_estimate, min(change * memory, 1.0))
            outcome = replace(outcome, error_estimate=error)
            if error < epsilon or outcome.status is not Status.CONVERGED:
                return outcome
            if memory > allowed:
                break
            outcome = self._swept(self._finer(tuning.finer**attempt), give_up, outcome)
            change = self._change(outcome)
        return replace(outcome, status=Status.CHANGE_ONLY, given_up=True)

    def _change(self, outcome: Iteration) -> float:
        """Return how much one of the sweeps that confirm changes the values."""
        if not self.others_confirm:
            return outcome.change
        return change_of_a_sweep(self.system, self._prepared, self.sweeper.values())
