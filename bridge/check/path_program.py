"""A model's text and a property as a program and a question about its paths, by our own parser."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from bridge.check.model_text import SimulatedModel
from bridge.check.simulated_question import QuestionReader
from bridge.language.ast import Value
from bridge.language.properties_file import PropertiesFile, parse_properties
from bridge.language.types import TypeChecker, type_of_value
from engines.montecarlo.questions import Question
from engines.program.program import Program
from prism_hooks.path_questions import read_questions
from prism_hooks.program import read_program


def question_reader(
    model: SimulatedModel, properties: PropertiesFile, values: Mapping[str, Value]
) -> QuestionReader:
    """Return a reader of the properties of a model.

    Parameters
    ----------
    model, properties
        The model, and the list that a property is in.
    values
        The values of all constants that the property can see.
    """
    declared = model.outline
    labels = {**declared.labels, **properties.labels}
    names = replace(model.names(values), labels=labels)
    types = {name: type_of_value(value) for name, value in values.items()}
    types |= model.variable_types
    named = {entry.name: entry.expression for entry in properties.properties if entry.name}
    checker = TypeChecker(types, declared.formulas, named)
    return QuestionReader(names, checker, named, declared.reward_names, model.kind)


def program_and_question(
    text: str, asked: str, states: int | None = None
) -> tuple[Program, Question]:
    """Return what a simulation of a model without open constants samples and asks.

    Parameters
    ----------
    text
        The model, in PRISM's language.
    asked
        One property.
    states
        As ``-gpusimstates`` has it.

    Raises
    ------
    InvalidModelError, UnsupportedError
        As the simulation does.
    """
    model = SimulatedModel(text, "the model")
    constants = model.constants({})
    properties = parse_properties(asked)
    (item,) = properties.properties
    question = question_reader(model, properties, constants).asked(item.expression).question
    program = read_program(json.dumps(model.program(constants, checked=True)))
    (found,) = read_questions(json.dumps([question]), program, states)
    return program, found
