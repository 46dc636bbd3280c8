"""From a program and questions to one source text, the same for the CPU and the GPU.

The text is C and CUDA C++ at once. It begins with `cuda/src/montecarlo.cuh` (draws, arithmetic),
goes on with what is written for the model (`asking`, `stepping`), and ends with
`cuda/src/montecarlo_paths.cuh` (paths, the entry `sample_paths`). Of the model it holds numbers
alone: names become `v0`, `v1`, …, so that a model's text cannot reach a compiler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engines.errors import UnsupportedError
from engines.montecarlo.asking import Asking
from engines.montecarlo.layout import Layout, table
from engines.montecarlo.plan import FAN_OUT, Plan, SynchronisationStrategy, make_plan
from engines.montecarlo.questions import (
    Monitor,
    Question,
    RewardQuestion,
    Until,
    check_question,
)
from engines.montecarlo.reference import weights_at
from engines.montecarlo.stepping import UNWEIGHED, WEIGHED, Stepping, padded
from engines.program.program import ModelKind, Program
from engines.program.source import arithmetic_constants, kernel
from engines.program.wording import double, function

MOST_INITIAL_STATES = 2**16
"""Initial states that are written into a source."""

MOST_MONITOR_ENTRIES = 2**18
"""Entries of a monitor's table, which is written into the source."""


@dataclass(frozen=True)
class Compiled:
    """A source text and what its entry gives back.

    Parameters
    ----------
    plan
        What the source carries out.
    questions
        In the order that they were given.
    text
        The source.
    """

    plan: Plan
    questions: tuple[Question, ...]
    text: str

    @property
    def rows(self) -> list[int]:
        """The row of each question's answers, among Boolean questions or among rewards."""
        counts = {False: 0, True: 0}
        rows = []
        for question in self.questions:
            is_reward = isinstance(question, RewardQuestion)
            rows.append(counts[is_reward])
            counts[is_reward] += 1
        return rows


def compile_program(
    program: Program,
    questions: Sequence[Question],
    strategy: SynchronisationStrategy = SynchronisationStrategy.AUTO,
    deadlocks_fixed: bool = True,
) -> Compiled:
    """Write the source of a program and questions.

    Parameters
    ----------
    program
        The model.
    questions
        What is asked of each path, at least one.
    strategy
        How commands that synchronise are brought together.
    deadlocks_fixed
        Whether a deadlock is a state that is never left; else it is an error.

    Raises
    ------
    InvalidModelError
        If a question does not fit the program.
    UnsupportedError
        If the strategy, the number of questions or of initial states, the size of a monitor or
        the nesting of an expression is too much; or for an unbounded until of a DTMC whose
        probabilities are not checked, where steps that are certain cannot be told.
    """
    for question in questions:
        check_question(program, question)
        if isinstance(question, Monitor):
            entries = len(question.transitions) * 2 ** len(question.atoms)
            if entries > MOST_MONITOR_ENTRIES:
                raise UnsupportedError(
                    f"a monitor of {entries} entries; at most {MOST_MONITOR_ENTRIES} are taken"
                )
        if (
            isinstance(question, Until)
            and question.bounds is None
            and program.kind is ModelKind.DTMC
            and not program.probabilities_checked
        ):
            raise UnsupportedError(
                "an unbounded until on paths of a DTMC whose probabilities are not checked"
            )
    if not 0 < len(questions) <= 256:
        raise UnsupportedError(f"{len(questions)} questions on the same paths, not 1–256")
    initial = len(program.initial_states or ())
    if initial > MOST_INITIAL_STATES:
        raise UnsupportedError(
            f"paths that begin in any of {initial} states; at most {MOST_INITIAL_STATES} are taken"
        )
    try:
        plan = make_plan(program, strategy)
        text = _source(plan, tuple(questions), deadlocks_fixed)
    except RecursionError:
        raise UnsupportedError("an expression of the model is nested too deeply") from None
    return Compiled(plan, tuple(questions), text)


