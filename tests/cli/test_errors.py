"""A misdeed of each kind, as Python and the command line tell of it: by one code, in words of their own."""

import json
from pathlib import Path

import pytest

import fuse_index as fuse

PYTHON = {
    "NOT_FOUND": lambda table: table.untag("monday"),
    "ALREADY_EXISTS": lambda table: fuse.create_table(table.stored.store.url, "id BIGINT"),
    "NOT_EMPTY": lambda table: warehouse_beside(table).drop_namespace("sales"),
    "INVALID_INPUT": lambda table: table.merge([{"id": 1}]),
    "INVALID_INPUT to upsert": lambda table: table.upsert([{"id": 1}]),
    "INVALID_INPUT to move": lambda table: table.move_column("name"),
    "INVALID_INPUT to look": lambda table: table.inspect.clustering(),
    "INVALID_ARGUMENT": lambda table: table.maintenance.vacuum("1m"),
    "INVALID_INDEX": lambda table: table.drop_column("name"),
    "INVALID_CONDITION": lambda table: table.delete("id ="),
    "SCHEMA_MISMATCH": lambda table: table.drop_column("nmae"),
}
SHELL = {
    "NOT_FOUND": ["untag", "TABLE", "monday"],
    "ALREADY_EXISTS": ["create", "TABLE", "--schema", "id BIGINT"],
    "NOT_EMPTY": ["catalog", "drop-namespace", "WAREHOUSE", "sales"],
    "INVALID_INPUT": ["merge", "TABLE", "ROWS"],
    "INVALID_INPUT to upsert": ["delete-keys", "TABLE", "ROWS"],
    "INVALID_INPUT to move": ["move-column", "TABLE", "name"],
    "INVALID_INPUT to look": ["clustering", "TABLE"],
    "INVALID_ARGUMENT": ["vacuum", "TABLE", "--retention", "1m"],
    "INVALID_INDEX": ["drop-column", "TABLE", "name"],
    "INVALID_CONDITION": ["delete", "TABLE", "--where", "id ="],
    "SCHEMA_MISMATCH": ["drop-column", "TABLE", "nmae"],
}
SENTENCES = {
    "NOT_FOUND": ("TABLE has no tag 'monday'",) * 2,
    "ALREADY_EXISTS": ("TABLE already is a table: open it, or choose another place",) * 2,
    "NOT_EMPTY": (
        "namespace 'sales' holds table 'sales.t': drop what it holds first, or all at once with cascade=True",
        "namespace 'sales' holds table 'sales.t': drop what it holds first, or all at once with --cascade",
    ),
    "INVALID_INPUT": (
        "the table has no key: say by which columns rows are matched, on=['id'], or give it a key with key_by(['id'])",
        "the table has no key: say by which columns rows are matched, --on id, or give it a key with `key-by`",
    ),
    "INVALID_INPUT to upsert": (
        "upsert is for tables with a primary key, and TABLE has none: create one with primary_key=[...]",
        "delete-keys is for tables with a primary key, and TABLE has none: create one with --primary-key",
    ),
    "INVALID_INPUT to move": (
        "where is 'name' to go? say first=True, or after=..., naming the column",
        "where is 'name' to go? say --first, or --after, naming the column",
    ),
    "INVALID_INPUT to look": (
        "the table has no clustering key: give it one with cluster_by([...]), or say which columns to look at: "
        "by=[...]",
        "the table has no clustering key: give it one with `cluster-by`, or say which columns to look at: --by",
    ),
    "INVALID_ARGUMENT": (
        "retention=0:01:00: readers may still need what was replaced in the last hour; say force=True to risk it",
        "retention=0:01:00: readers may still need what was replaced in the last hour; say --force to risk it",
    ),
    "INVALID_INDEX": (
        "column 'name' has index 'by_name' on it: drop it first, or say indexes='drop'",
        "column 'name' has index 'by_name' on it: drop it first, or say --indexes drop",
    ),
    "INVALID_CONDITION": ("cannot be read near '=': something is missing behind it\n  id =\n     ^",) * 2,
    "SCHEMA_MISMATCH": ("no column 'nmae': the table has no 'nmae'; did you mean ['name']?",) * 2,
}


def warehouse_beside(table: fuse.Table) -> fuse.Catalog:
    made = fuse.catalog(f"{table.stored.store.url}-names", create=True)
    if not made.namespace_exists("sales"):
        made.create_namespace("sales")
        made.create_table("sales.t", "id BIGINT")
    return made


@pytest.mark.parametrize("misdeed", PYTHON)
def test_a_misdeed_has_one_code_and_words_of_each_surface(run, people: str, tmp_path: Path, misdeed: str) -> None:
    table, rows = fuse.open_table(people), tmp_path / "rows.csv"
    rows.write_text("id,name,city\n1,a,Bonn\n")
    in_python, in_shell = [sentence.replace("TABLE", people) for sentence in SENTENCES[misdeed]]
    places = {"TABLE": people, "ROWS": str(rows), "WAREHOUSE": warehouse_beside(table).url}
    arguments = [places.get(each, each) for each in SHELL[misdeed]]

    with pytest.raises(fuse.CodedError) as raised:
        PYTHON[misdeed](table)
    assert (raised.value.code, str(raised.value)) == (misdeed.split()[0], in_python)

    told = run(*arguments)
    assert (told.code, told.out, told.err) == (1, "", f"error: {in_shell}\n")
    as_json = run(*arguments, "--json")
    assert (as_json.code, as_json.out) == (1, "")
    assert json.loads(as_json.err) == {"error": {"code": raised.value.code, "message": in_shell}}


def test_a_table_goes_by_what_was_typed(run, people: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = warehouse_beside(fuse.open_table(people))
    monkeypatch.chdir(tmp_path)

    assert run("untag", "people", "x").err == "error: people has no tag 'x'\n"
    assert run("untag", f"file://{people}", "x").err == f"error: file://{people} has no tag 'x'\n"
    assert run("untag", f"{warehouse.url}#sales.t", "x").err == f"error: {warehouse.url}#sales.t has no tag 'x'\n"
    assert run("create", "people", "--schema", "id INT").err.startswith("error: people already is a table")


def test_other_errors_have_a_code_too(run, people: str, tmp_path: Path) -> None:
    told = run("create", tmp_path / "t", "--schema", "id INT", "--property", "x", "--json")
    assert (told.code, told.err[:1] == "{") == (2, False)  # wrong usage is told in text

    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    told = run("ingest", people, tmp_path / "broken.parquet", "--json")
    assert (told.code, json.loads(told.err)["error"]["code"]) == (1, "INVALID_FILE")
