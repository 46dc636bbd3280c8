"""What the backend makes of a simulation, with fakes of Java's objects."""

from __future__ import annotations

import json
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from bridge.arguments import parse
from bridge.cli import words_for_prism
from bridge.own_switches import UsageError
from engines.errors import InvalidModelError, UnsupportedError
from engines.model.environment import DeviceChoice
from engines.montecarlo.sampler import Sampler
from engines.program import native
from prism_hooks import simulation, simulation_device
from prism_hooks.answers import Answers
from prism_hooks.options import SIMULATION, HookOptions
from prism_hooks.simulation import UNDECIDED_PATH, Simulation
from prism_hooks.simulation_device import PlaceTuning
from prism_hooks.simulation_methods import switches_of
from prism_hooks.simulation_progress import ProgressTuning, SamplingProgress

AUTO = DeviceChoice.AUTO
SEEDED = HookOptions(device=DeviceChoice.CPU, simulation_seed=3)
WALK = [[[0.5], [0, ["v0", 1, "+"]]], [[0.5], [0, ["v0", 1, "-"]]]]


@pytest.fixture(autouse=True)
def _compiler() -> None:
    try:
        native.compiler()
    except UnsupportedError as error:
        pytest.skip(str(error))


def program(guard: list, updates: list = WALK, low: int = 0, high: int = 8) -> str:
    """Return the text of a walk from 4 with a reward of 1 a step."""
    return json.dumps(
        {
            "kind": "dtmc",
            "checked": True,
            "actions": [],
            "variables": [
                {"name": "x", "type": "int", "low": low, "high": high, "initial": 4, "module": 0}
            ],
            "modules": [
                {
                    "name": "m",
                    "alphabet": [],
                    "commands": [{"action": 0, "guard": guard, "updates": updates}],
                }
            ],
            "rewards": [{"name": "", "states": [[[True], [1]]], "transitions": []}],
        }
    )


INSIDE = ["v0", 0, ">", "v0", 8, "<", "&"]
TOP, BOTTOM = ["v0", 8, "="], ["v0", 0, "="]
UNTIL_TOP = {
    "kind": "until", "negated": False, "left": [True], "right": TOP, "bounded": False,
    "lower": 0, "upper": None,
}  # fmt: skip
STEPS = {"kind": "reach", "rewards": 0, "target": [*TOP, *BOTTOM, "|"]}


class Sampling(SimpleNamespace):
    """A `prismgpu.Sampling`."""

    given = 0

    def __init__(self, text: str, questions: list[dict], **more: object) -> None:
        Sampling.given += 1
        fields = {
            "id": Sampling.given, "program": text, "questions": json.dumps(questions),
            "pathLimit": 10_000, "endsInDeadlocks": False, "seed": None, "methods": None,
            "firstPath": 0, "numPaths": 0, "numGood": 0, "lengths": None, "failure": None,
            "failedIn": None, "refusal": None, "error": None, "said": [], "answers": {},
            "numWanted": 0, "remark": "", "counted": False,
        }  # fmt: skip
        super().__init__(**fields | more)

    def say(self, line: str) -> None:
        self.said.append(line)

    def warn(self, text: str) -> None:
        self.said.append(text)

    def setTruths(self, question: int, truths: np.ndarray) -> None:  # noqa: N802
        assert truths.dtype == np.int8
        self.answers[question] = truths

    def setCount(self, question: int, count: int) -> None:  # noqa: N802
        self.answers[question] = count

    def setValues(self, question: int, values: np.ndarray) -> None:  # noqa: N802
        assert values.dtype == np.float64
        self.answers[question] = values

    def setLengths(self, *lengths: int) -> None:  # noqa: N802
        self.lengths = lengths

    def showProgress(self, percent: int) -> None:  # noqa: N802
        self.said.append(f"{percent}%")

    def text(self, number: float) -> str:
        return repr(number)


