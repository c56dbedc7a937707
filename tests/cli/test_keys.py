"""Tables with a primary key on the command line."""

import pytest

import fuse_index as fuse


@pytest.fixture
def stock(run, tmp_path):
    """Items 0 to 9 in two places each."""
    table, rows = tmp_path / "stock", tmp_path / "rows.csv"
    run("create", table, "--schema", "id BIGINT, place STRING, pieces INT", "--primary-key", "id,place")
    rows.write_text("id,place,pieces\n" + "".join(f"{n},{place},{n}\n" for n in range(10) for place in "ab"))
    assert run("ingest", table, rows).out.startswith("20 rows")
    return table


def test_rows_are_put_looked_up_and_deleted_by_their_keys(run, stock, tmp_path):
    changed = tmp_path / "changed.csv"
    changed.write_text("id,place,pieces\n7,a,70\n11,a,11\n")
    since = fuse.open_table(stock).snapshot.id
    run("ingest", stock, changed)
    assert run("changes", stock, since, "--no-preimages", "--json").json_lines == [
        {"id": 7, "place": "a", "pieces": 70, "_change_type": "update_postimage"},
        {"id": 11, "place": "a", "pieces": 11, "_change_type": "update_postimage"},
    ]

    keys = (
        "--key",
        "id=11",
        "--key",
        "place=a",
        "--key",
        "id=7",
        "--key",
        "place=a",
        "--key",
        "id=99",
        "--key",
        "place=a",
    )
    assert run("lookup", stock, *keys, "--json", "-c", "id,pieces").json_lines == [
        {"id": 11, "pieces": 11},
        {"id": 7, "pieces": 70},
    ]
    changed.write_text("id,place\n7,a\n8,b\n99,a\n")
    assert run("delete-keys", stock, changed).out.startswith("3 keys deleted")
    changed.write_text("_change_type,id,place,pieces\ndelete,11,a,\nupdate_postimage,0,a,100\nupdate_preimage,1,a,0\n")
    run("ingest", stock, changed, "--changes")
    assert run("delete", stock, "--where", "id = 1").out.startswith("rows changed by their keys")
    changed.write_text("id,place,pieces\n6,a,60\n20,b,20\n")
    assert run("merge", stock, changed, "--matched", "delete").out.startswith("rows changed by their keys")
    run("tier", stock)

    expected = {(n, place): n for n in range(10) for place in "ab" if n != 1} | {(0, "a"): 100}
    del expected[6, "a"], expected[7, "a"], expected[8, "b"]
    expected[20, "b"] = 20
    found = fuse.open_table(stock)
    assert {(row["id"], row["place"]): row["pieces"] for row in found.to_arrow().to_pylist()} == expected
    assert found.tail.rows == 0
    assert run("delete", stock, "--where", "pieces >= 0").out.startswith(f"{len(expected)} rows deleted")
    run("overwrite", stock, changed)
    assert sorted(fuse.open_table(stock).to_arrow().column("id").to_pylist()) == [6, 20]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("lookup", "--key", "id"), 2, "column=value"),
        (("lookup", "--key", "id=x", "--key", "place=a"), 2, "id is int64"),
        (("lookup", "--key", "id=1", "--key", "id=2", "--key", "place=a"), 2, "as often"),
        (("lookup", "--key", "id=1"), 1, "the keys lack column 'place'"),
        (("lookup", "--key", "id=1", "--key", "spot=a"), 1, "the keys have a column 'spot'"),
        (("merge", "FILE", "--on", "id"), 1, "merged by it, ['id', 'place']"),
        (("merge", "FILE", "--merge-schema"), 1, "--merge-schema: columns of a table with a primary key"),
        (("overwrite", "FILE", "--where", "id = 1"), 1, "overwrite --where could bring"),
        (("ingest", "FILE", "--no-hot"), 1, "no --no-hot, no --merge-schema"),
        (("ingest", "FILE", "--changes"), 1, "no column '_change_type'"),
        (("ingest", "FILE", "--changes", "--hot"), 2, "--changes"),
        (("delete-keys", "FILE"), 1, "the keys have a column 'pieces'"),
    ],
)
def test_what_cannot_be_is_said_and_changes_nothing(run, stock, tmp_path, arguments, code, message):
    file = tmp_path / "file.csv"
    file.write_text("id,place,pieces\n1,a,5\n")
    command, *options = [file if each == "FILE" else each for each in arguments]

    ended = run(command, stock, *options)

    assert (ended.code, message in " ".join(ended.err.replace("│", " ").split())) == (code, True), ended.err
    assert run("query", stock, "--where", "id = 1", "--json").json_lines[0]["pieces"] == 1


def test_a_warehouse_has_tables_with_a_primary_key(run, tmp_path):
    names = fuse.catalog(tmp_path / "warehouse", create=True)
    run("create", f"{tmp_path / 'warehouse'}#stock", "--schema", "id BIGINT", "--primary-key", "id")

    table = names.load_table("stock")
    table.upsert([{"id": 1}, {"id": 1}])
    assert table.count() == 1
    with pytest.raises(fuse.InputError, match="one of them"):
        names.create_table("other", "id BIGINT", key=["id"], primary_key=["id"])
