"""The commands of ``fuse-index`` by task, each with what it does and an example: known without importing one of them.

The help of the program is made of this table alone, and so are the pages of the reference. A command's module is
imported when it is run, asked for help, or completed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """A command, or a group of some. ``app``: what holds it, as ``module:name`` below ``fuse_index.cli``."""

    app: str
    summary: str
    example: str


COMMANDS_BY_TASK: Mapping[str, Mapping[str, Command]] = {
    "Make a table and ask it": {
        "create": Command(
            "tables:tables_app", "Make an empty table.", 'create /data/events --schema "id BIGINT, email STRING"'
        ),
        "ingest": Command(
            "tables:tables_app", "Append files to a table, in one commit.", "ingest /data/events events.parquet"
        ),
        "query": Command(
            "tables:tables_app",
            "Print the rows that a condition is true on, or aggregates of them.",
            "query /data/events --where \"email = 'ann@example.com'\"",
        ),
        "lookup": Command(
            "tables:tables_app", "Print the rows of primary keys.", "lookup /data/people --key id=7 --key id=8"
        ),
        "search": Command(
            "tables:tables_app", "Print the best rows for a query.", 'search /data/mails body "+late refund*"'
        ),
        "explain": Command(
            "accounts.explain:accounts_app",
            "Say which index was asked, and which blocks it removed.",
            "explain /data/events --where \"email = 'ann@example.com'\"",
        ),
        "show": Command(
            "inspect:inspect_app", "Show what a table holds, or list its parts.", "show /data/events blocks"
        ),
    },
    "Indexes": {
        "index": Command(
            "index:index_app",
            "Build, look at and check the indexes of a table.",
            "index create /data/events by_email --kind bloom --columns email",
        ),
        "what-if": Command(
            "accounts.explain:accounts_app",
            "Say what an index that is not there would leave out.",
            "what-if /data/events bloom --columns email --where \"email = 'ann@example.com'\"",
        ),
        "suggest": Command(
            "clustering:clustering_app", "Say which columns an index or clustering might help.", "suggest /data/events"
        ),
        "plugins": Command(
            "kinds.installed:plugins_app", "List the index kinds that are installed.", "plugins show bloom"
        ),
        "plugin": Command("kinds.new_plugin:plugin_app", "Write index kinds of your own.", "plugin new endings"),
    },
    "Change rows": {
        "update": Command(
            "rows:rows_app",
            "Give columns other values in some rows.",
            'update /data/people --set "city = \'Bonn\'" --where "id = 7"',
        ),
        "delete": Command("rows:rows_app", "Delete rows.", 'delete /data/events --where "id < 1000"'),
        "delete-keys": Command(
            "rows:rows_app", "Delete the rows of primary keys.", "delete-keys /data/people gone.csv"
        ),
        "overwrite": Command("rows:rows_app", "Replace rows by those of files.", "overwrite /data/events new.parquet"),
        "merge": Command(
            "rows:rows_app", "Bring in the rows of files by their keys.", "merge /data/people changes.csv --on id"
        ),
    },
    "Versions": {
        "log": Command("inspect:inspect_app", "List the commits of a table, newest first.", "log /data/events -n 5"),
        "diff": Command("history:history_app", "Say what changed between two snapshots.", "diff /data/events release"),
        "changes": Command(
            "history:history_app", "Print the rows that changed between two snapshots.", "changes /data/events release"
        ),
        "tag": Command("history:history_app", "Name a snapshot.", "tag /data/events release --expires 90d"),
        "untag": Command("history:history_app", "Forget a tag.", "untag /data/events release"),
        "branch": Command(
            "history:history_app", "Begin a branch at a snapshot, or end one.", "branch /data/events trial"
        ),
        "fast-forward": Command(
            "history:history_app", "Bring a branch to where another is.", "fast-forward /data/events trial"
        ),
        "restore": Command("history:history_app", "Make a table what it was.", "restore /data/events release"),
        "refs": Command("inspect:inspect_app", "List the branches and tags of a table.", "refs /data/events"),
        "clone": Command(
            "history:history_app", "Make a new table that shares the files of one.", "clone /data/events /data/trial"
        ),
    },
    "Columns and settings": {
        "set": Command(
            "tables:tables_app", "Set properties of a table, or remove some.", "set /data/events hot_rows=1000"
        ),
        "add-column": Command("columns:columns_app", "Add a column.", "add-column /data/events city STRING"),
        "drop-column": Command("columns:columns_app", "Drop a column.", "drop-column /data/events city"),
        "rename-column": Command("columns:columns_app", "Rename a column.", "rename-column /data/events city town"),
        "move-column": Command("columns:columns_app", "Move a column.", "move-column /data/events city --first"),
        "change-type": Command(
            "columns:columns_app", "Widen the type of a column.", "change-type /data/events n BIGINT"
        ),
        "set-nullable": Command(
            "columns:columns_app", "Let a column hold NULL, or forbid it.", "set-nullable /data/events city"
        ),
        "set-default": Command(
            "columns:columns_app",
            "Choose what a column holds in rows that come without it.",
            "set-default /data/events city Bonn",
        ),
        "key-by": Command("columns:columns_app", "Say which columns identify a row.", "key-by /data/events id"),
        "cluster-by": Command(
            "clustering:clustering_app",
            "Choose by which columns rows are kept together.",
            "cluster-by /data/events city",
        ),
    },
    "Upkeep": {
        "maintain": Command(
            "upkeep.maintain:upkeep_app", "Do what is due at tables.", "maintain /data/shop --every 5m"
        ),
        "tier": Command("rows:rows_app", "Move hot rows into sorted, indexed blocks.", "tier /data/people --every 30s"),
        "compact": Command("rows:rows_app", "Join small blocks.", "compact /data/events"),
        "recluster": Command(
            "clustering:clustering_app", "Sort blocks that overlap by the clustering key.", "recluster /data/events"
        ),
        "clustering": Command(
            "clustering:clustering_app", "Tell how well blocks are clustered.", "clustering /data/events --by city"
        ),
        "vacuum": Command(
            "history:history_app",
            "Delete files that no snapshot needs.",
            "vacuum /data/events --retention 7d --no-dry-run",
        ),
        "recover": Command(
            "history:history_app", "Make the lost refs of a table anew.", "recover /data/events --dry-run"
        ),
    },
    "Tables of others": {
        "attach": Command(
            "foreign:foreign_app",
            "Make a table over files that others write.",
            "attach /data/delta/orders /data/orders --format delta",
        ),
        "sync": Command(
            "foreign:foreign_app", "Bring an attached table to a state of its source.", "sync /data/orders"
        ),
        "convert": Command("foreign:foreign_app", "Make an attached table one of its own.", "convert /data/orders"),
        "export": Command(
            "foreign:foreign_app", "Let readers of Delta or Iceberg read a table.", "export /data/events --format delta"
        ),
        "index-source": Command(
            "foreign:foreign_app",
            "Give a source an index, which its own readers ask.",
            "index-source /data/delta/orders --kind bloom --columns id --warehouse /data/w",
        ),
        "source-indexes": Command(
            "foreign:foreign_app", "List the sources that have indexes.", "source-indexes --warehouse /data/w"
        ),
        "drop-source-index": Command(
            "foreign:foreign_app",
            "Forget all indexes of a source.",
            "drop-source-index /data/delta/orders --warehouse /data/w",
        ),
    },
    "Names and servers": {
        "catalog": Command(
            "catalog:catalog_app", "Make, list, rename and drop the names of a warehouse.", "catalog init /data/w"
        ),
        "ui": Command("servers.ui:ui_app", "Look at a table or a warehouse in a browser.", "ui /data/events --open"),
        "report": Command(
            "servers.ui:ui_app", "Write what there is of a table to one HTML file.", "report /data/events events.html"
        ),
        "serve": Command(
            "servers.serve:serve_app",
            "Serve warehouses to Spark Connect and JDBC.",
            "serve --warehouse /data/w --jdbc 10000",
        ),
    },
}
"""By task, and within it in the order in which people come to them."""

COMMANDS: Mapping[str, Command] = {
    name: command for commands in COMMANDS_BY_TASK.values() for name, command in commands.items()
}

ALIASES: Mapping[str, str] = {
    "append": "ingest",
    "history": "log",
    "optimize": "compact",
    "read": "query",
    "scan": "query",
}
"""Names that people expect, taken from Python and other lakehouses, for commands that have another."""
