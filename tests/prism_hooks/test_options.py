"""What the command line says of formats reaches the settings of a solve."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from engines.formats.choice import Format
from prism_hooks.backend import EngineBackend
from prism_hooks.options import HookOptions


@pytest.mark.parametrize("name", list(Format))
def test_the_format_of_the_command_line_is_that_of_every_solve(name):
    problem = SimpleNamespace(
        method="Jacobi",
        direction=None,
        intervals=None,
        epsilon=1e-6,
        absolute=False,
        maxIterations=10,
        omega=0.9,
        topological=False,
    )
    backend = EngineBackend(HookOptions(matrix_format=name))
    assert backend.environment(problem).matrix_format is name
    assert EngineBackend(HookOptions()).environment(problem).matrix_format is Format.AUTO
