"""What `LoopLag` leaves out of its measure."""

import gc

import pytest

from asgi_client import Asking
from loop_lag import LoopLag


@pytest.fixture
def loop():
    asking = Asking(app=None)
    yield asking.loop
    asking.close()


def test_older_objects_are_not_collected_until_the_outermost_measure_ends(loop):
    """Tests measure single requests inside the measure of the whole test."""
    with LoopLag(loop):
        with LoopLag(loop):
            assert gc.get_freeze_count()
        assert gc.get_freeze_count()
    assert not gc.get_freeze_count()
