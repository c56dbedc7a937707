"""What pages say of Spark is done as it stands there, in the session of the tests."""

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, Block, Reader, blocks

SHELL = ("sh", "console")


def up_to_spark(page: Path) -> list[Block]:
    """The blocks of a page up to the last that needs Spark, and what that prints: tests/docs does what follows."""
    found = blocks(page)
    ends = [number for number, block in enumerate(found, 2) if block.needs_spark and block.runs]
    return found[: max(ends, default=0)]


WITH_SPARK = [page for page in PAGES if up_to_spark(page)]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_pages_are_about_spark():
    assert {"README.md", "docs/spark.md", "docs/table-life.md", "docs/aggregate.md"} <= set(map(named, WITH_SPARK))


@pytest.mark.parametrize("page", WITH_SPARK, ids=named)
def test_what_a_page_says_is_done_as_it_stands_there(page, spark, tmp_path):
    reader = Reader(tmp_path)

    for block in up_to_spark(page):
        reader.follow(block, skip=block.language in SHELL and not block.needs_spark)  # tests/docs types the others
