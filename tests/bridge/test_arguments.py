"""The command line: what is ours, what PRISM gets, and what the engines learn from it."""

import re

import pytest

from bridge.arguments import (
    WITH_TWO_VALUES,
    WITH_VALUE,
    parse,
    without_blockwise_methods,
)
from bridge.check.switches import read_switches
from bridge.exchange.commands import USAGE, _settings_changes
from bridge.exchange.words import groups
from bridge.help import HELP
from bridge.jvm import memory_bytes
from bridge.own_switches import UsageError
from engines.errors import BridgeError
from engines.model.choice import Format
from engines.model.environment import (
    ALL_DEVICES,
    Convention,
    DeviceChoice,
    Method,
    Precision,
    SolverEnvironment,
)


def test_prism_gets_its_own_words_unchanged_and_in_order():
    words = ["m.sm", "p.csl", "-prop", "1", "-const", "N=1:2:5", "-epsilon", "1e-9", "--verbose"]
    assert list(parse(words, {}).prism) == words


def test_our_switches_are_taken_out():
    arguments = parse(
        ["m.sm", "-gpu", "-gpudevice", "2", "-gpuinfo", "--prism-dir", "/p", "-gui"], {}
    )
    assert arguments.prism == ("m.sm",)
    assert arguments.hooks.device is DeviceChoice.GPU
    assert arguments.hooks.device_number == 2
    assert arguments.hooks.show_solves
    assert arguments.prism_dir == "/p"
    assert arguments.gui
    assert not arguments.jvm.headless


@pytest.mark.parametrize("word", ["-nogpu", "--nogpu"])
def test_one_dash_or_two(word):
    assert parse([word], {}).hooks.device is DeviceChoice.CPU


def test_the_last_of_several_devices_wins():
    assert parse(["-gpu", "-nogpu"], {}).hooks.device is DeviceChoice.CPU


def test_prism_untouched_on_demand():
    assert not parse(["-gpuengine", "off"], {}).engines
    assert parse(["-gpuengine", "on"], {}).engines


@pytest.mark.parametrize(
    "words",
    [
        *(["-gpuengine", "maybe"], ["-gpudevice", "x"], ["-gpudevice"]),
        *(["-gpuformat", "ell"], ["-gpuformat", "CSR"], ["-gpuformat"]),
        *(["-gpudevices", "0"], ["-gpudevices", "two"], ["-gpudevices"]),
        *(["-gpumethod", "best"], ["-gpumethod"], ["-gpumaxmem", "much"], ["-gpumaxmem"]),
        *(["-gpuslice", "0"], ["-gpuslice", "x"], ["-gpucolours", "-1"], ["-gpucolours"]),
        *(["-gpuprecision", "half"], ["-gpuprecision", "Single"], ["-gpuprecision"]),
    ],
)
def test_wrong_values_are_refused_by_the_name_of_the_switch(words):
    with pytest.raises(UsageError, match=words[0]):
        parse(words, {})


@pytest.mark.parametrize("name", list(Format))
def test_a_format_is_named_by_its_word(name):
    arguments = parse(["m.sm", "-gpuformat", str(name), "p.csl"], {})
    assert arguments.hooks.matrix_format is name
    assert arguments.prism == ("m.sm", "p.csl")
    assert arguments.files == ("m.sm", "p.csl")
    assert parse(["m.sm"], {}).hooks.matrix_format is Format.AUTO


@pytest.mark.parametrize("word", [["-gpuformat", "ell"], ["-gpuformat"]])
def test_a_wrong_format_is_refused_for_a_solve_elsewhere_too(word):
    parts = list(groups(word, {"gpuformat"}))
    with pytest.raises(UsageError, match="-gpuformat"):
        list(_settings_changes(parts))


def test_a_solve_elsewhere_takes_a_format():
    parts = list(groups(["-gpuformat", "patterns"], {"gpuformat"}))
    (change,) = _settings_changes(parts)
    assert change(SolverEnvironment()).matrix_format is Format.PATTERNS


