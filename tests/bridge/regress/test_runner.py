"""Workers that answer, hang, crash or are refused: what is kept of them."""

import sys
import threading
import time
from pathlib import Path

import pytest

from bridge.regress.answers import Kind
from bridge.regress.plan import Case
from bridge.regress.processes import Processes
from bridge.regress.runner import MOST_DEATHS, Interrupted, Limits, Runner
from bridge.regress.solvers import PRISM_ENGINES

EXPLICIT = PRISM_ENGINES["explicit"]

# Three questions of two models; a question of the text "hang", "crash" or "refuse" does so.
WORKER = """
import json, os, signal, sys, time
folder, words = sys.argv[1], json.load(open(sys.argv[1] + "/task.json"))
def run(folder):
    task = json.load(open(folder + "/task.json"))
    with open(folder + "/events.jsonl", "a") as events:
        def note(event, **values):
            events.write(json.dumps({"event": event, **values}) + "\\n"); events.flush()
        texts = task["words"][0].rpartition("/")[2].split(",")
        if texts == ["unreadable"]:
            print("\\nError: Syntax error (\\"x\\", line 1).")
            sys.exit(1)
        cells = [dict(number=i, model=i // 2, model_constants=f"N={i // 2}", index=i,
                      property_constants="", text=t) for i, t in enumerate(texts)]
        note("cells", cells=cells)
        model = None
        for cell in cells:
            if cell["number"] in task["done"] or cell["model"] in task["left_out"]:
                continue
            if cell["model"] != model:
                model = cell["model"]
                note("building", model=model)
                if cell["text"] == "never built":
                    time.sleep(60)
                note("model", model=dict(number=model, constants=f"N={model}", message="",
                     type="DTMC", num_states=1, num_transitions=1, states=None, labels=None,
                     seconds=0.0))
            note("asked", cell=cell)
            if cell["text"] == "hang":
                time.sleep(60)
            if cell["text"] == "crash":
                os.kill(os.getpid(), signal.SIGSEGV)
            note("answer", answer=dict(cell=cell, kind="values", message="", value=str(os.getpid()),
                 vector=None, boolean=False, claim=dict(level="", error=0.0, absolute=True),
                 epsilon=1e-6, absolute=False, seconds=0.1, by_prism=[]))
        note("end")
run(folder)
if "--serve" in sys.argv:
    for line in sys.stdin:
        run(line.split("\\t")[0])
"""


@pytest.fixture
def ask(tmp_path):
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    made = []

    def ask(text, *, seconds=20.0, number=0, reuse=False, again=None, **options):
        processes = again or Processes((sys.executable, str(script)), reuse=reuse)
        made.append(processes)
        runner = Runner(tmp_path / "run", Limits(seconds), processes=processes)
        case = Case(text, Path.cwd(), (text,))
        return runner.ask(case, number, EXPLICIT, **options), processes

    yield ask
    for processes in made:
        processes.stop()


def kinds(record):
    return {cell.number: (item.kind, item.message) for cell, item in record.answers.items()}


def test_all_questions_are_answered_by_one_process(ask):
    told = []
    record, _ = ask("a,b,c", told=told.append)
    assert [item.kind for item in record.answers.values()] == [Kind.VALUES] * 3
    assert len({item.value for item in record.answers.values()}) == 1
    assert [item.cell.number for item in told] == [0, 1, 2]
    assert sorted(record.models) == [0, 1]


def test_a_question_out_of_time_costs_no_other(ask):
    begun = time.monotonic()
    record, _ = ask("a,hang,c", seconds=1.0)
    assert time.monotonic() - begun < 20
    assert kinds(record)[1] == (Kind.NOTHING, "time-out after 1 s")
    assert {kinds(record)[place][0] for place in (0, 2)} == {Kind.VALUES}


def test_a_crash_costs_no_other_question(ask):
    record, _ = ask("a,crash,c")
    assert kinds(record)[1] == (Kind.NOTHING, "crash: SIGSEGV")
    assert {kinds(record)[place][0] for place in (0, 2)} == {Kind.VALUES}


def test_a_model_that_is_not_built_in_time_costs_its_questions_and_no_others(ask):
    record, _ = ask("never built,b,c", seconds=1.0)
    why = "time-out after 1 s, building the model"
    assert kinds(record)[0] == kinds(record)[1] == (Kind.NOTHING, why)
    assert kinds(record)[2][0] is Kind.VALUES
    assert record.models[0].message == "time-out after 1 s"


def test_after_some_deaths_the_rest_is_not_asked(ask):
    record, _ = ask(",".join(["crash"] * (MOST_DEATHS + 2)))
    found = [message for _, message in kinds(record).values()]
    assert found.count("crash: SIGSEGV") == MOST_DEATHS
    assert found.count("not asked, after so many ends of the process") == 2


def test_a_command_line_that_is_refused_is_one_refusal_with_its_text(ask):
    record, _ = ask("unreadable")
    assert list(kinds(record).values()) == [(Kind.REFUSED, 'Syntax error ("x", line 1)')]


def test_what_is_done_or_left_out_is_not_asked(ask):
    record, _ = ask("a,b,c,d", done=frozenset({0}), left_out=frozenset({1}))
    assert sorted(kinds(record)) == [1]


def test_a_process_may_serve_task_after_task(ask):
    first, processes = ask("a", reuse=True)
    second, _ = ask("b", number=1, again=processes)
    values = [item.value for record in (first, second) for item in record.answers.values()]
    assert len(values) == 2
    assert len(set(values)) == 1
    # One that died is not used again.
    third, _ = ask("crash,x", number=2, again=processes)
    assert kinds(third)[0] == (Kind.NOTHING, "crash: SIGSEGV")
    assert kinds(third)[1][0] is Kind.VALUES


def test_a_stop_leaves_what_was_answered(tmp_path):
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    processes = Processes((sys.executable, str(script)))
    runner = Runner(tmp_path / "run", Limits(60), processes=processes)
    threading.Timer(3.0, runner.stop).start()
    with pytest.raises(Interrupted) as stopped:
        runner.ask(Case("x", Path.cwd(), ("a,hang,c",)), 0, EXPLICIT)
    assert [cell.number for cell in stopped.value.record.answers] == [0]
