"""The part of a table that writes its page into a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fuse_index.errors import InputError
from fuse_index.table.accounts.explain import ExplainedTable

if TYPE_CHECKING:
    from fuse_index.table.report.sections import PageQuestion


def table_page(table: ExplainedTable, question: PageQuestion) -> str:
    """The page of a table, and what it says to a question."""
    from fuse_index.table.report.page import html_page
    from fuse_index.table.report.sections import table_page_sections

    return html_page(table.name or table.stored.store.url, table_page_sections(table, table.explain, question))


class ReportMixin(ExplainedTable):
    """The part of ``fuse_index.Table`` that is a page."""

    def report(self, path: str | Path, where: str | None = None) -> Path:
        """Write a page about the table into one HTML file, which needs nothing else to be shown.

        Args:
            path: The file, which is replaced.
            where: A condition of which the page says what it skips, and why.

        Returns:
            The file.

        Raises:
            InputError: The file cannot be written.
            StorageError: The store fails.

        Example:
            >>> import tempfile
            >>> table = fuse.create_table("memory://report", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}])
            >>> table.report(f"{tempfile.mkdtemp()}/table.html", "id > 3").name
            'table.html'
        """
        from fuse_index.table.report.sections import PageQuestion

        page = table_page(self, PageQuestion(where or ""))
        try:
            Path(path).write_text(page, "utf-8")
        except OSError as problem:
            raise InputError(f"the report cannot be written to {path}: {problem.strerror}") from problem
        return Path(path)
