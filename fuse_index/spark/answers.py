"""What tasks answer to the process that started them: JSON, Arrow tables, and values that it only hands on.

A Connect client has no reason to trust its server with more than answers, and unpickling would let the server run
whatever it likes there. So plans and what tasks wrote go through a client sealed: it hands them to the next task, which
may open them, being where they came from.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.errors import PythonException

from fuse_index.errors import FuseIndexError
from fuse_index.spark.workers import explain_missing_package
from fuse_storage import CodedError, Sentence

_T_co = TypeVar("_T_co", covariant=True)

ANSWER_SCHEMA = "answer string, attachments array<binary>"
_REFUSAL_MARK = "fuse_index refusal: "
"""What an encoded error follows in the text of a failed task."""


class Sealed(Generic[_T_co]):
    """A value on its way through a process that does not look into it. Picklable; what arrives can be opened."""

    def __init__(self, value: _T_co) -> None:
        self._value, self._data, self._openable = value, b"", True

    @classmethod
    def from_bytes(cls, data: bytes, openable: bool = True) -> Sealed[_T_co]:
        """A value as ``to_bytes`` encodes it. Only of our own processes it may be openable."""
        sealed: Sealed[_T_co] = cls.__new__(cls)
        sealed._data, sealed._openable = data, openable
        return sealed

    def to_bytes(self) -> bytes:
        return self._data or cloudpickle.dumps(self._value)  # type: ignore[no-untyped-call]

    def open(self) -> _T_co:
        """The value.

        Raises FuseIndexError on a Connect client, where it came from the server, and where a package is missing.
        """
        if not self._openable:
            raise FuseIndexError("a Connect client hands on what the server's tasks made, and does not open it")
        if self._data:
            try:
                self._value, self._data = pickle.loads(self._data), b""
            except ImportError as problem:
                raise FuseIndexError(explain_missing_package(problem)) from problem
        return self._value

    def __reduce__(self) -> tuple[Any, ...]:
        return Sealed.from_bytes, (self.to_bytes(),)


def capture_answer(work: Callable[[], Any]) -> pa.RecordBatch:
    """Run ``work`` in a task and encode, for ANSWER_SCHEMA, what it returns, or the error of ours that it raises.

    It may return what JSON has, tuples (which arrive as lists), Arrow tables and ``Sealed`` values.
    """
    attachments: list[bytes] = []
    try:
        answer: Any = {"value": _encode(work(), attachments)}
    except CodedError as refusal:
        answer = _encode_error(refusal)
    return pa.record_batch(
        {"answer": pa.array([json.dumps(answer)]), "attachments": pa.array([attachments], pa.list_(pa.binary()))}
    )


def decode_answer(answer: str, attachments: Sequence[bytes], trusted: bool) -> Any:
    """What ``capture_answer`` encoded. Raises the error of ours that it was.

    ``trusted``: whether sealed values may be opened here.
    """
    decoded = json.loads(answer)
    if "code" in decoded:
        raise _decode_error(decoded)
    return _decode(decoded["value"], attachments, trusted)


class TaskRefusal(Exception):
    """An error of ours on its way out of a task that gives rows: its text is all that Spark hands on."""


@contextmanager
def refusals_encoded() -> Iterator[None]:
    """In a task, raise errors of ours such that ``refusals_decoded`` knows them again."""
    try:
        yield
    except CodedError as refusal:
        raise TaskRefusal(_REFUSAL_MARK + json.dumps(_encode_error(refusal))) from None


@contextmanager
def refusals_decoded() -> Iterator[None]:
    """Raise what ``refusals_encoded`` encoded in a task of the job, and other failures as they are."""
    try:
        yield
    except PythonException as failure:
        encoded = str(failure).partition(_REFUSAL_MARK)[2]
        if not encoded:
            raise
        raise _decode_error(json.JSONDecoder().raw_decode(encoded)[0]) from failure


def _encode(value: Any, attachments: list[bytes]) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [_encode(each, attachments) for each in value]
        case dict():
            return {"object": {key: _encode(each, attachments) for key, each in value.items()}}
        case pa.Table():
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, value.schema) as writer:
                writer.write_table(value)
            attachments.append(sink.getvalue().to_pybytes())
            return {"table": len(attachments) - 1}
        case Sealed():
            attachments.append(value.to_bytes())
            return {"sealed": len(attachments) - 1}
    raise TypeError(f"{type(value).__name__} is no answer of a task: make it JSON, an Arrow table or Sealed")


def _decode(value: Any, attachments: Sequence[bytes], trusted: bool) -> Any:
    match value:
        case list():
            return [_decode(each, attachments, trusted) for each in value]
        case {"object": members}:
            return {key: _decode(each, attachments, trusted) for key, each in members.items()}
        case {"table": number}:
            with pa.ipc.open_stream(bytes(attachments[number])) as stream:
                rows = stream.read_all()
            rows.validate(full=True)
            return rows
        case {"sealed": number}:
            return Sealed.from_bytes(bytes(attachments[number]), trusted)
    return value


def _encode_error(refusal: CodedError) -> dict[str, Any]:
    own = refusal.__reduce__()[1] if type(refusal) in _ours(CodedError) else (refusal.sentence,)
    arguments = [_encode_argument(each) for each in own]
    return {"code": refusal.code, "arguments": arguments, "message": refusal.sentence.to_json()}


def _encode_argument(value: Any) -> Any:
    if isinstance(value, Sentence):
        return {"sentence": value.to_json()}
    return value if isinstance(value, str | None) else str(value)


def _decode_argument(value: Any) -> Any:
    return Sentence.from_json(value["sentence"]) if isinstance(value, dict) else value


def _decode_error(encoded: dict[str, Any]) -> Exception:
    """The error of the class that has this code; of no class but ours, whoever answered."""
    kind = {kind.code: kind for kind in _ours(CodedError)}.get(str(encoded["code"]), FuseIndexError)
    try:
        return kind(*map(_decode_argument, encoded["arguments"]))
    except TypeError:  # a subclass of another module, with arguments of its own
        return FuseIndexError(Sentence.from_json(encoded["message"]))


def _ours(base: type[CodedError]) -> Iterator[type[CodedError]]:
    if base.__module__.startswith(("fuse_index.", "fuse_storage.")):
        if "code" in vars(base):
            yield base
        for kind in base.__subclasses__():
            yield from _ours(kind)
