"""What users open: the names that are promised, what goes in, what comes out, and what is refused how."""

import inspect
import json
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuse_index as fuse
from fuse_index.predicate import Column, Compare, Literal
from fuse_index.table.inspection.inspect import Inspect
from fuse_index.table.maintenance import Maintenance

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("at", pa.timestamp("us", "UTC"))])
ROWS = pa.Table.from_pylist([{"id": n, "name": f"n{n}", "at": n} for n in range(10)], SCHEMA)

PROMISED = [
    "Advice",
    "AlreadyExists",
    "BuildError",
    "Catalog",
    "CodedError",
    "CommitUnknown",
    "Conflict",
    "Context",
    "Corrupt",
    "Counters",
    "DefinitionError",
    "Expired",
    "Explanation",
    "ExportWarning",
    "FormatError",
    "FuseIndexError",
    "Host",
    "IndexFault",
    "InputError",
    "InvalidArgument",
    "LeftOutWarning",
    "NotEmpty",
    "NotFound",
    "OpaqueError",
    "PluginWarning",
    "ReadOnly",
    "Scan",
    "SchemaError",
    "Snapshot",
    "StorageError",
    "SyncResult",
    "Table",
    "Tail",
    "TailFull",
    "Unsupported",
    "Verification",
    "VotesOnly",
    "WhereError",
    "attach",
    "cache_columns",
    "catalog",
    "create_table",
    "indexes_off",
    "listen",
    "open_table",
    "prune_files",
    "read_files",
    "recover_table",
    "scan_polars",
]


def place() -> str:
    return f"memory://front-{uuid4().hex}"


@pytest.fixture
def table() -> fuse.Table:
    return fuse.create_table(place(), SCHEMA)


def rows_of(table: fuse.Table) -> list[dict]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


# --- what is promised
# -------------------------------------------------------------------------------------------------------


def test_the_names_are_those_that_are_promised():
    assert sorted(fuse.__all__) == PROMISED
    assert all(hasattr(fuse, name) for name in PROMISED)


