"""What the user asked of a solve: method, termination, limits, device."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from engines.model.choice import Format
from engines.model.events import Events, Kind


class Method(StrEnum):
    """Iterative methods, by the names that PRISM's log gives them."""

    AUTO = "Automatic"
    POWER = "Power method"
    JACOBI = "Jacobi"
    JOR = "JOR"
    GAUSS_SEIDEL = "Gauss-Seidel"
    BACKWARDS_GAUSS_SEIDEL = "Backwards Gauss-Seidel"
    SOR = "SOR"
    BACKWARDS_SOR = "Backwards SOR"
    MULTILEVEL = "Multilevel"
    GMRES = "GMRES"
    VALUE_ITERATION = "Value iteration"
    POLICY_ITERATION = "Policy iteration"
    MODIFIED_POLICY_ITERATION = "Modified policy iteration"
    INTERVAL = "Interval iteration"
    OPTIMISTIC = "Optimistic value iteration"


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
class BuildingPlace:
    """Where models may be built.

    Parameters
    ----------
    device
        Whether a GPU may take large ones over.
    number
        Which one.
    most_memory
        The bytes of its memory that may be taken; None for all.
    """

    device: DeviceChoice = DeviceChoice.CPU
    number: int = 0
    most_memory: int | None = None


class Precision(StrEnum):
    """What the numbers of one-sided sweeps are, by the words of `-gpuprecision`."""

    DOUBLE = "double"
    SINGLE = "single"
    MIXED = "mixed"
    """Single until that is at its floor, then double."""


class BoundMethod(StrEnum):
    """Ways to an upper bound of expected rewards, by the names that PRISM's `-ii` takes."""

    DEFAULT = "default"
    """DS-MPI for chains and minima, variant 2 for maxima."""
    VARIANT_1_COARSE = "variant-1-coarse"
    VARIANT_1_FINE = "variant-1-fine"
    VARIANT_2 = "variant-2"
    DSMPI = "dsmpi"


@dataclass(frozen=True)
class IntervalOptions:
    """Sub-switches of interval iteration, with PRISM's defaults.

    Parameters
    ----------
    bound_method
        How expected rewards are bounded from above before the first sweep.
    lower, upper
        Bounds of expected rewards that the user vouches for; None for computed ones.
    select_midpoint
        Whether the result is the midpoint of the interval; else its lower end.
    monotonic_below, monotonic_above
        Whether a lower value never falls and an upper value never rises.
    check_monotonic
        Whether a sweep that is not monotonic, beyond rounding, is an error; it is looked for
        before monotonicity is enforced.
    """

    bound_method: BoundMethod = BoundMethod.DEFAULT
    lower: float | None = None
    upper: float | None = None
    select_midpoint: bool = True
    monotonic_below: bool = True
    monotonic_above: bool = True
    check_monotonic: bool = False

    def __post_init__(self) -> None:
        for name, bound in (("lower", self.lower), ("upper", self.upper)):
            if bound is not None and not (math.isfinite(bound) and bound >= 0.0):
                raise ValueError(f"{name} must be a finite number of at least 0, not {bound}")


ALL_DEVICES = 0


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
        Over-relaxation parameter of JOR and SOR.
    convention
        Which of PRISM's engines a named method repeats.
    device, device_number
        Where to solve; the number selects one of several GPUs.
    bounds
        Whether results shall have bounds from both sides, where there is a method.
    interval
        Sub-switches of interval iteration.
    matrix_format
        How matrices are laid out for their sweeps; the CPU knows csr, values and patterns.
    device_memory
        Bytes of a GPU's memory that a solve may take; None for what is free.
    num_devices
        How many GPUs share a solve, from `device_number` on; `ALL_DEVICES` for all there are.
    topological
        Whether until probabilities and reachability rewards are solved one strongly connected
        component after the other, each from the finished values of those it leads to.
    slice_size, colours
        Gauss-Seidel and SOR: how many consecutive states are swept together, and in how many
        colours; None for a choice.
    precision
        What one-sided sweeps are made in; what cannot be swept in single precision says so.
    repeats_prism
        Whether no sweep is left out that PRISM makes: sums over time have its rate and its first
        and last terms, steps are counted that change nothing, and a steady state is solved for
        whatever is asked of it.
    notes_steady_state
        Whether such sums, and a distribution after steps, count no more sweeps than PRISM's
        symbolic engines, which end at the first that changes little. All are made nevertheless.
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
    matrix_format: Format = Format.AUTO
    device_memory: int | None = None
    num_devices: int = 1
    bounds: bool = False
    interval: IntervalOptions = IntervalOptions()
    topological: bool = False
    slice_size: int | None = None
    colours: int | None = None
    precision: Precision = Precision.DOUBLE
    repeats_prism: bool = False
    notes_steady_state: bool = False

    def __post_init__(self) -> None:
        if not (self.epsilon >= 0 and math.isfinite(self.epsilon)):
            raise ValueError(f"epsilon must be a number of at least 0, not {self.epsilon}")
        if self.max_iterations < 0:
            raise ValueError(f"max_iterations must be at least 0, not {self.max_iterations}")
        if not math.isfinite(self.omega):
            raise ValueError(f"omega must be a finite number, not {self.omega}")
        for name, number in (("slice_size", self.slice_size), ("colours", self.colours)):
            if number is not None and number < 1:
                raise ValueError(f"{name} must be at least 1, not {number}")

    @property
    def automatic(self) -> bool:
        """Whether the method is ours to choose."""
        return self.method is Method.AUTO

    @property
    def unnamed(self) -> bool:
        """Whether it is ours to choose how to sweep; a method with bounds does not say that."""
        return self.method in (Method.AUTO, Method.INTERVAL, Method.OPTIMISTIC)

    @property
    def two_sided(self) -> bool:
        """Whether bounds are asked for, by the flag or by a method that has them."""
        return self.bounds or self.method in (Method.INTERVAL, Method.OPTIMISTIC)

    @property
    def error_kind(self) -> str:
        """What errors are, as a log names it."""
        return "absolute" if self.absolute else "relative"

    def double_instead(self, reason: str) -> Events:
        """Return that a solve is made in double precision; nothing where that was wanted.

        Parameters
        ----------
        reason
            Why the precision that the user named is not used.
        """
        if self.precision is Precision.DOUBLE:
            return ()
        return (Kind.DOUBLE_INSTEAD(precision=self.precision, reason=reason),)

    @property
    def sweep_limit(self) -> int:
        """The most sweeps that a solve may take."""
        if self.unnamed and not self.max_iterations_named:
            return max(self.max_iterations, AUTOMATIC_SWEEP_LIMIT)
        return self.max_iterations


AUTOMATIC_SWEEP_LIMIT = 1_000_000