def _source(plan: Plan, questions: tuple[Question, ...], deadlocks_fixed: bool) -> str:
    layout = Layout(plan)
    asking = Asking(layout, questions)
    stepping = Stepping(layout, asking.loops, asking.timed)
    constants = [
        f"#define FAN_OUT {FAN_OUT}",
        f"#define DEADLOCKS_FIXED {int(deadlocks_fixed)}",
        f"#define LAZY {int(plan.lazy)}",
        *arithmetic_constants(),
    ]
    if not layout.small:
        most = len(plan.program.variables)
        constants.append(f"typedef {layout.cell} CELL;")
        constants.append(f"typedef {'unsigned short' if most < 2**16 else 'int'} SLOT;")
    members = [
        "Draws draws;",
        *_variables(layout),
        "i64 steps; double time, stay;",
        "u32 fail, bad, none, sure, same, looping, looks;",
        *stepping.members(),
        *asking.members(),
    ]
    path = "typedef struct {\n" + "".join(f"  {member}\n" for member in members) + "} Path;\n"
    written = [path, asking.source(), stepping.source(), _place(layout), _store(questions)]
    constants_text = "\n".join(constants) + "\n"
    return "\n".join([constants_text, kernel("montecarlo"), *written, kernel("montecarlo_paths")])


def _variables(layout: Layout) -> list[str]:
    count = len(layout.plan.program.variables)
    if layout.small:
        return [f"int v{i};" for i in range(count)]
    return [f"CELL v[{count}];"]


def _place(layout: Layout) -> str:
    """Return the function that puts a path into its initial state."""
    program = layout.plan.program
    states = program.initial_states or (program.default_state,)
    count = len(program.variables)
    text, lines = "", []
    if len(states) > 1 or not layout.small:
        kind = "int" if layout.small else "CELL"
        text = table("initial_states", kind, [value for state in states for value in state])
        lines.append("const CELL *at = initial_states;".replace("CELL", kind))
    if len(states) > 1:
        lines.append("u64 left;")
        lines.append(f"at += {count} * split(draw(&p->draws), {len(states)}u, &left);")
        lines.append("(void)left;")
    if not layout.small:
        lines = ["int i;", *lines, f"for (i = 0; i < {count}; i++) p->v[i] = at[i];"]
        if not layout.plan.lazy:
            tables, statements = _initial_weights(layout)
            text += tables
            lines += statements
    elif len(states) > 1:
        lines += [f"p->v{i} = at[{i}];" for i in range(count)]
    else:
        lines += [f"p->v{i} = {value};" for i, value in enumerate(states[0])]
    return text + function("void place(Path *p)", ["(void)p;", *lines])


def _initial_weights(layout: Layout) -> tuple[str, list[str]]:
    """Return tables of the weights in the one initial state, and statements that copy them."""
    plan, program = layout.plan, layout.plan.program
    levels = None
    if len(program.initial_states or (0,)) == 1 and plan.units:
        levels = weights_at(plan, (program.initial_states or (program.default_state,))[0])
    if levels is None:
        return "", [f"p->moved = {UNWEIGHED};"]
    tables, lines = "", [f"p->moved = {WEIGHED};"]
    for i, level in enumerate(levels):
        kind = layout.stored_weight if i == 0 else layout.weight
        values = [str(int(x)) if plan.whole else double(x) for x in level]
        values += ["0"] * (padded(len(values)) - len(values))
        tables += table(f"initial_w{i}", kind, values)
        lines.append(f"for (i = 0; i < {len(values)}; i++) p->w{i}[i] = initial_w{i}[i];")
    return tables, lines


def _store(questions: tuple[Question, ...]) -> str:
    lines, counts = ["(void)booleans; (void)rewards;"], {False: 0, True: 0}
    for i, question in enumerate(questions):
        is_reward = isinstance(question, RewardQuestion)
        name = "rewards" if is_reward else "booleans"
        lines.append(f"{name}[{counts[is_reward]} * columns + i] = p->answer{i};")
        counts[is_reward] += 1
    head = "void store(const Path *p, u8 *booleans, double *rewards, u64 columns, u64 i)"
    return function(head, lines)
