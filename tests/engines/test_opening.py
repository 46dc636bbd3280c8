"""When a GPU is opened ahead of the first solve."""

from __future__ import annotations

import threading

import pytest

from engines.devices.opening import MOST_STATES_WITHOUT, ModelsMet


def waiting(models, patience_s):
    """Return whether who waits for a large model still does after a while."""
    thread = threading.Thread(target=models.wait_for_large, args=(patience_s,), daemon=True)
    thread.start()
    thread.join(0.2)
    return thread.is_alive()


def test_a_large_model_is_not_waited_for():
    models = ModelsMet()
    models.meet(MOST_STATES_WITHOUT + 1)
    assert not waiting(models, 60.0)


def test_one_that_takes_long_to_build_is_taken_for_large():
    assert not waiting(ModelsMet(), 0.01)


@pytest.mark.parametrize("patience_s", [0.0, 60.0])
def test_small_models_open_nothing(patience_s):
    models = ModelsMet()
    models.meet(MOST_STATES_WITHOUT)
    assert waiting(models, patience_s)


def test_the_first_large_one_ends_the_wait():
    models = ModelsMet()
    models.meet(1)
    thread = threading.Thread(target=models.wait_for_large, args=(0.0,), daemon=True)
    thread.start()
    models.meet(MOST_STATES_WITHOUT + 1)
    thread.join(10)
    assert not thread.is_alive()
