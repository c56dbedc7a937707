"""Every store keeps one contract; what only some can get wrong is tested below it."""

import errno
import os
import pickle
import socket
import stat
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from moto.s3.models import S3Backend

from fuse_storage import AlreadyExists, Corrupt, MeteredStore, NotFound, StorageError, Store, meter_requests, open_store
from fuse_storage.store.ranges import coalesce_ranges, slice_ranges
from fuse_storage.store.refusals import describe_refusal
from fuse_storage.store.store import RemoteStore
from fuse_storage.testing import Crash, FaultyStore, StoreTests


class TestMemory(StoreTests):
    @pytest.fixture
    def store(self) -> Store:
        return open_store(f"memory://{uuid.uuid4().hex}")


class TestMemoryFolder(StoreTests):
    @pytest.fixture
    def store(self) -> Store:
        return open_store(f"memory://{uuid.uuid4().hex}/a/folder")


class TestLocal(StoreTests):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return open_store(str(tmp_path / "table"))


class TestS3(StoreTests):
    @pytest.fixture
    def store(self, s3: dict[str, str]) -> Store:
        return open_store(f"s3://tables/{uuid.uuid4().hex}", s3)


def test_one_writer_wins_where_a_bucket_is_slow_to_look(s3: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    look = S3Backend.get_object

    def slow_look(*args: Any, **options: Any) -> Any:
        found = look(*args, **options)
        time.sleep(0.005)
        return found

    monkeypatch.setattr(S3Backend, "get_object", slow_look)
    StoreTests().test_of_many_writers_of_one_key_one_wins(open_store(f"s3://tables/{uuid.uuid4().hex}", s3))


class TestMetered(StoreTests):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return meter_requests(open_store(tmp_path))


def test_urls_name_stores(tmp_path: Path, s3: dict[str, str]) -> None:
    assert open_store(tmp_path).url == str(tmp_path)
    assert open_store(f"file://{tmp_path}/with%20space").url == f"{tmp_path}/with space"
    assert open_store(os.path.relpath(tmp_path)).url == str(tmp_path)
    assert open_store(f"file:{tmp_path}").url == open_store(f"file://{tmp_path}").url == str(tmp_path)
    assert open_store("memory://x/").url == "memory://x"
    assert open_store("s3a://tables/a/b/", s3).url == "s3://tables/a/b"


def test_a_folder_in_memory_is_a_part_of_what_is_around_it() -> None:
    name = uuid.uuid4().hex
    around, folder, beside = (open_store(f"memory://{name}{path}") for path in ("", "/a", "/ab"))
    folder.create("b/c", b"x")
    beside.create("d", b"y")

    assert sorted(found.key for found in around.list()) == ["a/b/c", "ab/d"]
    assert [found.key for found in folder.list()] == ["b/c"]
    assert around.read("a/b/c") == pickle.loads(pickle.dumps(folder)).read("b/c")
    around.delete(["a/b/c"])
    assert list(folder.list()) == []


@pytest.mark.parametrize("url", ["", "ftp://host/x", "hdfs://name/x"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(StorageError):
        open_store(url)


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(StorageError, match="bogus"):
        open_store("s3://tables/x", {"bogus": "1"})


def test_memory_of_one_name_is_one_store() -> None:
    name = uuid.uuid4().hex
    open_store(f"memory://{name}").create("a", b"1")

    assert open_store(f"memory://{name}").read("a") == b"1"
    assert list(open_store(f"memory://{name}-other").list()) == []


# --- a folder


def test_nothing_staged_is_left_or_listed(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.create("a", b"1")
    store.create("a", b"1")
    with pytest.raises(AlreadyExists):
        store.create("a", b"2")
    (tmp_path / "_tmp" / "left-by-a-crash").write_bytes(b"half")

    assert [found.key for found in store.list()] == ["a"]
    assert os.listdir(tmp_path / "_tmp") == ["left-by-a-crash"]


def test_a_full_disk_does_not_stay_full_of_a_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store = open_store(tmp_path)
    store.create("a", b"1")
    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(StorageError, match="b: No space left"):
        store.create("b", b"2")

    assert list((tmp_path / "_tmp").iterdir()) == []


def test_drafts_of_a_crash_are_removed_a_day_later(tmp_path: Path) -> None:
    (tmp_path / "_tmp").mkdir()
    for name, age in (("old", 25 * 3600), ("young", 3600)):
        (tmp_path / "_tmp" / name).write_bytes(b"half")
        os.utime(tmp_path / "_tmp" / name, (time.time() - age,) * 2)

    open_store(tmp_path).create("a", b"1")

    assert os.listdir(tmp_path / "_tmp") == ["young"]


def test_files_can_be_read_by_whom_the_umask_allows(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        open_store(tmp_path).create("a", b"1")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644


def test_a_local_path_is_known(tmp_path: Path) -> None:
    assert open_store(tmp_path).path("a/b") == f"{tmp_path}/a/b"
    assert meter_requests(open_store(tmp_path)).path("a/b") is None
    assert open_store("memory://x").path("a/b") is None


def test_a_file_system_without_hard_links_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)

    with pytest.raises(StorageError, match="hard links") as raised:
        open_store(tmp_path).create("a", b"1")

    assert str(tmp_path) in str(raised.value)
    assert not (tmp_path / "a").exists()
    assert os.listdir(tmp_path / "_tmp") == []


def test_what_the_disk_refuses_names_the_key(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.create("file", b"1")

    with pytest.raises(StorageError, match="file/below"):
        store.create("file/below", b"2")
    with pytest.raises(StorageError, match=r"x{300}: File name too long"):
        store.create("x" * 300, b"")
    with pytest.raises(NotFound, match="file/below"):
        store.read("file/below")


def test_two_processes_agree_on_one_winner(tmp_path: Path) -> None:
    program = (
        "import sys, fuse_storage as f\n"
        "try: f.open_store(sys.argv[1]).create('k', sys.argv[2].encode())\n"
        "except f.AlreadyExists: sys.exit(3)"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path), str(number)]) for number in range(4)]

    ended = [process.wait() for process in running]

    assert sorted(ended) == [0, 3, 3, 3]
    assert open_store(tmp_path).read("k").decode() == str(ended.index(0))


# --- an object store


def test_options_can_come_from_the_environment(s3: dict[str, str]) -> None:
    program = (
        "import fuse_storage as f; s = f.open_store('s3://tables/environment'); s.create('a', b'1'); print(s.read('a'))"
    )
    environment = {
        **os.environ,
        "AWS_ENDPOINT": s3["endpoint"],
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }

    assert subprocess.check_output([sys.executable, "-c", program], env=environment) == b"b'1'\n"


def test_what_a_bucket_refuses_names_the_key_and_no_secret(s3: dict[str, str]) -> None:
    store = open_store("s3://no-such-bucket/x", {**s3, "secret_access_key": "very-secret"})

    with pytest.raises(StorageError, match="s3://no-such-bucket/x/a") as raised:
        store.create("a", b"1")

    assert "very-secret" not in str(raised.value) + repr(store)


def closed_port() -> str:
    """A URL on this machine where nobody answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize(
    ("url", "options", "words"),
    [
        ("s3://bucket/t", {"metadata_endpoint": closed_port(), "region": "us-east-1"}, "AWS_ACCESS_KEY_ID"),
        ("abfs://container/t", {}, "AZURE_STORAGE_ACCOUNT_NAME"),
    ],
)
def test_who_has_no_credentials_is_told_how_to_give_them(
    url: str, options: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith(("AWS_", "AZURE_"))]:
        monkeypatch.delenv(name)

    with pytest.raises(StorageError) as refused:
        open_store(url, options).read("key")

    assert words in str(refused.value)
    assert "skip_signature" in str(refused.value)
    assert "/latest/" not in str(refused.value)


@pytest.mark.parametrize(
    "said",
    [
        "Error performing PUT http://169.254.169.254/latest/api/token in 1 s",
        "Error performing token request: Error performing GET http://169.254.169.254/computeMetadata/v1/instance/…",
        "Error performing GET http://127.0.0.1:9/b?list-type=2 - status code: 403 Forbidden: InvalidAccessKeyId",
    ],
)
@pytest.mark.parametrize("scheme", ["s3", "gs", "az", "abfs", "abfss"])
def test_a_store_that_knows_nobody_is_told_in_words_of_its_own(scheme: str, said: str) -> None:
    message = describe_refusal(f"{scheme}://b/t", "key", OSError(said))

    assert message.startswith(f"{scheme}://b/t/key: ")
    assert "skip_signature" in message
    assert ("InvalidAccessKeyId" in message) == ("403" in said)


def test_many_ranges_of_a_remote_object_are_fetched_at_once(s3: dict[str, str]) -> None:
    store = open_store(f"s3://tables/{uuid.uuid4().hex}", s3)
    data = os.urandom(8 << 20)
    store.create("big", data)
    ranges = [(offset, 100) for offset in range(0, 8 << 20, 1 << 20)]

    assert store.read_ranges("big", ranges) == [data[offset : offset + 100] for offset, _ in ranges]
    assert isinstance(pickle.loads(pickle.dumps(store)), RemoteStore)


# --- reading together what is near


def test_near_ranges_are_joined_and_far_ones_are_not() -> None:
    assert coalesce_ranges([(100, 10), (0, 10), (15, 5), (12, 1)], gap=5) == [(0, 20), (100, 10)]
    assert coalesce_ranges([(0, 10), (10, 10)], gap=0) == [(0, 20)]
    assert coalesce_ranges([(0, 10), (11, 10)], gap=0) == [(0, 10), (11, 10)]
    assert coalesce_ranges([(0, 100), (10, 5)], gap=0) == [(0, 100)]
    assert coalesce_ranges([(5, 0)], gap=0) == []


def test_ranges_are_carved_out_of_what_was_fetched() -> None:
    assert slice_ranges([(12, 3), (1, 2), (7, 0)], [(0, 4), (10, 6)], [b"abcd", b"klmnop"], "x") == [b"mno", b"bc", b""]
    with pytest.raises(Corrupt, match="x ends at byte 3"):
        slice_ranges([(0, 4)], [(0, 4)], [b"abc"], "x")


# --- counting


def test_requests_and_bytes_are_counted_as_fetched(tmp_path: Path) -> None:
    store = meter_requests(open_store(tmp_path))
    store.create("a", b"x" * 100_000)

    store.read("a")
    store.read_ranges("a", [(0, 10), (20, 10), (50_000, 10)])
    list(store.list())

    assert store.reads == [("read", "a", 100_000), ("read_ranges", "a", 30), ("read_ranges", "a", 10), ("list", "", 0)]
    assert store.bytes_read == 100_040
    assert store.writes == [("create", "a", 100_000)]
    assert (store.request_count, store.bytes_written) == (5, 100_000)
    store.reset()
    assert store.request_count == 0


def test_counts_stay_behind_when_pickled(tmp_path: Path) -> None:
    store = meter_requests(open_store(tmp_path))
    store.create("a", b"1")

    copy = pickle.loads(pickle.dumps(store))

    assert isinstance(copy, MeteredStore)
    assert (copy.read("a"), copy.request_count) == (b"1", 1)


# --- breaking


def test_a_crash_before_writes_nothing_and_nothing_after() -> None:
    store = open_store(f"memory://{uuid.uuid4().hex}")
    faulty = FaultyStore(store, 2, "before")
    faulty.create("1", b"")
    for key in ("2", "3"):
        with pytest.raises(Crash):
            faulty.create(key, b"")

    assert [found.key for found in store.list()] == ["1"]


def test_a_crash_after_has_written() -> None:
    store = open_store(f"memory://{uuid.uuid4().hex}")
    with pytest.raises(Crash):
        FaultyStore(store, 1, "after").create("1", b"")

    assert [found.key for found in store.list()] == ["1"]
