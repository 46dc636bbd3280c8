"""PRISM in this process, made to check every property and to show the values of all states.

PRISM's own command line reads the switches, the model and the properties, by its private steps:
so each switch means what it means to `prism`. The walk over constants and properties is ours.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bridge import jvm
from bridge.built import prism_call
from bridge.regress.answers import Cell
from engines.errors import BridgeError, InvalidModelError

_MAIN = "prism.PrismCL"


class Driver:
    """One command line of PRISM's, read.

    Parameters
    ----------
    words
        The command line. PRISM ends the process where it finds fault with it, after one line
        ``Error: …`` on its log.
    """

    def __init__(self, words: list[str]) -> None:
        import jpype

        self._java = jvm.java_class
        main = self._java(_MAIN)
        command = main()

        def step(name: str, *arguments: Any) -> None:
            kinds = [type(argument).class_ for argument in arguments]
            method = main.class_.getDeclaredMethod(name, *kinds)
            method.setAccessible(True)
            method.invoke(command, *([list(arguments)] if arguments else []))

        def part(name: str) -> Any:
            field = main.class_.getDeclaredField(name)
            field.setAccessible(True)
            return field.get(command)

        try:
            step("initialise", jpype.JArray(jpype.JString)(words))
            step("doParsing")
            step("sortProperties")
            self.prism = part("prism")
            self._modules = part("modulesFile")
            self._file = part("propertiesFile")
            self._properties = list(part("propertiesToCheck"))
            self._constants = part("constSwitch")
        except jpype.JException as error:
            raise BridgeError(f"PRISM's command line could not be driven: {error}") from error
        self.exact = str(self.prism.getCurrentEngine()) == "EXACT"
        self._num_initial = 1

    def cells(self) -> Iterator[tuple[Cell, Any, Any]]:
        """Yield each question with its Java values: the model's constants, the property's.

        The order is that of a run of PRISM: model by model, property by property.
        """
        models = self._undefined(None)
        places = [self._undefined(item) for item in self._properties]
        number = 0
        for model in range(int(models.getNumModelIterations())):
            of_model = models.getMFConstantValues()
            for index, (item, place) in enumerate(zip(self._properties, places, strict=True)):
                for _ in range(int(place.getNumPropertyIterations())):
                    of_property = place.getPFConstantValues()
                    texts = _text(of_model), index, _text(of_property), str(item)
                    yield Cell(number, model, *texts), of_model, of_property
                    number += 1
                    place.iterateProperty()
            models.iterateModel()
            for place in places:
                place.iterateModel()

    def _undefined(self, item: Any) -> Any:
        undefined = self._java("prism.UndefinedConstants")
        place = (
            undefined(self._modules, None)
            if item is None
            else undefined(self._modules, self._file, item)
        )
        place.setExactMode(self.exact)
        prism_call(place.defineUsingConstSwitch, self._constants)
        return place

    def settings(self) -> tuple[float, bool]:
        """Return the convergence threshold, and whether it is absolute."""
        prism = self.prism
        return float(prism.getTermCritParam()), int(prism.getTermCrit()) == int(prism.ABSOLUTE)

    @property
    def real_time(self) -> bool:
        """Whether each property is checked of a model of its own, translated from clocks."""
        return bool(self.prism.getModelType().realTime())

    def build(self, constants: Any, folder: Path, stem: str) -> dict[str, Any]:
        """Build the model; return what `ModelFacts` holds, but for the time.

        Parameters
        ----------
        constants
            The model's, as `cells` yields them.
        folder, stem
            Where its states and labels are written.

        Raises
        ------
        InvalidModelError
            With PRISM's message.
        BridgeError
            When PRISM failed otherwise.
        """
        prism = self.prism
        prism_call(prism.setPRISMModelConstants, constants, self.exact)
        kind = str(prism.getModelType())
        if self.real_time:
            return {"type": kind}
        prism_call(prism.buildModel)
        built = prism.getBuiltModel()
        self._num_initial = int(built.getNumInitialStates())
        states, labels = folder / f"{stem}.sta", folder / f"{stem}.lab"
        file = self._java("java.io.File")
        plain = self._java("io.ModelExportFormat").EXPLICIT
        prism_call(prism.exportBuiltModelStates, file(str(states)), plain)
        prism_call(prism.exportBuiltModelLabels, file(str(labels)), plain)
        return {
            "type": kind,
            "num_states": int(built.getNumStates()),
            "num_transitions": int(built.getNumTransitions()),
            "states": states if states.is_file() else None,
            "labels": labels if labels.is_file() else None,
        }

    def check(self, cell: Cell, constants: Any, text: Path) -> Any:
        """Check a property; return PRISM's result.

        Parameters
        ----------
        cell
            The question.
        constants
            The property's, as `cells` yields them.
        text
            Where the values of all states are written: for the exact engine within its log.

        Raises
        ------
        InvalidModelError
            With PRISM's message: a refusal, or iterations that did not converge.
        BridgeError
            When PRISM failed otherwise.
        """
        prism = self.prism
        item = self._properties[cell.index]
        prism_call(self._file.setSomeUndefinedConstants, constants, self.exact)
        if self.exact:
            return self._check_exactly(item, text)
        expression = item.getExpression()
        inner = self._without_filters(expression)
        # PRISM frees truth values in diagrams before it hands them over.
        lost = self.is_boolean(cell) and str(prism.getCurrentEngine()) == "SYMBOLIC"
        plain = inner is None and self._num_initial <= 1 and not lost
        result, vector = self._with_values(item) if plain else (None, None)
        if result is None:
            prism.setStoreVector(False)
            result = prism_call(prism.modelCheck, self._file, item)
        if not plain:
            # A filter's own value is the same in all states, and what is under it is wanted. Of
            # several initial states PRISM takes the range, and frees the values that it stored.
            shown = self._shown("store", expression if inner is None else inner)
            with contextlib.suppress(InvalidModelError):
                vector = prism_call(prism.modelCheck, self._file, shown).getVector()
        if vector is not None:
            if not (self.real_time and str(prism.getCurrentEngine()) == "SYMBOLIC"):
                log = self._java("prism.PrismFileLog")(str(text))
                prism_call(vector.print_, log, False, False, False, False)
                log.close()
            vector.clear()
        return result

    def _with_values(self, item: Any) -> tuple[Any, Any]:
        """Check a property of one initial state; return the result and the values of all states.

        Some questions can be asked of the initial state only, such as those of a POMDP: then both
        are None.
        """
        self.prism.setStoreVector(True)
        try:
            result = prism_call(self.prism.modelCheck, self._file, item)
        except InvalidModelError:
            return None, None
        return result, result.getVector()

    def _shown(self, operator: str, expression: Any) -> Any:
        """Return a property whose check stores or prints the values of an expression in all states.

        Its own value is the expression's in the first initial state, which every engine can give.
        """
        java = self._java
        everywhere = java("parser.ast.Expression").True_()
        inner = java("parser.ast.ExpressionFilter")(operator, expression, everywhere)
        initial = java("parser.ast.ExpressionLabel")("init")
        outer = java("parser.ast.ExpressionFilter")("first", inner, initial)
        for item in (inner, outer):
            item.setInvisible(True)
            prism_call(item.typeCheck)
        return outer

    def _check_exactly(self, item: Any, text: Path) -> Any:
        """Check with the exact engine, which shows its values to nothing but its log."""
        prism = self.prism
        expression = item.getExpression()
        inner = self._without_filters(expression)
        shown = self._shown("printall", expression if inner is None else inner)
        usual = prism.getMainLog()
        log = self._java("prism.PrismFileLog")(str(text))
        prism.setMainLog(log)
        try:
            return prism_call(prism.modelCheck, self._file, shown)
        finally:
            prism.setMainLog(usual)
            log.close()

    def _without_filters(self, expression: Any) -> Any:
        """Return what is under a property's outermost filters; None if there are none."""
        inner = expression
        while isinstance(inner, self._java("parser.ast.ExpressionFilter")):
            inner = inner.getOperand()
        return None if inner is expression else inner

    def is_boolean(self, cell: Cell) -> bool:
        """Return whether the values in the states are truth values."""
        expression = self._properties[cell.index].getExpression()
        inner = self._without_filters(expression)
        return str((inner if inner is not None else expression).getType()) == "bool"


def _text(values: Any) -> str:
    return "" if values is None else str(values)
