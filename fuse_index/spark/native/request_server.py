"""Threads that take the requests of the JVM and answer them, by the callback that is registered under each one's key.

Python asks the JVM for requests, through the connection that only this process can make: nothing listens here, so
nobody else can ask. Knows neither tables nor votes; what a request commits is committed only while it is awaited.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Lock, Thread
from typing import Any, ClassVar
from uuid import uuid4
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

import fuse_storage as storage
from fuse_index.errors import InputError
from fuse_index.spark.failures import encode_failure
from fuse_index.spark.native.java_compiler import jvm_bridge

Callback = Callable[[str], Any]
"""Takes the body of a request; what it returns, py4j must be able to send."""
FailureEncoder = Callable[[str, BaseException], str]
"""Takes the body of a request and what it raised; returns that as ``encode_failure`` does."""

_logger = logging.getLogger("fuse_index.spark")
_lock = Lock()
_servers: WeakKeyDictionary[Any, RequestServer] = WeakKeyDictionary()
"""By the gateway to their JVM."""


def _encode_in_python_words(_: str, raised: BaseException) -> str:
    return encode_failure(raised)


def _refuse(_: str) -> None:
    raise InputError("the session that asks is over")


_FORGOTTEN = _refuse, _encode_in_python_words


def serve_requests(
    spark: SparkSession, key: str, callback: Callback, encode: FailureEncoder = _encode_in_python_words
) -> None:
    """Answer by ``callback`` what the JVM of a classic session asks under ``key``, from now on; or that it failed."""
    bridge, gateway = jvm_bridge(spark), spark.sparkContext._gateway
    with _lock:
        server = _servers.get(gateway)
        if server is None:
            server = _servers[gateway] = RequestServer(bridge)
    server.register(key, callback, encode)


def forget_requests(spark: SparkSession, prefix: str) -> None:
    """Answer nothing more under keys that begin with ``prefix``."""
    server = _servers.get(spark.sparkContext._gateway)
    if server is not None:
        server.unregister(prefix)


def pending_requests(spark: SparkSession) -> int:
    """How many requests of the JVM of a classic session are being answered."""
    server = _servers.get(spark.sparkContext._gateway)
    return 0 if server is None else server.pending


class RequestServer:
    """The requests to this process from one JVM, and the threads that answer them: as many as there ever were at once.

    ``bridge``: the ``Bridge`` in that JVM.
    """

    MAX_THREADS: ClassVar[int] = 64
    WAIT_MILLISECONDS: ClassVar[int] = 60_000
    """So long a thread waits for a request before it looks whether it is one too many."""

    def __init__(self, bridge: Any) -> None:
        self._bridge = bridge
        self._mailbox = uuid4().hex
        self._callbacks: dict[str, tuple[Callback, FailureEncoder]] = {}
        self._lock = Lock()
        self._threads = self._idle = 0

    def register(self, key: str, callback: Callback, encode: FailureEncoder = _encode_in_python_words) -> None:
        self._callbacks[key] = callback, encode
        self._bridge.register(key, self._mailbox)
        with self._lock:
            if not self._threads:
                self._start_thread()

    def unregister(self, prefix: str) -> None:
        self._bridge.unregister(prefix)
        for key in [each for each in list(self._callbacks) if each.startswith(prefix)]:
            self._callbacks.pop(key, None)

    @property
    def pending(self) -> int:
        """How many requests are being answered."""
        with self._lock:
            return self._threads - self._idle

    @property
    def keys(self) -> frozenset[str]:
        """The keys under which there is a callback."""
        return frozenset(self._callbacks)

    def _start_thread(self) -> None:
        self._threads += 1
        self._idle += 1
        Thread(target=self._serve, name="fuse-index-requests", daemon=True).start()

    def _serve(self) -> None:
        while (request := self._take()) is not None:
            number, key, body = request.split("\0", 2)
            callback, encode = self._callbacks.get(key, _FORGOTTEN)
            try:
                with storage.commits_checked_by(partial(self._check_awaited, number)):
                    reply = callback(body)
                failure = None
            except BaseException as raised:  # whatever it is, the query must be told
                reply, failure = None, encode(body, raised)
            with self._lock:  # before the answer, or the next request may find nobody idle
                self._idle += 1
            self._answer(number, reply, failure)

    def _check_awaited(self, number: str) -> None:
        """Raise InputError if nobody waits for the answer any more: a statement that was cancelled changes nothing."""
        if not self._bridge.awaited(number):
            raise InputError("the statement was cancelled: nothing was changed")

    def _take(self) -> str | None:
        """The next request; None if this thread is to end, since others wait too or the JVM is gone."""
        while True:
            gone, request = False, None
            try:
                request = self._bridge.take(self._mailbox, self.WAIT_MILLISECONDS)
            except (Py4JError, OSError):
                gone = True
            with self._lock:
                if request is not None:
                    self._idle -= 1
                    if not self._idle and self._threads < self.MAX_THREADS:
                        self._start_thread()
                    return str(request)
                if gone or self._idle > 1:
                    self._idle -= 1
                    self._threads -= 1
                    return None

    def _answer(self, number: str, reply: Any, failure: str | None) -> None:
        try:
            self._bridge.answer(number, reply, failure)
        except Exception as unsent:  # of a type that py4j cannot send; or the JVM is gone, and hears of it no more
            _logger.warning("the reply to a request of Spark's could not be sent: %s", unsent)
            with suppress(Py4JError, OSError):
                self._bridge.answer(
                    number, None, encode_failure(TypeError(f"{type(reply).__name__} cannot be sent to the JVM"))
                )
