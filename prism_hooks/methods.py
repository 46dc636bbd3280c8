"""PRISM's names of methods, and which of ours each is."""

from __future__ import annotations

from engines.model.environment import Method

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
    if choices:
        if name in MDP_METHODS:
            return MDP_METHODS[name], ""
        # Gauss-Seidel may converge where the sweeps of value iteration do not.
        return Method.AUTO, f"{name} runs as value iteration, which is what our engines have"
    if bounded and name != "Power method":
        if name == "Jacobi":
            return Method.JACOBI, ""
        return Method.AUTO, f"{name} runs as Jacobi, whose sweeps our bounds are made of"
    if name in LINEAR_METHODS:
        return LINEAR_METHODS[name], ""
    if name in BLOCKWISE_METHODS:
        plain = BLOCKWISE_METHODS[name]
        return plain, f"{name} runs as {plain}, which our engines sweep in colours"
    return Method.AUTO, f"{name} is not among our methods; the method is ours to choose"
