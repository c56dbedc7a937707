"""Which tables vote on files of which sources, in a session: those that it was given, and those of its warehouses."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from threading import Lock, Thread
from typing import Literal

from fuse_index.indexes.registry import Host
from fuse_index.sources.formats import open_source
from fuse_index.sources.location import normal_location
from fuse_index.spark.foreign.source_index import describe_source_index
from fuse_index.spark.native.snapshot_planner import SnapshotPlanner, state_key
from fuse_index.spark.protocol.questions import FindSourceIndex
from fuse_index.spark.protocol.replies import Framed
from fuse_index.table.sources import refresh_if_due
from fuse_index.table.table import Table
from fuse_index.warehouse.catalog import Catalog
from fuse_storage import SourceVersion, StoredTable

_logger = logging.getLogger("fuse_index.spark")
_Place = tuple[str, str]
"""The format of a source, and where it is, as ``normal_location`` writes it."""


class SourceIndexes:
    """The tables that vote on files of sources, by the places of these. A ``SourceIndexFinder``."""

    def __init__(self, callback_key: str, planner: SnapshotPlanner) -> None:
        self._callback_key = callback_key
        self._planner = planner
        self._lock = Lock()
        self._used: dict[_Place, Callable[[], Table]] = {}
        self._warehouses: dict[str, Catalog] = {}
        self._refreshing: set[str] = set()

    def with_planner(self, planner: SnapshotPlanner) -> SourceIndexes:
        """Make another that knows the tables of this one, and has another planner vote."""
        other = SourceIndexes(self._callback_key, planner)
        other._used, other._warehouses = self._used, self._warehouses
        return other

    def use(self, table: StoredTable, options: Mapping[str, str]) -> None:
        """Ask this table about files of its source, before any of a warehouse. ``options``: of its store.

        Raises InvalidArgument for a table that was attached to nothing, StorageError where its source has no place.
        """
        source = SourceVersion.of(table.snapshot)
        location = open_source(source.format, source.url, options).location()
        with self._lock:
            self._used[source.format, normal_location(location)] = partial(
                _open_again, table.store.url, dict(options), self._planner.host
            )

    def use_warehouse(self, name: str, warehouse: Catalog) -> None:
        """Ask the tables that a warehouse keeps for sources. ``name``: of its catalogue in this session."""
        with self._lock:
            self._warehouses[name] = warehouse

    def first_warehouse(self) -> Catalog | None:
        """The warehouse that the session was given first; None where it has none."""
        with self._lock:
            return next(iter(self._warehouses.values()), None)

    def forget(self, format_: str, location: str) -> bool:
        """Use the table that was given for a source no longer; whether there was one."""
        with self._lock:
            return self._used.pop((format_, normal_location(location)), None) is not None

    def find(self, question: FindSourceIndex) -> Framed | Literal["unchanged"] | None:
        table = self.find_table(question.format, question.location)
        if table is None:
            return None
        self._refresh_if_due(table, question.unknown_files)
        stored = table.stored
        if (stored.store.url, state_key(stored)) == (question.url, question.snapshot):
            return "unchanged"
        listing = self._planner.register_votes(stored, dict(getattr(stored.store, "options", None) or {}))
        return describe_source_index(stored, self._callback_key, listing)

    def find_table(self, format_: str, location: str) -> Table | None:
        """Open the table that votes on files of a source; None where there is none.

        The source is at this place, or above it, or for want of such a one below it. Raises StorageError.
        """
        place = normal_location(location)
        with self._lock:
            used, warehouses = dict(self._used), list(self._warehouses.values())
        if (found := _nearest(used, format_, place)) is not None:
            return used[found]()
        for warehouse in warehouses:
            places = warehouse.source_places()
            if (found := _nearest(places, format_, place)) is not None:
                return warehouse.load_table(places[found])
        return None

    def _refresh_if_due(self, table: Table, unknown_files: int) -> None:
        """Have a thread of its own sync a table for votes alone, where its properties say so: no query waits for it."""
        url = table.stored.store.url
        with self._lock:
            if not table.snapshot.votes_only or url in self._refreshing:
                return
            self._refreshing.add(url)

        def refresh() -> None:
            try:
                refresh_if_due(table, unknown_files)
            except Exception:
                _logger.warning("%s could not be brought to the state of its source", url, exc_info=True)
            finally:
                with self._lock:
                    self._refreshing.discard(url)

        Thread(target=refresh, name="fuse-index refresh", daemon=True).start()


def _open_again(url: str, options: Mapping[str, str], host: Host) -> Table:
    return Table(StoredTable.open(url, options=options), host)


def _nearest(places: Iterable[_Place], format_: str, place: str) -> _Place | None:
    """The source at a place, the nearest above it or, for want of one, the first below it."""
    known = [each for each in places if each[0] == format_]
    above = [each for each in known if f"{place}/".startswith(f"{each[1]}/")]
    below = [each for each in known if each[1].startswith(f"{place}/")]
    return max(above, key=lambda each: len(each[1]), default=None) or min(below, default=None)
