"""What a person is handed looks like something: a line in a REPL, a card in a notebook, and names after a dot."""

from __future__ import annotations

import inspect
import typing
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.display.arrow import arrow_html
from fuse_index.display.block_map import IN_PART, MAX_CELLS, READ, map_blocks
from fuse_index.query.scan import Scan
from fuse_index.table.inspection.inspect import Inspect
from fuse_index.table.maintenance import Maintenance
from fuse_storage import bytes_text, value_grid, value_text

HOSTILE = "<script>alert('x')</script>\"&"
MAX_LINE, MAX_HTML = 400, 100_000

OWNERS = (fuse.Table, Inspect, Maintenance, Scan, fuse.Catalog)
PLAIN = {
    *("None", "int", "str", "bool", "Path", "Any", "Self", "list[str]", "dict[str, str]", "Mapping[str, Any]"),
    *(
        "Iterator[Any]",
        "Iterator[None]",
        "Mapping[str, str]",
        "Iterator[pa.RecordBatch]",
        "Iterator[pa.Table]",
        "list[Identifier]",
        "dict[tuple[str, str], Identifier]",
    ),
}
"""Values of Python, which show themselves."""
OTHERS = {
    *("pandas.DataFrame", "polars.DataFrame", "polars.LazyFrame", "duckdb.DuckDBPyRelation"),
    *("pa.Schema", "pa.RecordBatchReader"),
}
"""Values of other libraries, which show themselves."""
INNER = {"DmlJob", "Engine", "HeapRows | KeyedRows", "MergeSpec"}
"""What engines go on with, from names that are not offered after a dot."""


def returned() -> dict[str, str]:
    """What public functions say that they return: each with one of those that do."""
    found: dict[str, str] = {}
    for owner in OWNERS:
        for name, member in inspect.getmembers(owner):
            function = member.fget if isinstance(member, property) else member
            if not name.startswith("_") and callable(function):
                for each in parts(typing.cast(Any, function).__annotations__.get("return")):
                    found.setdefault(each, f"{owner.__name__}.{name}")
    for name in fuse.__all__:
        if inspect.isfunction(getattr(fuse, name)):
            for each in parts(getattr(fuse, name).__annotations__.get("return")):
                found.setdefault(each, f"fuse.{name}")
    return found


