"""Asking code that may raise, hang or exit."""

import threading
import time

from fuse_index.ask import Failure, ask
from fuse_index.reasons import Reason
from fuse_storage import Corrupt, NotFound


def test_an_answer_comes_back():
    assert ask(lambda: 42, 1.0) == 42


def test_whatever_is_raised_becomes_a_failure_with_a_reason():
    def raising(error):
        def question():
            raise error

        return question

    def reason(error):
        return ask(raising(error), 1.0).reason

    assert reason(ValueError("no")) is Reason.PLUGIN_ERROR
    assert reason(SystemExit(3)) is Reason.PLUGIN_ERROR
    assert reason(Corrupt("bad bytes")) is Reason.CORRUPT
    assert reason(NotFound("gone")) is Reason.PAYLOAD_MISSING


def test_a_question_that_hangs_is_left_behind_and_others_go_on():
    release = threading.Event()
    started = time.monotonic()

    hung = ask(release.wait, 0.05)

    assert isinstance(hung, Failure)
    assert hung.reason is Reason.TIMEOUT
    assert ask(lambda: "next", 1.0) == "next"
    assert time.monotonic() - started < 5
    release.set()


def test_questions_one_after_the_other_need_one_thread():
    ask(lambda: None, 1.0)
    before = threading.active_count()
    for _ in range(50):
        ask(lambda: None, 1.0)

    assert threading.active_count() == before
