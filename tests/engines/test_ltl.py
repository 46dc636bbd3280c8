"""Probabilities of LTL: chains by refinement, MDPs by their strategies, PRISM, published values."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest

from bridge.files.umb import read_umb
from engines.automata import ltl
from engines.automata.ldba import ACCEPTED, LimitDeterministicAutomaton
from engines.graph.product import Letters, build_product
from engines.model.csr import CsrMatrix
from engines.model.environment import SolverEnvironment
from engines.model.explicit import ExplicitModel, ModelKind
from engines.questions.ltl import ltl_probabilities
from tests.engines import models
from tests.engines.ltl_oracle import chain_probabilities, random_tree, to_formula, to_prism
from tests.engines.models import MAX, MIN

TIGHT = SolverEnvironment(epsilon=1e-12)
REFERENCE = Path(__file__).parents[2].parent / "shared" / "reference"


def row(rng, state, size):
    """One to three successors, seldom far below the state: so that chains have transient parts."""
    if rng.random() < 0.2:
        return {state: 1.0}
    lowest = 0 if rng.random() < 0.2 else max(0, state - 1)
    successors = rng.sample(range(lowest, size), min(rng.randint(1, 3), size - lowest))
    weights = [rng.choice([1, 2, 3, 5]) for _ in successors]
    return {s: w / sum(weights) for s, w in sorted(zip(successors, weights, strict=True))}


def random_letters(rng, size):
    return [{name for name in "ab" if rng.random() < 0.5} for _ in range(size)]


def masks(letters):
    return {name: np.array([name in letter for letter in letters], bool) for name in "ab"}


def values(model, tree, letters, direction=None):
    result = ltl_probabilities(
        model, to_formula(tree), masks(letters), TIGHT, direction=direction
    ).raise_unless_converged()
    assert result.values.shape == (model.num_states,)
    assert ((result.values >= 0) & (result.values <= 1 + 1e-12)).all()
    return result.values


@pytest.mark.parametrize("seed", range(6))
def test_random_chains_agree_with_their_refinement(seed):
    rng = random.Random(seed)
    between = 0
    for _ in range(60):
        size = rng.randint(1, 9)
        rows = [row(rng, state, size) for state in range(size)]
        letters = random_letters(rng, size)
        tree = random_tree(rng, rng.randint(2, 12))
        expected = chain_probabilities(tree, rows, letters)
        computed = values(models.dtmc(rows), tree, letters)
        np.testing.assert_allclose(computed, expected, atol=1e-9, err_msg=str((tree, rows)))
        between += ((expected > 1e-6) & (expected < 1 - 1e-6)).any()
    assert between >= 5


@pytest.mark.parametrize("seed", range(3))
def test_a_ctmc_is_its_embedded_chain_and_stays_in_absorbing_states(seed):
    rng = random.Random(seed)
    for _ in range(20):
        rows = [{} if rng.random() < 0.2 else row(rng, s, 7) for s in range(7)]
        model = models.ctmc(
            [{t: 2.5 * s * p + p for t, p in r.items()} for s, r in enumerate(rows)]
        )
        letters = random_letters(rng, 7)
        tree = random_tree(rng, rng.randint(2, 9))
        embedded = [r or {s: 1.0} for s, r in enumerate(rows)]
        expected = chain_probabilities(tree, embedded, letters)
        np.testing.assert_allclose(values(model, tree, letters), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (("G", ("F", "a")), [0.75, 1, 0, 1]),
        (("F", ("G", "a")), [0.5, 1, 0, 0]),
        (("G", ("F", ("&", "a", ("X", "b")))), [0.25, 0, 0, 1]),
        (("&", ("G", ("F", "a")), ("G", ("F", "b"))), [0.25, 0, 0, 1]),
        (("X", ("G", ("=>", "b", ("X", "a")))), [0.75, 1, 0, 1]),
    ],
    ids=str,
)
def test_long_run_behaviour_of_three_bottom_components(tree, expected):
    rows = [{1: 0.5, 2: 0.25, 3: 0.25}, {1: 1.0}, {2: 1.0}, {3: 0.5, 4: 0.5}, {3: 1.0}]
    letters = [set(), {"a"}, {"b"}, {"a"}, {"b"}]
    np.testing.assert_allclose(values(models.dtmc(rows), tree, letters)[:4], expected, atol=1e-12)


ONE_BIT_SUFFICES = [
    ("U", "a", "b"),
    ("F", ("G", "a")),
    ("&", ("G", ("F", "a")), ("G", ("F", "b"))),
    ("G", ("=>", "a", ("F", "b"))),
    ("=>", ("G", ("F", "a")), ("G", ("F", "b"))),
    ("&", ("G", ("F", "a")), ("F", ("G", ("!", "b")))),
]


def chains_of_strategies(states):
    """The chains of all strategies with one bit of memory; state s with bit m is 2 s + m."""
    size = len(states)
    nodes = [(state, bit) for state in range(size) for bit in (0, 1)]
    options = [list(itertools.product(range(len(states[state])), (0, 1))) for state, _ in nodes]
    for plan in itertools.product(*options):
        yield [
            {2 * target + after: p for target, p in states[state][choice].items()}
            for (state, _), (choice, after) in zip(nodes, plan, strict=True)
        ]


@pytest.mark.parametrize("seed", range(2))
def test_no_strategy_beats_the_optimum_and_one_with_a_bit_of_memory_attains_it(seed):
    rng = random.Random(seed)
    states = [[row(rng, s, 3) for _ in range(2 if s < 2 else 1)] for s in range(3)]
    letters = [{"a"}, {"b"}, rng.choice([set(), {"a"}, {"a", "b"}])]
    rng.shuffle(letters)
    model = models.mdp(states)
    doubled = [letter for letter in letters for _ in (0, 1)]
    plans = list(chains_of_strategies(states))
    for tree in rng.sample(ONE_BIT_SUFFICES, 2):
        outcomes = np.array([chain_probabilities(tree, rows, doubled)[::2] for rows in plans])
        for direction, best in ((MAX, outcomes.max(axis=0)), (MIN, outcomes.min(axis=0))):
            np.testing.assert_allclose(
                values(model, tree, letters, direction),
                best,
                atol=1e-9,
                err_msg=str((tree, states)),
            )


@pytest.mark.parametrize("seed", range(4))
def test_a_chain_as_an_mdp_has_one_value(seed):
    rng = random.Random(seed)
    for _ in range(25):
        rows = [row(rng, state, 8) for state in range(8)]
        letters = random_letters(rng, 8)
        tree = random_tree(rng, rng.randint(2, 10))
        expected = chain_probabilities(tree, rows, letters)
        for direction in (MIN, MAX):
            computed = values(models.mdp([[r] for r in rows]), tree, letters, direction)
            np.testing.assert_allclose(computed, expected, atol=1e-9, err_msg=str((tree, rows)))


def test_two_goals_may_need_alternation():
    """G F a & G F b from a hub that visits one of them a turn: no memoryless strategy does it."""
    model = models.mdp([[{1: 1.0}, {2: 1.0}, {3: 1.0}], [{0: 1.0}], [{0: 1.0}], [{3: 1.0}]])
    letters = [set(), {"a"}, {"b"}, set()]
    both = ("&", ("G", ("F", "a")), ("G", ("F", "b")))
    np.testing.assert_array_equal(values(model, both, letters, MAX), [1, 1, 1, 0])
    np.testing.assert_array_equal(values(model, both, letters, MIN), [0, 0, 0, 0])
    for choice in range(3):
        hub = [{1: 1.0}, {2: 1.0}, {3: 1.0}][choice]
        chain = models.dtmc([hub, {0: 1.0}, {0: 1.0}, {3: 1.0}])
        np.testing.assert_array_equal(values(chain, both, letters), [0, 0, 0, 0])


def write_mdp(folder, states, letters):
    """The MDP in PRISM's explicit text format."""
    rows = [
        f"{s} {i} {target} {probability!r}"
        for s, choices in enumerate(states)
        for i, choice in enumerate(choices)
        for target, probability in choice.items()
    ]
    counts = f"{len(states)} {sum(map(len, states))} {len(rows)}"
    (folder / "model.tra").write_text("\n".join([counts, *rows, ""]))
    numbers = {"a": "2", "b": "3"}
    labelled = [
        f"{s}: {' '.join(['0'] * (s == 0) + [numbers[name] for name in sorted(letter)])}"
        for s, letter in enumerate(letters)
        if letter or s == 0
    ]
    names = '0="init" 1="deadlock" 2="a" 3="b"'
    (folder / "model.lab").write_text("\n".join([names, *labelled, ""]))


