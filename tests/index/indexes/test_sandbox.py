"""Asking code that may raise, hang or exit."""

import threading
import time

import pytest

from fuse_index.indexes.sandbox import PluginFailure, map_concurrently, sandboxed_call
from fuse_index.reasons import Reason
from fuse_storage import Corrupt, NotFound


def test_an_answer_comes_back():
    assert sandboxed_call(lambda: 42, 1.0) == 42


def test_whatever_is_raised_becomes_a_failure_with_a_reason():
    def raising(error):
        def question():
            raise error

        return question

    def reason(error):
        return sandboxed_call(raising(error), 1.0).reason

    assert reason(ValueError("no")) is Reason.PLUGIN_ERROR
    assert reason(SystemExit(3)) is Reason.PLUGIN_ERROR
    assert reason(Corrupt("bad bytes")) is Reason.CORRUPT
    assert reason(NotFound("gone")) is Reason.PAYLOAD_MISSING


def test_a_question_that_hangs_is_left_behind_and_others_go_on():
    release = threading.Event()
    started = time.monotonic()

    hung = sandboxed_call(release.wait, 0.05)

    assert isinstance(hung, PluginFailure)
    assert hung.reason is Reason.TIMEOUT
    assert sandboxed_call(lambda: "next", 1.0) == "next"
    assert time.monotonic() - started < 5
    release.set()


def test_questions_one_after_the_other_need_one_thread():
    sandboxed_call(lambda: None, 1.0)
    before = threading.active_count()
    for _ in range(50):
        sandboxed_call(lambda: None, 1.0)

    assert threading.active_count() == before


def test_work_on_several_is_done_at_the_same_time_and_answered_in_order():
    count = 40
    meet = threading.Barrier(10)

    def work(item):
        if item < 10:
            meet.wait(timeout=30)  # breaks if one of them has to wait for another
        return -item

    assert map_concurrently(work, range(count)) == [-item for item in range(count)]
    assert map_concurrently(work, []) == []


@pytest.mark.parametrize("bad", [0, 3, 25])
def test_what_work_on_one_of_several_raises_is_raised(bad):
    def work(item):
        if item == bad:
            raise Corrupt(f"item {item}")

    with pytest.raises(Corrupt, match=f"item {bad}"):
        map_concurrently(work, range(30))


def test_work_on_several_starts_threads_once():
    map_concurrently(lambda item: time.sleep(0.01), range(16))
    before = threading.active_count()
    for _ in range(20):
        map_concurrently(lambda item: time.sleep(0.001), range(16))

    assert threading.active_count() == before