def test_methods_memory_and_colours_reach_the_engines():
    assert parse(["m.sm", "-gpudevices", "all"], {}).hooks.num_devices == ALL_DEVICES
    assert parse(["m.sm", "-gpudevices", "4"], {}).hooks.num_devices == 4
    words = ["-gpumethod", "multilevel", "-gpumaxmem", "3g", "-gpuslice", "8", "-gpucolours", "5"]
    arguments = parse(["m.sm", *words], {})
    assert arguments.prism == ("m.sm",)
    assert arguments.hooks.method is Method.MULTILEVEL
    assert arguments.hooks.device_memory == 3 * 2**30
    assert (arguments.hooks.slice_size, arguments.hooks.colours) == (8, 5)
    parts = list(groups(words, {"gpumethod", "gpumaxmem", "gpuslice", "gpucolours"}))
    environment = SolverEnvironment()
    for change in _settings_changes(parts):
        environment = change(environment)
    assert environment.method is Method.MULTILEVEL
    assert environment.device_memory == 3 * 2**30
    assert (environment.slice_size, environment.colours) == (8, 5)


@pytest.mark.parametrize("name", list(Precision))
def test_a_precision_reaches_the_engines_on_every_way(name):
    words = ["-gpuprecision", str(name)]
    arguments = parse(["m.sm", *words, "p.csl"], {})
    assert arguments.hooks.precision is name
    assert arguments.prism == ("m.sm", "p.csl")
    assert read_switches((), arguments.hooks).environment.precision is name
    (change,) = _settings_changes(list(groups(words, {"gpuprecision"})))
    assert change(SolverEnvironment()).precision is name
    assert parse(["m.sm"], {}).hooks.precision is Precision.DOUBLE
    assert "-gpuprecision" in HELP
    assert "-gpuprecision" in USAGE["solve"]


def test_a_switch_of_ours_that_is_misspelt_is_compared_with_those_there_are():
    with pytest.raises(UsageError, match=r"-gpuformt \(did you mean -gpuformat\?\)"):
        parse(["m.sm", "-gpuformt", "csr"], {})
    with pytest.raises(UsageError, match=r'-gpuxyzzy \(type "prism-gpu -help"'):
        parse(["m.sm", "-gpuxyzzy"], {})
    assert "-jacobbi" in parse(["m.sm", "-jacobbi"], {}).prism


def test_a_wrong_precision_is_refused_for_a_solve_elsewhere_too():
    with pytest.raises(UsageError, match=r"-gpuprecision switch: one of double, single, mixed"):
        list(_settings_changes(list(groups(["-gpuprecision", "half"], {"gpuprecision"}))))


@pytest.mark.parametrize(("word", "goes_over"), [("speed", True), ("memory", False)])
def test_a_heuristic_choice_of_speed_is_the_sparse_engine_with_gauss_seidel(word, goes_over):
    hooks = parse(["m.sm", "-heuristic", word], {}).hooks
    assert hooks.left_to_prism == ""
    assert (hooks.engine_named, hooks.linear_method_named) == (goes_over, goes_over)
    assert (hooks.symbolic_engine == "sparse") is goes_over


def test_a_method_of_ours_reaches_the_embedded_checker():
    hooks = parse(["m.sm", "-gpumethod", "bgs"], {}).hooks
    read = read_switches((), hooks)
    assert read.environment.method is Method.BACKWARDS_GAUSS_SEIDEL
    assert parse(["m.sm"], {}).hooks.method is None


@pytest.mark.parametrize("switch", ["-sparse", "-s", "-h", "-mtbdd", "-exact", "-sim", "-explicit"])
def test_a_named_engine_is_kept(switch):
    assert parse([switch], {}).hooks.engine_named


def test_the_explicit_engine_brings_its_own_convention():
    assert parse(["-ex"], {}).hooks.convention is Convention.EXPLICIT
    assert parse(["-sparse"], {}).hooks.convention is Convention.SPARSE


def test_methods_and_limits_that_are_named():
    assert parse(["-jor"], {}).hooks.linear_method_named
    assert not parse(["-jor"], {}).hooks.mdp_method_named
    assert parse(["-gs"], {}).hooks.mdp_method_named
    assert parse(["-valiter"], {}).hooks.mdp_method_named
    assert parse(["-maxiters", "5"], {}).hooks.max_iterations_named
    assert not parse(["m.sm"], {}).hooks.max_iterations_named


def test_the_value_of_a_switch_is_not_read_as_a_switch():
    arguments = parse(["-pctl", "-jacobi", "-const", "-gpu"], {})
    assert not arguments.hooks.linear_method_named
    assert arguments.hooks.device is DeviceChoice.AUTO
    assert arguments.prism == ("-pctl", "-jacobi", "-const", "-gpu")