def sampled(
    sampling: Sampling, num_paths: int, options: HookOptions = SEEDED, places=PlaceTuning()
) -> Sampling:
    """Have paths sampled by a new backend, made ready first as Java does it."""
    backend = Simulation(options, places)
    backend.sample(sampling)
    assert (sampling.error, sampling.refusal) == (None, None)
    sampling.numPaths = num_paths
    backend.sample(sampling)
    assert (sampling.error, sampling.refusal) == (None, None)
    return sampling


def test_a_batch_hands_over_what_each_path_answered():
    found = sampled(Sampling(program(INSIDE), [STEPS, UNTIL_TOP]), 4000)
    steps, truths = found.answers[0], found.answers[1]
    assert (found.numGood, found.failure) == (4000, None)
    assert set(truths.tolist()) == {0, 1}
    # Closed forms of the symmetric walk from 4 in 0..8: half of the paths end at the top, in 4 · 4
    # steps on average, with a variance of 2/3 · (4⁴ − 4²).
    assert truths.mean() == pytest.approx(0.5, abs=5 * 0.5 / 4000**0.5)
    assert steps.mean() == pytest.approx(16, abs=5 * (160 / 4000) ** 0.5)
    assert np.array_equal(steps, found.lengths)


@pytest.mark.parametrize("failing", [False, True])
def test_counts_are_those_of_single_answers_up_to_the_first_that_failed(failing):
    # Beyond the path limit there is no answer; the walk takes 16 steps on average.
    limit = 60 if failing else 10_000
    asked = (program(INSIDE), [STEPS, UNTIL_TOP])
    single = sampled(Sampling(*asked, pathLimit=limit), 3000)
    counted = sampled(Sampling(*asked, pathLimit=limit, counted=True), 3000)
    good = counted.numGood
    assert (good, counted.failure) == (single.numGood, single.failure)
    assert (0 < good < 3000) == failing
    assert np.array_equal(counted.answers[0], single.answers[0], equal_nan=True)
    assert counted.answers[1] == single.answers[1][:good].sum()
    lengths = single.lengths[:good]
    assert counted.lengths == (lengths.sum(), lengths.min(), lengths.max())


def test_a_path_is_the_same_in_any_batch():
    whole = sampled(Sampling(program(INSIDE), [STEPS]), 50).answers[0]
    parts = [
        sampled(Sampling(program(INSIDE), [STEPS], firstPath=first), 10).answers[0]
        for first in range(0, 50, 10)
    ]
    assert np.array_equal(whole, np.concatenate(parts))


def test_the_seed_is_the_command_line_s_then_prism_s_then_a_new_one():
    def first_of(options: HookOptions, **more: object) -> list[float]:
        return sampled(Sampling(program(INSIDE), [STEPS], **more), 20, options).answers[0].tolist()

    cpu = HookOptions(device=DeviceChoice.CPU)
    named = first_of(SEEDED)
    assert first_of(SEEDED, seed=77) == named
    assert first_of(cpu, seed=3) == named
    assert first_of(cpu, seed=-1) == first_of(cpu, seed=-1) != named
    assert first_of(cpu) != first_of(cpu)


def test_the_first_path_that_leaves_a_range_ends_the_good_ones():
    found = sampled(Sampling(program([True]), [UNTIL_TOP | {"right": [False]}]), 200)
    assert found.numGood < 200
    assert found.failedIn in ([0], [8])
    value = -1 if found.failedIn == [0] else 9
    assert found.failure == f"Value {value} out of range 0..8 for variable x, assigned"


def test_a_path_that_is_undecided_ends_the_good_ones():
    found = sampled(Sampling(program(INSIDE), [STEPS], pathLimit=30), 2000)
    assert found.failure == UNDECIDED_PATH
    assert 0 < found.numGood < 2000
    assert np.all(found.answers[0][: found.numGood] <= 30)
    assert np.isnan(found.answers[0][found.numGood])