@pytest.mark.prism
@pytest.mark.parametrize("seed", range(3))
def test_random_mdps_agree_with_prism(seed, prism, tmp_path):
    rng = random.Random(seed)
    size = rng.randint(4, 12)
    states = [[row(rng, s, size) for _ in range(rng.randint(1, 3))] for s in range(size)]
    letters = random_letters(rng, size)
    write_mdp(tmp_path, states, letters)
    trees = [random_tree(rng, rng.randint(3, 12)) for _ in range(40)]
    properties = [f"P{o}=? [ {to_prism(tree)} ]" for tree in trees for o in ("min", "max")]
    (tmp_path / "all.props").write_text("\n".join(properties) + "\n")
    done = prism(
        "-importtrans", tmp_path / "model.tra", "-importlabels", tmp_path / "model.lab",
        "-mdp", tmp_path / "all.props", "-explicit", "-epsilon", "1e-12",
    )  # fmt: skip
    model = models.mdp(states)
    computed = [values(model, tree, letters, d)[0] for tree in trees for d in (MIN, MAX)]
    np.testing.assert_allclose(computed, done.numbers(), atol=1e-8)


def comparison(name, value):
    return lambda sample: sample.valuations.values(name) == value


def label(name):
    return lambda sample: sample.model.labels[name]


