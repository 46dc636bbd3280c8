"""UMB between tools: the umbi package, PRISM and Storm read what we write, and we what they do."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.files.umb import read_umb, write_umb
from engines.model.explicit import ModelKind
from tests.bridge.files.test_umb_samples import SAMPLES, assert_same, sample

SOME = ["herman7", "dice", "nand_N5_K1", "cluster_N2", "tandem_c3", "coin2_K2", "leader3"]
# The constants, the properties, our compression and PRISM's.
MODELS = {
    "dtmcs/herman/herman7.pm": (
        "",
        ['filter(avg, P=? [ F<=5 "stable" ])', 'filter(max, R=? [ F "stable" ])'],
        "xz",
        "gzip",
    ),
    "ctmcs/cluster/cluster.sm": (
        "N=2",
        [
            'S=? [ "premium" ]',
            'R{"percent_op"}=? [ C<=10 ]',
            'R{"num_repairs"}=? [ C<=2 ]',
            'R{"percent_op"}=? [ I=2 ]',
            'P=? [ F<=10 !"minimum" ]',
        ],
        "none",
        "false",
    ),
    "mdps/consensus/coin2.nm": (
        "K=2",
        [
            'Pmin=? [ F "finished"&"all_coins_equal_1" ]',
            'Pmax=? [ F "finished"&!"agree" ]',
            'R{"steps"}max=? [ F "finished" ]',
        ],
        "gz",
        "xz",
    ),
    "mdps/leader_async/leader3.nm": (
        "",
        ['Pmin=? [ F "elected" ]', 'Rmax=? [ F "elected" ]'],
        "none",
        "false",
    ),
}
SWITCHES = ("-ex", "-epsilon", "1e-9", "-maxiters", "1000000")
STORM_PROPERTIES = [
    ("dice", 'R{"coin_flips"}=? [ C<=3 ]'),
    ("herman7", 'R{"steps"}=? [ F "stable" ]'),
    ("cluster_N2", 'S=? [ "premium" ]'),
    ("cluster_N2", 'R{"num_repairs"}=? [ S ]'),
    ("tandem_c3", 'R{"customers"}=? [ S ]'),
    ("coin2_K2", 'Pmin=? [ F "finished"&"all_coins_equal_1" ]'),
    ("coin2_K2", 'R{"steps"}max=? [ F "finished" ]'),
]


def sample_parameter(path):
    """Return a sample as a parameter: umbi takes seconds for a large one."""
    marks = [pytest.mark.slow] if path.stat().st_size > 5000 else []
    return pytest.param(path, marks=marks, id=f"{path.parent.name}-{path.stem}")


@pytest.fixture(params=map(sample_parameter, SAMPLES))
def path(request):
    return request.param


@pytest.fixture(scope="module")
def umbi():
    """Return the umbi package; the test is skipped where it is absent or does not work."""
    umbi = pytest.importorskip("umbi", reason="needs the umbi package")
    pytest.importorskip("umbi.tar", reason="needs the umbi package")
    try:
        umbi.umb.read(sample("dice"))
    except ValueError as error:  # umbi 0.2.5 does with bitstring 5
        pytest.skip(f"needs an umbi that reads PRISM's own file: {error}")
    return umbi


@pytest.fixture(scope="module")
def stormpy():
    """Return stormpy; the test is skipped where it is absent or knows no UMB."""
    stormpy = pytest.importorskip("stormpy", reason="needs stormpy")
    if not hasattr(stormpy, "build_model_from_umb"):
        pytest.skip("needs a stormpy that reads UMB")
    return stormpy


def test_umbi_accepts_and_reads_what_we_write(path, tmp_path, umbi):
    umb = umbi.umb
    file = read_umb(path)
    for compression in ("gz", "xz", "none"):
        write_umb(file, tmp_path / "m.umb", compression)
        assert "index.json" in umbi.tar.TarFile(tmp_path / "m.umb").filenames
    explicit = umb.read(tmp_path / "m.umb", strict=True)
    explicit.validate()
    matrix = file.model.matrix
    np.testing.assert_array_equal(explicit.choice_to_branches, matrix.row_offsets)
    np.testing.assert_array_equal(explicit.branch_to_target, matrix.columns)
    np.testing.assert_array_equal(explicit.branch_to_probability, file.probabilities)
    np.testing.assert_array_equal(explicit.state_is_initial, file.model.initial_states)
    if file.exit_rates is not None:
        np.testing.assert_array_equal(explicit.state_to_exit_rate, file.exit_rates)
    for name in file.valuations.names:
        theirs = [state[name] for state in explicit.valuations["states"]]
        np.testing.assert_array_equal(theirs, file.valuations.values(name))
    found = {
        described.alias: explicit.annotations["aps"][key]["states"]
        for key, described in (explicit.index.annotations.get("aps") or {}).items()
    }
    assert set(found) == set(file.model.labels)
    for name, mask in file.model.labels.items():
        np.testing.assert_array_equal(found[name], mask)
    umbi.ats.read(tmp_path / "m.umb")


def test_we_read_what_umbi_writes(path, tmp_path, umbi):
    umbi.umb.write(umbi.umb.read(path), tmp_path / "m.umb")
    assert_same(read_umb(tmp_path / "m.umb"), read_umb(path))


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("bare", [False, True], ids=["whole", "bare"])
def test_storm_reads_what_we_write(name, bare, tmp_path, stormpy):
    file = read_umb(sample(name))
    write_umb(file.model if bare else file, tmp_path / "m.umb")
    theirs = stormpy.build_model_from_umb(str(tmp_path / "m.umb"))
    model = file.model
    assert theirs.nr_states == model.num_states
    assert theirs.nr_transitions == model.matrix.num_entries
    assert {*theirs.labeling.get_labels()} >= {*model.labels}
    entries = [
        (row, entry.column, entry.value)
        for row in range(model.matrix.num_rows)
        for entry in theirs.transition_matrix.get_row(row)
    ]
    ours = sorted(
        zip(
            model.matrix.row_of_entry().tolist(),
            model.matrix.columns.tolist(),
            model.matrix.values.tolist(),
            strict=True,
        )
    )
    np.testing.assert_allclose(sorted(entries), ours, rtol=4e-16)


@pytest.mark.parametrize("compression", ["none", "gz", "xz"])
@pytest.mark.parametrize(("name", "text"), STORM_PROPERTIES)
def test_storm_gives_the_same_values_for_what_we_write(name, text, compression, tmp_path, stormpy):
    file = read_umb(sample(name))
    write_umb(file, tmp_path / "m.umb", compression)

    def check(path: object) -> float:
        model = stormpy.build_model_from_umb(str(path))
        result = stormpy.model_checking(model, stormpy.parse_properties(text)[0])
        return result.get_value(model.initial_states[0])

    assert check(tmp_path / "m.umb") == pytest.approx(check(sample(name)), rel=1e-12)


@pytest.fixture(scope="module", params=MODELS, ids=lambda name: name.rsplit("/", 1)[1])
def exported(request, prism, prism_examples, tmp_path_factory):
    """Return what PRISM exported, the properties, PRISM's values, our compression and PRISM's."""
    constants, properties, *compressions = MODELS[request.param]
    switches = ["-const", constants] if constants else []
    file = tmp_path_factory.mktemp("exported") / "theirs.umb"
    run = prism(
        prism_examples / request.param, *switches, *SWITCHES, "-pf", ";".join(properties),
        "-exportmodel", file,
    )  # fmt: skip
    assert run.code == 0, run.output
    assert len(run.numbers()) == len(properties), run.output
    return file, properties, run.numbers(), *compressions


@pytest.mark.sampled(2)
@pytest.mark.prism
def test_prism_gives_the_same_values_for_what_we_write(exported, prism, tmp_path):
    theirs, properties, expected, compression, _ = exported
    file = read_umb(theirs)
    written = {"whole": file}
    if file.model.kind is ModelKind.MDP:
        written["bare"] = file.model
    for name, content in written.items():
        imported = tmp_path / f"{name}.umb"
        write_umb(content, imported, compression)
        run = prism("-importmodel", imported, *SWITCHES, "-pf", ";".join(properties))
        assert run.code == 0, run.output
        np.testing.assert_allclose(run.numbers(), expected, rtol=1e-9)


@pytest.mark.sampled(2)
@pytest.mark.prism
def test_we_read_what_prism_exports(exported, prism, tmp_path):
    """PRISM reads our file and exports it again, and we read that."""
    theirs, _, _, _, zipped = exported
    original = read_umb(theirs)
    write_umb(original, tmp_path / "ours.umb")
    again = tmp_path / "again.umb"
    run = prism(
        "-importmodel", tmp_path / "ours.umb", "-ex", "-exportmodel", f"{again}:zip={zipped}"
    )
    assert run.code == 0, run.output
    found, expected = read_umb(again).model, original.model
    np.testing.assert_array_equal(found.matrix.columns, expected.matrix.columns)
    np.testing.assert_allclose(found.matrix.values, expected.matrix.values, rtol=4e-16)
    assert list(found.labels) == list(expected.labels)
    for left, right in zip(found.rewards, expected.rewards, strict=True):
        np.testing.assert_allclose(left.state_rewards, right.state_rewards, rtol=1e-15)
