"""A process in which a kind builds as it would on an executor: other hashes of text, no state of this one.

There is one for all tests of this process. It starts when it is first needed, and ends with it.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
from functools import cache
from typing import IO, Any, cast

_SEED = "20260101"
_TIME_ZONE = "XYZ-05:45"
"""In the form that needs no list of time zones: the clock on its wall is ahead of most."""


def build_elsewhere(kind: Any, blocks: list[tuple[Any, Any]], options: Any) -> Any:
    """The pack of these blocks, each the arguments ``rows`` and ``zones`` of ``build``; or raise what it raised."""
    worker = _worker()
    pickle.dump(pickle.dumps((type(kind), blocks, options)), cast(IO[bytes], worker.stdin))
    cast(IO[bytes], worker.stdin).flush()
    done, answer = pickle.load(cast(IO[bytes], worker.stdout))
    assert done, f"{kind.name} cannot build in another process: {answer.decode(errors='replace')}"
    return pickle.loads(answer)


@cache
def _worker() -> subprocess.Popen[bytes]:
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    worker = subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import answer_builds; answer_builds()"],
        env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": _SEED, "TZ": _TIME_ZONE},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    atexit.register(worker.communicate)  # it ends where there is nothing more to read
    return worker


def answer_builds() -> None:
    """Build what the other process asks for, until it ends."""
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a kind prints is no answer
    while True:
        try:
            question = pickle.load(questions)
        except EOFError:
            return
        try:
            kind, blocks, options = pickle.loads(question)
            made = kind()
            built = [made.build(rows, zones, options) for rows, zones in reversed(blocks)]  # any order is right
            done, answer = True, pickle.dumps(made.pack(built[::-1]))
        except Exception as error:
            done, answer = False, f"{type(error).__name__}: {error}".encode()
        pickle.dump((done, answer), answers)
        answers.flush()
