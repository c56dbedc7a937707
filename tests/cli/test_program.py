import importlib.metadata
import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuse_index
from fuse_index.cli import program


def test_ingested_rows_are_found_again(run, people):
    found = run("query", people, "--where", "city = 'Rome' AND id > 14", "--json")

    assert found.json_lines == [{"id": i, "name": f"name {i}", "city": "Rome"} for i in (15, 16, 17)]


def test_a_query_prints_a_grid_for_people_and_says_that_there_may_be_more(run, people):
    found = run("query", people, "--columns", "name, id", "--limit", 2)

    assert "name 0" in found.out
    assert "name 2" not in found.out
    assert "--limit 0" in found.err


def test_rows_are_grouped_and_added_up(run, people):
    built = run(
        "index",
        "create",
        people,
        "by_city",
        "--kind",
        "aggregate",
        "-c",
        "city, lower(city)",
        "-o",
        'aggregates=["count(*)", "max(id)"]',
    )
    arguments = (
        "query",
        people,
        "--group-by",
        "lower(city)",
        "--aggregate",
        "count(*)",
        "--aggregate",
        "max(id)",
        "--where",
        "city > 'O'",
    )

    assert built.code == 0
    found = run(*arguments, "--json").json_lines
    assert sorted(found, key=str) == [
        {"lower(city)": "oslo", "count(*)": 6, "max(id)": 11},
        {"lower(city)": "paris", "count(*)": 6, "max(id)": 23},
        {"lower(city)": "rome", "count(*)": 6, "max(id)": 17},
    ]
    assert "oslo" in run(*arguments, "--no-indexes").out
    assert run(*arguments, "--count").code == 2


def test_count_is_the_same_with_and_without_indexes(run, people):
    arguments = ("query", people, "--where", "name IN ('name 3', 'name 29', 'nobody')", "--count")

    assert run(*arguments).out == "2\n"
    assert run(*arguments, "--no-indexes", "--json").json == {"count": 2}


def test_explain_names_the_index_and_what_it_removed(run, people):
    told = run("explain", people, "--where", "name = 'name 7'", "--json").json

    assert told["blocks"] == {"total": 10, "kept": 1}
    assert {"by_name"} <= {vote["index"] for vote in told["predicates"]}
    assert "by_name" in run("explain", people, "--where", "name = 'name 7'").out


def test_log_lists_commits_newest_first(run, people):
    operations = [entry["operation"] for entry in run("log", people, "--json").json]

    assert operations[-1] == "create"
    assert operations.index("append") > operations.index("create index")
    assert len(run("log", people, "--limit", 1, "--json").json) == 1


def test_show_tells_columns_sizes_and_indexes(run, people):
    shown = run("show", people, "--json").json

    assert (shown["rows"], shown["blocks"], shown["properties"]) == (30, 10, {"block_rows": 3})
    assert [column["name"] for column in shown["columns"]] == ["id", "name", "city"]
    assert [index["name"] for index in shown["indexes"]] == ["by_name"]
    assert "by_name" in run("show", people).out


@pytest.mark.parametrize(
    ("what", "count", "word"),
    [
        ("snapshots", 4, "operation"),
        ("segments", 1, "added_by"),
        ("blocks", 10, "level"),
        ("columns", 3, "stored_as"),
        ("statistics", 30, "distinct"),
        ("indexes", 1, "by_name"),
        ("clustering", 0, "average_depth"),
        ("refs", 1, "main"),
    ],
)
def test_show_lists_all_there_is_of_one_thing(run, people, what, count, word):
    assert len(run("show", people, what, "--json").json) == count
    assert word in run("show", people, what).out


def test_show_knows_what_it_can_list(run, people):
    assert run("show", people, "bloks").code == 2
    assert (
        run("show", people, "indexes", "--json").json[0]["options"]
        == run("index", "list", people, "--json").json[0]["options"]
    )


