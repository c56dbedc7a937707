"""The words of SQL for what errors keep as values: names of tables, statements and procedures."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from fuse_storage import Operation, Words

_STATEMENTS = {
    "add_column": "ALTER TABLE … ADD COLUMN",
    "append": "INSERT INTO",
    "apply": "MERGE INTO",
    "cluster_by": "ALTER TABLE … CLUSTER BY (…)",
    "delete_keys": "DELETE",
    "key_by": "ALTER TABLE … SET TBLPROPERTIES ('key' = …)",
    "upsert": "INSERT INTO",
}
"""The statements that do what operations of a table do, by these."""
_CLAUSES = {
    ("create_table", "cluster_by"): "CLUSTER BY (…)",
    ("create_table", "key"): "TBLPROPERTIES ('key' = …)",
    ("create_table", "partition_by"): "PARTITIONED BY (…)",
    ("create_table", "primary_key"): "TBLPROPERTIES ('primary_key' = …)",
    ("drop_namespace", "cascade"): "CASCADE",
    ("drop_table", "purge"): "PURGE",
    ("merge", "on"): "ON",
    ("merge", "merge_schema"): "WITH SCHEMA EVOLUTION",
    ("move_column", "after"): "AFTER",
    ("move_column", "first"): "FIRST",
}
"""The clauses that say what arguments do, by their operation and name."""


class SqlWords(Words):
    """The words of a catalogue ``name``. ``procedures``: its own; ``tables``: names of tables by their places."""

    def __init__(self, name: str, procedures: Collection[str], tables: Mapping[str, str]) -> None:
        self._name, self._procedures, self._tables = name, procedures, tables

    def table(self, url: str) -> str:
        return self._tables.get(url, url)

    def operation(self, meant: Operation) -> str:
        if not meant.whole:
            return ", ".join(self._argument(meant, name, value) for name, value in meant.arguments)
        if meant.name in _STATEMENTS:
            return _STATEMENTS[meant.name]
        procedure = {"list_dropped": "dropped"}.get(meant.name, meant.name)
        if procedure not in self._procedures:
            return super().operation(meant)
        return f"CALL {self._name}.system.{procedure}()"

    def _argument(self, meant: Operation, name: str, value: Any) -> str:
        if (meant.name, name) in _CLAUSES:
            return _CLAUSES[meant.name, name]
        if meant.name in self._procedures and isinstance(value, bool):
            return f"{name} => {str(value).lower()}"
        return super().operation(Operation(meant.name, ((name, value),), whole=False))