def parts(annotation: object) -> list[str]:
    text = str(annotation)
    return [text] if text in INNER else text.replace("[Table]", "").split(" | ")


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One of each kind of thing that is handed out, by the name of its type, with names that are no friends of HTML."""
    catalog = fuse.catalog(tmp_path_factory.mktemp("shown") / "warehouse", create=True)
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", pa.schema([("id", pa.int64()), (HOSTILE, pa.string())]), ["id"])
    before = table.append([{"id": number, HOSTILE: HOSTILE} for number in range(3)])
    snapshot = table.create_index("by_text", "bloom", [HOSTILE])
    table.append([{"id": 7, HOSTILE: None}])
    scan = table.scan(f"`{HOSTILE}` = '<i>'")
    source = tmp_path_factory.mktemp("source")
    table.scan().to_polars().write_parquet(source / "a.parquet")
    producer = table.producer()
    producer.close()
    attached = fuse.attach(source, tmp_path_factory.mktemp("attached") / "t")
    catalog.index_source(source, "bloom", ["id"])
    return {
        "Catalog": catalog,
        "CatalogTable": catalog.find_table("shop.orders"),
        "Changes": table.changes(before.id),
        "ClusteringReport": table.inspect.clustering(),
        "Explain": table.explain,
        "Explanation": scan.explanation,
        "Inspect": table.inspect,
        "Maintenance": table.maintenance,
        "NewTable": catalog.stage_table("shop.later", "id BIGINT"),
        "Producer": producer,
        "Recovery": fuse.recover_table(table.stored.store.url),
        "Replacement": catalog.stage_table("shop.orders", "id BIGINT", replace=True),
        "Scan": scan,
        "ScanDataset": scan.to_dataset(),
        "Snapshot": snapshot,
        "SnapshotDiff": table.diff(before.id),
        "SyncResult": attached.sync(),
        "Table": table,
        "Tag": table.tag("kept"),
        "Tail": table.tail,
        "VacuumResult": table.maintenance.vacuum(retention=timedelta(days=1)),
        "Verification": table.maintenance.verify_index("by_text"),
        "list[SourceIndex]": catalog.source_indexes()[0],
    }


class Parsed(HTMLParser):
    """The elements and the text of a piece of HTML, which has to close what it opens."""

    VOID = ("br", "hr", "input", "meta")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def check_html(html: str) -> Parsed:
    parsed = Parsed(html)
    assert len(html) < MAX_HTML
    assert not parsed.tags & {"script", "img", "iframe", "link", "object", "embed"}
    assert not [name for name, _ in parsed.attributes if name.startswith("on") or name in ("src", "href")]
    return parsed


def test_whatever_is_returned_is_looked_at(objects: dict[str, Any]) -> None:
    missing = {
        kind: where
        for kind, where in returned().items()
        if kind not in PLAIN | OTHERS | INNER | {"pa.Table"} and kind not in objects
    }

    assert missing == {}


KINDS = sorted(
    {kind for kind in returned() if kind not in PLAIN | OTHERS | INNER | {"pa.Table"}} | {"CatalogTable", "Tail"}
)


@pytest.mark.parametrize("kind", KINDS)
def test_each_is_one_line_in_a_repl_and_a_card_in_a_notebook(kind: str, objects: dict[str, Any]) -> None:
    shown = objects[kind]

    if kind != "Explanation":  # text of some lines, as print has it
        assert "\n" not in repr(shown)
        assert len(repr(shown)) < MAX_LINE
    assert " at 0x" not in repr(shown)
    assert "FileRef" not in repr(shown)
    check_html(shown._repr_html_())


def test_a_table_shows_columns_rows_indexes_and_its_last_commits(objects: dict[str, Any]) -> None:
    parsed = check_html(objects["Table"]._repr_html_())

    for text in ("shop.orders", HOSTILE, "int64", "by_text", "bloom", "append", "create index"):
        assert text in parsed.text


def test_a_table_of_a_warehouse_is_shown_by_its_name(objects: dict[str, Any]) -> None:
    assert repr(objects["Table"]).startswith("Table('shop.orders', ")


def test_an_explanation_draws_its_blocks() -> None:
    table = fuse.create_table("memory://shown-blocks", "id BIGINT, city STRING", properties={"block_rows": 2})
    table.append([{"id": number, "city": f"c{number % 2 * 9}"} for number in range(12)])
    table.create_index("by_city", "bloom", ["city"])
    explanation = table.explain("id < 4 AND city = 'c5'")
    parsed = check_html(explanation._repr_html_())

    assert explanation.map is not None
    assert explanation.map.counts() == [0, 0, 4, 2]
    assert explanation.map.takers == ("min_max: id < 4", "by_city: city = 'c5'")
    assert "block 5: left out by min_max: id < 4" in parsed.text
    assert "block 0: left out by by_city: city = 'c5'" in parsed.text
    assert "4 left out by min_max: id < 4" in parsed.text


def test_a_map_says_who_took_the_last_of_a_block() -> None:
    import numpy as np

    touched = [("a", np.array([0, 1])), ("b", np.array([1, 2]))]
    shown = map_blocks(5, touched, np.array([2, 4]), np.array([True, False]))

    assert shown.fates.tolist() == [2, 3, IN_PART, 4, READ]
    assert shown.takers == ("a", "b", "deletions: no row is left")


def test_a_map_of_many_blocks_is_as_small_as_that_of_some() -> None:
    import numpy as np

    touched = [(f"index {number}", np.arange(number, 100_000, 7)) for number in range(7)]
    svg = map_blocks(100_000, touched, np.array([5, 77_777]), np.array([False, True])).to_svg()

    assert svg.count("<title>") == MAX_CELLS
    assert len(svg) < MAX_HTML


def test_a_table_of_many_columns_and_indexes_has_a_bounded_card() -> None:
    columns = pa.schema([(f"column_{number}" * 20, pa.int64()) for number in range(300)])
    table = fuse.create_table("memory://shown-wide", columns)
    for number in range(30):
        table.create_index(f"index_{number}", "bloom", [columns.names[number]])
    parsed = check_html(table._repr_html_())

    assert "280 more" in parsed.text
    assert len(repr(table)) < MAX_LINE


def test_rows_of_arrow_are_a_bounded_grid() -> None:
    rows = pa.table({HOSTILE: [HOSTILE * 50] * 1000, "n": [None, *range(999)], "l": [list(range(100))] * 1000})
    parsed = check_html(arrow_html(rows))

    assert "1,000 rows" in parsed.text
    assert "NULL" in parsed.text
    assert "980 more rows" in parsed.text


def test_ipython_shows_rows_of_arrow_as_a_grid_unless_it_was_told_otherwise() -> None:
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    shell = interactive.InteractiveShell.instance()
    table = fuse.create_table("memory://shown-in-ipython", "id BIGINT")
    table.append([{"id": 4711}])
    formatter = shell.display_formatter.formatters["text/html"]
    try:
        assert "4,711" in formatter(table.to_arrow())
        formatter.for_type(pa.Table, lambda rows: "mine")
        fuse.open_table("memory://shown-in-ipython")
        assert formatter(table.to_arrow()) == "mine"
    finally:
        interactive.InteractiveShell.clear_instance()


def test_a_notebook_shows_the_sentence_of_an_error_and_the_line_that_led_to_it() -> None:
    with pytest.raises(fuse.NotFound) as raised:
        fuse.open_table("memory://shown-nowhere")
    frames, said = raised.value._render_traceback_()

    assert said == "fuse_storage.errors.NotFound: memory://shown-nowhere is no table: there is nothing; create it first"
    assert 'fuse.open_table("memory://shown-nowhere")' in frames
    assert frames.count('File "') == 1


def test_names_after_a_dot_are_those_that_people_use(objects: dict[str, Any]) -> None:
    offered = {name for name in dir(objects["Snapshot"]) if not name.startswith("_")}

    assert {"id", "version", "operation", "row_count", "schema", "timestamp"} <= offered
    assert not offered & {"encode", "decode", "base", "hot_rows", "schemas", "check_rows", "next_row_id", "is_cut"}
    assert "row_store" not in dir(objects["Table"])
    assert "deleting" not in dir(objects["Table"])
    assert {name for name in dir(fuse) if not name.startswith("_")} == set(fuse.__all__)


def test_bytes_and_values_are_text_of_bounded_length() -> None:
    assert [bytes_text(count) for count in (0, 999, 1_000, 999_999, 10**16)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "1.0 MB",
        "10.0 PB",
    ]
    assert len(value_text("x" * 10_000)) == len(value_text(["x" * 100] * 1000)) == 160
    assert value_grid(["a"], [], 0).count("<th>") == 1