def test_of_two_bad_paths_the_first_counts():
    asked = [UNTIL_TOP | {"right": [False]}]
    both = Sampling(program(["v0", 8, "<"]), asked, pathLimit=25)
    found = sampled(both, 500)
    lengths, first = found.lengths, found.numGood
    undecided = np.flatnonzero((found.answers[0] == 2) & (lengths >= 0))
    failed = np.flatnonzero(lengths < 0)
    assert len(undecided) > 0
    assert len(failed) > 0
    assert first == min(undecided[0], failed[0])
    assert (found.failure == UNDECIDED_PATH) == (undecided[0] < failed[0])


def test_a_deadlock_is_an_error_only_where_deadlocks_are_not_fixed():
    text, asked = program(["v0", 8, "<", "v0", 0, ">", "&"]), [UNTIL_TOP]
    assert sampled(Sampling(text, asked), 10).failure is None
    found = sampled(Sampling(text, asked, endsInDeadlocks=True), 10)
    assert found.failure == "deadlock"
    assert (found.numGood, found.failedIn) in ((0, [0]), (0, [8]))


def test_paths_sampled_in_parts_are_those_of_one_batch(monkeypatch):
    in_view = SamplingProgress(visible=True, tuning=ProgressTuning(first_part_paths=7))
    monkeypatch.setattr(simulation, "sampling_progress", lambda: in_view)
    asked = [STEPS, UNTIL_TOP]
    parts = sampled(Sampling(program(INSIDE), asked), 100)
    monkeypatch.undo()
    whole = sampled(Sampling(program(INSIDE), asked), 100)
    for mine, other in zip(parts.answers.values(), whole.answers.values(), strict=True):
        assert np.array_equal(mine, other)
    assert np.array_equal(parts.lengths, whole.lengths)


class OnGpu(Sampler):
    """The CPU's sampler, which answers to be a GPU's where one is asked for."""

    def __init__(self, program, questions, seed, device, path_limit, **more):
        del more["devices"]
        super().__init__(program, questions, seed, DeviceChoice.CPU, path_limit, **more)
        self._asked = device

    @property
    def on_gpu(self) -> bool:
        return self._asked is DeviceChoice.GPU

    @property
    def num_devices(self) -> int:
        return int(self.on_gpu)


@pytest.fixture
def sooner_gpu(monkeypatch):
    """A machine with a GPU, and what makes that sooner after two parts."""
    monkeypatch.setattr(simulation, "Sampler", OnGpu)
    monkeypatch.setattr(simulation, "gpu_refusal", lambda _number: None)
    monkeypatch.setattr(simulation_device, "driver_present", lambda: True)
    monkeypatch.setattr(simulation_device, "gpu_refusal", lambda _number: None)
    cuda = SimpleNamespace(Device=lambda _number: nullcontext())
    monkeypatch.setattr(simulation_device, "cupy", lambda: SimpleNamespace(cuda=cuda))
    return PlaceTuning(gpu_opens_s=0.0, measurable_s=0.0)


@pytest.mark.parametrize("wanted", [0, 5000])
def test_where_paths_are_sampled_is_told_truly_before_and_after(sooner_gpu, wanted):
    asked = [STEPS, UNTIL_TOP]
    options = HookOptions(device=AUTO, simulation_seed=3)
    sampling = Sampling(program(INSIDE), asked, numWanted=wanted)
    moved = sampled(sampling, 5000, options, sooner_gpu)
    (line,) = moved.said
    assert line.endswith("sampled on the CPU; a GPU takes over if that is sooner")
    assert moved.remark == "paths from number 128 on were sampled on the GPU"
    alone = sampled(Sampling(program(INSIDE), asked, numWanted=wanted), 5000)
    assert alone.said == ["prism-gpu: paths of seed 3, sampled on the CPU"]
    assert alone.remark == ""
    assert moved.lengths.tobytes() == alone.lengths.tobytes()
    for mine, other in zip(moved.answers.values(), alone.answers.values(), strict=True):
        assert mine.tobytes() == other.tobytes()


