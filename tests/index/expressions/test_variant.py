"""The variant binary encoding: bytes that Spark and Iceberg wrote, and ours, which Spark's tests compare."""

from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuse_index.errors import InputError
from fuse_index.expressions.errors import NotReproducible
from fuse_index.expressions.variant import columns
from fuse_index.expressions.variant.decode import MISSING, Exotic, Float32, decode, decode_at
from fuse_index.expressions.variant.encode import NoVariant, encode, encode_json
from fuse_index.expressions.variant.get import variant_get, variant_steps
from fuse_index.expressions.variant.text import variant_json
from fuse_index.predicate import Context
from fuse_storage import VARIANT, MalformedVariant

EMPTY = "010000"
GOLDEN: dict[str, tuple[str, str, Any]] = {
    "null": ("00", EMPTY, None),
    "true": ("04", EMPTY, True),
    "int8": ("0c2a", EMPTY, 42),
    "int16": ("10d204", EMPTY, 1234),
    "int32": ("1440e20100", EMPTY, 123456),
    "int64": ("181581e97df4102211", EMPTY, 1234567890123456789),
    "decimal4": ("2002d2040000", EMPTY, Decimal("12.34")),
    "date": ("2ce24e0000", EMPTY, date(2025, 4, 16)),
    "short text": ("096869", EMPTY, "hi"),
    "empty object": ("020000", EMPTY, {}),
    "empty array": ("030000", EMPTY, []),
}
TREES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False)
    | st.decimals(-(10**12), 10**12, places=5)
    | st.text(st.characters(exclude_categories=("Cs",)))
    | st.binary(max_size=80)
    | st.dates()
    | st.datetimes()
    | st.datetimes(timezones=st.just(UTC)),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(st.characters(exclude_categories=("Cs",))), inner)
    ),
    max_leaves=20,
)


@pytest.mark.parametrize("name", GOLDEN)
def test_bytes_of_others_are_read_and_written_alike(name: str) -> None:
    value, metadata, tree = GOLDEN[name]
    assert decode(bytes.fromhex(value), bytes.fromhex(metadata)) == tree
    assert encode(tree) == (bytes.fromhex(value), bytes.fromhex(metadata))


@given(TREES)
def test_what_is_written_is_read(tree: Any) -> None:
    found = decode(*encode(tree))
    assert found == tree
    if isinstance(found, dict):
        assert list(found) == sorted(found, key=lambda name: name.encode("utf-16-be"))


def test_names_are_in_the_order_of_java() -> None:
    """The bytes are Spark's: its lookup halves what is sorted by UTF-16, where 😀 is before U+FFEE."""
    assert list(decode(*encode({"\uffee": 1, "😀": 2, "a": 3}))) == ["a", "😀", "\uffee"]


@given(st.binary(max_size=40), st.binary(max_size=12))
def test_bytes_of_nobody_are_refused_in_order(value: bytes, metadata: bytes) -> None:
    with suppress(MalformedVariant, NotReproducible):
        decode(value, b"\x01" + metadata)


def test_a_count_that_lies_is_not_believed() -> None:
    for value in ("13ffffffff00", "42ffffffff00", "40ffffffff"):
        with pytest.raises(MalformedVariant):
            decode(bytes.fromhex(value), bytes.fromhex(EMPTY))
    with pytest.raises(MalformedVariant, match="metadata"):
        decode(b"\x00", b"\xc1\xff\xff\xff\xff")


def test_large_objects_and_arrays_have_wide_counts_and_offsets() -> None:
    for tree in ({f"n{number:05}": "x" * 200 for number in range(700)}, ["y" * 300] * 300, [[0] * 70_000]):
        assert decode(*encode(tree)) == tree


def test_types_that_spark_lacks_are_shown() -> None:
    uuid = bytes.fromhex("50f24f9b6481fa49d1b74e8c09a6e31c56")
    found = decode(uuid, bytes.fromhex(EMPTY))
    assert isinstance(found, Exotic)
    assert variant_json(found) == '"f24f9b64-81fa-49d1-b74e-8c09a6e31c56"'
    with pytest.raises(NotReproducible):
        get([uuid], "$", pa.string())


def get(values: list[bytes], path: str, target: pa.DataType, strict: bool = False) -> list[Any]:
    rows = [{"value": value, "metadata": bytes.fromhex(EMPTY)} for value in values]
    made = pa.ExtensionArray.from_storage(VARIANT, pa.array(rows, VARIANT.storage_type))
    found: list[Any] = variant_get(made, path, target, strict, Context("UTC")).to_pylist()
    return found


def test_json_is_encoded_as_spark_parses_it() -> None:
    assert decode(*encode_json("1.50")) == Decimal("1.50")
    assert isinstance(decode(*encode_json("1e3")), float)
    assert isinstance(decode(*encode_json("0." + "1" * 39)), float)
    assert decode(*encode_json("1" * 30)) == int("1" * 30)
    assert (
        variant_json(decode(*encode_json('{"b":1.50,"a":[-0,-0.0,100,1e400]}'))) == '{"a":[0,0,100,"Infinity"],"b":1.5}'
    )
    for text in ('{"a":1,"a":2}', "{'a':1}", "NaN", "", "01", '"\\ud800"', "[" * 2000 + "]" * 2000):
        with pytest.raises(NoVariant):
            encode_json(text)
    with pytest.raises(InputError, match="column 'v' is VARIANT, and row 1 has"):
        columns.encode_texts(pa.array(["1", "x"]), "v")


def test_a_value_lies_at_a_path() -> None:
    value, metadata = encode({"a": {"b": [1, {"c": None}]}})
    assert decode_at(value, metadata, ["a", "b", 0]) == 1
    assert decode_at(value, metadata, ["a", "b", 1, "c"]) is None
    for steps in (["b"], ["a", 0], ["a", "b", 2], ["a", "b", "x"]):
        assert decode_at(value, metadata, steps) is MISSING
    assert variant_steps("$['x y'][3].z") == ("x y", 3, "z")
    for path in ("a", "$.*", "$..a", "$['a'", "$[*]"):
        with pytest.raises(NotReproducible):
            variant_steps(path)


def test_documents_of_an_index_tell_what_json_lacks() -> None:
    trees = [{"a": 1}, {"a": date(2024, 1, 1)}, 1.5, float("inf"), Float32(1.5), b"x", None, [datetime(2024, 1, 1)]]
    values = columns.encode_values([each if each is not None else "null" for each in trees], "v")
    texts, beyond = columns.variant_documents(values)
    assert beyond.tolist() == [False, True, False, True, True, True, False, True]
    assert texts.to_pylist()[:3] == ['{"a":1}', '{"a":"2024-01-01"}', "1.5"]


@pytest.mark.parametrize("seconds", ["9000000000000", "-900000000000.5"])
def test_an_instant_that_python_cannot_hold_is_left_to_spark(seconds: str) -> None:
    with pytest.raises(NotReproducible, match="beyond those of Python"):
        variant_get(
            columns.encode_texts(pa.array([seconds]), "v"), "$", pa.timestamp("us", "UTC"), False, Context("UTC")
        )