def test_an_older_state_can_be_queried_by_snapshot_id(run, people):
    empty = run("log", people, "--json").json[-1]["snapshot"]

    assert run("query", people, "--at", empty, "--count").out == "0\n"


def test_plugins_lists_kinds_with_the_distribution_they_are_from(run):
    listed = run("plugins", "--json").json

    assert {"min_max", "bloom"} <= {kind["kind"] for kind in listed["kinds"]}
    assert all(
        kind["from"].startswith("fuse-index ") for kind in listed["kinds"] if kind["module"].startswith("fuse_plugins")
    )
    assert "bloom" in run("plugins").out


def test_a_table_can_take_its_columns_from_a_file(run, tmp_path):
    pq.write_table(pa.table({"a": pa.array([1], pa.int16()), "b": [b"x"]}), tmp_path / "rows.parquet")

    assert run("create", tmp_path / "t", "--like", tmp_path / "rows.parquet").code == 0
    assert run("ingest", tmp_path / "t", tmp_path / "rows.parquet", "--json").json["rows"] == 1
    assert fuse_index.open_table(str(tmp_path / "t")).schema.types == [pa.int16(), pa.binary()]


def test_ingesting_rows_that_do_not_fit_changes_nothing(run, people, tmp_path):
    (tmp_path / "more.jsonl").write_text('{"id": 1, "name": "x", "town": "Bonn"}\n')

    failed = run("ingest", people, tmp_path / "more.jsonl")

    assert failed.code == 1
    assert "town" in failed.err
    assert run("query", people, "--count").out == "30\n"


def test_errors_of_ours_are_a_line_or_two_without_a_traceback(run, people, tmp_path):
    for arguments, words in [
        (("query", people, "--where", "nmae = 'x'"), "nmae"),
        (("query", people, "--where", "name ="), "name ="),
        (("query", people, "--columns", "nmae"), "nmae"),
        (("query", tmp_path / "absent"), "absent"),
        (("log", people, "--branch", "dev"), "dev"),
        (("create", people, "--schema", "a INT"), "people"),
        (("create", tmp_path / "new", "--schema", "a INTERGER"), "INTERGER"),
        (("ingest", people, tmp_path / "absent.csv"), "absent.csv"),
        (("show", people, "--at", "yesterday"), "yesterday"),
        (("show", people, "--at", "2020-01-01"), "time zone"),
        (("log", people, "--branch", "../x"), "../x"),
        (("create", tmp_path / "new", "--schema", "a INT", "--property", "block_rows=0"), "block_rows"),
        (("create", tmp_path / "new", "--schema", "a INT", "--property", "block_row=5"), "block_rows"),
    ]:
        failed = run(*arguments)

        assert failed.code == 1, arguments
        assert failed.out == ""
        assert failed.err.startswith("error: ")
        assert words in failed.err
        assert len(failed.err.splitlines()) <= 3
        assert "Traceback" not in failed.err


def test_the_place_of_a_mistake_is_pointed_at(run, people):
    failed = run("query", people, "--where", "id > 1 AND nmae = 'x'")

    assert failed.err.splitlines()[1:] == ["  id > 1 AND nmae = 'x'", "             ^^^^"]


def test_columns_with_odd_names_are_back_quoted(run, tmp_path):
    table = tmp_path / "odd"
    pq.write_table(
        pa.table({"a,b": ["x"], "c`d": [1], "e.f": [2], "at": pa.array([0], pa.timestamp("us", "UTC"))}),
        tmp_path / "o.parquet",
    )
    assert run("create", table, "--like", tmp_path / "o.parquet", "--cluster-by", "`a,b`, e.f").code == 0
    assert run("ingest", table, tmp_path / "o.parquet").code == 0

    assert run("query", table, "--columns", "`c``d`, `a,b`", "--json").json_lines == [{"c`d": 1, "a,b": "x"}]
    assert run("index", "create", table, "by_day", "-k", "bloom", "-c", "date_trunc('day', at)").code == 0
    assert run("show", table, "--json").json["cluster_by"] == ["a,b", "e.f"]


