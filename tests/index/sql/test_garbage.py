"""The garbage collector waits for long texts, and goes on as it was, whatever happens and whoever else reads."""

import gc
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from fuse_index.sql.garbage import collector_paused


@pytest.fixture(autouse=True)
def collecting():
    gc.enable()
    yield
    gc.enable()


def test_it_waits_and_goes_on():
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_an_error():
    with pytest.raises(ValueError, match="refused"), collector_paused():
        raise ValueError("refused")
    assert gc.isenabled()


def test_it_stays_off_for_who_switched_it_off():
    gc.disable()
    with collector_paused():
        pass
    assert not gc.isenabled()


def test_nothing_happens_that_is_not_wanted():
    with collector_paused(False):
        assert gc.isenabled()


def test_it_goes_on_after_the_last_of_many_threads():
    together = Barrier(4)

    def read(number: int) -> bool:
        with collector_paused():
            together.wait(30)
            return gc.isenabled()

    with ThreadPoolExecutor(4) as pool:
        assert not any(pool.map(read, range(4)))
    assert gc.isenabled()
