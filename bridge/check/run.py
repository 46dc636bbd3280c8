"""A run of the embedded front end, from the command line to the exit code."""

from __future__ import annotations

import platform
import shlex
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bridge.check.checker import Checker, CheckResult
from bridge.check.distributions import report_steady_state, report_transient
from bridge.check.experiment import Experiment, model_experiment, property_experiment
from bridge.check.exports import export_model, export_vector
from bridge.check.meaning import require_meaningful
from bridge.check.results import ResultsTable, export_results, short_text
from bridge.check.sources import ModelSource, model_source
from bridge.check.switches import CheckOptions, read_switches
from bridge.check.texts import read_text
from bridge.check.truncated import BoundedResult, check_between
from bridge.devices import devices_text
from bridge.language.ast import Value
from bridge.language.constants import define_constants
from bridge.language.properties_file import PropertiesFile, Property, parse_properties
from bridge.language.text import RULE, Range, seconds_text
from bridge.model import CheckableModel
from bridge.own_switches import UsageError
from bridge.refusals import error_line
from bridge.versions import OWN_VERSION
from engines.errors import BridgeError, ConvergenceError, InvalidModelError, UnsupportedError
from engines.model.environment import BuildingPlace
from engines.model.explicit import ModelKind
from engines.model.progress import SweepReport, announcement
from engines.model.result import SolveResult
from engines.process.timeline import BUILDING, CHECKING, PARSING, TIMELINE
from prism_hooks.options import HookOptions
from prism_hooks.own_lines import OwnLines
from prism_hooks.record import RunRecord
from prism_hooks.sweep_bar import SweepBar, sweep_bar
from prism_hooks.work_done import WorkDone

if TYPE_CHECKING:
    from bridge.check.initial_states import SimulationResult
    from bridge.check.simulate import Simulator

FAULTS = (InvalidModelError, UnsupportedError, ConvergenceError, BridgeError, MemoryError, OSError)
"""What a property, or a model of several, may fail with: the report says so and goes on."""

Constants = Mapping[str, Value]


def run(
    words: tuple[str, ...],
    hooks: HookOptions,
    command: list[str],
    why: str,
    record: RunRecord | None = None,
) -> int:
    """Check properties as a command line asks, and return the exit code.

    Parameters
    ----------
    words
        The command line without what is prism-gpu's own.
    hooks
        What is prism-gpu's own.
    command
        The command line as it was, for the report.
    why
        Why the embedded front end runs.
    record
        Keeps what a plot of the run needs; None where none is wanted.

    Raises
    ------
    UsageError, BridgeError, InvalidModelError, UnsupportedError, OSError
        When nothing can be checked at all: a wrong switch, a missing file, a syntax error.
    """
    options = read_switches(words, hooks)
    if not options.files:
        raise UsageError('No model was given; type "prism-gpu -help" for what can be')
    if hooks.likely is not None:
        _require_bounded(options)
    bar = sweep_bar(wanted=hooks.show_progress)
    TIMELINE.turn_to(CHECKING)
    everything = _Run(options, hooks, command, why, bar, record)
    try:
        everything.all()
        everything.close()
    finally:
        if record is not None:
            record.finish()
    if options.show_solves:
        print(f"\nprism-gpu: {TIMELINE.told()}", flush=True)
    return 0


def _require_bounded(options: CheckOptions) -> None:
    """Refuse what has no bounds where only likely states are explored."""
    asked = {
        "-sim": options.simulate,
        "-steadystate": options.steady_state,
        "-transient": options.transient is not None,
        "-exportvector": options.vector_file is not None,
    }
    for switch, given in asked.items():
        if given:
            raise UsageError(f"{switch} has no bounds of what it computes: leave -gputruncate out")