def test_columns_of_a_text_file_are_guessed_past_what_means_null(run, tmp_path):
    (tmp_path / "delays.txt").write_text("dest,delay\nIAH,NA\nNA,7\n")
    reading = ("--format", "csv", "--null", "NA")

    assert run("create", tmp_path / "t", "--like", tmp_path / "delays.txt", *reading).code == 0
    assert run("ingest", tmp_path / "t", tmp_path / "delays.txt", *reading).code == 0

    assert fuse_index.open_table(str(tmp_path / "t")).scan("delay >= 7").to_arrow().to_pylist() == [
        {"dest": None, "delay": 7}
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ("query",),
        ("frobnicate",),
        ("create", "t"),
        ("create", "t", "--schema", "a INT", "--property", "x"),
        ("query", "t", "--limit", "-1"),
    ],
)
def test_wrong_usage_is_exit_code_2(run, arguments):
    assert run(*arguments).code == 2


def test_the_installed_script_runs_and_ends_quietly_when_its_reader_does(people):
    command = [
        sys.executable,
        "-c",
        "from fuse_index.cli.program import main; main()",
        "query",
        people,
        "--json",
        "--limit",
        "0",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert json.loads(process.stdout.readline())["id"] == 0
    process.stdout.close()

    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    process.wait()


def test_the_version_is_that_of_the_package(run):
    assert run("--version").out == f"fuse-index {fuse_index.__version__}\n"
    assert fuse_index.__version__ == importlib.metadata.version("fuse-index")


def test_commands_and_options_are_completed_by_the_shell(run, monkeypatch):
    monkeypatch.setenv("_FUSE_INDEX_COMPLETE", "complete_bash")

    def complete(*words):
        monkeypatch.setenv("COMP_WORDS", " ".join(words))
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        return run().out.split()

    assert complete("fuse-index", "qu") == ["query"]
    assert complete("fuse-index", "index", "re") == ["refresh", "rebuild"]
    assert complete("fuse-index", "query", "--wh") == ["--where"]


def test_the_shells_own_words_for_completion_are_shown(run, monkeypatch):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    monkeypatch.setattr(program, "_command", program._command.__wrapped__)  # read anew, as the options depend on it

    shown = run("--show-completion", "bash")

    assert shown.code == 0
    assert "_FUSE_INDEX_COMPLETE=complete_bash" in shown.out


def test_where_no_folder_can_be_made_no_table_can(run, people):
    for refused in (run("clone", people, "/proc/none/t"), run("create", "/proc/none/t", "--schema", "id INT")):
        assert refused.code == 1
        assert "cannot be written: No such file or directory; choose a place where folders can be made" in refused.err


def test_explain_of_a_delete_and_what_if_change_nothing(run, people):
    before = run("log", people, "--json").json

    told = run("explain", people, "--delete", "--where", "name = 'name 7'", "--json").json
    tried = run("what-if", people, "bloom", "--columns", "name", "--where", "name = 'name 7'", "--json").json

    assert told["change"]["operation"] == "delete"
    assert [row["where"] for row in tried] == ["name = 'name 7'"]
    suggested = run("suggest", people, "--where", "name = 'name 7'", "--json").json
    assert {row["kind"] for row in suggested} >= {"bloom", "zone_map"}
    assert all(row["blocks_now"] == row["blocks_then"] for row in suggested)  # the table has a bloom on it
    assert run("log", people, "--json").json == before
    assert "say which rows" in run("explain", people, "--delete").err
    assert run("explain", people, "--changes", "1", "--json").json["changes"]["since"] == 1
    assert "give one of them" in run("explain", people, "--changes", "1", "--delete").err
    assert "go together" in run("explain", people, "--search", "red").err