def test_a_method_of_ours_judges_the_same_paths_wherever_they_were_sampled(sooner_gpu):
    words = (("simmethod", "adaptive"), ("simwidth", "0.02"))
    found = []
    for device in (AUTO, DeviceChoice.CPU):
        method = own_method()
        sampling = judged(method, *words, device=device, places=sooner_gpu)
        found.append((sampling.numGood, sampling.lengths, method.estimate, method.halfWidth))
        assert ("were sampled on the GPU" in sampling.remark) == (device is AUTO)
    assert found[0] == found[1]
    assert found[0][0] > 1000


def test_the_estimate_that_is_shown_is_that_of_all_paths_so_far():
    values = np.random.default_rng(5).normal(3.0, 2.0, 1000)
    progress = SamplingProgress(visible=True)
    assert progress.text == ""
    for part in np.split(values, [10, 11, 500]):
        progress.estimate(part)
    half_width = 2.5758 * values.std() / 1000**0.5
    assert progress.text == f"about {values.mean():.6g} +/- {half_width:.2g}"


def own_method(**more: object) -> SimpleNamespace:
    """Return a `prismgpu.EngineMethod`."""
    fields = {"ofRewards": False, "bounded": False, "atLeast": False, "bound": 0.0, "remark": ""}
    return SimpleNamespace(**fields | more)


def judged(
    method: SimpleNamespace,
    *words: tuple[str, str],
    device: DeviceChoice = DeviceChoice.CPU,
    places: PlaceTuning = PlaceTuning(),
    **more: object,
) -> Sampling:
    options = HookOptions(
        device=device,
        simulation_seed=3,
        simulation_method=dict(words)["simmethod"],
        simulation=words,
    )
    asked = [STEPS] if method.ofRewards else [UNTIL_TOP]
    sampling = Sampling(program(INSIDE), asked, methods=[method], **more)
    return sampled(sampling, 1, options, places)


def test_a_method_of_ours_samples_until_it_has_enough_and_judges():
    method = own_method()
    found = judged(method, ("simmethod", "clopper-pearson"), ("simsamples", "5000"))
    assert found.numGood == 5000
    assert method.name == "Clopper-Pearson"
    assert method.parameters == "width=unknown, confidence=0.01, number of samples=5000"
    assert abs(method.estimate - 0.5) <= method.halfWidth < 0.03
    assert method.decision == -1
    assert method.remark.startswith("confidence interval is [0.")
    total, shortest, longest = found.lengths
    assert shortest == 4 < longest
    assert total / 5000 == pytest.approx(16, abs=1)


def test_a_sound_interval_allows_for_undecided_paths_and_says_so():
    method = own_method(bounded=True, bound=0.05, atLeast=True)
    judged(method, ("simmethod", "clopper-pearson"), ("simsamples", "4000"), pathLimit=20)
    assert method.decision == 1
    assert "met the path limit" in method.remark
    # A quarter and more of the paths are longer.
    assert method.halfWidth > 0.1


def test_adaptive_stopping_for_rewards_needs_their_maximum():
    sampling = Sampling(program(INSIDE), [STEPS], methods=[own_method(ofRewards=True)])
    words = (("simmethod", "adaptive"),)
    options = HookOptions(device=DeviceChoice.CPU, simulation_method="adaptive", simulation=words)
    Simulation(options).sample(sampling)
    assert "-simmaxrwd" in sampling.refusal


def test_a_value_that_is_no_number_is_told():
    assert switches_of({"simwidth": "0.5", "simsamples": "7"}).samples == 7
    with pytest.raises(InvalidModelError, match='"many" for -simsamples'):
        switches_of({"simsamples": "many"})


