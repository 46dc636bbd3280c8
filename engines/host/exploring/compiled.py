"""A program's expansion compiled by the C compiler: what byte code does, several times as fast.

The source is the one that GPUs get (`engines.program.successors`), within a function that
`PgExpand` of src/explore_compiled.hpp describes. The compiled library is kept and checked as
`engines.program.native` says.
"""

from __future__ import annotations

import subprocess
from typing import Any

from engines.errors import CacheError, UnsupportedError
from engines.program import native
from engines.program.packing import Packing
from engines.program.program import Program
from engines.program.source import arithmetic_constants, kernel
from engines.program.successors import SuccessorSource

_BUFFER = """
#ifdef __GNUC__
#define NOT_INLINED __attribute__((noinline))
#else
#define NOT_INLINED
#endif

typedef struct { double weight; int place, choice, action; u32 site; } Taken;
typedef struct Buffer {
  int count, capacity, place;
  u64 *targets;
  Taken *taken;
  void (*full)(struct Buffer *);
} Buffer;

/* Inlined wherever a transition is found, it would double the compiler's time. */
static NOT_INLINED void put(
    Buffer *into, u32 site, int choice, int action, double weight, const u64 *target) {
  int i = into->count++;
  Taken taken = {weight, into->place, choice, action, site};
  into->taken[i] = taken;
  for (int word = 0; word < WORDS; word++) into->targets[i * WORDS + word] = target[word];
  if (into->count == into->capacity) into->full(into);
}
#define TAKE(context, choice, action, weight, target) \\
  put((Buffer *)(context), __LINE__, choice, action, weight, target)
"""
_ENTRY = """
EXPORTED void expand_states(const u64 *states, int count, Buffer *found, u8 *failed) {
  for (int i = 0; i < count; i++) {
    found->place = i;
    failed[i] = (u8)expand(states + i * (long)WORDS, found);
  }
}
"""


def source_of(program: Program, packing: Packing) -> str:
    """Return the source of a program's expansion.

    Parameters
    ----------
    program
        The model.
    packing
        Of its states.

    Raises
    ------
    UnsupportedError
        As `SuccessorSource`.
    """
    writer = SuccessorSource(program, packing)
    parts = [
        *arithmetic_constants(),
        kernel("montecarlo"),
        writer.declarations(),
        _BUFFER,
        writer.expansion("expand", "TAKE"),
        _ENTRY,
    ]
    return "\n".join(parts)


def compiled_expansion(program: Program, packing: Packing) -> Any:
    """Return the compiled function of a program, which is a `PgExpand`.

    Parameters
    ----------
    program
        The model.
    packing
        Of its states.

    Raises
    ------
    UnsupportedError
        If there is no compiler, it fails, or what it makes cannot be kept.
    """
    try:
        return native.load(source_of(program, packing)).expand_states
    except (CacheError, OSError, subprocess.SubprocessError) as error:
        raise UnsupportedError(str(error)) from error
