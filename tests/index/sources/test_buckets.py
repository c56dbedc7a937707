"""A source and its table in two buckets: what must be named, what may not be seen, what is replaced there."""

import io
import json
from collections.abc import Iterator
from typing import Any
from urllib.request import Request, urlopen

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuse_index as fuse
from tests.s3 import aws_client, s3_server

PLAIN: dict[str, Any] = {"use_dictionary": False, "compression": "none", "write_statistics": False}
SHARED = {"shared_places": "s3://lake"}


@pytest.fixture
def options() -> Iterator[dict[str, str]]:
    """Options of a server with the buckets lake and tables, by which both are seen."""
    with s3_server() as options:
        ask(options, "reset")
        for bucket in ("lake", "tables"):
            aws_client("s3", options).create_bucket(Bucket=bucket)
        yield options
        ask(options, "reset-auth", "1e9")


def ask(options: dict[str, str], what: str, data: str = "") -> None:
    """Ask the server itself. ``reset-auth``: after so many requests it refuses those that nobody allowed."""
    headers = {"Content-Type": "text/plain"}
    with urlopen(Request(f"{options['endpoint']}/moto-api/{what}", data.encode(), headers, method="POST")) as answer:
        assert answer.status == 200


def user(options: dict[str, str], bucket: str) -> dict[str, str]:
    """Options of somebody who sees one bucket."""
    iam, name = aws_client("iam", options), f"sees-{bucket}"
    iam.create_user(UserName=name)
    allowed = {"Effect": "Allow", "Action": "s3:*", "Resource": [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    iam.put_user_policy(UserName=name, PolicyName="one", PolicyDocument=policy)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return {**options, **SHARED, "access_key_id": key["AccessKeyId"], "secret_access_key": key["SecretAccessKey"]}


def put(options: dict[str, str], first: int) -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"n": range(first, first + 10)}), file, **PLAIN)
    aws_client("s3", options).put_object(Bucket="lake", Key="t/0.parquet", Body=file.getvalue())


def test_a_table_and_its_source_are_in_two_buckets(options: dict[str, str]) -> None:
    put(options, 0)
    with pytest.raises(fuse.StorageError, match="shared_places"):
        fuse.attach("s3://lake/t", "s3://tables/t", options=options)
    table = fuse.attach("s3://lake/t", "s3://tables/t", options={**options, **SHARED})
    table.create_index("by_n", "bloom", ["n"])
    put(options, 10)  # of the same size, and within a second, as the server tells times

    with pytest.raises(fuse.Corrupt, match=r"lake/t/0\.parquet has changed.* sync the table"):
        table.count("n = 3")
    assert table.sync().added_files == 1
    assert [table.count(f"n = {n}") for n in (3, 13)] == [0, 1]


def test_a_bucket_that_may_not_be_seen_is_named(options: dict[str, str]) -> None:
    put(options, 0)
    fuse.attach("s3://lake/t", "s3://tables/t", options={**options, **SHARED})
    sees_tables, sees_lake = user(options, "tables"), user(options, "lake")
    ask(options, "reset-auth", "0")

    with pytest.raises(fuse.StorageError, match="s3://lake") as refused:
        fuse.open_table("s3://tables/t", options=sees_tables).sync()
    assert "\n" not in str(refused.value)
    with pytest.raises(fuse.StorageError, match="s3://lake"):
        fuse.open_table("s3://tables/t", options=sees_tables).count("n = 3")
    with pytest.raises(fuse.StorageError, match="s3://lake"):
        fuse.attach("s3://lake/t", "s3://tables/other", options=sees_tables)
    with pytest.raises(fuse.StorageError, match="s3://tables/other"):
        fuse.attach("s3://lake/t", "s3://tables/other", options=sees_lake)
