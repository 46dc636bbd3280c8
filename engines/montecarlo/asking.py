"""The source of the questions: what a path answers, and the rewards it gathers on the way.

It does in C what `engines.montecarlo.answers` does in Python.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from engines.montecarlo.layout import Layout, cell_type, table
from engines.montecarlo.questions import (
    CumulativeReward,
    InstantaneousReward,
    Monitor,
    Next,
    Question,
    ReachabilityReward,
    RewardQuestion,
    Until,
    is_bounded,
)
from engines.program.program import ModelKind, RewardStructure, StateReward, TransitionReward
from engines.program.ranges import range_of
from engines.program.wording import Wording, double, function


class Asking:
    """Writes the functions `earn`, `settle`, `ask` and `stay`.

    Parameters
    ----------
    layout
        Where things are.
    questions
        What is asked.
    """

    def __init__(self, layout: Layout, questions: Sequence[Question]) -> None:
        self._program = layout.plan.program
        self._questions = list(questions)
        self._ctmc = self._program.kind is ModelKind.CTMC
        self._words = Wording(self._program.variables, layout.reference)
        self._used = sorted({q.structure for q in questions if isinstance(q, RewardQuestion)})

    @property
    def timed(self) -> bool:
        """Whether the time of a CTMC matters to a question."""
        bounded = any(isinstance(q, Until) and q.bounds is not None for q in self._questions)
        return self._ctmc and (bounded or bool(self._used))

    @property
    def loops(self) -> bool:
        """Whether certain steps from a state to itself matter to a question."""
        return not self._ctmc and any(
            isinstance(q, Monitor) or (isinstance(q, Until) and q.bounds is None)
            for q in self._questions
        )

    def members(self) -> list[str]:
        """Return the members of a path that are of use here."""
        members = []
        for i, question in enumerate(self._questions):
            kind = "double" if isinstance(question, RewardQuestion) else "unsigned char"
            members += [f"{kind} answer{i};", f"unsigned char open{i};"]
            if isinstance(question, Monitor):
                members.append(f"int monitor{i};")
            if self._is_timed_until(question):
                members.append(f"unsigned char right{i};")
        for s in self._used:
            members.append(f"double gathered{s}, reward{s}, before{s}, last{s};")
        return members

    def source(self) -> str:
        """Return the tables and functions."""
        text = ""
        for i, question in enumerate(self._questions):
            if isinstance(question, Monitor):
                flat = [target for row in question.transitions for target in row]
                kind = cell_type(0, len(question.transitions) - 1)
                text += table(f"monitor_rows{i}", kind, flat)
                text += table(f"verdicts{i}", "unsigned char", question.verdicts)
                text += table(f"final{i}", "unsigned char", [int(x) for x in question.final])
        text += (
            self._monitors()
            + self._begin()
            + self._earn()
            + self._settle()
            + self._ask()
            + self._stay()
        )
        return text + self._state_of_questions()

    def _begin(self) -> str:
        lines = []
        for i, question in enumerate(self._questions):
            lines.append(f"p->open{i} = 1; p->answer{i} = {self._undecided(question)};")
            if isinstance(question, Monitor):
                lines.append(f"p->monitor{i} = {question.initial};")
            if self._is_timed_until(question):
                lines.append(f"p->right{i} = 0;")
        for s in self._used:
            lines.append(f"p->gathered{s} = p->reward{s} = p->before{s} = p->last{s} = 0.0;")
        return function("void begin_questions(Path *p)", lines)

    def _undecided(self, question: Question) -> str:
        return "NOT_A_NUMBER" if isinstance(question, RewardQuestion) else "2"

    def _is_timed_until(self, question: Question) -> bool:
        return self._ctmc and isinstance(question, Until) and question.bounds is not None

    def _state_of_questions(self) -> str:
        everyone = " | ".join(f"p->open{i}" for i in range(len(self._questions))) or "0"
        bounded = [f"p->open{i}" for i, q in enumerate(self._questions) if is_bounded(q)]
        text = function("int any_open(const Path *p)", [f"return {everyone};"])
        lines = ["(void)p;", f"return {' | '.join(bounded) or '0'};"]
        return text + function("int bounded_open(const Path *p)", lines)

    # ---- rewards ----

    def _can_fail(self, item: StateReward | TransitionReward) -> bool:
        """Return whether a reward may be an error, which it is whoever asks."""
        value = range_of(item.value, self._program.variables)
        guard = range_of(item.guard, self._program.variables)
        fine = value.within(0.0, math.inf) and value.high < math.inf
        return not fine or value.can_fail or guard.can_fail

    def _item(self, item: StateReward | TransitionReward, place: str) -> str:
        value = self._words.real(item.value)
        if self._can_fail(item):
            value = f"checked({value}, &p->fail)"
        return f"if ({self._words.value(item.guard)}) {place} += {value};"

    def _structures(self) -> list[tuple[int, RewardStructure]]:
        return list(enumerate(self._program.reward_structures))

    def _earn(self) -> str:
        """Return the function that notes the rewards of the transition to be made."""
        lines = ["(void)p; (void)action;"]
        for s, structure in self._structures():
            used = s in self._used
            place = f"p->last{s}" if used else "unused"
            items = [x for x in structure.transitions if used or self._can_fail(x)]
            body = [
                f"if (action == {-1 if x.action is None else x.action}) "
                f"{{ double r = 0.0; {self._item(x, 'r')} {place} += r; }}"
                for x in items
            ]
            if used:
                lines.append(f"p->last{s} = 0.0;")
            if body:
                lines += body if used else ["{ double unused = 0.0;", *body, "(void)unused; }"]
        return function("void earn(Path *p, int action)", lines)

    def _settle(self) -> str:
        """Return the function that computes the rewards of the state."""
        lines = ["(void)p;"]
        for s, structure in self._structures():
            used = s in self._used
            items = [x for x in structure.states if used or self._can_fail(x)]
            if not items and not used:
                continue
            lines += ["{ double r = 0.0;", *(self._item(x, "r") for x in items)]
            lines.append(f"p->reward{s} = r; }}" if used else "(void)r; }")
        return function("void settle(Path *p)", lines)

    # ---- questions ----

    def _ask(self) -> str:
        """Return the function that takes note of the state that a path has come to."""
        lines = ["(void)p;"]
        for s in self._used:
            rate = f"p->reward{s} * p->stay" if self._ctmc else f"p->reward{s}"
            lines.append(f"if (p->steps > 0) p->gathered{s} += {rate} + p->last{s};")
            lines.append(f"p->before{s} = p->reward{s};")
        lines.append("settle(p);")
        for i, question in enumerate(self._questions):
            lines += [f"if (p->open{i}) {{", *self._question(i, question), "}"]
        return function("void ask(Path *p)", lines)

    def _decide(self, i: int, value: str) -> str:
        return f"{{ p->answer{i} = {value}; p->open{i} = 0; }}"

    def _verdicts(self, i: int, question: Question) -> tuple[str, str]:
        """Return what is done where a question holds, and where it does not."""
        yes, no = self._decide(i, "1"), self._decide(i, "0")
        negated = not isinstance(question, RewardQuestion) and question.negated
        return (no, yes) if negated else (yes, no)

    def _question(self, i: int, question: Question) -> list[str]:
        yes, no = self._verdicts(i, question)
        match question:
            case Until(bounds=None):
                return self._until(question, "1", "p->looping", yes, no)
            case Until() if self._ctmc:
                return self._timed_until(i, question, yes, no)
            case Until(bounds=bounds):
                assert bounds is not None
                lines = []
                if bounds.last_step is not None:
                    lines = [f"if (p->steps > {bounds.last_step}) {no} else"]
                ready = f"p->steps >= {bounds.first_step}"
                return lines + self._until(question, ready, "0", yes, no)
            case Next(target=target):
                return [
                    f"if (p->steps == 1) {{ if ({self._words.value(target)}) {yes} else {no} }}"
                ]
            case Monitor():
                return [
                    f"int n = read{i}(p, p->steps);",
                    f"if (n == 2 && p->looping) n = repeat{i}(p);",
                    f"if (n == 1) {yes} else if (n == 0) {no}",
                ]
            case CumulativeReward(structure=s, bound=bound):
                return self._cumulative(i, s, bound)
            case InstantaneousReward(structure=s, time=time):
                if not self._ctmc:
                    return [f"if (p->steps == {int(time)}) {self._decide(i, f'p->reward{s}')}"]
                value = f"p->time > {double(time)} ? p->before{s} : p->reward{s}"
                return [f"if (p->time >= {double(time)}) {self._decide(i, value)}"]
            case ReachabilityReward(structure=s, target=target):
                return [f"if ({self._words.value(target)}) {self._decide(i, f'p->gathered{s}')}"]

    def _until(self, question: Until, ready: str, stuck: str, yes: str, no: str) -> list[str]:
        left, right = self._words.value(question.left), self._words.value(question.right)
        lines = [f"if ({ready} && {right}) {yes}", f"else if (!{left}) {no}"]
        return [*lines, f"else if ({stuck}) {no}"]

    def _timed_until(self, i: int, question: Until, yes: str, no: str) -> list[str]:
        bounds = question.bounds
        assert bounds is not None
        lower, upper = double(bounds.lower), double(bounds.upper)
        at_once = int(bounds.lower == 0.0)
        return [
            f"int right = {self._words.value(question.right)}, before = p->right{i};",
            f"int left = {self._words.value(question.left)};",
            f"p->right{i} = (unsigned char)right;",
            f"if (p->steps == 0) {{ if ({at_once} && right) {yes} else if (!left) {no} }}",
            f"else if (p->time > {upper}) {{ if (before) {yes} else {no} }}",
            f"else if (p->time <= {lower}) {{ if (!left) {no} }}",
            f"else if (right) {yes}",
            f"else if (!left) {no}",
            f"else if (p->time - p->stay <= {lower} && before) {yes}",
        ]

    def _cumulative(self, i: int, s: int, bound: float) -> list[str]:
        if not self._ctmc:
            return [f"if (p->steps == {int(bound)}) {self._decide(i, f'p->gathered{s}')}"]
        return [
            f"if (p->time >= {double(bound)}) {{",
            f"double value = p->gathered{s}, excess = p->time - {double(bound)};",
            f"if (excess > 0.0) {{ value -= p->before{s} * excess; value -= p->last{s}; }}",
            self._decide(i, "value"),
            "}",
        ]

    def _monitors(self) -> str:
        """Return the functions that read a letter: 0, 1, or 2 when more has to be read.

        And those that read the letter again and again, of a state that is never left: no further
        than to where the monitor no longer moves.
        """
        text = ""
        for i, question in enumerate(self._questions):
            if not isinstance(question, Monitor):
                continue
            letter = " | ".join(
                f"{self._words.value(atom)} << {j}" for j, atom in enumerate(question.atoms)
            )
            letters = 2 ** len(question.atoms)
            lines = [
                f"int letter = {letter or '0'};",
                f"int q = monitor_rows{i}[p->monitor{i} * {letters} + letter];",
                f"p->monitor{i} = q;",
                f"if (verdicts{i}[q] != 2) return verdicts{i}[q];",
                f"return steps + 1 < {question.length} ? 2 : final{i}[q];",
            ]
            text += function(f"int read{i}(Path *p, i64 steps)", lines)
            lines = [
                "i64 steps = p->steps; int n, before;",
                f"do {{ before = p->monitor{i}; steps++; n = read{i}(p, steps); }}",
                f"while (n == 2 && p->monitor{i} != before);",
                f"return n == 2 ? final{i}[before] : n;",
            ]
            text += function(f"int repeat{i}(Path *p)", lines)
        return text

    def _stay(self) -> str:
        """Return the function that answers what is open where the state is never left."""
        lines = ["(void)p;"]
        for i, question in enumerate(self._questions):
            lines += [f"if (p->open{i}) {{", *self._for_ever(i, question), "}"]
        return function("void stay(Path *p)", lines)

    def _for_ever(self, i: int, question: Question) -> list[str]:
        yes, no = self._verdicts(i, question)
        match question:
            case Until(bounds=None):
                return [no]
            case Until(right=right, bounds=bounds):
                assert bounds is not None
                waits = f"p->steps < {bounds.first_step}"
                if self._ctmc:
                    waits = f"p->time <= {double(bounds.lower)}"
                return [f"if ({waits} && {self._words.value(right)}) {yes} else {no}"]
            case Next(target=target):
                return [f"if ({self._words.value(target)}) {yes} else {no}"]
            case Monitor():
                return [f"if (repeat{i}(p)) {yes} else {no}"]
            case CumulativeReward(structure=s, bound=bound):
                left = f"({double(bound)} - {'p->time' if self._ctmc else '(double)p->steps'})"
                return [self._decide(i, f"p->gathered{s} + p->reward{s} * {left}")]
            case InstantaneousReward(structure=s):
                return [self._decide(i, f"p->reward{s}")]
            case ReachabilityReward():
                return [";"]
