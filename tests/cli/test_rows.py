"""Rows are deleted and changed on the command line."""

import gzip
import json
import time

import fuse_index as fuse
from fuse_index.table.maintenance import Maintenance
from fuse_storage import StorageError


def test_rows_are_deleted_updated_overwritten_and_merged(run, people, tmp_path):
    assert run("delete", people, "--where", "city = 'Bonn'").out.startswith("6 rows deleted")
    updated = run(
        "update", people, "--set", "city='Kyiv'", "--set", "name=upper(name)", "--where", "id = 7", "--json"
    ).json
    assert updated["updated_rows"] == 1
    assert run("query", people, "--where", "city = 'Kyiv'", "--json").json_lines == [
        {"id": 7, "name": "NAME 7", "city": "Kyiv"}
    ]
    new = tmp_path / "new.csv"
    new.write_text("id,name,city\n7,name 7,Oslo\n40,name 40,Rome\n")

    merged = run("merge", people, new, "--on", "id", "--json").json
    assert (merged["updated_rows"], merged["inserted_rows"], merged["deleted_rows"]) == (1, 1, 0)
    assert run("query", people, "--count").out == "25\n"
    assert "the table has no key" in run("merge", people, new).err
    run("key-by", people, "id")
    assert run("show", people, "--json").json["key"] == ["id"]
    assert run("merge", people, new, "--json").json["updated_rows"] == 2
    assert run("merge", people, new, "--on", "id", "--matched", "delete", "--no-insert").out.startswith(
        "2 rows deleted"
    )
    new.write_text("id,name,city,gone\n8,name 8,Oslo,true\n9,new,Oslo,false\n50,new,Oslo,false\n51,new,Oslo,true\n")
    conditions = ("--matched", "delete=source.gone", "--matched", "update", "--insert-where", "NOT source.gone")
    told = run("merge", people, new, *conditions, "--delete-others-where", "target.id = 20", "--json").json
    assert [told[f"{what}_rows"] for what in ("updated", "inserted", "deleted")] == [1, 1, 2]
    assert run("merge", people, new, "--matched", "remove").code == 2
    assert run("merge", people, new, "--no-insert", "--insert-where", "source.id > 1").code == 2
    new.write_text("id,name,city\n7,name 7,Oslo\n40,name 40,Rome\n")
    assert run("overwrite", people, new, "--where", "city IN ('Oslo', 'Rome')").code == 0
    assert run("query", people, "--where", "city IN ('Oslo', 'Rome')", "--count").out == "2\n"


def test_small_blocks_are_joined(run, people, tmp_path):
    new = tmp_path / "new.csv"
    for row_id in (30, 31, 32):
        new.write_text(f"id,name,city\n{row_id},name {row_id},Oslo\n")
        run("ingest", people, new)

    told = run("compact", people, "--json").json
    assert (told["blocks_before"], told["blocks"], told["segments"]) == (13, 11, 1)
    assert run("query", people, "--count", "--where", "name = 'name 31'").out == "1\n"
    assert run("compact", people).out.startswith("11 blocks are 11")


def test_mistakes_are_said_and_nothing_changes(run, people, tmp_path):
    assert run("delete", people, "--where", "citty = 'Bonn'").code == 1
    assert run("delete", people).code == 2
    assert run("update", people, "--set", "city").code == 2
    assert run("delete", people, "--where", "id = 999").out.startswith("nothing to change")
    assert run("query", people, "--count").out == "30\n"


def test_files_of_all_sorts_bring_columns(run, people, tmp_path):
    folder = tmp_path / "in" / "country=FR"
    folder.mkdir(parents=True)
    (folder / "a.json.gz").write_bytes(gzip.compress(b'[{"id": 70, "name": "a"}, {"id": 71, "name": "b"}]'))
    (folder / "b.tsv").write_text("id\tcity\n72\tNice\n")

    refused = run("ingest", people, tmp_path / "in")
    assert (refused.code, "'country' that the table lacks" in refused.err) == (1, True)
    assert run("ingest", people, f"{tmp_path}/in/**/*.*", "--merge-schema", "--json").json["rows"] == 3
    found = run("query", people, "--where", "country = 'FR'", "--columns", "id,name,city", "--json").json_lines
    assert found == [
        {"id": 70, "name": "a", "city": None},
        {"id": 71, "name": "b", "city": None},
        {"id": 72, "name": None, "city": "Nice"},
    ]
    assert run("merge", people, folder / "b.tsv", "--on", "id", "--json").json["updated_rows"] == 1
    assert run("create", tmp_path / "like", "--like", tmp_path / "in").code == 0
    assert fuse.open_table(tmp_path / "like").schema.names == ["id", "name", "city", "country"]


