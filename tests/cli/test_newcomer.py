"""What a newcomer types: each error names the thing and the value, says what to do, and ends with 1 or 2."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuse_index.cli import program

ARROW = pa.table({"id": [1], "name": ["a"], "city": ["b"]})


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with all that is no rows, and some that are of another table."""
    folder = tmp_path / "files"
    (folder / "empty").mkdir(parents=True)
    (folder / "strays").mkdir()
    (folder / "strays" / "notes.txt").write_text("hello")
    (folder / "plain").write_text("hello")
    (folder / "nothing.csv").write_text("")
    (folder / "nothing.parquet").write_text("")
    (folder / "short.csv").write_text("id,name,city\n1,a\n")
    (folder / "typed.csv").write_text("id,name,city\none,a,b\n")
    (folder / "latin.csv").write_bytes("id,name,city\n1,Zürich,a\n".encode("latin-1"))
    (folder / "other.csv").write_text("a,b\n1,2\n")
    (folder / "open.jsonl").write_text('{"id": 1\n')
    (folder / "array.json").write_text('[{"id": 1, "name": "a", "city": "b"}')
    (folder / "junk.parquet").write_bytes(b"PAR1 and no more PAR1")
    pq.write_table(ARROW, folder / "rows.parquet")
    pq.write_table(ARROW.rename_columns(["id", "nam", "city"]), folder / "other.parquet")
    pq.write_table(ARROW.set_column(0, "id", [["x"]]), folder / "typed.parquet")
    whole = (folder / "rows.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    return folder


def refused(failed, code: int, *words: str) -> None:
    assert failed.code == code, failed
    assert failed.out == ""
    assert "Traceback" not in failed.err
    assert all(word in failed.err for word in words), failed.err
    if code == 1:
        assert failed.err.startswith("error: ")
        assert len(failed.err.splitlines()) <= 4


NO_FILES = {
    "absent.csv": ["no file", "absent.csv"],
    "empty": ["no Parquet, CSV, TSV or JSON file", "empty"],
    "strays": ["no Parquet, CSV, TSV or JSON file", "strays"],
    "plain": ["plain", "--format"],
    "nothing.csv": ["nothing.csv", "csv"],
    "nothing.parquet": ["nothing.parquet", "0 bytes"],
    "junk.parquet": ["junk.parquet", "parquet"],
    "cut.parquet": ["cut.parquet", "parquet"],
    "open.jsonl": ["open.jsonl", "jsonl"],
    "array.json": ["array.json", "the array does not end"],
}
"""Files that are none, and what is said of them."""
NO_ROWS = NO_FILES | {
    "short.csv": ["short.csv", "Expected 3 columns, got 2"],
    "typed.csv": ["typed.csv", "'one'", "int64"],
    "latin.csv": ["latin.csv", "UTF8"],
    "other.csv": ["'a'"],
    "typed.parquet": ["'id'", "int64", "string"],
    "other.parquet": ["'nam'", "did you mean 'name'"],
}
"""Files that hold no rows of the table."""


@pytest.mark.parametrize("command", ["ingest", "overwrite", "merge"])
def test_files_that_are_no_rows_of_a_table_are_named(command, run, people, files):
    by = ["--on", "id"] if command == "merge" else []
    for file, words in NO_ROWS.items():
        refused(run(command, people, files / file, *by), 1, *words)

    assert run("query", people, "--count").out == "30\n"


@pytest.mark.parametrize("command", ["ingest", "overwrite", "merge"])
def test_what_files_are_and_what_means_null_can_be_told_wherever_files_are_taken(command, run, people, tmp_path):
    file = tmp_path / "rows.txt"
    file.write_text("id,name,city\n100,NA,Bern\n")

    assert (
        run(command, people, file, "--format", "csv", "--null", "NA", *(["--on", "id"] * (command == "merge"))).code
        == 0
    )

    assert run("query", people, "--where", "name IS NULL", "--json").json == {"id": 100, "name": None, "city": "Bern"}


def test_a_table_is_made_of_no_file_that_is_none(run, files, tmp_path):
    for file, words in NO_FILES.items():
        refused(run("create", tmp_path / "new", "--like", files / file), 1, *words)

    assert not (tmp_path / "new").exists()


def test_a_file_that_cannot_be_read_is_named(run, people):
    refused(run("ingest", people, "/proc/self/mem", "--format", "csv"), 1, "/proc/self/mem", "Input/output error")


@pytest.mark.parametrize(
    "command", ["query", "log", "show", "explain", "refs", "index list", "suggest", "clustering", "vacuum", "compact"]
)
def test_what_is_no_table_is_named_and_left_alone(command, run, files):
    for place, words in [
        ("absent", "create it first"),
        ("empty", "create it first"),
        ("strays", "'notes.txt'"),
        ("plain", "is a file, and a table is a folder"),
        ("plain/below/it", "which is a file, and a table is a folder"),
    ]:
        refused(run(*command.split(), files / place), 1, place, words)

    assert sorted(path.name for path in (files / "strays").iterdir()) == ["notes.txt"]
    assert not (files / "absent").exists()


def test_an_empty_list_of_columns_is_wrong_usage_and_means_neither_all_nor_none(run, people, files, tmp_path):
    assert run("cluster-by", people, "city").code == run("key-by", people, "id").code == 0
    new = tmp_path / "new"

    for arguments in [
        ("query", people, "--columns", ""),
        ("query", people, "--columns", " , "),
        ("search", people, "", "word"),
        ("clustering", people, "--by", ""),
        ("merge", people, files / "rows.parquet", "--on", ""),
        ("cluster-by", people, ""),
        ("key-by", people, ""),
        ("create", new, "--schema", "id INT", "--cluster-by", ""),
        ("create", new, "--schema", "id INT", "--key", ""),
    ]:
        refused(run(*arguments), 2, "names no column")

    assert run("show", people, "--json").json["cluster_by"] == ["city"]
    assert not new.exists()


def test_advice_is_in_words_of_the_shell(run, people, files):
    for arguments, words in [
        (["drop-column", people, "name"], "--indexes drop"),
        (["move-column", people, "name"], "--first, or --after"),
        (["recluster", people], "`cluster-by`"),
        (["clustering", people], "--by"),
        (["vacuum", people, "--retention", "1m"], "--force"),
        (["merge", people, files / "rows.parquet"], "`key-by`"),
    ]:
        failed = run(*arguments)

        refused(failed, 1, words)
        assert "='" not in failed.err
        assert "([" not in failed.err


def test_a_block_that_is_gone_is_named_with_what_to_do(run, people):
    next(Path(people, "_b").iterdir()).unlink()

    refused(run("query", people, "--limit", 0), 1, "_b/", "there is no such file", "restore the file from a copy")


def test_letters_that_a_terminal_lacks_are_escaped(people, tmp_path, run):
    (tmp_path / "more.csv").write_text("id,name,city\n100,Zoë,Zürich\n", encoding="utf-8")
    assert run("ingest", people, tmp_path / "more.csv").code == 0
    command = [
        sys.executable,
        "-c",
        "from fuse_index.cli.program import main; main()",
        "query",
        people,
        "-w",
        "id = 100",
    ]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}

    printed, as_json = [
        subprocess.run([*command, *more], env=environment, capture_output=True, text=True, check=True).stdout
        for more in ([], ["--json"])
    ]

    assert "Zo\\xeb" in printed
    assert json.loads(as_json) == {"id": 100, "name": "Zoë", "city": "Zürich"}


def test_an_interruption_ends_with_one_word_whenever_it_comes(run, people, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "_command", interrupted)
    ended = run("query", people)

    assert (ended.code, ended.out, ended.err) == (130, "", "interrupted\n")


def test_a_table_whose_writer_was_killed_is_as_it_was_before(run, people, tmp_path):
    more = tmp_path / "more.csv"
    more.write_text("id,name,city\n" + "".join(f"{row},name {row},Bern\n" for row in range(30, 6_000)))
    blocks = Path(people, "_b")
    before = len(list(blocks.iterdir()))
    command = [sys.executable, "-c", "from fuse_index.cli.program import main; main()", "ingest", people, str(more)]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE)
    while len(list(blocks.iterdir())) < before + 5:  # of two thousand
        assert writer.poll() is None
        time.sleep(0.01)
    os.kill(writer.pid, signal.SIGKILL)
    writer.communicate()

    assert run("query", people, "--count").out == "30\n"
    assert len(list(blocks.iterdir())) >= before + 5
    assert run("index", "verify", people, "by_name").code == 0
    assert run("recover", people).err == "nothing is missing\n"
    assert run("query", people, "--where", "name = 'name 7'", "--json").json["id"] == 7