def test_importing_it_imports_neither_spark_nor_a_parser_nor_a_search_engine():
    program = (
        "import fuse_index.plugin, sys; print([n for n in ('pyspark', 'sqlglot', 'tantivy', "
        "'pandas') if n in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_discovering_plugins_imports_no_spark_either():
    program = (
        "import sys, fuse_index; fuse_index.Host.discover(); print([n for n in ('pyspark', "
        "'sqlglot') if n in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_every_error_is_of_one_of_two_families_with_one_base():
    errors = [getattr(fuse, name) for name in PROMISED if isinstance(getattr(fuse, name), type)]
    errors = [error for error in errors if issubclass(error, Exception) and not issubclass(error, Warning)]

    strangers = [error for error in errors if not issubclass(error, fuse.FuseIndexError | fuse.StorageError)]
    assert strangers == [fuse.CodedError]
    assert all(issubclass(error, fuse.CodedError) for error in errors)


# --- schemas
# ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [SCHEMA, "id BIGINT, name STRING, at TIMESTAMP"])
def test_a_table_is_created_with_a_schema_or_with_ddl(schema):
    table = fuse.create_table(place(), schema, cluster_by=["id"], properties={"block_rows": 100})

    assert table.schema == SCHEMA
    assert table.snapshot.cluster_by == ("id",)
    assert dict(table.snapshot.properties) == {"block_rows": 100}


def test_a_schema_of_spark_is_taken_too():
    types = pytest.importorskip("pyspark.sql.types")
    of_spark = types.StructType(
        [
            types.StructField("id", types.LongType(), False),
            types.StructField("tags", types.ArrayType(types.StringType())),
        ]
    )

    table = fuse.create_table(place(), of_spark)

    assert table.schema == pa.schema([pa.field("id", pa.int64(), False), ("tags", pa.list_(pa.string()))])


@pytest.mark.parametrize("schema", [None, 7, {"id": "bigint"}])
def test_what_is_no_schema_is_refused(schema):
    with pytest.raises(fuse.InputError, match="a schema cannot be read from"):
        fuse.create_table(place(), schema)


def test_ddl_with_an_unknown_type_is_refused_with_its_place():
    with pytest.raises(fuse.WhereError, match="no column can have the type 'BIGINTEGER'"):
        fuse.create_table(place(), "id BIGINTEGER")


def test_a_table_is_not_created_twice(table):
    with pytest.raises(fuse.AlreadyExists, match="already is a table"):
        fuse.create_table(table.stored.store.url, SCHEMA)


def test_what_is_no_table_is_not_opened(tmp_path):
    with pytest.raises(fuse.NotFound, match="is no table"):
        fuse.open_table(str(tmp_path))


# --- rows in
# ----------------------------------------------------------------------------------------------------------------


def parquet(folder: Path, *parts: pa.Table) -> list[Path]:
    paths = [folder / f"part-{number}.parquet" for number in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        pq.write_table(part, path)
    return paths


def test_rows_come_as_arrow_pandas_parquet_dicts_or_anything_that_speaks_arrow(tmp_path):
    paths = parquet(tmp_path, ROWS.slice(0, 4), ROWS.slice(4))

    class Streams:
        def __arrow_c_stream__(self, requested_schema=None):
            return ROWS.__arrow_c_stream__(requested_schema)

    given = [
        ROWS,
        ROWS.combine_chunks().to_batches()[0],
        ROWS.to_reader(),
        ROWS.to_pandas(),
        ROWS.to_pylist(),
        Streams(),
        paths,
        [str(path) for path in paths],
        tmp_path,
        str(tmp_path),
    ]
    for data in given:
        table = fuse.create_table(place(), SCHEMA)

        snapshot = table.append(data)

        assert rows_of(table) == ROWS.to_pylist()
        assert snapshot is table.snapshot
        assert snapshot.row_count == 10


def test_columns_are_matched_by_name(table):
    table.append(ROWS.select(["name", "at", "id"]))

    assert rows_of(table) == ROWS.to_pylist()


def test_pandas_columns_take_the_types_of_the_table(table):
    frame = pd.DataFrame(
        {"id": [1.0, np.nan], "name": [None, "b"], "at": pd.to_datetime(["2024-01-01", None], utc=True)}, index=[7, 8]
    )

    table.append(frame)

    assert table.scan().to_arrow().to_pydict() == {
        "id": [1, None],
        "name": [None, "b"],
        "at": [datetime(2024, 1, 1, tzinfo=UTC), None],
    }


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pd.DataFrame({"id": [1.5], "name": ["a"], "at": [None]}), "column 'id' holds values that are no int64"),
        (pd.DataFrame({"id": ["x"], "name": ["a"], "at": [None]}), "column 'id' holds values that are no int64"),
        (pd.DataFrame([[1, 2]], columns=["id", "id"]), "more than one column 'id'"),
        (pd.DataFrame([[1, 2]]), "column 0, whose name is no text"),
    ],
)
def test_pandas_values_that_do_not_fit_are_refused_by_column(table, frame, said):
    with pytest.raises(fuse.InputError, match=said):
        table.append(frame)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", 1.5),
        ("id", Decimal("1.5")),
        ("day", datetime(2024, 1, 1, 5)),
        ("parts", [{"n": 1.5}]),
        ("name", "\ud800"),
        ("at", 5.5),
        ("day", 5.5),
        ("tags", "abc"),
        ("tags", b"other"),
        ("parts", "abc"),
    ],
)
def test_values_of_python_are_not_cut_to_fit(name, value):
    table = fuse.create_table(
        f"memory://{uuid4().hex}",
        "id BIGINT, day DATE, parts ARRAY<STRUCT<n: INT>>, name STRING, at TIMESTAMP, tags ARRAY<STRING>",
    )

    for rows in ([{name: value}], {name: [value]}, pd.DataFrame({name: pd.Series([value], dtype=object)})):
        with pytest.raises(fuse.InputError, match=f"column '{name}' holds values that are no"):
            table.append(rows)
    table.append([{"id": 2.0, "day": datetime(2024, 1, 1), "parts": [{"n": 3.0}]}])
    kept = table.to_arrow().select(["id", "day", "parts"]).to_pylist()
    assert kept == [{"id": 2, "day": date(2024, 1, 1), "parts": [{"n": 3}]}]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (ROWS.append_column("more", ROWS["id"]), "column 'more' that the table lacks"),
        (ROWS.to_pandas().assign(more=1), "column 'more' that the table lacks"),
        (ROWS.set_column(0, "id", pa.array(["x"] * 10)), "column 'id' is int64, and the rows have string"),
    ],
)
def test_rows_that_do_not_fit_are_refused_by_column(table, data, said):
    before = table.snapshot

    with pytest.raises(fuse.SchemaError, match=said):
        table.append(data)

    assert table.snapshot is before
    assert [key.key for key in table.stored.store.list("_b")] == []


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (7, "rows cannot be read from int"),
        (None, "rows cannot be read from NoneType"),
        ("nowhere.parquet", "no file 'nowhere.parquet'"),
        ([1, 2], "rows cannot be read from list"),
        ({"id": 1}, "column 'id' is 1: give a list of its values; one row is a list of one dict"),
        ({"id": [1], "name": []}, "have different numbers of rows"),
        (b"id", "rows cannot be read from bytes: .* a list of dicts, paths of files, or an iterable of such"),
        ((number for number in [1]), "rows cannot be read from generator"),
    ],
)
def test_what_holds_no_rows_is_refused(table, data, said):
    with pytest.raises(fuse.InputError, match=said):
        table.append(data)