def test_few_rows_are_ingested_hot_and_tiered(run, people, tmp_path):
    new = tmp_path / "hot.csv"
    new.write_text("id,name,city\n100,a,Oslo\n101,b,Oslo\n")

    assert run("ingest", people, new, "--hot", "--json").json["rows"] == 2
    (tail,) = run("show", people, "tail", "--json").json
    assert (tail["commits"], tail["rows"]) == (1, 2)
    assert run("query", people, "--where", "id >= 100", "--count").out == "2\n"
    assert run("tier", people, "--min-age", "1h", "--json").json["tiered_rows"] == 0
    assert run("tier", people, "--json").json["tiered_rows"] == 2
    assert run("show", people, "tail", "--json").json[0]["rows"] == 0
    counted = {
        arguments: run("query", people, "--count", *arguments, "--json").json["count"]
        for arguments in ((), ("--version", "1"), ("--no-tail",))
    }
    assert run("explain", people, "-w", "id = 1", "--no-tail", "--json").json["blocks"]
    assert run("show", people, "--version", "1", "--json").json["rows"] == counted["--version", "1"]
    assert counted[()] == counted["--no-tail",] > counted["--version", "1"]
    assert "no duration" in run("tier", people, "--every", "soon").err


def test_properties_are_set_and_removed(run, people):
    assert run("set", people, "hot_rows=5", "owner=me", "--json").json["properties"]["hot_rows"] == 5
    assert run("set", people, "hot_rows=null", "owner=null").out == "block_rows = 3\n"
    assert "hot_rows = 'many'" in run("set", people, "hot_rows=many").err
    assert "NAME=VALUE" in run("set", people, "hot_rows").err
    assert fuse.open_table(people).snapshot.properties == {"block_rows": 3}


def test_a_job_that_tiers_goes_on_after_what_stood_in_its_way(run, people, monkeypatch):
    fuse.open_table(people).append([{"id": 100, "name": "a", "city": "Oslo"}], hot=True)
    real, refusals, pauses = Maintenance.tier, [StorageError("the store gave no answer")], []

    def tier(maintenance, min_age):
        if refusals:
            raise refusals.pop()
        return real(maintenance, min_age)

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Maintenance, "tier", tier)
    monkeypatch.setattr("fuse_index.cli.rows.time.sleep", sleep)
    told = run("tier", people, "--every", "30s", "--json")

    assert (told.code, pauses) == (130, [30, 30])
    assert "tried again in 30s: the store gave no answer" in told.err
    assert told.json["tiered_rows"] == 1
    assert run("tier", f"{people}-2", "--every", "30s").code == 1


def test_what_hinders_one_table_does_not_keep_others_from_being_tiered(run, people, monkeypatch):
    table = fuse.open_table(people)
    missing = f"{people}-2"
    table.append([{"id": 100, "name": "a", "city": "Oslo"}], hot=True)
    told = run("tier", missing, people, missing, "--json")
    assert (told.code, told.json["tiered_rows"]) == (1, 1)
    error = {"code": "NOT_FOUND", "message": f"{missing} is no table: there is nothing; create it first"}
    assert json.loads(told.err) == {"error": error}
    assert run("tier", missing, f"{people}-3", people).err.count("error: ") == 2

    real_sleep = time.sleep

    def sleep(seconds):
        if seconds == 0.5:  # others sleep, too
            raise KeyboardInterrupt
        real_sleep(seconds)

    monkeypatch.setattr("fuse_index.cli.rows.time.sleep", sleep)
    table.append([{"id": 101, "name": "b", "city": "Oslo"}], hot=True)
    told = run("tier", missing, people, "--every", "0.5s", "--min-age", "0.0s", "--json")
    assert (told.code, told.json["tiered_rows"]) == (130, 1)
    assert f"{missing} is tried again in 0.5s: {missing} is no table" in told.err
    assert run("tier", people, "--min-age", "a while").code == 1


def test_a_partitioned_table_is_made_and_its_partitions_are_shown(run, tmp_path):
    table, file = str(tmp_path / "events"), tmp_path / "events.csv"
    file.write_text("id,day\n1,2026-01-01\n2,2026-01-02\n3,2026-01-01\n")
    run("create", table, "--schema", "id BIGINT, day DATE", "--partition-by", "day")
    run("ingest", table, str(file))

    shown = run("show", table, "partitions", "--json").json
    assert [(each["partition"], each["rows"]) for each in shown] == [
        ({"day": "2026-01-01"}, 2),
        ({"day": "2026-01-02"}, 1),
    ]
    assert "2026-01-02" in run("show", table, "partitions").out
    run("delete", table, "--where", "day < '2026-01-02'")
    assert [each["rows"] for each in run("show", table, "partitions", "--json").json] == [1]


def test_a_limit_beyond_all_numbers_is_none(run, people):
    for command in (
        ("query", people),
        ("query", people, "--group-by", "city", "--aggregate", "count(*)"),
        ("log", people),
        ("changes", people, 1),
    ):
        assert run(*command, "--limit", 10**30).out == run(*command, "--limit", 0).out != ""
