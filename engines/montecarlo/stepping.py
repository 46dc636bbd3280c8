"""The source of a step: weights of units, the draw of one, the draws of its factors.

It does in C what `engines.montecarlo.reference` does in Python, in the same order, so that both
make the same paths. `layout` says which of two forms the source has.
"""

from __future__ import annotations

from collections.abc import Sequence

from engines.montecarlo.factors import FactorFunctions
from engines.montecarlo.layout import Layout, table
from engines.montecarlo.plan import FAN_OUT
from engines.program.wording import function

UNWEIGHED, WEIGHED = -1, -2
"""What stands for the unit that moved last where none did: all weights, or none, are to be computed
before the first step."""


def padded(size: int) -> int:
    """Return the size of an array that holds whole groups of weights."""
    return -(-size // FAN_OUT) * FAN_OUT


class Stepping:
    """Writes the functions `weigh` and `move`, and what they call.

    Parameters
    ----------
    layout
        Where things are.
    loops
        Whether it matters that a step was certain and changed nothing.
    timed
        Whether the time of a step matters.
    """

    def __init__(self, layout: Layout, loops: bool, timed: bool) -> None:
        self._layout, self._plan = layout, layout.plan
        self._loops, self._timed = loops, timed
        self._is_ctmc = layout.plan.program.kind == "ctmc"
        self._counted = self._plan.counted

    def members(self) -> list[str]:
        """Return the members of a path that are of use here."""
        layout, plan = self._layout, self._plan
        members = [f"{layout.weight} total;"]
        if not plan.lazy:
            if layout.small:
                members += [f"{layout.weight} w{u};" for u in range(len(plan.units))]
                members += [f"{layout.weight} s{g};" for g in range(len(self._groups()))]
            else:
                for level, size in enumerate(plan.level_sizes):
                    kind = layout.stored_weight if level == 0 else layout.weight
                    members.append(f"{kind} w{level}[{padded(size)}];")
                members.append("int moved;")
        if layout.joint:
            members += [f"u32 at[{layout.most_pending or 1}];", "int num_pending;"]
            members.append(f"int pending[{layout.most_pending or 1}];")
        return members

    def source(self) -> str:
        """Return the tables and functions."""
        parts = [] if self._layout.small else [self._tables()]
        functions = FactorFunctions(self._layout, self._loops)
        for k, kind in enumerate(self._layout.classes):
            parts += functions.functions(k, kind)
        if self._plan.lazy:
            parts += [self._any_enabled(), self._lazy_weigh(), self._lazy_move()]
        else:
            parts += [self._weigh(), self._move()]
        return "\n".join(parts)

    # ---- tables of large programs ----

    def _tables(self) -> str:
        layout, plan = self._layout, self._plan
        offsets: list[int] = []
        flat: list[int] = []
        for slots in layout.slots:
            offsets.append(len(flat))
            flat += list(slots)
        actions = [-1 if unit.action is None else unit.action for unit in plan.units]
        text = table("slots", "SLOT", flat)
        text += table("slot_starts", "int", offsets)
        text += table("factor_classes", "unsigned short", layout.class_of)
        text += table("unit_starts", "int", layout.unit_starts)
        text += table("unit_actions", "int", actions)
        if plan.lazy:
            factors, places = [], []
            for f, factor in enumerate(layout.factors):
                factors += [f] * len(factor.commands)
                places += list(range(len(factor.commands)))
            text += table("command_factors", "int", factors)
            return text + table("command_places", "unsigned short", places)
        starts, touched = [0], []
        for units in plan.touched:
            touched += list(units)
            starts.append(len(touched))
        text += table("touched_starts", "int", starts)
        return text + table("touched", "int", touched)

    # ---- units ----

    def _weigh(self) -> str:
        layout, plan = self._layout, self._plan
        if layout.small:
            lines = []
            for u, unit in enumerate(plan.units):
                factors = range(layout.unit_starts[u], layout.unit_starts[u] + len(unit.factors))
                calls = [f"{self._weight_name}{layout.class_of[f]}(p)" for f in factors]
                lines += self._unit_weight(f"p->w{u}", calls)
            groups = self._groups()
            for g, group in enumerate(groups):
                lines.append(f"p->s{g} = {' + '.join(f'p->w{u}' for u in group)};")
            total = " + ".join(f"p->s{g}" for g in range(len(groups))) or self._zero
            return function("void weigh(Path *p)", [*lines, f"p->total = {total};"])
        return self._weigh_table()

    def _groups(self) -> list[range]:
        """Return the units whose weights are added up together in a small program."""
        count = len(self._plan.units)
        return [range(u, min(u + FAN_OUT, count)) for u in range(0, count, FAN_OUT)]

    @property
    def _weight_name(self) -> str:
        return "count" if self._counted else "rate"

    @property
    def _zero(self) -> str:
        return "0" if self._plan.whole else "0.0"

    def _unit_weight(self, place: str, calls: Sequence[str]) -> list[str]:
        """Return statements that compute a unit's weight; bad weights count where it is enabled."""
        cast = "" if self._plan.whole or not self._counted else "(double)"
        product = [f"{place} = {cast}{calls[0]};"]
        product += [f"{place} *= {cast}{call};" for call in calls[1:]]
        enabled = f"{place} != {self._zero}" if self._counted else "!p->none"
        return ["p->bad = 0; p->none = 0;", *product, f"if (p->bad && {enabled}) p->fail = 1;"]

    def _dispatch(self, call: str, factor: str, before: str = "") -> str:
        """Return a call to the function of a factor's class; `call` has `#` for the class."""
        classes = len(self._layout.classes)
        slots = f"slots + slot_starts[{factor}]"
        if classes == 1:
            return f"{before}{call.replace('#', '0').replace('$', slots)};"
        cases = " ".join(
            f"case {k}: {before}{call.replace('#', str(k)).replace('$', slots)}; break;"
            for k in range(classes)
        )
        return f"switch (factor_classes[{factor}]) {{ {cases} }}"

    def _weigh_table(self) -> str:
        layout, plan = self._layout, self._plan
        kind = layout.weight
        cast = "" if plan.whole or not self._counted else "(double)"
        enabled = f"weight != {self._zero}" if self._counted else "!p->none"
        call = f"{cast}{self._weight_name}#(p, $)"
        one = [f"{kind} weight = 1, part = 0; int f;", "p->bad = 0; p->none = 0;"]
        if layout.joint:
            one += [
                "for (f = unit_starts[u]; f < unit_starts[u + 1]; f++) {",
                self._dispatch(call, "f", "part = "),
                "weight = f == unit_starts[u] ? part : weight * part;",
                "}",
            ]
        else:
            one += ["(void)f; (void)part;", self._dispatch(call, "u", "weight = ")]
        one += [f"if (p->bad && {enabled}) p->fail = 1;", "return weight;"]
        lines = ["int u, i;", "(void)i;", f"if (p->moved == {UNWEIGHED}) {{"]
        sizes = plan.level_sizes
        lines.append(f"for (u = 0; u < {len(plan.units)}; u++)")
        lines.append(f"  p->w0[u] = ({layout.stored_weight})weight_of(p, u);")
        for level, size in enumerate(sizes):
            if level > 0:
                lines.append(f"for (i = 0; i < {size}; i++)")
                lines.append(f"  p->w{level}[i] = {self._group(level - 1, 'i')};")
            lines.append(f"for (i = {size}; i < {padded(size)}; i++) p->w{level}[i] = 0;")
        lines += [
            "} else if (p->moved >= 0) {",
            "for (i = touched_starts[p->moved]; i < touched_starts[p->moved + 1]; i++) {",
        ]
        lines += [f"{kind} now;", "u = touched[i];", "now = weight_of(p, u);"]
        lines.append("if (now != p->w0[u]) {")
        if plan.whole:
            for level in range(len(sizes) - 1, 0, -1):
                lines.append(f"p->w{level}[u / {FAN_OUT**level}] += now - p->w0[u];")
            lines.append(f"p->w0[u] = ({layout.stored_weight})now;")
        else:
            lines.append("p->w0[u] = now;")
            for level in range(1, len(sizes)):
                group = f"u / {FAN_OUT**level}"
                lines.append(f"p->w{level}[{group}] = {self._group(level - 1, group)};")
        lines += ["}", "}", "}", f"p->total = {self._group(len(sizes) - 1, '0')};"]
        functions = function(f"{kind} weight_of(Path *p, int u)", one)
        return self._adders() + functions + function("void weigh(Path *p)", lines)

    def _group(self, level: int, group: str) -> str:
        """Return the sum of a group of weights of a level, in order."""
        size = self._plan.level_sizes[level]
        name = "sum_of_stored" if level == 0 else "sum_of"
        return f"{name}(p->w{level}, {size}, {group})"

    def _move(self) -> str:
        layout, plan = self._layout, self._plan
        lines = ["u64 left = 0, bits = draw(&p->draws);", f"{layout.weight} place;", "int u;"]
        lines.append("(void)left;")
        if plan.whole:
            lines.append("place = split(bits, p->total, &left);")
        else:
            lines.append("place = unit(bits) * p->total;")
        if self._loops:
            one = "p->total == 1" if self._counted else "0"
            lines.append(f"p->sure = {one}; p->same = 1;")
        if layout.joint:
            lines.append("p->num_pending = 0;")
        if layout.small:
            lines += self._small_choice()
        else:
            lines.append("u = 0;")
            for level in range(len(plan.level_sizes) - 1, -1, -1):
                name = "fall_in_stored" if level == 0 else "fall_in"
                size = "" if plan.whole else f", {plan.level_sizes[level]}"
                lines.append(f"u = {name}(p->w{level}{size}, u, &place);")
            lines += ["p->moved = u;", "earn(p, unit_actions[u]);", *self._table_take()]
        if layout.joint:
            place = [f"case {v}: {self._write(v)} break;" for v in self._pending_variables()]
            lines.append("{ int i; for (i = 0; i < p->num_pending; i++) {")
            if layout.small:
                lines += ["switch (p->at[i]) {", *place, "}"]
            else:
                lines.append(self._write(None))
            lines += ["} }"]
        lines += self._delay()
        return self._helpers() + function("void move(Path *p)", lines)

    def _delay(self) -> list[str]:
        if not self._is_ctmc:
            return []
        bits = "draw(&p->draws)"
        if not self._timed:
            return [f"(void){bits};"]
        return [f"p->stay = -logarithm(positive_unit({bits})) / p->total;", "p->time += p->stay;"]

    def _pending_variables(self) -> list[int]:
        units = (unit for unit in self._plan.units if len(unit.factors) > 1)
        return sorted({variable for unit in units for variable in unit.writes})

    def _write(self, variable: int | None) -> str:
        place = "p->v[p->at[i]]" if variable is None else self._layout.reference(variable)
        same = f"p->same &= {place} == p->pending[i]; " if self._loops else ""
        cast = "(CELL)" if variable is None else ""
        return f"{same}{place} = {cast}p->pending[i];"

    def _helpers(self) -> str:
        """Return the functions that find where a draw falls among weights."""
        if self._layout.small:
            return ""
        text = ""
        kinds = [("stored", self._layout.stored_weight)]
        if len(self._plan.level_sizes) > 1:
            kinds.append(("", self._layout.weight))
        for name, kind in kinds:
            suffix = f"_{name}" if name else ""
            if self._plan.whole:
                text += f"DEFINE_COUNT_FALL(fall_in{suffix}, {kind})\n"
            else:
                text += f"DEFINE_FALL(fall_in{suffix}, {kind}, {self._layout.weight})\n"
        return text

    def _adders(self) -> str:
        layout = self._layout
        text = f"DEFINE_SUM(sum_of_stored, {layout.stored_weight}, {layout.weight})\n"
        if len(self._plan.level_sizes) > 1:
            text += f"DEFINE_SUM(sum_of, {layout.weight}, {layout.weight})\n"
        return text

    def _small_choice(self) -> list[str]:
        layout, plan = self._layout, self._plan
        groups = self._groups()
        lines = ["u = 0;", *self._scan([(g, f"p->s{g}") for g in range(len(groups))])]
        scans = [" ".join(self._scan([(u, f"p->w{u}") for u in group])) for group in groups]
        if len(scans) > 1:
            cases = [f"case {g}: {scan} break;" for g, scan in enumerate(scans)]
            lines += ["switch (u) {", *cases, "}"]
        else:
            lines = ["u = 0;", *scans]
        lines.append("switch (u) {")
        for u, unit in enumerate(plan.units):
            factors = range(layout.unit_starts[u], layout.unit_starts[u] + len(unit.factors))
            calls = []
            for f in factors:
                calls += self._factor_take(f"{layout.class_of[f]}", "", len(unit.factors) == 1)
            action = -1 if unit.action is None else unit.action
            lines.append(f"case {u}: earn(p, {action}); {' '.join(calls)} break;")
        return [*lines, "}"]

    def _scan(self, weights: Sequence[tuple[int, str]]) -> list[str]:
        """Return statements that find where the draw falls among weights that are not in an array.

        Where rounding has let it reach the end, it falls into the last that is not 0.
        """
        lines = [f"{{ {self._layout.weight} rest = place; do {{"]
        for i, weight in weights:
            here = f"u = {i}; rest = place; if (place < {weight}) break; place -= {weight};"
            lines.append(f"if ({weight} > 0) {{ {here} }}")
        return [*lines, "} while (0); place = rest; }"]

    def _factor_take(self, k: str, slots: str, single: bool) -> list[str]:
        """Return statements that take a command of a factor.

        Parameters
        ----------
        k
            Its class.
        slots
            An argument for its slots, or nothing.
        single
            Whether it is the unit's only one.
        """
        if single and self._plan.whole:
            return [f"take{k}(p{slots}, place, left, 0);"]
        if single and not self._counted:
            return [f"take{k}(p{slots}, place, 0);"]
        if not self._counted:
            return [f"take{k}(p{slots}, unit(draw(&p->draws)) * rate{k}(p{slots}), 1);"]
        which = f"u32 n = count{k}(p{slots}), which = 0;"
        draws = "if (n > 1) which = split(draw(&p->draws), n, &left);"
        return [f"{{ {which} {draws} take{k}(p{slots}, which, 0, 1); }}"]

    def _table_take(self) -> list[str]:
        slots = ", slots + slot_starts[f]"
        classes = range(len(self._layout.classes))

        def dispatch(single: bool) -> str:
            bodies = [" ".join(self._factor_take(str(k), slots, single)) for k in classes]
            if len(bodies) == 1:
                return bodies[0]
            cases = " ".join(f"case {k}: {body} break;" for k, body in enumerate(bodies))
            return f"switch (factor_classes[f]) {{ {cases} }}"

        each = f"for (f = unit_starts[u]; f < unit_starts[u + 1]; f++) {dispatch(False)}"
        sole = f"f = {'unit_starts[u]' if self._layout.joint else 'u'}; {dispatch(True)}"
        if not self._layout.joint and (self._plan.whole or not self._counted):
            return ["{ int f;", sole, "}"]
        return [
            "{ int f;",
            "if (unit_starts[u + 1] - unit_starts[u] == 1) {",
            sole,
            "} else {",
            each,
            "} }",
        ]

    # ---- the lazy strategy ----

    def _any_enabled(self) -> str:
        layout = self._layout
        if layout.small:
            calls = [f"n += count{k}(p);" for k in range(len(layout.classes))]
        else:
            calls = [
                f"for (f = 0; f < {len(layout.factors)}; f++) {{",
                self._dispatch("count#(p, $)", "f", "n += "),
                "}",
            ]
        return function(
            "u32 count_all(Path *p)", ["u32 n = 0; int f; (void)f;", *calls, "return n;"]
        )

    def _lazy_weigh(self) -> str:
        total = "p->looks ? count_all(p) : 1" if self._layout.factors else "0"
        return function("void weigh(Path *p)", [f"p->total = {total};"])

    def _lazy_move(self) -> str:
        layout = self._layout
        commands = sum(len(factor.commands) for factor in layout.factors)
        lines = ["int tries = 0, done; u64 left;"]
        if self._loops:
            lines.append("p->sure = 1; p->same = 1;")
        lines += [
            "do {",
            f"u32 c = split(draw(&p->draws), {commands}, &left);",
            "done = 0; p->bad = 0;",
        ]
        if layout.small:
            cases, c = [], 0
            for f, factor in enumerate(layout.factors):
                action = self._plan.units[f].action
                number = -1 if action is None else action
                for j in range(len(factor.commands)):
                    call = f"attempt{layout.class_of[f]}(p, {j}, left, {number})"
                    cases.append(f"case {c}: done = {call}; break;")
                    c += 1
            lines += ["switch (c) {", *cases, "}"]
        else:
            lines.append("int f = command_factors[c];")
            call = "attempt#(p, $, command_places[c], left, unit_actions[f])"
            lines.append(self._dispatch(call, "f", "done = "))
        lines += [
            f"if (!done && ++tries == {4 * commands}) {{",
            "if (count_all(p) == 0) { p->total = 0; return; }",
            "tries = 0; }",
        ]
        lines += ["} while (!done);", "if (p->bad) p->fail = 1;"]
        if self._loops:
            lines.append("if (p->sure && p->same) p->sure = count_all(p) == 1;")
        return function("void move(Path *p)", lines)
