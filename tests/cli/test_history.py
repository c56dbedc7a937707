"""Tags, branches, restore and diff on the command line."""

import shutil
from pathlib import Path


def test_a_branch_is_begun_written_and_brought_home(run, people, tmp_path):
    more = tmp_path / "more.csv"
    more.write_text("id,name,city\n30,name 30,Oslo\n")

    assert run("branch", people, "side").code == 0
    assert run("ingest", people, more, "--branch", "side").code == 0
    assert run("query", people, "--count").out == "30\n"
    assert run("query", people, "--count", "--branch", "side").out == "31\n"
    assert run("fast-forward", people, "side").code == 0
    assert run("query", people, "--count").out == "31\n"
    assert run("branch", people, "side", "--drop", "--json").json == {"branch": "side", "dropped": True}
    assert [(row["name"], row["kind"]) for row in run("refs", people, "--json").json] == [("main", "branch")]


def test_what_was_tagged_is_shown_compared_and_restored(run, people, tmp_path):
    assert "until" in run("tag", people, "good", "--expires", "30d").out
    more = tmp_path / "more.csv"
    more.write_text("id,name,city\n30,name 30,Oslo\n")
    run("ingest", people, more)

    assert run("query", people, "--at", "good", "--count").out == "30\n"
    told = run("diff", people, "good", "--json").json
    assert (told["added"]["rows"], told["removed"]["rows"], told["kept"]["rows"]) == (1, 0, 30)
    assert "added" in run("diff", people, "good").out
    assert run("restore", people, "good").code == 0
    assert run("query", people, "--count").out == "30\n"
    assert run("untag", people, "good").code == 0
    assert run("log", people, "--json").json[0]["operation"] == "restore"


def test_rows_that_changed_are_printed(run, people):
    run("tag", people, "before")
    run("update", people, "--set", "city='Bonn'", "--where", "id = 12")
    run("delete", people, "--where", "id = 13")

    rows = run("changes", people, "before", "--key", "id", "--columns", "id,city", "--json").json_lines
    found = [tuple(row.values()) for row in rows]
    assert found == [(13, "Rome", "delete"), (12, "Rome", "update_preimage"), (12, "Bonn", "update_postimage")]
    assert run("changes", people, "before", "before", "--json").out == ""
    assert run("key-by", people, "id").out == "the key is id\n"
    assert run("changes", people, "before", "--columns", "id,city", "--json").json_lines == rows
    assert run("changes", people, "before", "-c", "id", "-c", "city", "--json").json_lines == rows
    queried = run("query", people, "-c", "id", "-c", "city", "--where", "id = 1", "--json").json_lines
    assert queried == [{"id": 1, "city": "Bonn"}]
    kinds = [row["_change_type"] for row in run("changes", people, "before", "--key", "", "--json").json_lines]
    assert kinds == ["delete", "delete", "insert"]
    assert "choose another key" in run("drop-column", people, "id").err
    assert run("key-by", people, "--none", "--json").json["key"] == []
    assert run("key-by", people).code == 2
    told = run("changes", people, "before", "--where", "city = 'Rome'", "--limit", "1")
    assert told.out.count("delete") == 1
    assert "--limit 0" in told.err
    assert "no tag 'befor'" in run("changes", people, "befor").err


def test_a_clone_is_made_and_named(run, people, tmp_path):
    told = run("clone", people, tmp_path / "copy", "--json").json
    assert told["rows"] == 30
    assert run("query", tmp_path / "copy", "--count").out == "30\n"
    assert [row["holder"] for row in run("refs", people, "--json").json if row["name"] == told["tag"]] == [
        str(tmp_path / "copy")
    ]
    again = run("clone", people, tmp_path / "copy")
    assert (again.code, "already is a table" in again.err) == (1, True)


def test_a_table_without_refs_says_so_and_is_recovered(run, people):
    shutil.rmtree(Path(people) / "_refs")
    lost = run("query", people, "--count")
    assert (lost.code, "fuse-index recover" in " ".join(lost.err.split())) == (1, True)

    assert "would be written" in run("recover", people, "--dry-run").out
    assert run("recover", people, "--head", "main=0", "--dry-run").code == 1
    assert run("recover", people, "--json").json["branches"][0]["branch"] == "main"
    assert run("query", people, "--count").out == "30\n"
    assert "nothing is missing" in run("recover", people).err

    newest = run("show", people, "--json").json["snapshot"]
    entries = Path(people) / "_refs/branch/main"
    max(entries.glob("0*.json")).unlink()
    written = run("recover", people, "--json").json["branches"][0]
    assert (written["newest"], written["entries"]) == (newest, 1)  # the hint knows that it was committed
    assert run("show", people, "--json").json["snapshot"] == newest

    (entries / "_hint").unlink()
    max(entries.glob("0*.json")).unlink()
    told = " ".join(run("recover", people).err.split())
    assert f"main ends before snapshot {newest}: if that was committed, say --head main={newest}" in told
    assert run("recover", people, "--head", f"main={newest}").code == 0
    assert run("query", people, "--count").out == "30\n"


def test_a_vacuum_counts_by_kind(run, people):
    assert run("vacuum", people, "--json").json["files"]["blocks"] == 0
    assert "say --no-dry-run" in (told := run("vacuum", people, "--retention", "2h")).out + told.err
    assert "would be" not in run("vacuum", people, "--retention", "2h", "--no-dry-run").out
    assert run("query", people, "--count").out == "30\n"
    assert run("vacuum", people, "--retention", "5m").code == 1
    assert run("vacuum", people, "--retention", "soon").code == 2


def test_what_is_not_there_is_refused_in_a_line(run, people):
    for arguments in (("restore", people, "godo"), ("untag", people, "x"), ("branch", people, "x", "--drop")):
        refused = run(*arguments)
        assert refused.code == 1
        assert refused.err.count("\n") <= 2
    assert run("tag", people, "x", "--expires", "soon").code == 2
    endless = "9" * 12 + "d"
    for command, option in (("tag", "--expires"), ("vacuum", "--retention")):
        refused = run(command, people, *(["x"] if command == "tag" else []), option, endless)
        assert (refused.code, option in refused.err, "longer than" in refused.err) == (2, True, True)
    assert run("branch", people, "main").code == 1
