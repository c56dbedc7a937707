"""What tasks answer: values and errors arrive as they were, and nothing that arrives is run."""

import json
import pickle
import sys
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.errors import PythonException

from fuse_index.errors import FuseIndexError, IndexFault, WhereError
from fuse_index.spark.answers import (
    Sealed,
    TaskRefusal,
    capture_answer,
    decode_answer,
    refusals_decoded,
    refusals_encoded,
)
from fuse_index.spark.source.options import OptionError
from fuse_storage import Advice, CommitUnknown, Conflict, NotFound, Operation, SchemaError, StorageError, TableUrl


def sent(work: Any, trusted: bool = False) -> Any:
    """What arrives of an answer."""
    batch = capture_answer(work)
    return decode_answer(batch["answer"][0].as_py(), batch["attachments"][0].as_py(), trusted)


def raised(error: Exception) -> Exception:
    def fail() -> None:
        raise error

    with pytest.raises(Exception, match=r"(?s).*") as caught:
        sent(fail)
    return caught.value


@pytest.mark.parametrize(
    "value",
    [None, True, 7, -1.5, float("inf"), "täg\0", [], [1, [None]], {}, {"table": 0, "object": {"sealed": 1}}],
    ids=repr,
)
def test_json_arrives_as_it_was(value: Any) -> None:
    assert sent(lambda: value) == value


def test_tables_and_tuples_arrive() -> None:
    rows = pa.table({"id": [1, 2], "at": pa.array([0, None], pa.timestamp("us", "UTC"))})

    first, (second, number) = sent(lambda: (rows, (rows.slice(1), 5)))
    assert (first, second, number) == (rows, rows.slice(1), 5)
    assert sent(lambda: rows.slice(0, 0)).schema == rows.schema


def test_a_value_of_another_type_is_no_answer() -> None:
    with pytest.raises(TypeError, match="set is no answer"):
        sent(lambda: {1})


@pytest.mark.every_spark
@pytest.mark.parametrize(
    "error",
    [
        NotFound("no table"),
        Conflict("lost", winner="entry 5"),
        Conflict("lost"),
        CommitUnknown("no answer", "c1"),
        WhereError("line 1"),
        OptionError("no option"),
        IndexFault("by_a", "bloom", "ERROR", "why"),
        StorageError(),
        NotFound(TableUrl("/t") + " has no key: " + Advice.call("key_by", ["id", ...]) + Operation.say("x", y=True)),
        Conflict(TableUrl("/t") + ": lost", "entry 5"),
    ],
    ids=repr,
)
def test_our_errors_arrive_as_they_were(error: Exception) -> None:
    again = raised(error)

    assert (type(again), again.args, str(again), vars(again)) == (
        type(error),
        error.args,
        str(error),
        vars(error),
    )


def test_an_error_of_another_module_arrives_as_the_nearest_of_ours() -> None:
    class Stranger(WhereError):
        def __init__(self, one: int, two: int) -> None:
            super().__init__(f"{one} and {two}")

        def __reduce__(self) -> Any:
            return Stranger, (1, 2)

    assert type(raised(Stranger(1, 2))) in (WhereError, FuseIndexError)


@pytest.mark.every_spark
def test_other_errors_fail_the_task() -> None:
    with pytest.raises(ZeroDivisionError):
        capture_answer(lambda: 1 // 0)


@pytest.mark.every_spark
def test_an_error_arrives_out_of_the_text_of_a_failed_task() -> None:
    told = SchemaError(TableUrl("/t") + " lacks {a}\n" + Advice.call("add_column"))
    with pytest.raises(TaskRefusal) as failed, refusals_encoded():
        raise told
    with pytest.raises(SchemaError) as arrived, refusals_decoded():
        raise PythonException(f"Traceback …\nfuse_index.spark.answers.TaskRefusal: {failed.value}\n\tat a.b.C(D.scala)")

    assert (arrived.value.args, arrived.value.advice) == (told.args, told.advice)
    with pytest.raises(PythonException, match="division"), refusals_decoded():
        raise PythonException("ZeroDivisionError: division by zero")
    with pytest.raises(ZeroDivisionError), refusals_encoded():
        raise ZeroDivisionError


@pytest.mark.parametrize("code", ["system", "Exception", "KeyError", "object", [], "type"], ids=repr)
def test_an_answer_names_no_class_but_our_errors(code: Any) -> None:
    answer = json.dumps({"code": code, "arguments": ["touch /tmp/x"], "message": ["m"]})

    with pytest.raises(FuseIndexError, match="touch"):
        decode_answer(answer, [], False)


class Bomb:
    """What runs a command wherever it is unpickled."""

    exploded = 0

    def __reduce__(self) -> Any:
        return setattr, (Bomb, "exploded", 1)


def test_a_sealed_value_is_handed_on_and_not_opened_by_a_client() -> None:
    Bomb.exploded = 0
    batch = capture_answer(lambda: Sealed("plan"))
    (data,) = batch["attachments"][0].as_py()
    assert pickle.loads(data) == "plan"

    sealed = decode_answer(batch["answer"][0].as_py(), [pickle.dumps(Bomb())], trusted=False)
    with pytest.raises(FuseIndexError, match="hands on"):
        sealed.open()
    travelling = cloudpickle.dumps(sealed)
    assert not Bomb.exploded

    arrived = pickle.loads(travelling)  # in the next task
    assert not Bomb.exploded
    arrived.open()
    assert Bomb.exploded


def test_a_sealed_value_that_was_changed_where_it_is_open_travels_as_it_is_then() -> None:
    sealed = pickle.loads(pickle.dumps(Sealed([1])))
    sealed.open().append(2)

    assert pickle.loads(pickle.dumps(sealed)).open() == [1, 2]
    assert sent(lambda: [sealed], trusted=True)[0].open() == [1, 2]


def test_nothing_is_unpickled_where_it_arrives() -> None:
    found: list[str] = []
    watching = [True]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event == "pickle.find_class":
            found.append(str(arguments))

    sys.addaudithook(hook)  # there is no taking it away
    sent(lambda: [Sealed(Bomb()), pa.table({"a": [1]}), {"x": 1}])
    raised(Conflict("lost", "entry"))
    watching.clear()

    assert not found
