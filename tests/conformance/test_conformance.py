"""A slice of PRISM's regression suite: no failure that plain PRISM does not have."""

from __future__ import annotations

import pytest

from tests.conformance.__main__ import SWITCHES, measure
from tests.conformance.plan import suite_folder, units
from tests.conformance.runner import Runner

pytestmark = [pytest.mark.prism, pytest.mark.slow]

SLICE = (
    r"^functionality/verify/("
    r"dtmcs/dtmc_steady_1|dtmcs/ltl/lec15dtmc|dtmcs/rewards/dtmc_rewards|"
    r"ctmcs/rewards/ctmc_rewards|mdps/reach/safety-fig9|mdps/rewards/mdp_rewards)\."
)


@pytest.fixture(scope="module")
def folder(prism_install):
    try:
        return suite_folder(prism_install, "tests")
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("switches", SWITCHES)
def test_nothing_fails_that_plain_prism_passes(prism_install, folder, tmp_path, switches):
    runner = Runner(prism_install, tmp_path, timeout=120.0)
    chosen = units(folder, "tests", SLICE)
    summary = measure(runner, chosen, switches, jobs=1, whole_peer=False, show=False)
    assert summary.new_failures == []
    assert summary.without_peer == 0
    assert summary.outcomes["passed"] > 20
    assert summary.solved.total() > 0
