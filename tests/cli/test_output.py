import json
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from fuse_index.cli import output


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (1.5, 1.5),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (Decimal("1.10"), "1.10"),
        (date(2026, 1, 31), "2026-01-31"),
        (datetime(2026, 1, 31, tzinfo=UTC), "2026-01-31T00:00:00+00:00"),
        (b"\x00\xff", "00ff"),
        (np.int64(7), 7),
        ({"a": (1, None)}, {"a": [1, None]}),
        (pa.schema([("a", pa.int32())]), {"a": "int32"}),
    ],
)
def test_every_value_has_a_form_in_json(value, expected):
    assert output.to_json_value(value) == expected


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (2_500_000, "2.5 MB"), (5e15, "5000.0 TB")]
)
def test_sizes_read_as_people_say_them(count, text):
    assert output.format_bytes(int(count)) == text


def test_rows_as_json_lines_are_one_object_each(capsys):
    output.print_json_lines(pa.table({"a": [1, None], "b": ["ü", "x"]}))

    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"a": 1, "b": "ü"},
        {"a": None, "b": "x"},
    ]


def test_text_that_looks_like_markup_is_printed_as_it_is(capsys):
    output.print_rows(pa.table({"[red]": ["[bold]x[/bold]"]}))

    printed = capsys.readouterr().out
    assert "[red]" in printed
    assert "[bold]x[/bold]" in printed


def test_null_is_told_from_the_text_null(capsys):
    output.print_json({"a": None, "b": "NULL"})

    assert json.loads(capsys.readouterr().out) == {"a": None, "b": "NULL"}


def test_records_within_a_record_have_a_line_each(capsys):
    output.print_record({"contents": {"rows": 3, "paths": {"$.a": {"types": ["string", "float"], "presence": 0.5}}}})

    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["contents  rows: 3", "paths", "$.a: types string, float; presence 0.5"]
