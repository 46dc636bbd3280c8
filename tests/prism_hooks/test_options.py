"""What the command line says of formats and precision reaches the settings of a solve."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from engines.model.choice import Format
from engines.model.environment import Method, Precision
from prism_hooks.backend import EngineBackend
from prism_hooks.options import HookOptions


def settings(options, method="Jacobi", direction=None):
    problem = SimpleNamespace(
        method=method,
        direction=direction,
        intervals=None,
        say=lambda _: None,
        epsilon=1e-6,
        absolute=False,
        maxIterations=10,
        omega=0.9,
        topological=False,
        detectsSteadyState=False,
    )
    return EngineBackend(options).environment(problem)


@pytest.mark.parametrize("name", list(Format))
def test_the_format_of_the_command_line_is_that_of_every_solve(name):
    assert settings(HookOptions(matrix_format=name)).matrix_format is name
    assert settings(HookOptions()).matrix_format is Format.AUTO


@pytest.mark.parametrize("name", list(Precision))
def test_the_precision_of_the_command_line_is_that_of_every_solve(name):
    assert settings(HookOptions(precision=name)).precision is name
    assert settings(HookOptions()).precision is Precision.DOUBLE


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("Policy iteration", Method.POLICY_ITERATION),
        ("Modified policy iteration", Method.MODIFIED_POLICY_ITERATION),
        ("Gauss-Seidel", Method.AUTO),
    ],
)
def test_methods_of_choices_are_prisms(name, method):
    options = HookOptions(mdp_method_named=True)
    assert settings(options, name, "min").method is method


def test_with_an_engine_a_method_for_other_models_leaves_prisms_default():
    chains = HookOptions(engine_named=True, linear_method_named=True)
    assert settings(chains, "Value iteration", "min").method is Method.VALUE_ITERATION
    choices = HookOptions(engine_named=True, mdp_method_named=True)
    assert settings(choices).method is Method.JACOBI
    # Who names no engine, or no method, leaves them to us.
    for options in (replace(chains, engine_named=False), HookOptions(engine_named=True)):
        assert settings(options, "Value iteration", "min").method is Method.AUTO
