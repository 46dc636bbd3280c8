// The arithmetic of `engines/program/arithmetic.py`, as compiled programs have it on CPUs and GPUs: no digit
// may depend on where a model was built.
#pragma once

#include <stdint.h>
#include <string.h>

// As `engines.program.source.arithmetic_constants` writes them.
#define LOG_2_HIGH 0x1.62e42fee00000p-1
#define LOG_2_LOW 0x1.a39ef35793c76p-33
#define LOG_2 0x1.62e42fefa39efp-1
#define LOG_2_REST 0x1.abc9e3b39803fp-56
#define LOG_TERMS 10
#define PRECISE_LOG_TERMS 14
#define EXP_TERMS 19

namespace prism_gpu::arithmetic {
#include "../../cuda/src/montecarlo.cuh"
}  // namespace prism_gpu::arithmetic
