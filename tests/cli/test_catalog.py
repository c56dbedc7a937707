"""The names of a warehouse on the command line, and tables that are named by them."""

import pytest

from fuse_index.cli.options import split_table_name


@pytest.fixture
def warehouse(run, tmp_path):
    """Namespaces sales and sales.eu, and a table sales.orders with two rows."""
    place, file = str(tmp_path / "w"), tmp_path / "rows.csv"
    file.write_text("id,name\n1,a\n2,b\n")
    assert run("catalog", "init", place).out == f"{place} is a warehouse\n"
    assert run("catalog", "create-namespace", place, "sales", "--set", "comment=All = sales").code == 0
    assert run("catalog", "create-namespace", place, "sales.eu").code == 0
    made = run("create", f"{place}#sales.orders", "--schema", "id BIGINT, name STRING", "--property", "owner=ann")
    assert made.code == 0, made.err
    assert run("ingest", f"{place}#sales.orders", file).code == 0
    return place


def count(run, table):
    return run("query", table, "--count", "--json").json["count"]


def test_a_table_is_named_wherever_a_path_is_taken(run, warehouse):
    assert count(run, f"{warehouse}#sales.orders") == 2
    assert count(run, f"{warehouse}#SALES.Orders") == 2
    assert run("index", "create", f"{warehouse}#sales.orders", "i", "--kind", "bloom", "--columns", "name").code == 0
    assert run("delete", f"{warehouse}#sales.orders", "--where", "id = 1").code == 0
    assert count(run, f"{warehouse}#sales.orders") == 1


def test_names_are_listed(run, warehouse):
    assert run("catalog", "list", warehouse, "--json").json == [
        {"name": "sales", "kind": "namespace", "owner": None, "comment": "All = sales"}
    ]
    names = [each["name"] for each in run("catalog", "list", warehouse, "--all", "--json").json]
    assert names == ["sales", "sales.eu", "sales.orders"]
    assert "sales.orders" in run("catalog", "list", warehouse, "sales").out
    assert run("catalog", "show", warehouse, "sales.orders", "--json").json["properties"] == {"owner": "ann"}
    assert run("catalog", "show", warehouse, "sales", "--json").json["properties"] == {"comment": "All = sales"}


def test_names_are_changed_and_their_history_told(run, warehouse):
    assert run("catalog", "rename", warehouse, "sales.orders", "sales.eu.old").out == (
        "sales.orders is now sales.eu.old\n"
    )
    assert run("catalog", "set", warehouse, "sales.eu.old", "--set", "comment=Old", "--unset", "owner").code == 0
    assert run("catalog", "drop", warehouse, "sales.eu.old").code == 0
    (dropped,) = run("catalog", "dropped", warehouse, "--json").json
    assert dropped["name"] == "sales.eu.old"
    assert run("catalog", "undrop", warehouse, "sales.eu.old", "--to", "sales.orders").out == "sales.orders is back\n"
    assert count(run, f"{warehouse}#sales.orders") == 2
    told = run("catalog", "history", warehouse, "sales.eu.old", "--json").json
    assert [each["operation"] for each in told] == ["rename from", "update", "drop"]


def test_a_table_that_is_there_is_registered(run, warehouse, people):
    assert run("catalog", "register", warehouse, "people", people).out == f"people is the table at {people}\n"
    assert count(run, f"{warehouse}#people") == 30
    refused = run("catalog", "drop", warehouse, "people", "--purge")
    assert refused.code == 1
    assert "drop it without --purge" in refused.err


def test_what_was_dropped_is_purged(run, warehouse):
    assert run("catalog", "drop", warehouse, "sales.orders").code == 0
    assert run("catalog", "purge", warehouse, "--json").json == []
    (purged,) = run("catalog", "purge", warehouse, "--older-than", "0s", "--json").json
    assert purged["name"] == "sales.orders"
    assert run("catalog", "drop-namespace", warehouse, "sales").code == 1
    assert run("catalog", "drop-namespace", warehouse, "sales", "--cascade").code == 0
    assert run("catalog", "purge", warehouse, "--older-than", "soon").code == 2


def test_messages_speak_the_shells_words(run, warehouse, tmp_path):
    assert "to make one there, run catalog init" in run("catalog", "list", tmp_path / "none").err
    assert "to make one there, run catalog init" in run("query", f"{tmp_path}/none#t").err
    assert "did you mean ['orders']" in run("query", f"{warehouse}#sales.order").err.replace("\n", " ")
    assert "all at once with --cascade" in run("catalog", "drop-namespace", warehouse, "sales").err
    assert run("catalog", "set", warehouse, "sales").code == 2


def test_a_path_may_hold_the_sign(run, tmp_path):
    table = tmp_path / "c#" / "t"
    assert run("create", table, "--schema", "id BIGINT").code == 0
    assert count(run, table) == 0
    (tmp_path / "c#" / "t").rename(tmp_path / "a#b")
    assert count(run, tmp_path / "a#b") == 0
    assert split_table_name("#t") is None
