"""Asking models by many routes, and gathering what does not hold."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.promise.judging import Printed, fault, printed_answers, vague
from tests.promise.models import Case, draw
from tests.promise.oracle import Value
from tests.promise.questions import Question, questions_for
from tests.promise.routes import (
    FILES,
    FORMS,
    IN_PRISM,
    Asker,
    command_words,
    settings_for,
    takes,
)

LARGEST_ERROR = 1e-3
"""What is worse is noted as vague where the method was ours to choose."""
OURS = ("default", "ii", "tight", "topological")


@dataclass(frozen=True)
class Violation:
    """A promise that was not kept.

    Parameters
    ----------
    seed
        Of the model.
    case
        The model.
    question
        What was asked.
    route, setting
        How.
    fault
        What is wrong.
    printed
        What was printed.
    exact
        The exact value; None where nothing was printed.
    """

    seed: int
    case: Case
    question: Question
    route: str
    setting: str
    fault: str
    printed: Printed
    exact: Value | None

    @property
    def kind(self) -> tuple[str, str, str, str]:
        """What it has in common with others."""
        return self.fault, self.case.kind.lower(), self.question.family, self.setting

    def text(self) -> str:
        """Return a reproduction that is ready to run."""
        form = FORMS[self.route]
        words = command_words(
            self.route,
            Path(f"model.{form}"),
            Path("x"),
            self.case.kind,
            settings_for(self.case.kind)[self.setting],
        )
        words[1:2] = ["-pf", self.question.text]
        exact = "-"
        if self.exact is not None:
            exact = f"{float(self.exact)!r} = {self.exact}"
        return (
            f"{self.fault}: seed {self.seed}, {self.route}, {self.setting}\n"
            f"  prism-gpu {shlex.join(words)}\n"
            f"  printed {self.printed}\n  exact   {exact[:300]}\n{self.case.text()}"
        )


@dataclass
class Tally:
    """What became of the questions.

    Parameters
    ----------
    asked
        How many answers were looked at.
    outcomes
        How many of them had which claim.
    refusals
        How often each error was printed.
    violations, vague
        What does not hold, and errors that say little.
    """

    asked: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)
    vague: list[Violation] = field(default_factory=list)

    def note(self, outcome: Violation) -> None:
        """Count an answer."""
        self.asked += 1
        printed = outcome.printed
        if printed.value is None:
            self.outcomes["no result"] += 1
            self.refusals[f"{outcome.setting}: {printed.error}"] += 1
        elif printed.claim.startswith("+/-"):
            self.outcomes["estimated" if "estimated" in printed.claim else "proven"] += 1
        else:
            self.outcomes[printed.claim or "no claim"] += 1
        if outcome.fault:
            self.violations.append(outcome)
        elif outcome.setting in OURS and vague(printed, LARGEST_ERROR):
            self.vague.append(outcome)

    def smallest(self, found: Iterable[Violation]) -> Iterator[tuple[Violation, int]]:
        """Yield the smallest violation of each kind and how many there are, most first."""
        kinds: dict[tuple[str, str, str, str], list[Violation]] = {}
        for violation in found:
            kinds.setdefault(violation.kind, []).append(violation)
        for some in sorted(kinds.values(), key=len, reverse=True):
            yield min(some, key=lambda violation: len(violation.case.text())), len(some)


class Questioner:
    """Asks models; a context manager.

    Parameters
    ----------
    folder
        For models and logs.
    seconds
        How long a model may take with one setting.
    """

    def __init__(self, folder: Path, seconds: float = 30.0) -> None:
        self.folder = folder
        self.tally = Tally()
        self._askers = {inside: Asker(inside, folder, seconds) for inside in (False, True)}

    def __enter__(self) -> Questioner:
        return self

    def __exit__(self, *_: object) -> None:
        for asker in self._askers.values():
            asker.close()

    def ask(
        self,
        seed: int,
        routes: Iterable[str],
        settings: Iterable[str] = (),
        *,
        case: Case | None = None,
        families: Iterable[str] = (),
    ) -> list[Violation]:
        """Ask one model everything; return what does not hold.

        Parameters
        ----------
        seed
            Of the model and of its questions' bounds.
        routes, settings
            Names of them; without settings, all that fit the model's kind.
        case
            The model, if it is not that of the seed.
        families
            Which questions; all by default.
        """
        case = case or draw(seed)
        wanted = set(families)
        questions = [q for q in questions_for(case, seed) if not wanted or q.family in wanted]
        properties = self.folder / "model.props"
        properties.write_text("".join(f"{q.text};\n" for q in questions), encoding="utf-8")
        before = len(self.tally.violations)
        known: dict[tuple[str, bool], Value] = {}
        fitting = settings_for(case.kind)
        for route in routes:
            if not takes(route, case):
                continue
            model = case.write(self.folder, FORMS[route])
            for setting in settings or fitting:
                if setting in fitting:
                    words = command_words(route, model, properties, case.kind, fitting[setting])
                    asker = self._askers[route in IN_PRISM]
                    log, ended = asker.log(words)
                    if not ended:
                        # It may have been compiling what is kept for the next time.
                        log, ended = asker.log(words)
                    how = seed, case, route, setting
                    self._judge(how, questions, known, log, ended)
        return self.tally.violations[before:]

    def _judge(
        self,
        how: tuple[int, Case, str, str],
        questions: list[Question],
        known: dict[tuple[str, bool], Value],
        log: str,
        ended: bool,
    ) -> None:
        """Note what a log says of each question; `known` keeps the exact values."""
        seed, case, route, setting = how
        # A file holds doubles: the value asked for is that of the model they make.
        of_doubles = route in FILES
        asked = case.read() if of_doubles else case
        answers = printed_answers(log)
        for number, (question, printed) in enumerate(zip(questions, answers, strict=False)):
            exact = None
            if printed.value is not None:
                key = question.text, of_doubles
                if key not in known:
                    known[key] = question.exact(asked)
                exact = known[key]
            wrong = fault(question, None if of_doubles else case, exact, printed)
            if printed.value is None and not ended and number == len(answers) - 1:
                wrong = "no end"
            self.tally.note(Violation(seed, case, question, route, setting, wrong, printed, exact))
        if ended and len(answers) != len(questions):
            printed = Printed(None, error=log[-300:])
            told = (seed, case, questions[0], route, setting, "no answers", printed, None)
            self.tally.note(Violation(*told))