def test_java_switches_reach_the_jvm_and_prism():
    words = ["-javamaxmem", "3g", "-javastack", "8m", "-javaparams", "-Da=b -Dc=d"]
    arguments = parse(words, {})
    assert list(arguments.prism) == words
    assert arguments.jvm.max_memory == "3g"
    assert arguments.jvm.stack_bytes == 8 << 20
    assert arguments.jvm.extra == ("-Da=b", "-Dc=d")


def test_prism_s_environment_variables_are_read():
    environ = {"PRISM_JAVAMAXMEM": "2g", "PRISM_JAVASTACKSIZE": "1m", "PRISM_JAVA_PARAMS": "-Dx=y"}
    jvm = parse(["m.sm"], environ).jvm
    assert (jvm.max_memory, jvm.stack, jvm.extra) == ("2g", "1m", ("-Dx=y",))
    assert parse(["-javamaxmem", "4g"], environ).jvm.max_memory == "4g"
    with pytest.raises(BridgeError, match="PRISM_JAVAMAXMEM"):
        parse([], {"PRISM_JAVAMAXMEM": "lots"})


@pytest.mark.parametrize("text", ["", "4 g", "-1g", "1t", "g", "1.5g"])
def test_sizes_that_are_none(text):
    with pytest.raises(ValueError, match="no size of memory"):
        memory_bytes(text)
    with pytest.raises(UsageError, match="Invalid value for -javamaxmem switch"):
        parse(["-javamaxmem", text], {})


def test_blockwise_methods_become_their_plain_forms():
    assert without_blockwise_methods(("-pgs", "--bpsor", "-gs", "m.sm")) == (
        "-gaussseidel",
        "-bsor",
        "-gs",
        "m.sm",
    )


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["-m", "-explicit"], ""),
        (["-explicit", "-m"], "work of the MTBDD engine"),
        (["-exact", "-explicit"], "exact model checking"),
    ],
)
def test_of_several_engines_the_last_one_counts(words, left):
    assert parse(["model.pm", *words], {}).hooks.left_to_prism == left


def test_files_are_told_from_the_values_of_switches():
    found = parse(
        ["m.umb", "-exportvector", "v", "-epsilon", "1e-9", "p.csl", "-simpath", "5", "f"], {}
    )
    assert found.files == ("m.umb", "p.csl")
    assert found.front_end is None
    assert parse(["m.pm", "-frontend", "builtin"], {}).front_end == "builtin"
    with pytest.raises(UsageError, match='"storm" for -frontend switch: prism or builtin'):
        parse(["m.pm", "-frontend", "storm"], {})


@pytest.mark.parametrize("switch", ["exportprodtrans", "exportprodvector", "exporttarget", "symm"])
def test_what_follows_a_switch_of_prisms_is_no_model(switch):
    values = ["x.tra"] * (2 if switch == "symm" else 1)
    assert parse([f"-{switch}", *values, "m.pm"], {}).files == ("m.pm",)


@pytest.mark.prism
def test_each_switch_that_prisms_help_shows_with_a_value_has_one(prism):
    shown = re.findall(r"^-(\w+) <.*?> \.", prism("-help").output, re.MULTILINE)
    launcher = {"javamaxmem", "javastack", "javaparams"}
    assert len(shown) > 70
    assert set(shown) - launcher <= WITH_VALUE | WITH_TWO_VALUES


@pytest.mark.parametrize(
    ("words", "prisms", "ours"),
    [
        (["-help", "const"], ("-help", "const"), False),
        (["-?", "-exportss", "m.pm"], ("-?", "-exportss", "m.pm"), False),
        (["-help", "simmethod"], ("-help", "simmethod"), False),
        (["-help", "gpumethod"], ("-help", "gpumethod"), True),
        (["m.pm", "-help"], ("m.pm", "-help"), False),
    ],
)
def test_help_on_a_switch(words, prisms, ours):
    found = parse(words, {})
    assert found.prism == prisms
    assert bool(found.own_help) is ours
    assert found.files == tuple(word for word in words if word == "m.pm")
    assert found.help is (words[-1] == "-help")


@pytest.mark.prism
def test_help_on_prisms_switches_is_prisms(prism_gpu, prism):
    for switch in ("const", "-exportss", "nosuchswitch"):
        ours, theirs = prism_gpu("-help", switch), prism("-help", switch)
        assert (ours.output, ours.code) == (theirs.output, theirs.code)
    assert "without PRISM" in prism_gpu("-help", "const", "-frontend", "builtin").output
