"""The source of a class of factors: which of its commands are enabled, and what each does.

It does in C what `engines.montecarlo.reference` does in Python, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engines.montecarlo.layout import FactorClass, Layout
from engines.montecarlo.plan import Check, PlannedCommand, PlannedUpdate
from engines.program.expressions import Expression, Literal
from engines.program.ranges import range_of
from engines.program.wording import Wording, function, integer


class FactorFunctions:
    """Writes the functions of classes of factors.

    Of a class k these are ``countk`` or ``ratek``, the weight of its enabled commands, and
    ``takek``, which makes a drawn one; under the lazy strategy ``countk`` and ``attemptk``.

    Parameters
    ----------
    layout
        Where things are.
    loops
        Whether it matters that a step was certain and changed nothing.
    """

    def __init__(self, layout: Layout, loops: bool) -> None:
        self._layout, self._plan = layout, layout.plan
        self._loops, self._counted = loops, layout.plan.counted

    def functions(self, k: int, kind: FactorClass) -> Iterator[str]:
        """Return the functions of class number k."""
        if self._plan.lazy:
            yield self._attempt(k, kind)
            yield self._count(k, kind)
        elif self._counted:
            yield self._count(k, kind)
            yield self._take(k, kind)
        else:
            yield self._rate(k, kind)
            yield self._take_by_rate(k, kind)

    def _wording(self, kind: FactorClass) -> Wording:
        reference = self._layout.reference if self._layout.small else _slot
        return Wording(kind.slots, reference)

    @property
    def _slots_parameter(self) -> str:
        return "" if self._layout.small else ", const SLOT *s"

    def _checks(self, kind: FactorClass, command: PlannedCommand) -> list[str]:
        """Return statements that look at the weights of an enabled command."""
        words, lines = self._wording(kind), []
        for weights in command.weights:
            check = self._check(kind, weights)
            if check is Check.STATIC:
                lines.append("p->bad = 1;")
            elif check is Check.DYNAMIC:
                sums = " ".join(f"t += checked({words.real(w)}, &p->bad);" for w in weights)
                lines.append(
                    f"{{ double t = 0.0; {sums} check_sum(t, {int(self._counted)}, &p->bad); }}"
                )
        return lines

    def _check(self, kind: FactorClass, weights: Sequence[Expression]) -> Check:
        return self._plan.check(weights, kind.slots)

    def _count(self, k: int, kind: FactorClass) -> str:
        """Return the function that counts the enabled commands."""
        words = self._wording(kind)
        lines = []
        for command in kind.factor.commands:
            guard = words.value(command.guard)
            checks = [] if self._plan.lazy else self._checks(kind, command)
            if checks:
                lines.append(f"if ({guard}) {{ n++; {' '.join(checks)} }}")
            else:
                lines.append(f"n += {guard};")
        return function(
            f"u32 count{k}(Path *p{self._slots_parameter})", ["u32 n = 0;", *lines, "return n;"]
        )

    def _take(self, k: int, kind: FactorClass) -> str:
        """Return the function that takes the enabled command of a number."""
        words = self._wording(kind)
        commands = kind.factor.commands
        lines = []
        for i, command in enumerate(commands):
            effect = self._updates(kind, command, "left")
            if len(commands) == 1:
                lines += effect
            else:
                guard = words.value(command.guard)
                last = i == len(commands) - 1
                condition = "" if last else f"if ({guard} && which-- == 0) "
                lines.append(f"{condition}{{ {' '.join(effect)} return; }}")
        parameters = f"Path *p{self._slots_parameter}, u32 which, u64 left, int joint"
        unused = ["(void)which; (void)left; (void)joint;"]
        return function(f"void take{k}({parameters})", [*unused, *lines])

    def _attempt(self, k: int, kind: FactorClass) -> str:
        """Return the function that takes a command if it is enabled."""
        words, lines = self._wording(kind), []
        for i, command in enumerate(kind.factor.commands):
            effect = [*self._checks(kind, command), *self._updates(kind, command, "left")]
            guard = words.value(command.guard)
            lines.append(f"case {i}: if (!{guard}) return 0;")
            lines.append(f"{{ earn(p, action); {' '.join(effect)} }} return 1;")
        body = ["(void)left; (void)action;", "switch (which) {", *lines, "}", "return 0;"]
        parameters = f"Path *p{self._slots_parameter}, u32 which, u64 left, int action"
        return function(f"int attempt{k}({parameters})", body)

    def _sum(self, kind: FactorClass, command: PlannedCommand) -> list[str]:
        words = self._wording(kind)
        return ["t = 0.0;", *(f"t += {words.real(u.weight)};" for u in command.updates)]

    def _rate(self, k: int, kind: FactorClass) -> str:
        """Return the function that adds up the rates of the enabled commands."""
        words, lines = self._wording(kind), []
        for command in kind.factor.commands:
            effect = [*self._checks(kind, command), *self._sum(kind, command), "sum += t; any = 1;"]
            lines.append(f"if ({words.value(command.guard)}) {{ {' '.join(effect)} }}")
        body = ["double sum = 0.0, t; int any = 0; (void)t;", *lines]
        body += ["if (!any) p->none = 1;", "return sum;"]
        return function(f"double rate{k}(Path *p{self._slots_parameter})", body)

    def _take_by_rate(self, k: int, kind: FactorClass) -> str:
        """Return the function that takes the command, and its update, on which a draw falls."""
        words = self._wording(kind)
        lines, cases = [], []
        commands = kind.factor.commands
        for i, command in enumerate(commands):
            found = f"if (t > 0.0) {{ last = {i}; rest = x; if (x < t) break; x -= t; }}"
            body = " ".join([*self._sum(kind, command), found])
            lines.append(f"if ({words.value(command.guard)}) {{ {body} }}")
            effect = " ".join(self._updates(kind, command, None))
            cases.append(f"case {i}: {{ {effect} }} break;")
        body_ = ["double rest = x, t; int last = 0; (void)t; (void)rest; (void)joint;"]
        if len(commands) > 1:
            body_ += ["do {", *lines, "} while (0);"]
        body_ += ["switch (last) {", *cases, "}"]
        return function(f"void take{k}(Path *p{self._slots_parameter}, double x, int joint)", body_)

    # ---- updates ----

    def _updates(self, kind: FactorClass, command: PlannedCommand, bits: str | None) -> list[str]:
        """Return statements that draw an update and make it.

        Parameters
        ----------
        kind, command
            Whose.
        bits
            The draw, where weights are probabilities; None where `rest` is what is left of a rate.
        """
        words, updates = self._wording(kind), command.updates
        weights = [words.real(update.weight) for update in updates]
        constant = [u.weight.value for u in updates if isinstance(u.weight, Literal)]
        lines = []
        sure = self._loops and self._counted
        if len(updates) == 1:
            lines += ["p->sure &= 1;"] if sure else []
            return lines + self._assignments(kind, updates[0])
        draw = "double x = rest;"
        if bits is not None:
            # a joint step has made no draw for an update that may be the only one
            draw = f"double x = unit(joint ? draw(&p->draws) : {bits});"
            draw = draw.replace("joint ? draw(&p->draws) : ", "") if self._plan.lazy else draw
        if len(constant) == len(updates) and all(float(value) > 0.0 for value in constant):
            lines += [draw, "do {"]
            for update, weight in zip(updates[:-1], weights[:-1], strict=True):
                effect = " ".join(self._assignments(kind, update))
                lines.append(f"if (x < {weight}) {{ {effect} break; }} x -= {weight};")
            lines += ["{", *self._assignments(kind, updates[-1]), "}", "} while (0);"]
            return [*lines, "p->sure = 0;"] if sure else lines
        lines += [f"const double w[{len(updates)}] = {{ {', '.join(weights)} }};", draw]
        lines.append(f"switch (fall(w, {len(updates)}, x)) {{")
        for i, update in enumerate(updates):
            lines.append(f"case {i}: {{ {' '.join(self._assignments(kind, update))} }} break;")
        lines.append("}")
        return [*lines, f"p->sure &= positive(w, {len(updates)}) == 1;"] if sure else lines

    def _assignments(self, kind: FactorClass, update: PlannedUpdate) -> list[str]:
        """Return statements that compute new values, check their ranges, and write them."""
        words, small = self._wording(kind), self._layout.small
        lines, writes = [], []
        for i, assignment in enumerate(update.assignments):
            declared = kind.slots[assignment.variable]
            lines.append(f"int a{i} = {words.value(assignment.value)};")
            value = range_of(assignment.value, kind.slots)
            if not value.within(declared.low, declared.high):
                low, high = integer(declared.low), integer(declared.high)
                lines.append(f"if (a{i} < {low} || a{i} > {high}) p->fail = 1;")
            place = (
                self._layout.reference(assignment.variable) if small else _slot(assignment.variable)
            )
            if self._loops:
                writes.append(f"p->same &= {place} == a{i};")
            writes.append(f"{place} = ({'int' if small else 'CELL'})a{i};")
        if not writes:
            return []
        if not self._layout.joint:
            return ["{", *lines, *writes, "}"]
        waits = []
        for i, assignment in enumerate(update.assignments):
            index = assignment.variable if small else f"s[{assignment.variable}]"
            waits.append(f"p->at[p->num_pending] = {index}; p->pending[p->num_pending++] = a{i};")
        return ["{", *lines, "if (joint) {", *waits, "} else {", *writes, "}", "}"]


def _slot(index: int) -> str:
    return f"p->v[s[{index}]]"