class _Run:
    def __init__(
        self,
        options: CheckOptions,
        hooks: HookOptions,
        command: list[str],
        why: str,
        bar: SweepBar | None,
        record: RunRecord | None,
    ) -> None:
        self._options, self._hooks = options, hooks
        self._bar, self._record = bar, record
        self._progress = self._follow
        self._warnings = 0
        self._header(command, why)
        with TIMELINE.part(PARSING):
            self._source: ModelSource = model_source(
                Path(options.files[0]),
                kind=options.kind,
                fix_deadlocks=options.fix_deadlocks,
                sums_checked=options.simulation.checked,
                place=BuildingPlace(hooks.device, hooks.device_number, hooks.device_memory),
                most_states=hooks.max_states,
                likely=hooks.likely,
            )
            self._source.describe(self._log)
            self._properties = self._read_properties()
        self._chosen = self._select()
        device_number = options.environment.device_number
        self._lines = OwnLines(self._log, options.show_solves, device_number)
        self._model: CheckableModel | None = None
        self._model_constants: Constants = {}
        self._unbuilt: str | None = None
        self._simulator: Simulator | None = None
        self._work = WorkDone()

    def close(self) -> None:
        """Close the log with who solved, and how many warnings there were, as PRISM does."""
        if self._work.line:
            self._log(f"\n{self._work.line}")
        if self._warnings:
            were = "was 1 warning" if self._warnings == 1 else f"were {self._warnings} warnings"
            self._log(f"\n{RULE}\n\nNote: There {were} during computation.")

    def _log(self, text: str) -> None:
        self._warnings += text.lstrip("\n").startswith("Warning: ")
        self._end_progress()
        print(text, flush=True)

    def all(self) -> None:
        options = self._options
        switches = ",".join(options.constants)
        models = model_experiment(self._source.constants, switches)
        experiments = [
            property_experiment(item, self._properties, switches) for item in self._chosen
        ]
        tables = [
            ResultsTable(item.text, (*models.ranging, *experiment.ranging))
            for item, experiment in zip(self._chosen, experiments, strict=True)
        ]
        if options.simulate:
            self._simulator = self._opened_simulator()
        for given in models.assignments():
            self._turn_to(given)
            self._before_properties()
            work = self._simulate_all if options.simulate else self._check_all
            for item, experiment, table in zip(self._chosen, experiments, tables, strict=True):
                if self._unbuilt is None:
                    work(item, experiment, table)
                    continue
                # Of a model that cannot be built PRISM tells once.
                for values in experiment.assignments():
                    table.rows.append(({**given, **values}, self._unbuilt))
        if options.results_file is not None:
            export_results(tables, options.results_file, options.results_format, self._log)

    def _turn_to(self, constants: Constants) -> None:
        """Have the next questions be about the model with these values of its constants."""
        self._model, self._model_constants, self._unbuilt = None, constants, None

    def _before_properties(self) -> None:
        """Do what was asked for besides properties."""
        options = self._options
        alone = not self._chosen and options.build
        asked = options.model_files or options.steady_state or options.transient is not None
        if not (asked or alone):
            return
        try:
            model = self._built()
        except FAULTS as error:
            self._log(error_line(error))
            return
        for request in options.model_files:
            self._attempt(
                partial(
                    export_model,
                    model,
                    request,
                    self._log,
                    headers=options.export_headers,
                    source=options.files[0],
                )
            )
        if options.steady_state:
            self._begin("steady-state distribution", self._model_constants)
            self._attempt(
                lambda: report_steady_state(
                    model,
                    options.environment,
                    options.steady_state_file,
                    self._log,
                    self._progress,
                    self._keep_solve,
                )
            )
        if (times := options.transient) is not None:
            self._begin("transient distribution", self._model_constants)
            self._attempt(
                lambda: report_transient(
                    model,
                    times,
                    options.environment,
                    options.transient_file,
                    self._log,
                    self._progress,
                    self._keep_solve,
                )
            )

    def _attempt(self, work: Callable[[], None]) -> None:
        try:
            work()
        except FAULTS as error:
            self._log(error_line(error))
        finally:
            self._end_progress()

    def _check_all(self, item: Property, experiment: Experiment, table: ResultsTable) -> None:
        for given in experiment.assignments():
            everything = {**self._model_constants, **given}
            if self._unbuilt is not None:
                table.rows.append((everything, self._unbuilt))
                continue
            self._log(f"\n{RULE}\n\nModel checking: {item.text}")
            self._constants_line("Model", self._model_constants)
            self._constants_line("Property", self._property_constants(experiment, given))
            self._begin(item.text, everything)
            try:
                result = self._check(item, experiment, given)
            except FAULTS as error:
                self._log(error_line(error))
                table.rows.append((everything, _as_result(error)))
            else:
                table.rows.append((everything, result))
                if self._record is not None:
                    self._record.ended(result)

    def _simulate_all(self, item: Property, experiment: Experiment, table: ResultsTable) -> None:
        assignments = list(experiment.assignments())
        self._log(f"\n{RULE}\n\nSimulating: {item.text}")
        self._constants_line("Model", self._model_constants)
        if len(assignments) > 1:
            self._log(f"Property constants: {experiment.text}")
        else:
            shown = self._property_constants(experiment, assignments[0])
            self._constants_line("Property", shown)
        try:
            simulator = self._simulator = self._simulator or self._opened_simulator()
            constants = simulator.constants(self._model_constants)
            values = [{**constants, **experiment.values(constants, x)} for x in assignments]
            results = simulator.simulate(item, constants, values)
        except FAULTS as error:
            self._log(error_line(error))
            text = _as_result(error)
            table.rows += [({**self._model_constants, **given}, text) for given in assignments]
            return
        self._log_results(assignments, results)
        for given, result in zip(assignments, results, strict=True):
            table.rows.append(({**self._model_constants, **given}, result.value))

    def _log_results(self, assignments: list[Constants], results: list[SimulationResult]) -> None:
        if len(results) == 1:
            (result,) = results
            self._log(f"\nResult: {result.text}" if result.text else f"\n{result.value}.")
            return
        self._log("\nResults:")
        for given, result in zip(assignments, results, strict=True):
            named = ",".join(f"{name}={short_text(value)}" for name, value in given.items())
            self._log(f"{named} : {result.text or result.value}")

    def _opened_simulator(self) -> Simulator:
        from bridge.check.simulate import Simulator

        options = self._options
        return Simulator(
            self._source.text(),
            options.files[0],
            self._properties,
            options.simulation,
            self._hooks,
            fix_deadlocks=options.fix_deadlocks,
            log=self._log,
        )

    def _check(self, item: Property, experiment: Experiment, given: Constants) -> Value | Range:
        model = self._built()
        constants = experiment.values(model.constants, given)
        started = time.perf_counter()
        checker = Checker(
            model,
            self._options.environment,
            properties=self._properties,
            constants=constants,
            log=self._log,
            verbose=self._options.verbose,
            on_solve=self._report_solve,
            progress=self._progress,
        )
        result: CheckResult | BoundedResult
        try:
            if model.unexplored is not None:
                result = check_between(checker, item.expression)
            else:
                result = checker.check(item.expression)
        finally:
            self._end_progress()
        taken = seconds_text(time.perf_counter() - started)
        self._log(f"\nTime for model checking: {taken} seconds.\n\nResult: {result.text}")
        if self._options.vector_file is not None and isinstance(result, CheckResult):
            export_vector(model, result.vector, self._options.vector_file, self._log)
        return result.value

    def _begin(self, question: str, constants: Constants) -> None:
        if self._record is not None:
            pairs = ((name, short_text(value)) for name, value in constants.items())
            self._record.begin(question, pairs)

    def _follow(self, report: SweepReport) -> None:
        if report.iterations == 0:
            self._log(f"\n{announcement(report)}")
            return
        if self._record is not None:
            self._record.sweeps(report)
        if self._bar is not None:
            self._bar(report)

    def _end_progress(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def _keep_solve(self, result: SolveResult) -> None:
        self._work.solved(result.cost)
        if self._record is not None:
            self._record.solved(result, self._options.environment)

    def _report_solve(self, result: SolveResult) -> None:
        self._keep_solve(result)
        self._lines.report(result)

    def _built(self) -> CheckableModel:
        if self._model is None:
            self._log(f"\nBuilding model (front end: {self._source.name})...")
            self._constants_line("Model", self._model_constants)
            started = time.perf_counter()
            with TIMELINE.part(BUILDING):
                try:
                    model = self._source.build(self._model_constants, self._log)
                except FAULTS as error:
                    self._unbuilt = _as_result(error)
                    raise
            taken = seconds_text(time.perf_counter() - started)
            self._log(f"\nTime for model construction: {taken} seconds.")
            for note in model.notes:
                self._log(f"\nWarning: {note}")
            self._log(f"\n{model_lines(model)}")
            self._model = model
        return self._model

    def _property_constants(self, experiment: Experiment, given: Constants) -> Constants:
        """Return what the log shows: all constants of the properties that have a value."""
        try:
            constants, formulas = self._source.constants, self._source.declared.formulas
            of_model = define_constants(constants, self._model_constants, formulas=formulas)
            return experiment.values(of_model, given)
        except (InvalidModelError, UnsupportedError):
            return given  # A fault is told of where the property is checked.

    def _constants_line(self, kind: str, constants: Constants) -> None:
        if constants:
            shown = ",".join(f"{name}={short_text(value)}" for name, value in constants.items())
            self._log(f"{kind} constants: {shown}")

    def _header(self, command: list[str], why: str) -> None:
        self._log(
            "PRISM-GPU\n=========\n\n"
            f"Version: {OWN_VERSION}\n"
            f"Date: {datetime.now().astimezone().strftime('%a %b %d %H:%M:%S %Z %Y')}\n"
            f"Hostname: {platform.node()}\n"
            f"Command line: prism-gpu {shlex.join(command)}\n"
            f"Devices: {devices_text(self._hooks.device)}\n\n"
            f"prism-gpu: {why}"
        )
        for remark in self._options.remarks:
            self._log(f"prism-gpu: {remark}")

    def _read_properties(self) -> PropertiesFile:
        options = self._options
        found = PropertiesFile()
        if len(options.files) == 2:
            path = Path(options.files[1])
            self._log(f'\nParsing properties file "{path}"...')
            if not path.exists() or path.is_dir():
                raise BridgeError(f'File "{path}" not found')
            found = parse_properties(read_text(path), str(path), self._source.names)
        elif options.properties_text is not None:
            found = parse_properties(options.properties_text, "", self._source.names)
        require_meaningful(found, self._source.declared)
        count = len(found.properties)
        if count:
            self._log(f"\n{count} propert{'y' if count == 1 else 'ies'}:")
            for number, item in enumerate(found.properties, start=1):
                self._log(f"({number}) {item.text}")
        return found

    def _select(self) -> tuple[Property, ...]:
        properties = self._properties.properties
        if not self._options.selected:
            return properties
        named = {item.name: item for item in properties if item.name}
        chosen = []
        for reference in self._options.selected:
            if reference.isdecimal():
                number = int(reference)
                if not 1 <= number <= len(properties):
                    raise UsageError(f"There is not a property {number} to verify")
                chosen.append(properties[number - 1])
            elif reference in named:
                chosen.append(named[reference])
            else:
                raise UsageError(f'There is not a property "{reference}" to check')
        return tuple(chosen)


def _as_result(error: BaseException) -> str:
    """Return what a table of results has for what failed."""
    return error_line(error).lstrip("\n")


def model_lines(model: CheckableModel) -> str:
    """Return type, states, transitions and choices as PRISM lists them.

    Parameters
    ----------
    model
        A built model.
    """
    engine_model = model.model
    initial = int(np.count_nonzero(model.initial_states))
    lines = [
        f"Type:        {engine_model.kind}",
        f"States:      {engine_model.num_states} ({initial} initial)",
        f"Transitions: {engine_model.matrix.num_entries}",
    ]
    if engine_model.kind is ModelKind.MDP and engine_model.row_group_offsets is not None:
        choices = engine_model.matrix.num_rows
        most = int(np.diff(engine_model.row_group_offsets).max())
        lines.append(f"Choices:     {choices}")
        lines.append(f"Max/avg:     {most}/{choices / engine_model.num_states:.2f}")
    return "\n".join(lines)
