"""How a property is checked: the settings that users name, and what the engines make of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from bridge.known import require_known
from bridge.own_switches import GPU_METHODS
from engines.errors import UnsupportedError
from engines.model.environment import (
    DeviceChoice,
    Method,
    Precision,
    SolverEnvironment,
)
from engines.model.explicit import ModelKind

METHODS = {
    **GPU_METHODS,
    "politer": Method.POLICY_ITERATION,
    "modpoliter": Method.MODIFIED_POLICY_ITERATION,
}
OF_CHAINS = (
    *(Method.POWER, Method.JACOBI, Method.JOR, Method.SOR, Method.BACKWARDS_SOR),
    *(Method.MULTILEVEL, Method.GMRES),
)
OF_MDPS = (Method.POLICY_ITERATION, Method.MODIFIED_POLICY_ITERATION)


class Settings(TypedDict, total=False):
    """The settings of a check, all of them optional keywords.

    Those that a model is made with hold for all its checks; those of a check for that one.

    Parameters
    ----------
    epsilon : float
        Convergence threshold, 1e-6 by default. Without a named method, iterations go on until the
        estimated error of the values is below it.
    absolute : bool
        Whether `epsilon` is absolute; by default it is relative to the values.
    max_iterations : int
        The most iterations of a solve; more are a `ConvergenceError`.
    bounds : bool
        Whether to compute proven lower and upper bounds, `epsilon` apart; the error of the result
        is then proven.
    method : str
        For chains "power", "jacobi", "jor", "gs", "bgs", "sor", "bsor", "multilevel" or "gmres";
        for MDPs "gs", "bgs", "politer" (policy iteration) or "modpoliter". By default "auto":
        prism-gpu chooses.
    omega : float
        The relaxation parameter of "jor" and "sor", above 0; 0.9 by default.
    topological : bool
        Whether strongly connected components are solved one after the other.
    precision : str
        "double", "single", or "mixed": single precision first, then double.
    device : str
        "cpu", "gpu", or "auto": the GPU where there is one and the solve is large enough.
    device_number : int
        Which of several GPUs, counted from 0.
    strategy : bool
        MDPs: whether the result shall have an optimal strategy.
    progress : bool
        Whether solves of more than a second show a progress bar; by default they do in notebooks
        and on terminals.
    """

    epsilon: float
    absolute: bool
    max_iterations: int
    bounds: bool
    method: str
    omega: float
    topological: bool
    precision: str
    device: str
    device_number: int
    strategy: bool
    progress: bool


@dataclass(frozen=True)
class Asked:
    """Settings as the engines take them.

    Parameters
    ----------
    environment
        How to solve.
    strategy
        Whether an optimal strategy is wanted.
    progress
        Whether long solves show their progress; None where somebody is watching.
    named
        The names of the settings that were given.
    """

    environment: SolverEnvironment = field(default_factory=SolverEnvironment)
    strategy: bool = False
    progress: bool | None = None
    named: frozenset[str] = frozenset()


def read_settings(settings: Mapping[str, Any], kind: ModelKind | None = None) -> Asked:
    """Return settings as the engines take them, after a look at each.

    Parameters
    ----------
    settings
        What `Settings` describes.
    kind
        The kind of the model; None where it is not known yet.

    Raises
    ------
    TypeError
        For an unknown setting, or a value of a wrong type.
    ValueError
        For a value out of range, a word that is not known, or a method of another kind of model.
    UnsupportedError
        For a GPU that cannot be used, and for bounds with a strategy.
    """
    for name in settings:
        require_known(name, Settings.__annotations__, "setting", TypeError)
    given = dict(settings)
    for name in ("absolute", "bounds", "topological", "strategy", "progress"):
        if not isinstance(given.get(name, False), bool):
            raise TypeError(f"{name} must be True or False, not {given[name]!r}")
    method = _word(given, "method", METHODS, "auto")
    precision = _word(given, "precision", {item.value: item for item in Precision}, "double")
    device = _word(given, "device", {item.value: item for item in DeviceChoice}, "auto")
    _require_method_of(kind, method)
    omega = number_of(given, "omega", 0.9)
    if not omega > 0.0:
        raise ValueError(f"omega must be above 0, not {omega}")
    environment = SolverEnvironment(
        method=method,
        epsilon=number_of(given, "epsilon", 1e-6),
        absolute=given.get("absolute", False),
        max_iterations=whole_of(given, "max_iterations", 10_000),
        max_iterations_named="max_iterations" in given,
        omega=omega,
        device=device,
        device_number=whole_of(given, "device_number", 0),
        bounds=given.get("bounds", False),
        topological=given.get("topological", False),
        precision=precision,
    )
    if device is DeviceChoice.GPU:
        _require_gpu(environment.device_number)
    wants_strategy = given.get("strategy", False)
    if wants_strategy and environment.bounds:
        raise UnsupportedError("a strategy comes without bounds: leave one of the two out")
    if wants_strategy and kind not in (None, ModelKind.MDP):
        raise ValueError(f"a {kind} has no choices, and so no strategy")
    return Asked(environment, wants_strategy, given.get("progress"), frozenset(given))


def _word(given: Mapping[str, Any], name: str, words: Mapping[str, Any], default: str) -> Any:
    value = given.get(name, default)
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, not {value!r}")
    require_known(str(value), words, f"value of {name}")
    return words[value]


def number_of(given: Mapping[str, Any], name: str, default: float) -> float:
    """Return a setting that is a number.

    Parameters
    ----------
    given
        The settings.
    name
        Of the setting.
    default
        Where it is not given.

    Raises
    ------
    TypeError
        If it is no number.
    ValueError
        If no double holds it.
    """
    value = given.get(name, default)
    try:
        if isinstance(value, str | bool):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, not {value!r}") from None
    except OverflowError:
        raise ValueError(f"{name} is larger than the largest double") from None


def whole_of(given: Mapping[str, Any], name: str, default: int) -> int:
    """Return a setting that is a whole number from 0 on, in 31 bits.

    Parameters
    ----------
    given, name, default
        As for `number_of`.

    Raises
    ------
    TypeError
        If it is no whole number.
    ValueError
        If it is out of range.
    """
    value = given.get(name, default)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    number = value.__index__()
    if not 0 <= number < 1 << 31:
        raise ValueError(f"{name} must be from 0 to 2147483647, not {number}")
    return int(number)


def _require_method_of(kind: ModelKind | None, method: Method) -> None:
    if kind is None:
        return
    others = OF_CHAINS if kind is ModelKind.MDP else OF_MDPS
    if method in others:
        fitting = [word for word, item in METHODS.items() if item not in others]
        raise ValueError(
            f"method: {method} is not for a {kind}; there are {', '.join(map(repr, fitting))}"
        )


def _require_gpu(number: int) -> None:
    from engines.cuda.driver import gpu_refusal

    refusal = gpu_refusal(number)
    if refusal is not None:
        raise UnsupportedError(f'device="gpu", but no GPU can be used: {refusal}')