PUBLISHED = [
    ("herman3", "herman3.pm", "", 'filter(min, P=? [ F G "stable" ], "init")',
     ("F", ("G", "stable")), {}),
    ("herman7", "herman7.pm", "",
     'filter(max, P=? [ (F (x1=1 & (X x1=0))) & (G F (x2=1)) ], "init")',
     ("&", ("F", ("&", "p", ("X", ("!", "p")))), ("G", ("F", "q"))),
     {"p": comparison("x1", 1), "q": comparison("x2", 1)}),
    ("herman7", "herman7.pm", "", 'filter(min, P=? [ (X X "stable") | (G F x1=1) ], "init")',
     ("|", ("X", ("X", "stable")), ("G", ("F", "p"))), {"p": comparison("x1", 1)}),
    ("nand_N5_K1", "nand.pm", "N=5,K=1", "P=? [ G F s=4 ]",
     ("G", ("F", "p")), {"p": comparison("s", 4)}),
    ("nand_N5_K1", "nand.pm", "N=5,K=1", "P=? [ (F (s=4 & z>0)) & (F (s=3 & z=0)) ]",
     ("&", ("F", ("&", "p", ("!", "z"))), ("F", ("&", "q", "z"))),
     {"p": comparison("s", 4), "q": comparison("s", 3), "z": comparison("z", 0)}),
    ("egl_N2_L2", "egl.pm", "N=2,L=2", 'P=? [ (!"knowA") U ("knowB" & (X "knowA")) ]',
     ("U", ("!", "knowA"), ("&", "knowB", ("X", "knowA"))), {}),
    ("egl_N2_L2", "egl.pm", "N=2,L=2", 'P=? [ F G ("knowA" & "knowB") ]',
     ("F", ("G", ("&", "knowA", "knowB"))), {}),
    ("dice", "dice.pm", "", "P=? [ F G d=2 ]", ("F", ("G", "p")), {"p": comparison("d", 2)}),
    ("dice", "dice.pm", "", "P=? [ X (X s=3) ]", ("X", ("X", "p")), {"p": comparison("s", 3)}),
    ("dice", "dice.pm", "", "P=? [ (F s=3) => (F d=3) ]",
     ("=>", ("F", "p"), ("F", "q")), {"p": comparison("s", 3), "q": comparison("d", 3)}),
    ("cluster_N2", "cluster.sm", "N=2", 'P=? [ G F !"minimum" ]',
     ("G", ("F", ("!", "minimum"))), {}),
    ("cluster_N2", "cluster.sm", "N=2", 'P=? [ (G F "premium") & (F !"minimum") ]',
     ("&", ("G", ("F", "premium")), ("F", ("!", "minimum"))), {}),
    ("poll3", "poll3.sm", "", "P=? [ G F (s1=1 & s2=1) ]",
     ("G", ("F", ("&", "p", "q"))), {"p": comparison("s1", 1), "q": comparison("s2", 1)}),
    ("poll3", "poll3.sm", "", "P=? [ (!(s=2 & a=1)) U ((s=1 & a=1) & (X s1=0)) ]",
     ("U", ("!", ("&", "two", "a")), ("&", ("&", "one", "a"), ("X", "empty"))),
     {"two": comparison("s", 2), "one": comparison("s", 1), "a": comparison("a", 1),
      "empty": comparison("s1", 0)}),
    ("coin2_K2", "coin2.nm", "K=2", 'Pmax=? [ G F "agree" ]', ("G", ("F", "agree")), {}),
    ("coin2_K2", "coin2.nm", "K=2", 'Pmin=? [ G F ("finished" & "agree") ]',
     ("G", ("F", ("&", "finished", "agree"))), {}),
    ("coin2_K2", "coin2.nm", "K=2", 'Pmax=? [ F G ("finished" & !"agree") ]',
     ("F", ("G", ("&", "finished", ("!", "agree")))), {}),
    ("coin2_K2", "coin2.nm", "K=2",
     'Pmax=? [ (G F "finished") & (F (counter=left & (X counter>left))) ]',
     ("&", ("G", ("F", "finished")), ("F", ("&", "left", ("X", "above")))),
     # The constant `left` of the model is 2.
     {"left": comparison("counter", 2),
      "above": lambda sample: sample.valuations.values("counter") > 2}),
    ("coin2_K2", "coin2.nm", "K=2", 'Pmin=? [ F G "all_coins_equal_1" ]',
     ("F", ("G", "all_coins_equal_1")), {}),
    ("csma2_2", "csma2_2.nm", "", 'Pmax=? [ F G "all_delivered" ]',
     ("F", ("G", "all_delivered")), {}),
    ("csma2_2", "csma2_2.nm", "", 'Pmin=? [ (F "collision_max_backoff") & (F "all_delivered") ]',
     ("&", ("F", "collision_max_backoff"), ("F", "all_delivered")), {}),
    ("csma2_2", "csma2_2.nm", "",
     'Pmax=? [ (!"one_delivered") U ("one_delivered" & (X "collision_max_backoff")) ]',
     ("U", ("!", "one_delivered"), ("&", "one_delivered", ("X", "collision_max_backoff"))), {}),
    ("zeroconf_N20_K2", "zeroconf.nm", "N=20,K=2,reset=true", "Pmin=? [ G F (l=4 & ip=2) ]",
     ("G", ("F", ("&", "p", "q"))), {"p": comparison("l", 4), "q": comparison("ip", 2)}),
    ("zeroconf_N20_K2", "zeroconf.nm", "N=20,K=2,reset=true", "Pmax=? [ F G (l=4 & ip=1) ]",
     ("F", ("G", ("&", "p", "q"))), {"p": comparison("l", 4), "q": comparison("ip", 1)}),
    ("firewire_abst_d3", "firewire_abst.nm", "delay=3", 'Pmin=? [ F G "done" ]',
     ("F", ("G", "done")), {}),
    ("phil3", "phil3.nm", "", 'Pmax=? [ G F "eat" ]', ("G", ("F", "eat")), {}),
    ("phil3", "phil3.nm", "", 'Pmin=? [ G F "eat" ]', ("G", ("F", "eat")), {}),
    ("phil3", "phil3.nm", "", 'Pmax=? [ F G !"eat" ]', ("F", ("G", ("!", "eat"))), {}),
    ("phil3", "phil3.nm", "", 'Pmax=? [ (G F "hungry") & (F G !"eat") ]',
     ("&", ("G", ("F", "hungry")), ("F", ("G", ("!", "eat")))), {}),
    ("mutual3", "mutual3.nm", "", "Pmax=? [ G F p1=10 ]",
     ("G", ("F", "p")), {"p": comparison("p1", 10)}),
    ("mutual3", "mutual3.nm", "", 'Pmax=? [ (G F "some_4_13") & (F G !"some_14") ]',
     ("&", ("G", ("F", "some_4_13")), ("F", ("G", ("!", "some_14")))), {}),
    ("leader3", "leader3.nm", "", 'Pmin=? [ F G "elected" ]', ("F", ("G", "elected")), {}),
]  # fmt: skip


