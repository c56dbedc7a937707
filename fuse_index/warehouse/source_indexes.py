"""Indexes of sources, kept in a warehouse: tables for votes alone, found by where their sources are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import fuse_storage as storage
from fuse_index.errors import InputError
from fuse_index.indexes.define import MAX_INDEX_NAME
from fuse_index.sources.formats import detect_format, open_source
from fuse_index.sources.location import normal_location
from fuse_index.table.open import attach
from fuse_index.table.table import Table
from fuse_index.warehouse.handle import SOURCE_INDEXES, tables_within
from fuse_index.warehouse.tables import TablesMixin
from fuse_storage import (
    AlreadyExists,
    CatalogTable,
    Conflict,
    CreateNamespace,
    DropTable,
    Identifier,
    NotFound,
    Shown,
    SourceVersion,
    StorageError,
)

_MAX_SHOWN_NAME = 40


@dataclass(frozen=True, slots=True, repr=False)
class SourceIndex(Shown):
    """A table for votes alone of a warehouse. ``location``: of the source, by which it is found. ``url``: of the table.

    ``indexes``: their names. ``problem``: why the table cannot be opened, if so, and what to do.
    """

    _shown = "source format indexes location url problem"

    source: str
    format: str
    location: str
    url: str
    indexes: tuple[str, ...]
    problem: str = ""


class SourceIndexesMixin(TablesMixin):
    """The part of ``fuse_index.Catalog`` that keeps indexes of Parquet folders, Delta and Iceberg tables."""

    def index_source(
        self,
        source: str | Path,
        kind: str,
        columns: Sequence[str],
        name: str | None = None,
        *,
        format: str | None = None,  # noqa: A002  # as attach has it
        **options: Any,
    ) -> Table:
        """Give a Parquet folder, a Delta or an Iceberg table an index, which its own readers ask.

        Nothing is written at the source. The warehouse keeps one table for votes alone of each source, made with its
        first index; no listing of tables shows it.

        Args:
            source: The folder, or the path or URL of the Delta or Iceberg table, as for ``fuse_index.attach``.
            kind: Which kind of index, such as ``"bloom"``.
            columns: Names, or terms such as ``lower(email)``.
            name: Of the index; by default made of the kind and the columns.
            format: ``"parquet"``, ``"delta"`` or ``"iceberg"``; by default told by what lies there.
            options: Of the kind.

        Returns:
            The table for votes alone, with the index built.

        Raises:
            NotFound: There is no source.
            DefinitionError: There is an index of this name, no such kind, or the kind refuses the columns or options.
            InputError: The source is none of this format, or has indexes as one of another.
            StorageError: A store fails.

        Example:
            >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
            >>> folder, warehouse = tempfile.mkdtemp(), tempfile.mkdtemp()
            >>> pq.write_table(pa.table({"id": [1, 2]}), f"{folder}/part.parquet")
            >>> table = fuse.catalog(warehouse, create=True).index_source(folder, "bloom", ["id"])
            >>> list(table.snapshot.definitions), table.explain("id = 7").blocks.kept
            (['bloom_id'], 0)
        """
        table = self.source_index(source, format)
        table.create_index(name or default_index_name(kind, columns), kind, columns, **options)
        return table

    def source_index(self, source: str | Path, format: str | None = None) -> Table:  # noqa: A002
        """Open the table for votes alone of a source, or make it, without an index, if it is not there.

        Args:
            source: As for ``index_source``.
            format: As for ``index_source``.

        Returns:
            The table. Of two that make it at once both get one and the same.

        Raises:
            NotFound: There is no source.
            InputError: The source is none of this format, or has indexes as one of another.
            StorageError: A store fails.

        Example:
            >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
            >>> folder, warehouse = tempfile.mkdtemp(), tempfile.mkdtemp()
            >>> pq.write_table(pa.table({"id": [1, 2]}), f"{folder}/part.parquet")
            >>> fuse.catalog(warehouse, create=True).source_index(folder).snapshot.votes_only
            True
        """
        options = dict(getattr(self.warehouse.store, "options", None) or {})
        chosen = format or detect_format(str(source), options)
        opened = open_source(chosen, str(source), options)
        location = normal_location(opened.location())
        if (known := self._open_or_forget(location)) is not None:
            return _of_format(known, chosen)
        about = {"source": opened.url, "format": chosen, "location": location}
        with suppress(AlreadyExists):
            self.warehouse.commit(lambda state: [CreateNamespace(SOURCE_INDEXES, {})])
        try:
            staged = storage.stage_table(
                self.warehouse,
                _identifier(location),
                lambda store: attach(opened.url, store.url, chosen, votes_only=True, options=options, host=self.host),
                about,
            )
            staged.commit()
        except AlreadyExists:
            if (known := self.find_source_index(location)) is None:
                raise
            return _of_format(known, chosen)
        return staged.table

    def find_source_index(self, location: str) -> Table | None:
        """Open the table for votes alone of the source at a place, however that is spelt.

        Args:
            location: The folder of the source, such as ``"s3a://lake/orders"``.

        Returns:
            The table; None if the warehouse has none of this source, or its files are gone.

        Raises:
            StorageError: The store fails.

        Example:
            >>> fuse.catalog("memory://find-source", create=True).find_source_index("/lake/orders") is None
            True
        """
        with suppress(NotFound):
            return self.load_table(_identifier(normal_location(location)))
        return None

    def source_places(self) -> dict[tuple[str, str], Identifier]:
        """Map the format and place of each source that has indexes to the identifier of its table for votes alone.

        Returns:
            Identifiers for ``load_table``; nothing but the warehouse's state is read.

        Raises:
            StorageError: The store fails.

        Example:
            >>> fuse.catalog("memory://source-places", create=True).source_places()
            {}
        """
        tables = self._source_tables()
        return {(each.properties["format"], each.properties["location"]): each.identifier for each in tables}

    def source_indexes(self) -> list[SourceIndex]:
        """List the sources that have indexes in the warehouse.

        Returns:
            Each with its format, where its table for votes alone is, and the names of its indexes; or, with a
            ``problem``, why that table cannot be opened.

        Raises:
            StorageError: The store fails.

        Example:
            >>> fuse.catalog("memory://source-indexes", create=True).source_indexes()
            []
        """
        return [self._describe(each) for each in self._source_tables()]

    def drop_source_index(self, source: str | Path) -> None:
        """Forget all indexes of a source: its readers read as ever. ``purge_dropped`` deletes the files later.

        Args:
            source: As for ``index_source``, or its location.

        Raises:
            NotFound: The warehouse has no index of this source.
            StorageError: The store fails.

        Example:
            >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
            >>> folder, warehouse = tempfile.mkdtemp(), tempfile.mkdtemp()
            >>> pq.write_table(pa.table({"id": [1, 2]}), f"{folder}/part.parquet")
            >>> catalog = fuse.catalog(warehouse, create=True)
            >>> table = catalog.index_source(folder, "bloom", ["id"])
            >>> catalog.drop_source_index(folder)
            >>> catalog.source_indexes()
            []
        """
        known = self._source_tables()
        wanted = {str(source), normal_location(str(source))}
        found = next(
            (each for each in known if wanted & {each.properties["source"], each.properties["location"]}), None
        )
        if found is None:
            raise NotFound(no_index_problem(str(source), (each.properties["source"] for each in known)))
        self.drop_table(found.identifier)

    def _source_tables(self) -> list[CatalogTable]:
        try:
            tables = tables_within(self.warehouse.state(), SOURCE_INDEXES)
        except NotFound:
            return []
        return [each for each in tables if "location" in each.properties]

    def _describe(self, table: CatalogTable) -> SourceIndex:
        about, url = table.properties, self._table_store(table).url
        names, problem = tuple[str, ...](), ""
        try:
            names = tuple(self.load_table(table.identifier).snapshot.definitions)
        except NotFound:
            problem = "its files are gone: index the source anew, or drop its index"
        except StorageError as damage:
            problem = str(damage)
        return SourceIndex(about["source"], about["format"], about["location"], url, names, problem)

    def _open_or_forget(self, location: str) -> Table | None:
        """Open the table of a source; one whose files are gone loses its name, for another to be made."""
        with suppress(NotFound):
            named = self.find_table(_identifier(location))
            with suppress(NotFound):
                return self.load_table(named.identifier)
            with suppress(Conflict):  # another session made it anew meanwhile
                self.warehouse.commit(lambda state: [DropTable(storage.same_table(state, named).id, named.identifier)])
        return None


def no_index_problem(source: str, others: Iterable[str]) -> str:
    """A sentence on a source that has no index. ``others``: those that have one.

    >>> no_index_problem("/lake/b", ["/lake/a"])
    'the warehouse has no index of /lake/b: there are indexes of /lake/a'
    >>> no_index_problem("/lake/b", [])
    'the warehouse has no index of /lake/b, nor of any other source'
    """
    shown = ", ".join(sorted(others))
    hint = f": there are indexes of {shown}" if shown else ", nor of any other source"
    return f"the warehouse has no index of {source}{hint}"


def default_index_name(kind: str, columns: Sequence[str]) -> str:
    """The name of an index that got none: of its kind and what it is on.

    A digest stands for what such a name cannot hold: letters that are not ASCII's, and more than fit.

    >>> default_index_name("bloom", ["lower(email)"]), default_index_name("bloom", ["größe"])
    ('bloom_lower_email', 'bloom_gr_e_d353a267')
    """
    name = "_".join([kind, *(re.sub(r"[^A-Za-z0-9_]+", "_", each).strip("_") for each in columns)])
    if len(name) <= MAX_INDEX_NAME and all(each.isascii() for each in columns):
        return name
    digest = "_" + sha256("\n".join(columns).encode()).hexdigest()[:8]
    return name[: MAX_INDEX_NAME - len(digest)] + digest


def _of_format(table: Table, format_: str) -> Table:
    """The table, whose source is of this format. Raises InputError for one of another."""
    source = SourceVersion.of(table.snapshot)
    if source.format != format_:
        raise InputError(f"format={format_!r}: {source.url} has indexes as {source.format}: drop these first")
    return table


def _identifier(location: str) -> Identifier:
    """The name of the table of a source: the same in all sessions."""
    shown = re.sub(r"\W", "_", location.rpartition("/")[2])[:_MAX_SHOWN_NAME]
    return (*SOURCE_INDEXES, f"{shown}-{sha256(location.encode()).hexdigest()[:24]}".lstrip("-"))