def test_a_file_that_is_no_parquet_is_refused_by_name(table, tmp_path):
    (tmp_path / "rows.parquet").write_bytes(b"id,name\n")
    (tmp_path / "empty").mkdir()

    with pytest.raises(fuse.InputError, match=r"rows\.parquet is not readable as parquet"):
        table.append(tmp_path / "rows.parquet")
    with pytest.raises(fuse.InputError, match="no Parquet, CSV, TSV or JSON file"):
        table.append(tmp_path / "empty")


def test_a_reader_that_fails_leaves_nothing_behind(table):
    def batches():
        yield from ROWS.to_batches()
        raise OSError("the line went dead")

    with pytest.raises(OSError, match="the line went dead"):
        table.append(pa.RecordBatchReader.from_batches(SCHEMA, batches()))

    assert table.scan().count() == 0


@pytest.mark.parametrize("nothing", [ROWS.slice(0, 0), [], pd.DataFrame()])
def test_appending_nothing_commits_nothing(table, nothing):
    before = table.snapshot

    assert table.append(nothing) is before


def test_an_application_writes_each_version_once(table):
    table.append(ROWS, application=("loader", 1))
    table.append(ROWS, application=("loader", 1))

    assert table.scan().count() == 10


# --- rows out
# ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def filled() -> fuse.Table:
    table = fuse.create_table(place(), SCHEMA, properties={"block_rows": 4})
    table.append(ROWS)
    return table


def test_a_scan_gives_rows_in_several_forms(filled):
    scan = filled.scan("id >= 3 AND id < 6", columns=["name"])

    assert scan.to_arrow().to_pydict() == {"name": ["n3", "n4", "n5"]}
    assert [row for batch in scan.to_batches() for row in batch.to_pylist()] == [
        {"name": "n3"},
        {"name": "n4"},
        {"name": "n5"},
    ]
    assert scan.to_pandas()["name"].tolist() == ["n3", "n4", "n5"]
    assert scan.count() == 3


def test_a_predicate_may_be_a_tree(filled):
    predicate = Compare("=", Column(("id",), pa.int64()), Literal(3, pa.int64()))

    assert filled.scan(predicate).to_arrow().column("name").to_pylist() == ["n3"]


@pytest.mark.parametrize("limit", [0, 1, 5, 100])
def test_a_limit_is_kept(filled, limit):
    assert filled.scan(limit=limit).to_arrow().num_rows == min(limit, 10)
    assert filled.scan(limit=limit).count() == min(limit, 10)