@pytest.mark.parametrize("entry", PUBLISHED, ids=lambda entry: f"{entry[0]} {entry[3]}")
def test_published_values(entry):
    sample_name, model_name, constants, text, tree, given = entry
    if not REFERENCE.is_dir():
        pytest.skip("needs the shared reference results")
    (expected,) = [
        known["value"]
        for known in json.loads((REFERENCE / "values.json").read_text())
        if Path(known["model"]).name == model_name
        and (known["constants"], known["property"]) == (constants, text)
    ]
    sample = read_umb(REFERENCE / "models" / f"{sample_name}.umb")
    formula = to_formula(tree)
    atoms = {name: given.get(name, label(name))(sample) for name in ltl.atom_names(formula)}
    direction = {"Pmin": MIN, "Pmax": MAX}.get(text[:4])
    environment = SolverEnvironment(epsilon=1e-10)
    result = ltl_probabilities(sample.model, formula, atoms, environment, direction=direction)
    start = result.values[sample.model.initial_states]
    assert (min if "filter(min" in text else max)(start) == pytest.approx(expected, rel=1e-6)


def test_entries_of_zero_are_no_transitions():
    """State 0 has a transition of probability 0 to state 2, where the formula would be violated."""
    matrix = CsrMatrix(
        np.array([0, 2, 3, 4]), np.array([1, 2, 0, 2]), np.array([1.0, 0.0, 1.0, 1.0]), 3
    )
    letters = [{"a"}, {"a"}, set()]
    model = ExplicitModel(ModelKind.MDP, matrix, np.arange(4))
    np.testing.assert_array_equal(values(model, ("G", "a"), letters, MIN), [1, 1, 0])
    np.testing.assert_array_equal(values(model, ("F", ("G", "a")), letters, MAX), [1, 1, 0])