@pytest.mark.parametrize(
    ("device", "missing", "answer"),
    [
        (DeviceChoice.AUTO, "no driver", "refusal"),
        (DeviceChoice.GPU, None, "refusal"),
        (DeviceChoice.GPU, "no driver", "error"),
    ],
)
def test_what_cannot_be_sampled_is_refused_and_a_missing_gpu_an_error(
    monkeypatch, device, missing, answer
):
    def refuse(*_: object, **__: object) -> None:
        raise UnsupportedError("no compiler")

    monkeypatch.setattr(simulation, "Sampler", refuse)
    monkeypatch.setattr(simulation, "gpu_refusal", lambda _number: missing)
    monkeypatch.setattr(simulation_device, "driver_present", lambda: False)
    monkeypatch.setattr(simulation_device, "gpu_refusal", lambda _number: "none here")
    sampling = Sampling(program(INSIDE), [STEPS])
    Simulation(HookOptions(device=device)).sample(sampling)
    assert getattr(sampling, answer) == "no compiler"
    assert {"error": sampling.refusal, "refusal": sampling.error}[answer] is None


def test_the_switches_of_a_simulation_are_noted_and_ours_taken_out():
    words = ["m.pm", "-sim", "-simwidth", "0.1", "-simmethod", "adaptive", "-gpusimseed", "9"]
    found = parse([*words, "-simconf", "0.2", "-gpusimsource", "out.c"], {})
    width, confidence = ("-simwidth", "0.1"), ("-simconf", "0.2")
    assert found.prism == ("m.pm", "-sim", *width, "-simmethod", "ci", *confidence)
    assert found.hooks.simulation == (("simwidth", "0.1"), ("simconf", "0.2"))
    assert found.hooks.simulation_method == "adaptive"
    assert (found.hooks.simulation_seed, found.hooks.simulation_source) == (9, "out.c")
    assert found.hooks.left_to_prism == SIMULATION
    assert found.hooks.engine_named


def test_a_method_of_prism_s_is_passed_on_and_the_last_one_counts():
    words = ["-simmethod", "adaptive", "-simmethod", "apmc", "-simsamples", "5"]
    found = parse(words, {})
    assert found.prism == ("-simmethod", "ci", "-simmethod", "apmc", "-simsamples", "5")
    assert found.hooks.simulation_method == ""


def test_prism_is_told_no_parameters_of_a_method_of_ours():
    parameters = ["-simapprox", "0.1", "-simconf", "0.2"]
    found = parse(["m.pm", "-sim", "-simmethod", "growing", *parameters], {})
    assert words_for_prism(found) == ["m.pm", "-sim", "-simmethod", "ci"]
    words = Answers(found.hooks).simulationWords()
    assert words == "growing -simapprox 0.1 -simconf 0.2"
    theirs = parse(["m.pm", "-sim", "-simmethod", "apmc", *parameters], {})
    assert words_for_prism(theirs) == ["m.pm", "-sim", "-simmethod", "apmc", *parameters]
    assert Answers(theirs.hooks).simulationWords() == ""


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["-gpusimsync", "never", "-sim"], "one of compile, runtime, lazy"),
        (["-gpusimstates", "0", "-sim"], "a number from 1 on"),
        (["-gpusimsync", "lazy"], "it needs -sim"),
        (["-gpusimstates", "5"], "it needs -sim"),
        (["-gpusimstates", "5", "-sim", "-gpuengine", "off"], "is not PRISM's"),
    ],
)
def test_switches_about_paths_are_checked(words, error):
    with pytest.raises(UsageError, match=error):
        parse(["m.pm", *words], {})


def test_a_method_of_ours_needs_our_engines():
    with pytest.raises(UsageError, match="-simmethod adaptive is not PRISM's"):
        parse(["-simmethod", "adaptive", "-gpuengine", "off"], {})
    with pytest.raises(UsageError, match="No value specified for -simmethod"):
        parse(["-simmethod"], {})


@pytest.mark.parametrize("value", ["-1", "x", str(2**63), ""])
def test_a_seed_is_a_number_of_63_bits(value):
    with pytest.raises(UsageError, match="-gpusimseed"):
        parse(["-gpusimseed", value], {})