def test_names_are_matched_without_case_unless_asked_otherwise(filled):
    assert filled.scan("ID = 3", columns=["NAME"]).to_arrow().to_pydict() == {"name": ["n3"]}
    careful = fuse.open_table(filled.stored.store.url, context=fuse.Context(case_sensitive=True))
    with pytest.raises(fuse.SchemaError, match="no column 'NAME'"):
        careful.scan(columns=["NAME"])


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"where": "nmae = 'x'"}, fuse.WhereError, "did you mean .*name"),
        ({"where": "id ="}, fuse.WhereError, "id ="),
        ({"columns": ["nmae"]}, fuse.SchemaError, "did you mean .*name"),
        ({"columns": ["id", "ID"]}, fuse.SchemaError, "column 'id' is asked for twice"),
        ({"columns": "id"}, fuse.InputError, "a list of texts"),
        ({"limit": -1}, fuse.InputError, "limit=-1"),
        ({"where": 7}, fuse.InputError, "where=7"),
    ],
)
def test_a_mistake_in_a_scan_is_said_at_once(filled, arguments, error, said):
    with pytest.raises(error, match=said):
        filled.scan(**arguments)


def test_a_limit_beyond_all_numbers_is_none(filled):
    for limit in (2**63 - 1, 2**63, 10**30):
        assert filled.scan(limit=limit).to_arrow().num_rows == filled.head(limit).num_rows == filled.count()
        assert filled.inspect.snapshots(limit).equals(filled.inspect.snapshots())
        assert filled.inspect.maintenance(limit).equals(filled.inspect.maintenance())


def test_an_explanation_has_the_promised_parts(filled):
    found = filled.explain("id = 3").to_dict()

    assert json.loads(json.dumps(found)) == found
    assert {"snapshot", "segments", "blocks", "zones", "rows", "bytes", "predicates"} <= found.keys()
    assert found["blocks"] == {"total": 3, "kept": 1}
    (vote,) = found["predicates"]
    assert {"leaf", "index", "kind", "blocks_removed", "reason"} <= vote.keys()


def test_where_only_spark_knows_the_answer_a_scan_says_so(filled):
    with pytest.raises(fuse.OpaqueError, match="soundex"):
        filled.scan("soundex(name) = 'A'").to_arrow()


# --- looking, and older states
# ----------------------------------------------------------------------------------------------


def test_history_segments_and_blocks_are_tables(filled):
    filled.append(ROWS)

    history = filled.history()

    assert history.column("operation").to_pylist() == ["append", "append", "create"]
    assert history.column("snapshot")[0].as_py() == filled.snapshot.id
    assert filled.inspect.segments().column("rows").to_pylist() == [10, 10]
    assert filled.inspect.blocks().column("rows").to_pylist() == [4, 4, 2, 4, 4, 2]
    assert filled.inspect.indexes().num_rows == 0


def test_an_older_state_is_read_by_snapshot_tag_or_time(filled):
    first, url = filled.snapshot, filled.stored.store.url
    filled.stored.tag("before")
    filled.append(ROWS)

    for at in (
        first.id,
        "before",
        first.timestamp,
        first.timestamp.isoformat(),
        first.timestamp + timedelta(microseconds=1),
    ):
        assert fuse.open_table(url, at=at).snapshot.id == first.id
    assert fuse.open_table(url).scan().count() == 20


def test_a_handle_at_an_older_state_changes_nothing(filled):
    old = fuse.open_table(filled.stored.store.url, at=filled.snapshot.id)

    for call in (
        lambda: old.append(ROWS),
        lambda: old.create_index("x", "bloom", ["id"]),
        old.maintenance.refresh_index,
        lambda: old.maintenance.rebuild_index("x"),
        lambda: old.drop_index("x"),
    ):
        with pytest.raises(fuse.ReadOnly, match="open the table without at= to change it"):
            call()
    assert old.refresh() is old


def test_a_handle_stays_at_its_snapshot_until_it_is_refreshed(filled):
    other = fuse.open_table(filled.stored.store.url)
    filled.append(ROWS)

    assert other.scan().count() == 10
    assert other.refresh().scan().count() == 20


def test_a_handle_moves_to_what_it_wrote_even_if_others_wrote_in_between(filled):
    other = fuse.open_table(filled.stored.store.url)
    other.append(ROWS)

    snapshot = filled.append(ROWS)

    assert snapshot.row_count == 30
    assert filled.scan().count() == 30


