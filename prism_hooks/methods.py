"""PRISM's names of methods, and which of ours each is; what is asked of a solve."""

from __future__ import annotations

from typing import Any

from engines.cuda.driver import gpu_refusal
from engines.errors import InvalidModelError
from engines.model.environment import DeviceChoice, IntervalOptions, Method, SolverEnvironment
from prism_hooks.options import HookOptions, interval_options

LINEAR_METHODS = {
    "Power method": Method.POWER,
    "Jacobi": Method.JACOBI,
    "JOR": Method.JOR,
    "Gauss-Seidel": Method.GAUSS_SEIDEL,
    "Backwards Gauss-Seidel": Method.BACKWARDS_GAUSS_SEIDEL,
    "SOR": Method.SOR,
    "Backwards SOR": Method.BACKWARDS_SOR,
}
BLOCKWISE_METHODS = {
    "Pseudo-Gauss-Seidel": Method.GAUSS_SEIDEL,
    "Backwards Pseudo-Gauss-Seidel": Method.BACKWARDS_GAUSS_SEIDEL,
    "Pseudo-SOR": Method.SOR,
    "Backwards Pseudo-SOR": Method.BACKWARDS_SOR,
}
"""The hybrid engine's methods that sweep its blocks one after the other."""
MDP_METHODS = {
    "Value iteration": Method.VALUE_ITERATION,
    "Policy iteration": Method.POLICY_ITERATION,
    "Modified policy iteration": Method.MODIFIED_POLICY_ITERATION,
}
DEFAULT_METHODS = ("Jacobi", "Value iteration")
"""What PRISM's settings name where the user names nothing."""


def named_method(name: str, *, choices: bool, bounded: bool) -> tuple[Method, str]:
    """Return the method of ours that PRISM's name stands for, and a remark if it is another one.

    Parameters
    ----------
    name
        As in PRISM's settings.
    choices
        Whether the question is about a model with choices.
    bounded
        Whether bounds from both sides are asked for.

    Returns
    -------
    The method, and a line for the log or nothing.
    """
    unknown = f"{name} is not among our methods{' for MDPs' if choices else ''}"
    if choices:
        # PRISM's Gauss-Seidel, state by state, may converge where sweeps in colours do not.
        ours = MDP_METHODS.get(name)
        return ours or Method.AUTO, "" if ours else f"{unknown}; the method is ours to choose"
    if bounded and name != "Power method":
        if name == "Jacobi":
            return Method.JACOBI, ""
        return Method.AUTO, f"{name} runs as Jacobi, whose sweeps our bounds are made of"
    if name in LINEAR_METHODS:
        return LINEAR_METHODS[name], ""
    if name in BLOCKWISE_METHODS:
        plain = BLOCKWISE_METHODS[name]
        return plain, f"{name} runs as {plain}, which our engines sweep in colours"
    return Method.AUTO, f"{unknown}; the method is ours to choose"


def solver_environment(options: HookOptions, problem: Any, method: Method) -> SolverEnvironment:
    """Return what a `prismgpu.Problem` and the command line ask of a solve by some method.

    Parameters
    ----------
    options
        What the command line says about the engines.
    problem
        The problem.
    method
        The method.

    Raises
    ------
    InvalidModelError
        For a setting that PRISM lets pass, such as an epsilon of NaN.
    """
    bounds = problem.intervals is not None
    try:
        return SolverEnvironment(
            method=method,
            epsilon=float(problem.epsilon),
            absolute=bool(problem.absolute),
            max_iterations=int(problem.maxIterations),
            max_iterations_named=options.max_iterations_named,
            omega=float(problem.omega),
            convention=options.convention,
            device=options.device,
            device_number=options.device_number,
            matrix_format=options.matrix_format,
            device_memory=options.device_memory,
            num_devices=options.num_devices,
            bounds=bounds,
            interval=interval_options(problem.intervals) if bounds else IntervalOptions(),
            topological=bool(problem.topological),
            slice_size=options.slice_size,
            colours=options.colours,
            precision=options.precision,
            repeats_prism=options.repeats_prism,
            notes_steady_state=bool(problem.detectsSteadyState) and options.repeats_prism,
        )
    except ValueError as error:
        raise InvalidModelError(str(error)) from error


def usable_device(options: HookOptions) -> int | None:
    """Return the number of the GPU that may be used, None where there is none.

    Parameters
    ----------
    options
        What the command line says about the engines.
    """
    wanted = options.device is not DeviceChoice.CPU
    usable = wanted and gpu_refusal(options.device_number) is None
    return options.device_number if usable else None
