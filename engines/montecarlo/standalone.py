"""The compiled source as a program of its own: the verifier that APMC hands out to computers.

    cc FILE.c && ./a.out SEED FIRST COUNT

samples the paths FIRST to FIRST + COUNT − 1 of a seed and prints, for each Boolean question, how
many were true, false and undecided, then for each reward the sum in path order. It needs the C
library alone.

Source: G. Guirado and others, "Distribution, approximation and probabilistic model checking",
PDMC 2005, section 3.2.
"""

from __future__ import annotations

from engines.montecarlo.compile import Compiled
from engines.montecarlo.questions import RewardQuestion
from engines.program.source import kernel

_HEAD = """\
/* Paths of a model, written by prism-gpu: cc FILE.c && ./a.out SEED FIRST COUNT
 * Nothing here depends on the compiler: multiplications and additions are not contracted.
 */
#ifndef __CUDACC__
#include <stdint.h>
#include <stdio.h>
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif
#endif
"""


def standalone(compiled: Compiled, path_limit: int) -> str:
    """Return the source of a program that samples paths and counts their answers.

    Parameters
    ----------
    compiled
        The model and the questions.
    path_limit
        As `engines.montecarlo.sampler.Sampler` has it.

    Returns
    -------
    str
        C, and CUDA C++ without the program.
    """
    num_rewards = sum(isinstance(question, RewardQuestion) for question in compiled.questions)
    constants = [
        f"#define PATH_LIMIT {path_limit}",
        f"#define BOOLEANS {len(compiled.questions) - num_rewards}",
        f"#define REWARDS {num_rewards}",
    ]
    return "\n".join([_HEAD, compiled.text, *constants, kernel("montecarlo_main")])
