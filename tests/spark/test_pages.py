"""What pages say of Spark is done as it stands there, in the session of the tests."""

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, Reader, blocks

WITH_SPARK = [page for page in PAGES if any(block.needs_spark for block in blocks(page))]
SHELL = ("sh", "console")


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_pages_are_about_spark():
    assert {"README.md", "docs/spark.md", "docs/table-life.md", "docs/aggregate.md"} <= set(map(named, WITH_SPARK))


@pytest.mark.parametrize("page", WITH_SPARK, ids=named)
def test_what_a_page_says_is_done_as_it_stands_there(page, spark, tmp_path):
    reader = Reader(tmp_path)

    for block in blocks(page):
        reader.follow(block, skip=block.language in SHELL and not block.needs_spark)  # tests/docs types the others
