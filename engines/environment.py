"""What the user asked of a solve: method, termination, limits, device."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class Method(StrEnum):
    """Iterative methods, by the names that PRISM's log gives them."""

    AUTO = "Automatic"
    POWER = "Power method"
    JACOBI = "Jacobi"
    JOR = "JOR"
    VALUE_ITERATION = "Value iteration"


class Convention(StrEnum):
    """Whose iteration a named method repeats, sweep for sweep.

    PRISM's engines differ in details that change the number of sweeps: the start vector of
    expected rewards, and the system that a steady state is computed from.
    """

    SPARSE = "sparse"
    EXPLICIT = "explicit"


class DeviceChoice(StrEnum):
    """Where to solve."""

    AUTO = "auto"
    CPU = "cpu"
    GPU = "gpu"


@dataclass(frozen=True)
class SolverEnvironment:
    """Settings of a solve, with PRISM's defaults.

    Parameters
    ----------
    method
        The method that the user named, or `Method.AUTO`.
    epsilon
        Convergence threshold for the change that one sweep makes.
    absolute
        Whether `epsilon` bounds the absolute change; else the change relative to the value.
    max_iterations
        The most sweeps a solve may take; exceeding it is an error.
    max_iterations_named
        Whether the user set the limit. With a method of our choice and no limit named, the solve
        goes on beyond PRISM's default, because an answer is owed.
    omega
        Over-relaxation parameter of JOR.
    convention
        Which of PRISM's engines a named method repeats.
    device, device_number
        Where to solve; the number selects one of several GPUs.
    """

    method: Method = Method.AUTO
    epsilon: float = 1e-6
    absolute: bool = False
    max_iterations: int = 10_000
    max_iterations_named: bool = False
    omega: float = 0.9
    convention: Convention = Convention.SPARSE
    device: DeviceChoice = DeviceChoice.AUTO
    device_number: int = 0

    def __post_init__(self) -> None:
        if not (self.epsilon >= 0 and math.isfinite(self.epsilon)):
            raise ValueError(f"epsilon must be a number of at least 0, not {self.epsilon}")
        if self.max_iterations < 0:
            raise ValueError(f"max_iterations must be at least 0, not {self.max_iterations}")
        if not math.isfinite(self.omega):
            raise ValueError(f"omega must be a finite number, not {self.omega}")

    @property
    def automatic(self) -> bool:
        """Whether the method is ours to choose."""
        return self.method is Method.AUTO

    @property
    def sweep_limit(self) -> int:
        """The most sweeps that a solve may take."""
        if self.automatic and not self.max_iterations_named:
            return max(self.max_iterations, AUTOMATIC_SWEEP_LIMIT)
        return self.max_iterations


AUTOMATIC_SWEEP_LIMIT = 1_000_000
