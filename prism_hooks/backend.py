"""The Java interface `prismgpu.Backend`; what few runs need is imported when it is asked for."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from engines.arrays import INT32_MAX
from engines.cuda.driver import gpu_refusal
from engines.devices.opening import MODELS
from engines.errors import ConvergenceError, InvalidModelError, UnsupportedError
from engines.graph.components import bsccs
from engines.host.compiled.library import LibraryMissingError
from engines.model.environment import DeviceChoice, Method, SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.model.progress import Progress
from engines.model.result import SolveResult, Status
from engines.process.timeline import ANSWERING, READING, SAMPLING, SEARCHING, TIMELINE
from prism_hooks.answers import Answers
from prism_hooks.claims import claim_of
from prism_hooks.comparison import compared
from prism_hooks.crossing import held_by
from prism_hooks.engine_lines import engine_lines, printed_for_error
from prism_hooks.extract import embedded_chain, extracted_model
from prism_hooks.failure import unexpected
from prism_hooks.graph import (
    DECOMPOSITIONS,
    DECOMPOSITIONS_OF_DIAGRAMS,
    OF_BUILT_MODELS,
    bottom_steps,
    decomposed,
    decomposition_line,
    every_entry,
    graph_of,
    search_steps,
    smallest_graph,
)
from prism_hooks.kept_answers import KeptAnswers
from prism_hooks.memory import is_full_cudd, is_full_heap, shortage
from prism_hooks.methods import DEFAULT_METHODS, named_method, solver_environment, usable_device
from prism_hooks.options import HookOptions
from prism_hooks.questions import Question, Task, task_of
from prism_hooks.record import RunRecord
from prism_hooks.report import Ending, progress_lines, solve_line, unannounced
from prism_hooks.sets import PREDECESSORS, SETS, choices_of_rows, found_set, relate, words_of
from prism_hooks.solve_lines import SolveLines
from prism_hooks.sweep_bar import sweep_bar
from prism_hooks.told_solve import Asked, EngineLines
from prism_hooks.work_done import WorkDone

if TYPE_CHECKING:
    from prism_hooks.held import HeldArrays
    from prism_hooks.simulation import Simulation
    from prism_hooks.symbolic import SymbolicModel

MODELS_KEPT = 2
"""Models whose arrays are kept for the next property: one, and its product or quotient; of a CTMC
both its rates and its embedded chain, which shares their structure."""

AGAIN = "prism-gpu: reusing the cached result"


class EngineBackend(Answers):
    """Answers PRISM's numerical questions.

    Parameters
    ----------
    options
        What the command line says about the engines.
    record
        Keeps what a plot of the run needs; None where none is wanted.
    """

    def __init__(self, options: HookOptions, record: RunRecord | None = None) -> None:
        super().__init__(options, record)
        self._bar = sweep_bar(wanted=options.show_progress, on_screen=_tell_java)
        self._models: OrderedDict[int, dict[bool, ExplicitModel]] = OrderedDict()
        self._built: dict[int, HeldArrays] = {}
        self._graphs: OrderedDict[int, ExplicitModel] = OrderedDict()
        self._symbolic: OrderedDict[int, SymbolicModel] = OrderedDict()
        self._kept = KeptAnswers()
        self._work = WorkDone()
        self._lines = SolveLines(options.show_solves, self._work)
        self._simulation: Simulation | None = None
        self._bottom_seconds = 0.0

    def summary(self) -> str:
        """Return the lines that close the log, or nothing."""
        return self._work.lines

    @TIMELINE.counted(SAMPLING)
    def sample(self, sampling: Any) -> None:
        """Sample paths for a `prismgpu.Sampling` and fill in their outcomes; throw nothing."""
        if self._simulation is None:
            from prism_hooks.simulation import Simulation

            self._simulation = Simulation(self.options)
        self._simulation.sample(sampling)

    def build(self, construction: Any) -> None:
        """Build the model of a `prismgpu.Construction` and fill in its arrays; throw nothing."""
        from prism_hooks.construction import built_for_java

        self._hold(construction, built_for_java(construction, self.options))

    def buildProduct(self, construction: Any) -> None:  # noqa: N802 - the name is Java's
        """Build a `prismgpu.ProductConstruction` and fill in its arrays; throw nothing."""
        from prism_hooks.product import product_for_java

        self._hold(construction, product_for_java(construction, self._model))

    def _hold(self, construction: Any, held: HeldArrays | None) -> None:
        if held is not None:
            self._forms(int(construction.id))[False] = held.model
            self._built[int(construction.id)] = held

    def earn(self, earning: Any) -> None:
        """Find the rewards of a `prismgpu.Earning` and fill them in; throw nothing."""
        from prism_hooks.built import earn_for_java

        earn_for_java(earning, self._built.get(int(earning.modelId)))

    def smallestGraph(self, task: Any) -> int:  # noqa: N802 - the name is Java's
        """Return from how many states and transitions on our engines do a task on a graph."""
        return smallest_graph(str(task), self.options)

    def searchSteps(self, transitions: int, model: int) -> float:  # noqa: N802 - as above
        """Return how long a search on a diagram may take before ours searches the graph."""
        return search_steps(self.options, int(transitions), has_graph=self._holds(int(model)))

    def bottomSteps(self, transitions: int, model: int) -> float:  # noqa: N802 - as above
        """Return how long a diagram may be searched for the component that all states end in."""
        return bottom_steps(self.options, int(transitions), has_graph=self._holds(int(model)))

    def putsTogether(self, problem: Any) -> bool:  # noqa: N802 - as above
        """Return whether PRISM's own code is to put the long run of a problem's model together."""
        if not self.options.repeats_prism or problem.intervals is not None:
            return False
        try:
            return self._has_parts(problem)
        except Exception:
            # Asked as one question, it fails in the same way, and `solve` says so.
            return False

    def _has_parts(self, problem: Any) -> bool:
        """Return whether a chain is more than one component, or each value is to be told."""
        if problem.parts is None:
            return True
        symbolic, environment = self._symbolic_model(problem), self.environment(problem)
        if self._why_without_matrix(problem, symbolic, environment) is not None:
            # The parts of a model that is too large for a matrix have no answer by themselves.
            return False
        model, started = self._model(problem, False), time.perf_counter()
        whole = bool((bsccs(model, environment).sizes() == model.num_states).any())
        self._bottom_seconds = time.perf_counter() - started
        # Of one component there is nothing to put together.
        return not whole or bool(problem.verbose)

    def search(self, asked: Any) -> Any:
        """Return a search that a `prismgpu.SearchInput` describes; None where none can be made."""
        from prism_hooks.diagram_search import search_for_java

        return search_for_java(asked)

    def solve(self, problem: Any) -> None:
        """Solve a `prismgpu.Problem` and fill in its answer, its refusal or its error."""
        MODELS.meet(int(problem.numStates))
        try:
            self._solve(problem)
        except UnsupportedError as error:
            wanted = self.options.device is DeviceChoice.GPU
            if wanted and gpu_refusal(self.options.device_number) is not None:
                problem.error = str(error)
            else:
                problem.refusal = f"{problem.task} ({error})"
        except (ConvergenceError, InvalidModelError, LibraryMissingError) as error:
            problem.error = str(error)
        except MemoryError as error:
            problem.error = shortage(problem, error)
        except Exception as error:
            if is_full_heap(error):
                problem.heapIsFull = True
                return
            if is_full_cudd(error):
                # PRISM's command ends on it, with its own message.
                raise
            # A wrong number would be worse than no number: nothing is handed back in silence.
            problem.error = unexpected(error)
        finally:
            if self._bar is not None:
                self._bar.close()

    @TIMELINE.counted(ANSWERING)
    def _solve(self, problem: Any) -> None:
        task = str(problem.task)
        if task in SETS:
            self._find(problem)
        elif task == PREDECESSORS:
            environment = solver_environment(self.options, problem, Method.AUTO)
            relate(self._model(problem, False), environment)
        elif task in (*DECOMPOSITIONS, *DECOMPOSITIONS_OF_DIAGRAMS):
            self._decompose(problem)
        elif task in OF_BUILT_MODELS:
            from prism_hooks.built import answer

            answer(problem, self._built.get(int(problem.modelId)), self.options)
        elif problem.parts is not None:
            self._solve_symbolic(problem)
        else:
            self._solve_explicit(problem)

    def _solve_explicit(self, problem: Any) -> None:
        model = self._model(problem, False)
        asked = Question.read(problem, model.num_states)
        result = self._answer(problem, model.kind, asked)
        problem.solution = held_by(problem, result.values)
        if asked.wants_strategy and result.strategy is not None:
            problem.strategy = choices_of_rows(model, result.strategy)

    def _solve_symbolic(self, problem: Any) -> None:
        model = self._symbolic_model(problem)
        from prism_hooks.symbolic import hand_over, read_question, solve_without_matrix

        environment = self._environment_of(problem, task_of(problem, model.kind))
        reason = self._why_without_matrix(problem, model, environment)
        if reason is None:
            # An MDP's rewards are those of its expanded choices.
            self._model(problem, False)
            result = self._answer(problem, model.kind, read_question(problem, model))
        else:
            ending = task_of(problem, model.kind).ending[model.kind]
            progress = self._progress(problem, ending)
            result = solve_without_matrix(problem, model, reason, environment, progress)
            self._work.solved(result.cost)
            self._lines.say(problem, f"solved on PRISM's diagram, without a matrix: {reason}")
            result = self._finish(problem, result, environment, ending)
        hand_over(problem, result.values)

    def _why_without_matrix(
        self, problem: Any, model: SymbolicModel, environment: SolverEnvironment
    ) -> str | None:
        from prism_hooks.symbolic import why_without_matrix

        held = self._holds(int(problem.modelId))
        return why_without_matrix(
            problem, model, environment, held=held, say=lambda text: self._lines.say(problem, text)
        )

    def _holds(self, number: int) -> bool:
        """Return whether the matrix of a model is at hand."""
        return False in self._models.get(number, {})

    def _answer(self, problem: Any, kind: ModelKind, asked: Question) -> SolveResult:
        task = task_of(problem, kind)
        ending = task.ending[kind]
        environment = self._environment_of(problem, task)
        embeds = task.embeds and not (environment.bounds and task.bounds)
        model = self._model(problem, bool(problem.embedded) and embeds)
        symbolic = None if problem.parts is None else self._symbolic_model(problem)
        nodes = 0 if symbolic is None else symbolic.transitions.num_nodes
        told = Asked(
            str(problem.task), model, asked, ending, environment, nodes, self._bottom_seconds
        )
        lines = engine_lines(problem, told, self.options)
        if lines is not None and lines.before:
            problem.say(lines.before)
        question = (model, task.answer, asked, environment)
        # A plot shows the sweeps of each solve.
        kept = None if self._record is not None else self._kept.find(*question)
        if kept is not None:
            if lines is None or self.options.show_solves:
                problem.say(AGAIN)
            return self._finish(problem, kept, environment, ending, lines)
        progress = self._progress(problem, ending)
        if lines is not None and not self.options.show_solves:
            progress = unannounced(progress)
        result = task.answer(model, asked, environment, progress)
        self._work.solved(result.cost)
        finished = self._finish(problem, result, environment, ending, lines)
        self._kept.keep(*question, result)
        return finished

    def _progress(self, problem: Any, ending: Ending) -> Progress:
        return progress_lines(problem, ending, self._bar, self._record)

    def _environment_of(self, problem: Any, task: Task) -> SolverEnvironment:
        if task.method_counts:
            return self.environment(problem)
        return solver_environment(self.options, problem, Method.AUTO)

    def _finish(
        self,
        problem: Any,
        result: SolveResult,
        environment: SolverEnvironment,
        ending: Ending,
        lines: EngineLines | None = None,
    ) -> SolveResult:
        """Report a solve and what is known of its error; return what PRISM gets."""
        if self._bar is not None:
            self._bar.close()
        if self._record is not None:
            self._record.solved(result, environment)
        if lines is None:
            self._lines.report(problem, result, ending)
        else:
            self._lines.report_as_prism(problem, result, lines)
        if self.options.show_solves:
            problem.say(solve_line(result, self.options.device_number))
        if result.status is Status.CHANGE_ONLY:
            problem.warn(
                f"{result.method}: the change a sweep makes is {result.change:.2g}, but the "
                f"estimated error is {result.error_estimate:.2g}; {result.remedy}"
            )
        problem.iterations = min(result.iterations, INT32_MAX)
        if problem.errorOnNonConvergence or result.status is Status.DIVERGED:
            result.raise_unless_converged()
        result.require_numbers()
        claim = claim_of(
            result, absolute=environment.absolute, automatic=environment.automatic, ending=ending
        )
        result, claim = compared(problem, result, claim, environment)
        problem.errorBound, problem.errorAbsolute = claim.error, claim.absolute
        problem.guaranteed = claim.guaranteed
        if lines is not None and self.printsAsPrism():
            problem.printedAs = printed_for_error(
                result, str(problem.task), environment.method, ending
            )
        problem.decided, problem.complements = map(np.array, (claim.decided, claim.complements))
        return result

    def _symbolic_to_expand(
        self, problem: Any, environment: SolverEnvironment
    ) -> SymbolicModel | None:
        """Return the diagram of a question that only a matrix answers; None where there is none."""
        if problem.parts is None:
            return None
        symbolic = self._symbolic_model(problem)
        reason = self._why_without_matrix(problem, symbolic, environment)
        if reason is not None:
            raise UnsupportedError(f"without a matrix: {reason}")
        return symbolic

    def _find(self, problem: Any) -> None:
        environment = solver_environment(self.options, problem, Method.AUTO)
        symbolic = self._symbolic_to_expand(problem, environment)
        model, named = self._model(problem, False), self.options.engine_named
        if symbolic is not None:
            from prism_hooks.symbolic import hand_over_set, read_question

            asked = read_question(problem, symbolic)
            hand_over_set(problem, found_set(problem, asked, model, environment, named=named)[0])
            return
        asked = Question.read(problem, model.num_states)
        states, rows = found_set(problem, asked, model, environment, named=named)
        if rows is not None:
            problem.strategy = choices_of_rows(model, rows)
        problem.found = words_of(states)

    def _decompose(self, problem: Any) -> None:
        environment = solver_environment(self.options, problem, Method.AUTO)
        symbolic = self._symbolic_to_expand(problem, environment)
        graph = self._graph(problem)
        started = time.perf_counter()
        if symbolic is None:
            with TIMELINE.part(SEARCHING):
                found = decomposed(problem, graph, environment)
            problem.members, problem.ends = found.members, found.ends
        else:
            from prism_hooks.diagram_graph import decomposed_diagram, hand_over_components

            found = decomposed_diagram(problem, symbolic, graph, environment)
            hand_over_components(problem, found, graph.num_states)
        if self.options.show_solves:
            problem.say(decomposition_line(problem, graph, environment, found, started))

    def _graph(self, problem: Any) -> ExplicitModel:
        if not problem.graph:
            return every_entry(self._model(problem, False))
        number = int(problem.modelId)
        if number not in self._graphs:
            started = time.perf_counter()
            with TIMELINE.part(READING):
                self._graphs[number] = graph_of(problem.model())
            what = " of a graph from PRISM"
            self._say_read(problem, self._graphs[number], what, started)
        self._graphs.move_to_end(number)
        # Of a product with a Büchi automaton the graph alone was read; one such is kept.
        while len(self._graphs) > 1:
            self._graphs.popitem(last=False)
        return self._graphs[number]

    def _forms(self, number: int) -> dict[bool, ExplicitModel]:
        """Return the arrays that are at hand of a model, and let go of what was not used lately."""
        forms = self._models.setdefault(number, {})
        self._models.move_to_end(number)
        while len(self._models) > MODELS_KEPT:
            gone, _ = self._models.popitem(last=False)
            if gone in self._built:
                self._built.pop(gone).let_go()
        return forms

    def _model(self, problem: Any, embedded: bool) -> ExplicitModel:
        forms = self._forms(int(problem.modelId))
        if embedded not in forms:
            plain = self._model(problem, False) if embedded else self._read(problem)
            forms[embedded] = embedded_chain(plain) if embedded else plain
        return forms[embedded]

    @TIMELINE.counted(READING)
    def _read(self, problem: Any) -> ExplicitModel:
        started = time.perf_counter()
        if problem.parts is None:
            model, what = extracted_model(problem.model()), " from PRISM"
        else:
            symbolic = self._symbolic_model(problem)
            device = usable_device(self.options) if symbolic.wants_device else None
            model = symbolic.expanded(device, self.options.device_memory)
            model.require_numbers()
            if symbolic.refusal:
                self._lines.say(problem, f"the CPU makes the matrix: {symbolic.refusal}")
            what = f" out of {symbolic.transitions.num_nodes} nodes of a diagram of PRISM's"
        self._say_read(problem, model, what, started)
        return model

    def _say_read(self, problem: Any, model: ExplicitModel, what: str, started: float) -> None:
        if self.options.show_solves:
            problem.say(
                f"prism-gpu: read {model.num_states} states and {model.matrix.num_entries} "
                f"transitions{what} in {time.perf_counter() - started:.3f} seconds"
            )

    def _symbolic_model(self, problem: Any) -> SymbolicModel:
        number = int(problem.modelId)
        if number not in self._symbolic:
            from prism_hooks.symbolic import SymbolicModel

            self._symbolic[number] = SymbolicModel(problem.model())
        self._symbolic.move_to_end(number)
        while len(self._symbolic) > MODELS_KEPT:
            self._symbolic.popitem(last=False)
        return self._symbolic[number]

    def environment(self, problem: Any) -> SolverEnvironment:
        """Return what a `prismgpu.Problem` and the command line ask of a solve.

        Parameters
        ----------
        problem
            The problem; a remark on a method that we replace goes to its log.
        """
        options = self.options
        name = str(problem.method)
        choices = problem.direction is not None
        named = options.mdp_method_named if choices else options.linear_method_named
        method = Method.AUTO
        if options.method is not None and not choices and problem.intervals is None:
            method = options.method
        elif named or options.repeats_prism or name not in DEFAULT_METHODS:
            bounded = problem.intervals is not None
            method, remark = named_method(name, choices=choices, bounded=bounded)
            if remark:
                self._lines.say(problem, remark)
        return solver_environment(self.options, problem, method)


def _tell_java(shown: bool) -> None:
    """Tell Java whether a line of progress is shown, which it wipes off at an interrupt."""
    import jpype

    jpype.JClass("prismgpu.Hooks").progressShown = shown