# --- indexes
# ----------------------------------------------------------------------------------------------------------------


def test_indexes_are_listed_with_what_they_cover_and_cost(filled):
    filled.create_index("by_name", "bloom", ["name"], fpp=0.05)
    filled.create_index("later", "bloom", ["id"], build=False)

    by_name, later = filled.inspect.indexes().to_pylist()

    expected = {
        "name": "by_name",
        "kind": "bloom",
        "columns": ["name"],
        "blocks_indexed": 3,
        "blocks": 3,
        "rows_indexed": 10,
        "rows": 10,
        "version": 1,
        "problem": None,
    }
    assert {name: by_name[name] for name in expected} == expected
    assert json.loads(by_name["options"])["fpp"] == 0.05
    assert by_name["payload_bytes"] > 0
    assert by_name["summary_bytes"] > 0
    assert (later["blocks_indexed"], later["payload_bytes"], later["summary_bytes"]) == (0, 0, 0)


def test_one_index_is_shown_with_what_its_kind_says(filled):
    filled.create_index("by_name", "bloom", ["name"])

    shown = filled.inspect.index("by_name")

    assert shown["name"] == "by_name"
    assert shown["contents"]["zones"] == 3


def test_an_index_on_a_term_is_used_where_the_query_says_the_term(filled):
    filled.create_index("by_text", "bloom", ["CAST(at AS STRING)"])

    explanation = filled.explain("CAST(at AS STRING) = '1970-01-01 00:00:00.000007'")

    assert [(vote.index, vote.reason) for vote in explanation.votes] == [("by_text", "USED")]
    assert explanation.blocks.kept == 1
    assert filled.scan("CAST(at AS STRING) = '1970-01-01 00:00:00.000007'").to_arrow().column("id").to_pylist() == [7]


def test_an_index_on_lower_text_finds_text_in_any_case():
    table = fuse.create_table(place(), "email STRING", properties={"block_rows": 10})
    table.create_index("by_email", "bloom", ["lower(email)"])
    table.append(pa.table({"email": [f"User{n * 7 % 40}@Example.com" for n in range(40)]}))

    explanation = table.explain("lower(email) = 'user3@example.com'")

    assert [(vote.index, vote.reason) for vote in explanation.votes] == [("by_email", "USED")]
    assert explanation.blocks.kept == 1
    assert table.scan("lower(email) = 'user3@example.com'").to_arrow().to_pydict() == {"email": ["User3@Example.com"]}


def test_an_index_of_another_session_is_not_asked(filled):
    filled.create_index("by_text", "bloom", ["CAST(at AS STRING)"])
    tokyo = fuse.open_table(filled.stored.store.url, context=fuse.Context("Asia/Tokyo"))

    explanation = tokyo.explain("CAST(at AS STRING) = '1970-01-01 09:00:00.000007'")

    assert [(vote.index, vote.reason) for vote in explanation.votes] == [("by_text", "SESSION_SEMANTICS")]
    assert tokyo.scan("CAST(at AS STRING) = '1970-01-01 09:00:00.000007'").to_arrow().column("id").to_pylist() == [7]


def test_a_table_shows_where_it_is(filled):
    assert repr(filled).startswith("Table('memory://front-")


# --- arguments of types that nothing takes
# ----------------------------------------------------------------------------------