def test_constant_formulas_need_no_solve():
    model = models.random_dtmc(1)
    letters = [set()] * 60
    np.testing.assert_array_equal(values(model, ("|", "a", ("!", "a")), letters), 1)
    np.testing.assert_array_equal(values(model, ("F", False), letters), 0)


def test_wrong_arguments_are_named():
    model = models.mdp([[{0: 1.0}]])
    formula = ltl.always(ltl.atom("here"))
    with pytest.raises(ValueError, match='atom "here"'):
        ltl_probabilities(model, formula, {}, TIGHT, direction=MAX)
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        ltl_probabilities(model, formula, {"here": np.ones(2, bool)}, TIGHT, direction=MAX)
    with pytest.raises(ValueError, match="direction"):
        ltl_probabilities(model, formula, {"here": np.ones(1, bool)}, TIGHT)


@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_product_has_just_the_reachable_nodes(seed, some):
    rng = random.Random(seed)
    model = models.random_mdp(seed, 20)
    allowed = np.ones(model.matrix.num_rows, bool)
    if some:
        # The first choice of each state, and some others.
        allowed = np.array([rng.random() < 0.3 for _ in allowed])
        allowed[model.row_group_offsets[:-1]] = True
    atoms = random_letters(rng, 20)
    automaton = LimitDeterministicAutomaton(
        to_formula(("U", ("F", "a"), ("&", ("X", "b"), ("G", ("F", "b")))))
    )
    part = automaton.initial_part
    letter = [sum(1 << i for i, n in enumerate(automaton.atoms) if n in atom) for atom in atoms]
    distinct, of_state = np.unique(letter, return_inverse=True)
    product = build_product(
        model,
        Letters(distinct, of_state),
        part,
        np.array([3, 5]),
        np.array([automaton.initial] * 2),
        allowed if some else None,
    )
    groups, matrix = model.row_group_offsets, model.matrix

    def rows_from(node):
        state, q = node
        following, _ = part.step(q, letter[state])
        if following < 0:
            return [[(node, 1.0)]]
        return [
            [
                ((int(matrix.columns[e]), following), matrix.values[e])
                for e in range(matrix.row_offsets[r], matrix.row_offsets[r + 1])
            ]
            for r in range(groups[state], groups[state + 1])
            if allowed[r]
        ]

    nodes = list(zip(product.states.tolist(), product.automaton_states.tolist(), strict=True))
    assert nodes[:2] == [(3, automaton.initial), (5, automaton.initial)]
    expected = {*nodes[:2]}
    pending = nodes[:2]
    while pending:
        for target, _ in itertools.chain.from_iterable(rows_from(pending.pop())):
            if target not in expected:
                expected.add(target)
                pending.append(target)
    assert sorted(nodes) == sorted(expected)
    built = product.model.check()
    for i, node in enumerate(nodes):
        rows = [
            [
                (nodes[built.matrix.columns[e]], built.matrix.values[e])
                for e in range(built.matrix.row_offsets[r], built.matrix.row_offsets[r + 1])
            ]
            for r in range(built.row_group_offsets[i], built.row_group_offsets[i + 1])
        ]
        assert rows == rows_from(node)
        decided = part.step(node[1], letter[node[0]])[0]
        assert product.accepted[i] == (decided == ACCEPTED)
        assert product.undecided[i] == (decided >= 0)


def test_a_large_product_is_built_in_time():
    """300,000 states with three automaton states: a ring that is left with probability 0.5."""
    size = 300_000
    columns = np.stack([(np.arange(size) + 1) % size, np.full(size, size - 1)], axis=1)
    columns[-1] = size - 1, size - 1
    matrix = CsrMatrix(np.arange(0, 2 * size + 1, 2), columns.ravel(), np.full(2 * size, 0.5), size)
    atoms = {"a": np.arange(size) % 3 == 1, "b": np.arange(size) % 3 == 2}
    formula = to_formula(("&", ("F", "a"), ("F", "b")))
    result = ltl_probabilities(ExplicitModel(ModelKind.DTMC, matrix), formula, atoms, TIGHT)
    # From 0: the ring is left before 1 (to size - 1, where 0 = (size - 1) % 3 == 2: only b holds),
    # or at 1, when b is certain.
    assert result.values[0] == pytest.approx(0.5, abs=1e-12)
