import pickle

import pytest

from fuse_storage import (
    AlreadyExists,
    CommitUnknown,
    Conflict,
    Corrupt,
    Expired,
    FormatError,
    InvalidArgument,
    NotFound,
    SchemaError,
    StorageError,
    Unsupported,
)

SIMPLE = (AlreadyExists, Corrupt, Expired, FormatError, InvalidArgument, NotFound, SchemaError, Unsupported)


@pytest.mark.parametrize("kind", SIMPLE)
def test_every_error_is_a_storage_error_and_prints_its_message(kind: type[StorageError]) -> None:
    error = pickle.loads(pickle.dumps(kind("a table 'x'")))

    assert isinstance(error, StorageError)
    assert str(error) == "a table 'x'"


def test_errors_are_also_what_python_calls_them() -> None:
    assert issubclass(NotFound, KeyError)
    assert issubclass(SchemaError, ValueError)
    assert issubclass(InvalidArgument, ValueError)
    assert issubclass(Corrupt, FormatError)
    assert issubclass(Unsupported, FormatError)


def test_what_an_error_carries_survives_a_process() -> None:
    conflict = pickle.loads(pickle.dumps(Conflict("lost", winner="entry 5")))
    unknown = pickle.loads(pickle.dumps(CommitUnknown("no answer", "c1")))

    assert (str(conflict), conflict.winner) == ("lost", "entry 5")
    assert (str(unknown), unknown.commit_id) == ("no answer", "c1")
