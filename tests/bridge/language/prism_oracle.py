"""Real PRISM's parser and evaluator, in a process of its own: a line of JSON for each question."""

import io
import json
import sys


def answer(question):
    """Return PRISM's answer, or its error message."""
    import jpype

    try:
        return {"value": ANSWERS[question["ask"]](question)}
    except jpype.JException as error:
        return {"error": str(error.getMessage())}


def _stream(text):
    import jpype

    return jpype.JClass("java.io.ByteArrayInputStream")(jpype.JArray(jpype.JByte)(text.encode()))


def _properties(question):
    file = PARSER.parsePropertiesFile(None, _stream(question["text"]))
    if question.get("tidy"):
        file.tidyUp()
    constants, labels = file.getConstantList(), file.getLabelList()
    return {
        "properties": [
            str(file.getPropertyObject(i).toString()) for i in range(file.getNumProperties())
        ],
        "constants": [
            [
                str(constants.getConstantName(i)),
                str(constants.getConstantType(i).getTypeString()),
                None if constants.getConstant(i) is None else str(constants.getConstant(i)),
            ]
            for i in range(constants.size())
        ],
        "labels": [
            [str(labels.getLabelName(i)), str(labels.getLabel(i))] for i in range(labels.size())
        ],
    }


def _expression(question):
    return str(PARSER.parseSingleExpression(_stream(question["text"])).toString())


def _python(value):
    import jpype

    if isinstance(value, jpype.JClass("java.lang.Boolean")):
        return bool(value)
    if isinstance(value, jpype.JClass("java.lang.Integer")):
        return int(value)
    return float(value)


def _evaluate(question):
    """Evaluate an expression in each state; an error in one state is that state's answer."""
    import jpype

    types = {
        "int": jpype.JClass("parser.type.TypeInt").getInstance(),
        "bool": jpype.JClass("parser.type.TypeBool").getInstance(),
        "double": jpype.JClass("parser.type.TypeDouble").getInstance(),
    }
    boxes = {"int": jpype.JInt, "bool": jpype.JBoolean, "double": jpype.JDouble}
    expression = PARSER.parseSingleExpression(_stream(question["text"]))
    names = jpype.JClass("java.util.ArrayList")()
    kinds = jpype.JClass("java.util.ArrayList")()
    for name, kind in question["variables"].items():
        names.add(name)
        kinds.add(types[kind])
    expression = expression.findAllVars(names, kinds)
    expression.semanticCheck()
    expression.typeCheck()
    answers = []
    for state in question["states"]:
        values = jpype.JClass("parser.Values")()
        for (name, kind), value in zip(question["variables"].items(), state, strict=True):
            values.addValue(name, jpype.JObject(value, boxes[kind]))
        try:
            answers.append({"value": _python(expression.evaluate(None, values))})
        except jpype.JException as error:
            answers.append({"error": str(error.getMessage())})
    return {"type": str(expression.getType().getTypeString()), "answers": answers}


def _experiment(question):
    import jpype

    file = PARSER.parsePropertiesFile(None, _stream(question["text"]))
    file.tidyUp()
    undefined = jpype.JClass("prism.UndefinedConstants")(None, file)
    undefined.defineUsingConstSwitch(question["switch"])
    assignments = []
    for _ in range(undefined.getNumPropertyIterations()):
        values = undefined.getPFConstantValues()
        file.setSomeUndefinedConstants(values)
        known = file.getConstantValues()
        assignments.append(
            {str(known.getName(i)): _python(known.getValue(i)) for i in range(known.getNumValues())}
        )
        undefined.iterateProperty()
    return assignments


def _needed(question):
    file = PARSER.parsePropertiesFile(None, _stream(question["text"]))
    file.tidyUp()
    return [
        sorted(map(str, file.getUndefinedConstantsUsedInProperty(file.getPropertyObject(i))))
        for i in range(file.getNumProperties())
    ]


def _model(question):
    file = PARSER.parseModulesFile(_stream(question["text"]), None)
    file.tidyUp()
    return [str(file.getVarName(i)) for i in range(file.getNumVars())]


ANSWERS = {
    "model": _model,
    "properties": _properties,
    "expression": _expression,
    "evaluate": _evaluate,
    "experiment": _experiment,
    "needed": _needed,
}

if __name__ == "__main__":
    import jpype

    from bridge.jvm import JvmOptions, find_runtime, start

    sys.stdin = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8")
    start(find_runtime(with_engines=False), JvmOptions())
    PARSER = jpype.JClass("parser.PrismParser")()
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
