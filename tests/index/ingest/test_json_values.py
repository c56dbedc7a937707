"""Objects of JSON are maps, and texts days, where a table has such columns; numbers keep their digits."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import fuse_index as fuse
from fuse_index.errors import InputError
from fuse_storage import SchemaError

NESTED = "id BIGINT, n ARRAY<STRUCT<k: MAP<STRING, STRUCT<d: DATE, w: MAP<BIGINT, ARRAY<INT>>>>, z: INT>>"
CASES: dict[str, tuple[str, str, list[dict[str, Any]]]] = {
    "texts": (
        "id BIGINT, m MAP<STRING, INT>",
        '{"id": 1, "m": {"a": 1, "é\\n": -5}}\n{"id": 2, "m": null}\n\n{"m": {}}\n{"id": 4}\n',
        [{"id": 1, "m": [("a", 1), ("é\n", -5)]}, {"id": 2, "m": None}, {"id": None, "m": []}, {"id": 4, "m": None}],
    ),
    "an array of documents": (
        "id BIGINT, m MAP<STRING, INT>",
        '[{"id": 1, "m": {"a": 1}},\n {"m": {"b": null}}]',
        [{"id": 1, "m": [("a", 1)]}, {"id": None, "m": [("b", None)]}],
    ),
    "entries": (
        "m MAP<INT, INT>",
        '{"m": [{"key": "1", "value": 2}]}\n',
        [{"m": [(1, 2)]}],
    ),
    "other keys, and digits": (
        "m MAP<DATE, DECIMAL(30, 2)>, f MAP<BOOLEAN, DOUBLE>",
        '{"m": {"2020-01-01": 12345678901234567890.25}, "f": {"true": 1e300, "false": -0.5}}\n',
        [{"m": [(date(2020, 1, 1), Decimal("12345678901234567890.25"))], "f": [(True, 1e300), (False, -0.5)]}],
    ),
    "within more": (
        NESTED,
        '{"id": 1, "n": [{"k": {"a": {"d": "2020-02-02", "w": {"5": [1, null]}}, "b": null}}, null, {"z": 4}]}\n'
        '{"id": 2, "n": []}\n{"id": 3}\n',
        [
            {
                "id": 1,
                "n": [
                    {"k": [("a", {"d": date(2020, 2, 2), "w": [(5, [1, None])]}), ("b", None)], "z": None},
                    None,
                    {"k": None, "z": 4},
                ],
            },
            {"id": 2, "n": []},
            {"id": 3, "n": None},
        ],
    ),
    "days": ("d DATE, s STRUCT<d: DATE>", '{"d": "2020-01-01"}\n', [{"d": date(2020, 1, 1), "s": None}]),
}


@pytest.mark.parametrize("case", CASES)
def test_columns_of_a_table_are_read(tmp_path: Path, case: str) -> None:
    columns, text, rows = CASES[case]
    table = fuse.create_table(tmp_path / "t", columns)
    (tmp_path / "rows.json").write_text(text)
    table.append(fuse.read_files(tmp_path / "rows.json", schema=table.schema))
    assert table.to_arrow().to_pylist() == rows


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"m": {"1": 1, "1": 2}}', r"an object has a name twice, and is to be a map: \['1', '1'\]"),
        ('{"m": {"x": 1}}', "column 'm': Failed to parse string: 'x' as a scalar of type int32"),
        ('{"m": {"1": "x"}}', r"Column\(/m/\[\]/value\) changed from number to string"),
        ('{"m": 5}', r"Column\(/m\) changed from array to number"),
        ('{"m": {"1": 1}}\n\n{"m": {"1": 1}', "line 3: Expecting ',' delimiter at character 15"),
        ('{"m": {"1": 1}}\n{"m": {"1": 1, "1": 2}}', "line 2: an object has a name twice"),
        ('{"d": "2020-13-01"}', "column 'd': Failed to parse string: '2020-13-01'"),
        ('{"s": {"a": {"w": 1, "more": 2}}}', "column 's.value' has in the rows a field 'more'"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(tmp_path: Path, text: str, told: str) -> None:
    table = fuse.create_table(tmp_path / "t", "m MAP<INT, INT>, d DATE, s MAP<STRING, STRUCT<w: INT>>")
    (tmp_path / "rows.jsonl").write_text(text + "\n")
    with pytest.raises((InputError, SchemaError), match=told):
        table.append(fuse.read_files(tmp_path / "rows.jsonl", schema=table.schema))
    assert table.count() == 0
