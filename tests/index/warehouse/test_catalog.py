"""Tables by name: made, found, renamed, dropped, brought back, by one session and by many."""

import pickle
import shutil
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index import AlreadyExists, Catalog, Conflict, InvalidArgument, NotFound
from fuse_storage import MeteredStore, ReadOnlyStore, open_store

SCHEMA = "id BIGINT, name STRING"


@pytest.fixture
def place() -> str:
    return f"memory://{uuid.uuid4().hex}"


@pytest.fixture
def catalog(place: str) -> Catalog:
    made = fuse.catalog(place, create=True)
    made.create_namespace("sales")
    made.create_namespace("sales.eu")
    return made


def another(catalog: Catalog) -> Catalog:
    """What a session sees that begins now."""
    return fuse.catalog(catalog.url)


def fill(table: fuse.Table, *ids: int) -> fuse.Table:
    table.append(pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{each}" for each in ids]}))
    return table


def ids(table: fuse.Table) -> list[int]:
    return table.scan().to_arrow().column("id").to_pylist()


def test_a_table_is_made_and_loaded_by_its_name(catalog: Catalog) -> None:
    fill(catalog.create_table("sales.orders", SCHEMA, properties={"block_rows": 10}), 1, 2)

    loaded = another(catalog).load_table(("sales", "orders"))

    assert ids(loaded) == [1, 2]
    assert loaded.snapshot.properties == {"block_rows": 10}
    assert catalog.list_tables("sales") == [("sales", "orders")]
    assert catalog.list_tables() == []
    assert catalog.table_exists("sales.orders")
    assert not catalog.table_exists("sales.orderz")
    assert ids(fuse.open_table(catalog.table_url("sales.orders"))) == [1, 2]


def test_a_table_may_be_in_no_namespace(catalog: Catalog) -> None:
    catalog.create_table("events", SCHEMA)

    assert catalog.list_tables() == [("events",)]
    assert ids(catalog.load_table("events")) == []


def test_an_older_state_and_a_branch_are_loaded_by_name(catalog: Catalog) -> None:
    table = fill(catalog.create_table("t", SCHEMA), 1)
    table.tag("first")
    fill(table.branch("side"), 3)
    fill(table, 2)

    assert ids(catalog.load_table("t", at="first")) == [1]
    assert ids(catalog.load_table("t", branch="side")) == [1, 3]
    with pytest.raises(fuse.ReadOnly):
        fill(catalog.load_table("t", at="first"), 4)
    with pytest.raises(fuse.ReadOnly):
        fill(catalog.load_table("t", read_only=True), 4)
    with pytest.raises(NotFound, match="has no branch 'sid'; did you mean"):
        catalog.load_table("t", branch="sid")


def test_names_that_differ_only_in_case_are_the_same(catalog: Catalog) -> None:
    catalog.create_table("Sales.Orders", SCHEMA)

    assert catalog.list_tables("SALES") == [("sales", "Orders")]
    assert catalog.table_exists("sales.ORDERS")
    with pytest.raises(AlreadyExists, match=r"there is a table 'sales\.Orders' already"):
        catalog.create_table("sales.orders", SCHEMA)


def test_a_name_is_spelled_anew_by_a_rename(catalog: Catalog) -> None:
    catalog.create_table("sales.orders", SCHEMA)

    catalog.rename_table("sales.orders", "sales.ORDERS")

    assert catalog.list_tables("sales") == [("sales", "ORDERS")]


@pytest.mark.parametrize(
    "name", ["", "a..b", ".a", "a/b", "a\\b", " a", "a ", "a\nb", "a`b", "a#b", "a\0", "x" * 256, ".".join("a" * 17)]
)
def test_what_is_no_name_is_refused_before_anything_is_done(catalog: Catalog, name: str) -> None:
    before = len(list(catalog.warehouse.store.list()))

    for refused in (
        lambda: catalog.create_table(name, SCHEMA),
        lambda: catalog.create_namespace(name),
        lambda: catalog.rename_table("t", name),
    ):
        with pytest.raises(InvalidArgument, match="is no name"):
            refused()
    assert len(list(catalog.warehouse.store.list())) == before


def test_a_name_may_hold_any_other_letters(catalog: Catalog) -> None:
    catalog.create_table(("sales", "Größe 2026 - ümlaut日本"), SCHEMA)

    assert another(catalog).list_tables("sales") == [("sales", "Größe 2026 - ümlaut日本")]


def test_unknown_names_are_told_with_near_ones(catalog: Catalog) -> None:
    catalog.create_table("sales.orders", SCHEMA)

    with pytest.raises(NotFound, match=r"no table 'sales\.order'; did you mean \['orders'\]"):
        catalog.load_table("sales.order")
    with pytest.raises(NotFound, match=r"no namespace 'sale'; did you mean \['sales'"):
        catalog.create_table("sale.t", SCHEMA)


def test_a_rename_moves_nothing_and_crosses_namespaces(catalog: Catalog) -> None:
    place = fill(catalog.create_table("sales.orders", SCHEMA), 1).stored.store.url

    catalog.rename_table("sales.orders", "sales.eu.old_orders")

    assert catalog.list_tables("sales") == []
    moved = another(catalog).load_table("sales.eu.old_orders")
    assert (ids(moved), moved.stored.store.url) == ([1], place)
    with pytest.raises(NotFound):
        catalog.load_table("sales.orders")


def test_a_rename_takes_no_name_that_is_taken(catalog: Catalog) -> None:
    catalog.create_table("a", SCHEMA)
    catalog.create_table("b", SCHEMA)

    with pytest.raises(AlreadyExists, match="there is a table 'b' already"):
        catalog.rename_table("a", "b")
    with pytest.raises(NotFound, match="no namespace 'none'"):
        catalog.rename_table("a", "none.b")
    assert catalog.list_tables() == [("a",), ("b",)]


def test_a_dropped_table_comes_back_with_its_rows(catalog: Catalog) -> None:
    fill(catalog.create_table("sales.orders", SCHEMA), 1)

    catalog.drop_table("sales.orders")

    with pytest.raises(NotFound, match="it was dropped; undrop it"):
        catalog.load_table("sales.orders")
    assert catalog.list_dropped().column("name").to_pylist() == ["sales.orders"]
    assert ids(another(catalog).undrop_table("sales.orders")) == [1]
    assert catalog.list_tables("sales") == [("sales", "orders")]
    assert catalog.list_dropped().num_rows == 0


def test_a_name_that_is_given_again_is_another_table(catalog: Catalog) -> None:
    first = fill(catalog.create_table("t", SCHEMA), 1)
    catalog.drop_table("t")
    second = catalog.create_table("t", SCHEMA)
    fill(first, 2)  # who still has it goes on with it

    assert ids(catalog.load_table("t")) == []
    assert second.stored.store.url != first.stored.store.url
    with pytest.raises(AlreadyExists, match="there is a table 't' already"):
        catalog.undrop_table("t")
    assert ids(catalog.undrop_table("t", to="sales.older")) == [1, 2]


def test_of_several_that_were_dropped_the_last_comes_back_or_the_one_that_is_named(catalog: Catalog) -> None:
    for number in (1, 2, 3):
        fill(catalog.create_table("t", SCHEMA), number)
        catalog.drop_table("t")
    oldest = catalog.list_dropped().column("table_id").to_pylist()[-1]

    assert ids(catalog.undrop_table("t", oldest, to="first")) == [1]
    assert ids(catalog.undrop_table("t")) == [3]
    with pytest.raises(NotFound, match="no table 't' with the id 'x' was dropped"):
        catalog.undrop_table("t", "x")
    with pytest.raises(NotFound, match="no table 'u' was dropped"):
        catalog.undrop_table("u")


def test_a_table_is_replaced_at_once(catalog: Catalog) -> None:
    table = fill(catalog.create_table("t", SCHEMA), 1)

    catalog.create_table("t", "other STRING", replace=True)
    catalog.create_table("new", SCHEMA, replace=True)

    assert catalog.load_table("t").schema.names == ["other"]
    assert ids(catalog.load_table("t", at=table.snapshot.id)) == [1]


def test_a_table_that_is_there_is_not_made_again(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(catalog.create_table_if_not_exists("t", SCHEMA), 1)

    assert ids(catalog.create_table_if_not_exists("T", "other STRING")) == [1]
    monkeypatch.setattr(Catalog, "table_exists", lambda *_: False)  # as it was a moment before
    assert ids(catalog.create_table_if_not_exists("t", SCHEMA)) == [1]


def test_rows_are_written_before_a_table_has_its_name(catalog: Catalog) -> None:
    staged = catalog.stage_table("t", SCHEMA)
    fill(staged.table, 1)

    assert not catalog.table_exists("t")
    staged.commit()
    assert ids(another(catalog).load_table("t")) == [1]


def test_a_staged_table_that_is_given_up_leaves_nothing(catalog: Catalog) -> None:
    before = {found.key for found in catalog.warehouse.store.list()}
    staged = catalog.stage_table("t", SCHEMA)
    fill(staged.table, 1)

    staged.abort()

    assert files(staged.table.stored.store.url) == set()
    assert {found.key for found in catalog.warehouse.store.list()} == before


def files(url: str) -> set[str]:
    return {found.key for found in open_store(url).list()}


def test_who_comes_second_leaves_nothing(catalog: Catalog) -> None:
    staged = catalog.stage_table("t", SCHEMA)
    catalog.create_table("T", SCHEMA)

    with pytest.raises(AlreadyExists, match="there is a table 'T' already"):
        staged.commit()
    assert files(staged.table.stored.store.url) == set()


def test_a_clone_gets_a_name(catalog: Catalog) -> None:
    source = fill(catalog.create_table("t", SCHEMA), 1)

    fill(catalog.clone_table("sales.copy", source), 2)

    assert ids(catalog.load_table("sales.copy")) == [1, 2]
    assert ids(catalog.load_table("t")) == [1]
    with pytest.raises(AlreadyExists):
        catalog.clone_table("sales.copy", source)
    assert source.inspect.refs().num_rows == 2  # main, and the tag of the one clone
    with pytest.raises(fuse.InputError, match="give an open table"):
        catalog.clone_table("sales.other", "t")


def test_a_clone_that_comes_second_holds_nothing(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    source, taken = fill(catalog.create_table("t", SCHEMA), 1), fuse.Table.clone

    def clone(table: fuse.Table, *arguments: object) -> fuse.Table:
        another(catalog).create_table("copy", SCHEMA)
        return taken(table, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(fuse.Table, "clone", clone)
    with pytest.raises(AlreadyExists):
        catalog.clone_table("copy", source)
    assert source.inspect.refs().column("kind").to_pylist() == ["branch"]


def test_registering_moves_nothing(catalog: Catalog, tmp_path: Path) -> None:
    local = fuse.catalog(tmp_path / "warehouse", create=True)
    fill(fuse.create_table(tmp_path / "mine", SCHEMA), 1)
    before = files(str(tmp_path / "mine"))

    assert ids(local.register_table("t", tmp_path / "mine", {"comment": "My own"})) == [1]

    assert files(str(tmp_path / "mine")) == before
    assert ids(fuse.catalog(str(tmp_path / "warehouse")).load_table("t")) == [1]
    assert not local.find_table("t").managed
    assert local.load_table_properties("t") == {"comment": "My own"}
    with pytest.raises(NotFound, match="is no table"):
        local.register_table("u", tmp_path / "none")
    with pytest.raises(AlreadyExists, match="is the place of table 't' already"):
        local.register_table("u", tmp_path / "mine")
    local.drop_table("t")
    local.register_table("u", tmp_path / "mine")
    with pytest.raises(AlreadyExists, match="is the place of table 'u' already"):
        local.undrop_table("t")


def test_a_table_that_a_warehouse_made_has_one_name(catalog: Catalog) -> None:
    url = catalog.create_table("t", SCHEMA).stored.store.url

    with pytest.raises(AlreadyExists, match="is the place of table 't' already"):
        catalog.register_table("u", url)
    catalog.drop_table("t")
    with pytest.raises(AlreadyExists, match="is the place of table 't', which was dropped: undrop it"):
        catalog.register_table("u", url)


def test_a_warehouse_can_be_moved_with_all_that_is_in_it(tmp_path: Path) -> None:
    before = fuse.catalog(tmp_path / "a", create=True)
    fill(before.create_table("made", SCHEMA), 1)
    fill(fuse.create_table(tmp_path / "a" / "mine", SCHEMA), 2)
    before.register_table("registered", tmp_path / "a" / "mine")

    (tmp_path / "a").rename(tmp_path / "b")

    after = fuse.catalog(tmp_path / "b")
    assert ids(after.load_table("made")) == [1]
    assert ids(after.load_table("registered")) == [2]


def test_another_store_is_asked_only_where_its_user_says_so(tmp_path: Path, place: str) -> None:
    fill(fuse.create_table(place, SCHEMA), 1)
    catalog = fuse.catalog(tmp_path / "w", create=True)

    with pytest.raises(fuse.StorageError, match=r"has a table at .* on another store.*shared_places"):
        catalog.register_table("t", place)
    trusting = fuse.catalog(tmp_path / "w", {"shared_places": place})
    trusting.register_table("t", place)
    assert ids(trusting.load_table("t")) == [1]
    with pytest.raises(fuse.StorageError, match="on another store"):
        catalog.load_table("t")


def test_a_purge_deletes_the_folder(tmp_path: Path) -> None:
    catalog = fuse.catalog(tmp_path, create=True)
    folder = Path(fill(catalog.create_table("t", SCHEMA), 1).stored.store.url)
    kept = Path(fill(catalog.create_table("kept", SCHEMA), 2).stored.store.url)

    catalog.drop_table("t", purge=True)

    assert not folder.exists()
    assert kept.exists()
    with pytest.raises(NotFound, match="no table 't' was dropped, or it was purged"):
        catalog.undrop_table("t")


def test_a_purge_never_deletes_what_was_registered(tmp_path: Path) -> None:
    catalog = fuse.catalog(tmp_path / "w", create=True)
    fill(fuse.create_table(tmp_path / "mine", SCHEMA), 1)
    catalog.register_table("t", tmp_path / "mine")

    with pytest.raises(InvalidArgument, match="was registered, and the warehouse deletes only what it made"):
        catalog.drop_table("t", purge=True)
    catalog.drop_table("t")
    catalog.purge_dropped(timedelta(0))
    assert catalog.list_dropped().num_rows == 0
    assert ids(fuse.open_table(tmp_path / "mine")) == [1]


def test_what_was_dropped_long_ago_is_purged(catalog: Catalog) -> None:
    urls = {}
    for name in ("a", "b", "kept"):
        urls[name] = fill(catalog.create_table(name, SCHEMA), 1).stored.store.url
    catalog.drop_table("a")
    catalog.drop_table("b")

    assert catalog.purge_dropped("1h").num_rows == 0
    assert catalog.purge_dropped(timedelta(0), dry_run=True).column("name").to_pylist() == ["a", "b"]
    assert files(urls["a"])
    assert catalog.purge_dropped(timedelta(0)).column("name").to_pylist() == ["a", "b"]
    assert [bool(files(url)) for url in urls.values()] == [False, False, True]
    assert another(catalog).list_dropped().num_rows == 0


def test_what_a_clone_shares_is_not_purged(catalog: Catalog, place: str) -> None:
    table = fill(catalog.create_table("t", SCHEMA), 1)
    clone = table.clone(f"{place}-clone")

    with pytest.raises(Conflict, match=r"shares its files; when that table is gone, untag 'clone-"):
        catalog.drop_table("t", purge=True)
    catalog.drop_table("t")
    kept = catalog.purge_dropped(timedelta(0))
    assert "shares its files" in kept.column("kept_because").to_pylist()[0]
    assert ids(clone) == [1]
    assert ids(catalog.undrop_table("t")) == [1]


def test_what_a_warehouse_says_of_a_table_is_not_what_the_table_says(catalog: Catalog) -> None:
    catalog.create_table("t", SCHEMA, properties={"comment": "all", "owner": "ann", "block_rows": 7})

    assert catalog.load_table_properties("t") == {"comment": "all", "owner": "ann"}
    assert catalog.load_table("t").snapshot.properties == {"block_rows": 7}
    assert catalog.update_table_properties("t", ["owner", "none"], {"comment": "some", "x": "y"}) == {
        "comment": "some",
        "x": "y",
    }
    catalog.rename_table("t", "u")
    assert another(catalog).load_table_properties("u") == {"comment": "some", "x": "y"}
    with pytest.raises(InvalidArgument, match="'block_rows' is a property of the table itself"):
        catalog.update_table_properties("u", updates={"block_rows": "3"})


def test_the_history_of_a_name_is_told(catalog: Catalog) -> None:
    catalog.create_table("sales.t", SCHEMA)
    catalog.rename_table("sales.t", "u")
    catalog.rename_table("u", "sales.t")
    catalog.update_table_properties("sales.t", updates={"comment": "c"})
    catalog.drop_table("sales.t")
    catalog.undrop_table("sales.t")
    catalog.create_table("sales.T", SCHEMA, primary_key=["id"], replace=True)
    catalog.drop_table("sales.t", purge=True)
    catalog.create_table("sales.t", SCHEMA)
    catalog.drop_namespace("sales", cascade=True)

    told = catalog.history("sales.t")
    steps = list(zip(told.column("operation").to_pylist(), told.column("detail").to_pylist(), strict=True))
    assert steps == [
        ("create", None),
        ("rename to", "u"),
        ("rename from", "u"),
        ("update", "comment"),
        ("drop", None),
        ("undrop", None),
        ("drop", None),
        ("create", None),
        ("drop and purge", None),
        ("create", None),
        ("drop with its namespace", None),
    ]
    assert len(set(told.column("table_id").to_pylist())) == 3
    assert told.column("timestamp").to_pylist() == sorted(told.column("timestamp").to_pylist())
    assert catalog.history("u").column("operation").to_pylist() == ["rename from", "rename to"]
    assert catalog.history("sales").column("operation").to_pylist() == ["create namespace", "drop namespace"]


def test_what_is_no_warehouse_says_what_it_is(place: str, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="is no warehouse: there is nothing; to make one there, say create=True"):
        fuse.catalog(place)
    fuse.create_table(place, SCHEMA)
    with pytest.raises(NotFound, match="is a table: a warehouse is a folder around tables; open it with open_table"):
        fuse.catalog(place)
    with pytest.raises(AlreadyExists, match="is a table: a warehouse is a folder around tables"):
        fuse.catalog(place, create=True)
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(NotFound, match=r"it holds other files, such as 'notes.txt'"):
        fuse.catalog(tmp_path)
    with pytest.raises(AlreadyExists, match="is a file, and a warehouse is a folder"):
        fuse.catalog(tmp_path / "notes.txt", create=True)


def test_a_warehouse_is_made_beside_what_is_there(tmp_path: Path) -> None:
    fill(fuse.create_table(tmp_path / "old", SCHEMA), 1)

    catalog = fuse.catalog(tmp_path, create=True)
    catalog.register_table("old", tmp_path / "old")

    assert ids(fuse.catalog(tmp_path, create=True).load_table("old")) == [1]


@pytest.mark.parametrize("name", ["notes.txt", "orders/part-0.parquet", "a/b/c.csv"])
def test_a_folder_of_other_files_becomes_no_warehouse(tmp_path: Path, name: str) -> None:
    fill(fuse.create_table(tmp_path / "old", SCHEMA), 1)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("x")

    with pytest.raises(
        AlreadyExists, match=rf"holds other files, such as '{name}', and is no warehouse: choose an empty"
    ):
        fuse.catalog(tmp_path, create=True)

    assert not (tmp_path / "_catalog").exists()


def test_hidden_files_and_a_lost_catalogue_do_not_count(tmp_path: Path) -> None:
    fill(fuse.catalog(tmp_path, create=True).create_table("t", SCHEMA), 1)
    (tmp_path / "_catalog").rename(tmp_path / "_catalog.lost")
    (tmp_path / ".DS_Store").touch()

    catalog = fuse.catalog(tmp_path, create=True)

    assert catalog.list_tables() == []


def test_a_catalogue_can_be_sent(catalog: Catalog) -> None:
    catalog.create_table("t", SCHEMA)

    assert pickle.loads(pickle.dumps(catalog)).list_tables() == [("t",)]


def test_one_warehouse_in_the_place_of_another_is_not_taken_for_it(tmp_path: Path) -> None:
    first = fuse.catalog(tmp_path / "w", create=True)
    for number in range(3):
        first.create_table(f"t{number}", SCHEMA)
    (tmp_path / "w").rename(tmp_path / "away")

    second = fuse.catalog(tmp_path / "w", create=True)
    second.create_table("other", SCHEMA)

    assert fuse.catalog(tmp_path / "w").list_tables() == [("other",)]


def test_a_copy_of_a_warehouse_is_another_one(tmp_path: Path) -> None:
    first = fuse.catalog(tmp_path / "a", create=True)
    first.create_table("t", SCHEMA)
    shutil.copytree(tmp_path / "a", tmp_path / "b")

    first.rename_table("t", "u")
    fuse.catalog(tmp_path / "b").rename_table("t", "v")

    assert (first.list_tables(), fuse.catalog(tmp_path / "b").list_tables()) == ([("u",)], [("v",)])


@pytest.mark.parametrize("sessions", [8])
def test_of_many_who_make_one_table_at_once_one_wins(catalog: Catalog, sessions: int) -> None:
    start = Barrier(sessions)

    def make(number: int) -> str:
        session = another(catalog)
        start.wait()
        try:
            fill(session.create_table("t", SCHEMA), number)
        except AlreadyExists:
            return "told"
        return "won"

    with ThreadPoolExecutor(sessions) as pool:
        results = list(pool.map(make, range(sessions)))

    assert sorted(results) == ["told"] * (sessions - 1) + ["won"]
    assert ids(catalog.load_table("t")) == [results.index("won")]
    folders = {found.key.partition("/")[0] for found in catalog.warehouse.store.list()}
    assert len(folders) == 2  # of the warehouse's names, and of the table


def test_nobody_s_change_is_lost_where_many_change_many_names(catalog: Catalog) -> None:
    def work(number: int) -> None:
        session = another(catalog)
        session.create_table(f"t{number}", SCHEMA)
        session.rename_table(f"t{number}", f"sales.t{number}")
        session.create_table(f"u{number}", SCHEMA)
        session.drop_table(f"u{number}")

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))

    assert another(catalog).list_tables("sales") == [("sales", f"t{number}") for number in range(6)]
    assert another(catalog).list_tables() == []
    assert catalog.list_dropped().num_rows == 6


def test_a_warehouse_that_is_only_read_is_not_changed(catalog: Catalog) -> None:
    catalog.create_table("t", SCHEMA)
    reader = fuse.catalog(ReadOnlyStore(catalog.warehouse.store))

    assert ids(reader.load_table("t")) == []
    for refused in (
        lambda: fill(reader.load_table("t"), 1),
        lambda: reader.create_table("u", SCHEMA),
        lambda: reader.drop_table("t"),
    ):
        with pytest.raises(fuse.ReadOnly):
            refused()


def test_a_table_is_loaded_by_few_requests_once_its_warehouse_is_known(place: str) -> None:
    store = MeteredStore(open_store(place))
    catalog = fuse.catalog(store, create=True)
    catalog.create_table("t", SCHEMA)
    catalog.load_table("t")
    store.reset()

    catalog.load_table("t")

    assert store.request_count == 1  # whether anything was done since; the table's own store is asked for the rest
