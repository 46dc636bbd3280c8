"""The run of a regression: each case on each engine, the comparison, the arbitration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from bridge.regress.answers import WHOLE, Answer, Cell, Kind, Record
from bridge.regress.compare import Tolerance
from bridge.regress.judge import Judge, builds_of, needs_arbiter, needs_second_opinion
from bridge.regress.models import model_verdict
from bridge.regress.plan import Case
from bridge.regress.runner import Interrupted, Runner
from bridge.regress.solvers import BOUNDS, BOUNDS_OF_DIAGRAMS, PRISM_ENGINES, Solver, tight
from bridge.regress.verdicts import Outcome, Verdict

EXACT_STATES = 1000
"""States up to which the exact engine is asked along with the others, by default."""


@dataclass(frozen=True)
class Settings:
    """What is compared, and how.

    Parameters
    ----------
    solvers
        The engines.
    tolerance
        What is allowed on top of the engines' claims.
    exact_states
        States up to which the exact engine takes part.
    arbitrate
        Whether differences are decided by further runs.
    """

    solvers: tuple[Solver, ...]
    tolerance: Tolerance = field(default_factory=Tolerance)
    exact_states: int = EXACT_STATES
    arbitrate: bool = True


@dataclass
class CaseResult:
    """What a case came to.

    Attributes
    ----------
    case : Case
        The case.
    verdicts : list of Verdict
        Of its models and questions.
    seconds : dict
        Time of the engines' answers, by engine.
    interrupted : bool
        Whether engines or questions are missing because the run was stopped.
    """

    case: Case
    verdicts: list[Verdict]
    seconds: dict[str, float]
    interrupted: bool = False

    @property
    def unreadable(self) -> bool:
        """Whether every engine refused the command line, and nothing was asked."""
        found = [verdict.outcome for verdict in self.verdicts]
        whole = all(verdict.question == WHOLE.text for verdict in self.verdicts)
        return whole and found == [Outcome.REFUSED]


class Regression:
    """Runs cases and judges them.

    Parameters
    ----------
    runner
        Runs the workers.
    settings
        What is compared.
    told
        Called with a case's name, an engine's and its answer, as answers come.
    """

    def __init__(
        self,
        runner: Runner,
        settings: Settings,
        told: Callable[[str, str, Answer], None] = lambda *_: None,
    ) -> None:
        self._runner = runner
        self._settings = settings
        self._told = told

    def run(self, cases: list[Case], jobs: int, done: Callable[[CaseResult], None]) -> bool:
        """Run the cases; return whether all of them were run to their end.

        Parameters
        ----------
        cases
            The cases.
        jobs
            How many at a time.
        done
            Called with each result, in the cases' order, in this thread.
        """
        stopped = False
        with ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(self._case, case, place) for place, case in enumerate(cases)]
            waiting = list(futures)
            try:
                while waiting:
                    result = waiting[0].result()
                    del waiting[0]
                    done(result)
            except KeyboardInterrupt:
                stopped = True
                for future in futures:
                    future.cancel()
                self._runner.stop()
                for future in waiting:
                    if not future.cancelled():
                        done(future.result())
        return not stopped

    def _case(self, case: Case, number: int) -> CaseResult:
        records: dict[Solver, Record] = {}
        result = CaseResult(case, [], {})
        if case.left_out:
            return result
        try:
            for solver in self._settings.solvers:
                try:
                    records[solver] = self._ask(case, number, solver, records)
                except Interrupted as stop:
                    records[solver] = stop.record
                    raise
            self._judge(case, number, records, result)
        except Interrupted:
            result.interrupted = True
            result.verdicts.clear()
            self._judge(case, number, records, result, arbitrate=False)
        self._runner.forget(number)
        for solver, record in records.items():
            spent = sum(answer.seconds for answer in record.answers.values())
            result.seconds[solver.name] = spent
        return result

    def _ask(
        self, case: Case, number: int, solver: Solver, records: Mapping[Solver, Record]
    ) -> Record:
        left_out: frozenset[int] = frozenset()
        if solver.exact:
            left_out = _too_large(records, self._settings.exact_states)
            known = {model for record in records.values() for model in record.models}
            if known and known <= left_out:
                return Record()
        told = self._told
        return self._runner.ask(
            case,
            number,
            solver,
            left_out=left_out,
            told=lambda answer: told(case.name, solver.name, answer),
        )

    def _judge(
        self,
        case: Case,
        number: int,
        records: Mapping[Solver, Record],
        result: CaseResult,
        *,
        arbitrate: bool = True,
    ) -> None:
        cells = sorted(
            {cell.number: cell for record in records.values() for cell in record.answers}.items()
        )
        models = sorted({cell.model for _, cell in cells if cell.number >= 0})
        judges = {}
        verdicts: dict[int, Verdict] = {}
        named = _named(records)
        for model in models:
            builds = builds_of(model, records)
            judges[model] = Judge(builds, self._settings.tolerance)
            found = model_verdict(case.name, model, records, builds)
            if found is not None:
                result.verdicts.append(found)
        for place, _ in cells:
            cell = named[place]
            judge = judges.get(cell.model) or Judge({}, self._settings.tolerance)
            verdicts[place] = judge.verdict(case.name, cell, _answers(cell, records), {})
        open_cells = {place for place, item in verdicts.items() if needs_arbiter(item)}
        if open_cells and arbitrate and self._settings.arbitrate:
            self._arbitrate(case, number, records, verdicts, open_cells)
        result.verdicts.extend(verdicts[place] for place, _ in cells)

    def _arbitrate(
        self,
        case: Case,
        number: int,
        records: Mapping[Solver, Record],
        verdicts: dict[int, Verdict],
        open_cells: set[int],
    ) -> None:
        """Have differences decided: by exact fractions, else by bounds and a tight threshold.

        Where these differ, or say that ours are wrong, the same are asked by PRISM's other engine.
        """
        named = _named(records)
        told: dict[Solver, Record] = {}
        types = {facts.type for record in records.values() for facts in record.models.values()}
        timed = "CTMC" in types
        groups = (
            (PRISM_ENGINES["exact"],),
            (BOUNDS, tight(continuous_time=timed)),
            (BOUNDS_OF_DIAGRAMS, tight("sparse", continuous_time=timed)),
        )
        for group in groups:
            for solver in group:
                left_out = frozenset[int]()
                if solver.exact:
                    # It decides on models that it is not asked about by default, but no larger.
                    left_out = _too_large(records, 20_000)
                if not open_cells or {named[place].model for place in open_cells} <= left_out:
                    continue
                asked_before = next((item for item in records if item.name == solver.name), None)
                done = frozenset(named) - frozenset(open_cells)
                if asked_before is not None:
                    had = {cell.number for cell in records[asked_before].answers}
                    done |= had
                    if frozenset(open_cells) <= had:
                        continue
                told[solver] = self._runner.ask(
                    case, number, _as_arbiter(solver), left_out=left_out, done=done
                )
            everyone = {**records, **told}
            for place in sorted(open_cells):
                cell = named[place]
                judge = Judge(builds_of(cell.model, everyone), self._settings.tolerance)
                arbiters = _answers(cell, told)
                answers = _answers(cell, records)
                verdicts[place] = judge.verdict(case.name, cell, answers, arbiters)
                if not needs_second_opinion(verdicts[place]):
                    open_cells = open_cells - {place}


def _as_arbiter(solver: Solver) -> Solver:
    """Return the solver under a name of its own, so that its files stand apart."""
    if not solver.exact:
        return solver
    return Solver("exact-arbiter", solver.words)


def _answers(cell: Cell, records: Mapping[Solver, Record]) -> dict[Solver, Answer]:
    found = {}
    for solver, record in records.items():
        whole = next((item for item in record.answers.values() if item.cell.number < 0), None)
        answer = record.answers.get(cell) or whole
        nothing = "not asked: too many states" if solver.exact else "not asked"
        found[solver] = answer or Answer(cell, Kind.LEFT_OUT, nothing)
    return found


def _named(records: Mapping[Solver, Record]) -> dict[int, Cell]:
    """Return the questions by number, with the texts of the first engine that was asked."""
    named: dict[int, Cell] = {}
    for record in records.values():
        for cell in record.answers:
            named.setdefault(cell.number, cell)
    return named


def _too_large(records: Mapping[Solver, Record], most: int) -> frozenset[int]:
    """Return the numbers of the models that have more states, or could not be built."""
    sizes: dict[int, int] = {}
    for record in records.values():
        for number, facts in record.models.items():
            sizes[number] = max(sizes.get(number, 0), facts.num_states)
    return frozenset(number for number, size in sizes.items() if size > most)
