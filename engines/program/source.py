"""The parts of a program's source that are the same for all programs, in C and CUDA C++ at once."""

from __future__ import annotations

import functools
from importlib.resources import files

from engines.program import arithmetic
from engines.program.wording import double


@functools.cache
def kernel(name: str) -> str:
    """Return a part of the source that is the same for all models."""
    folder = files("engines.cuda.src")
    return folder.joinpath(f"{name}.cuh").read_text(encoding="utf-8")


def arithmetic_constants() -> list[str]:
    """Return the definitions that `montecarlo.cuh` takes from `engines.program.arithmetic`."""
    values = {
        "LOG_2_HIGH": double(arithmetic.LOG_2_HIGH),
        "LOG_2_LOW": double(arithmetic.LOG_2_LOW),
        "LOG_2": double(arithmetic.LOG_2),
        "LOG_2_REST": double(arithmetic.LOG_2_REST),
        "LOG_TERMS": str(arithmetic.LOG_TERMS),
        "PRECISE_LOG_TERMS": str(arithmetic.PRECISE_LOG_TERMS),
        "EXP_TERMS": str(arithmetic.EXP_TERMS),
    }
    return [f"#define {name} {value}" for name, value in values.items()]