STRANGE = [3, 2.5, True, "nonsense", b"x", [3], ["nonsense"], [], {}, {"x": 1}, object()]
ARGUMENTS: dict = {
    "add_column": ("n", "int"),
    "append": (ROWS,),
    "apply": (ROWS,),
    "delete_keys": ([1],),
    "lookup": ([1],),
    "upsert": (ROWS,),
    "aggregate": (["name"], ["count(*)"]),
    "branch": ("b",),
    "change_type": ("at", "string"),
    "changes": ("first",),
    "clone": ("memory://none",),
    "cluster_by": (["name"],),
    "create_index": ("j", "bloom", ["name"]),
    "delete": ("id = -1",),
    "diff": ("first",),
    "drop_branch": ("b",),
    "drop_column": ("name",),
    "drop_index": ("i",),
    "fast_forward": ("b",),
    "index": ("i",),
    "key_by": (["id"],),
    "merge": ([{"id": 1}], ["id"]),
    "move_column": ("id",),
    "overwrite": (ROWS,),
    "rebuild_index": ("i",),
    "rename_column": ("name", "name"),
    "report": ("page.html",),
    "restore": ("first",),
    "search": ("name", "n1"),
    "set_comment": ("name", "who"),
    "set_default": ("name", "nobody"),
    "set_nullable": ("name", True),
    "tag": ("t",),
    "untag": ("t",),
    "update": ("id = -1", {"name": "'x'"}),
    "verify_index": ("i",),
    "deleting": ("id = -1",),
    "updating": ("id = -1", {"name": "'x'"}),
    "merging": (None, {}),
    "merge_spec": (ROWS.schema, ["id"], (None, "insert", None)),
    "overwriting": ("id = -1",),
    "changing": ("update", None),
}


@pytest.mark.parametrize(
    ("part", "name"),
    [
        (part, name)
        for part, owner in (("", fuse.Table), ("inspect", Inspect), ("maintenance", Maintenance))
        for name, _ in inspect.getmembers(owner, inspect.isfunction)
        if not name.startswith("_")
    ],
)
def test_whatever_is_handed_over_only_our_own_errors_come_back(part, name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # a clone may be made wherever a text points
    table = fuse.create_table(place(), SCHEMA)
    table.append(ROWS)
    table.tag("first")

    def method():
        opened = fuse.open_table(table.stored.store)
        return getattr(getattr(opened, part) if part else opened, name)

    base = ARGUMENTS.get(name, ())
    for number, argument in enumerate(inspect.signature(method()).parameters.values()):
        for strange in STRANGE if argument.kind is not argument.VAR_KEYWORD else ():
            given = (*base[:number], strange, *base[number + 1 :]) if number < len(base) else base
            more = {} if number < len(base) else {argument.name: strange}
            with suppress(fuse.FuseIndexError, fuse.StorageError):
                method()(*given, **more)


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (
            lambda table: table.maintenance.vacuum(retention="soon"),
            "retention='soon' is no duration: say 12h, 7d, 0.5s",
        ),
        (lambda table: table.maintenance.vacuum(retention=7), "retention=7: give a timedelta or a text"),
        (
            lambda table: table.tag("t", expires="soon"),
            "expires='soon' is neither a duration such as 30d nor a time in ISO form",
        ),
        (lambda table: table.changes("t", key=3), r"key=3: give a list of texts such as \['id'\] or None"),
        (lambda table: table.cluster_by([3]), r"columns=\[3\]: give a list of texts"),
        (lambda table: table.inspect.statistics("id"), "columns='id': give a list of texts"),
        (lambda table: table.drop_column("name", "keep"), "indexes='keep': give 'refuse' or 'drop'"),
        (
            lambda table: table.append(ROWS, application="me"),
            "application='me': give a text and a whole number or None",
        ),
        (
            lambda table: fuse.recover_table(table.stored.store.url, ["x"]),
            r"heads=\['x'\]: give a dict of texts or None",
        ),
        (lambda table: fuse.open_table(3), "url=3: give the path or URL of a table"),
        (lambda table: fuse.create_table(place(), SCHEMA, cluster_by="id"), "cluster_by='id': give a list of texts"),
    ],
)
def test_what_is_asked_for_instead_is_said(table, work, said):
    with pytest.raises(fuse.InputError, match=said):
        work(table)


def test_spans_of_time_may_be_text(table):
    assert (
        table.maintenance.vacuum(retention="2h", dry_run=True).files
        == table.maintenance.vacuum(retention=timedelta(hours=2), dry_run=True).files
    )
    assert table.tag("soon", "30d").expires - table.tag("late", timedelta(days=30)).expires < timedelta(minutes=1)
    assert table.tag("then", "2100-01-31T12:00:00Z").expires == datetime(2100, 1, 31, 12, tzinfo=UTC)
