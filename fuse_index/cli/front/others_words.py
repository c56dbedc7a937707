"""Commands and options of other programs, and what is typed here in their place."""

from __future__ import annotations

from collections.abc import Mapping

_QUERY, _LOG, _SHOW = "say query TABLE -n 10", "say log TABLE", "say show TABLE, or show TABLE blocks"
OTHERS_COMMANDS: Mapping[str, str] = {
    **dict.fromkeys(("ls", "list", "tables", "show-tables"), "say catalog list WAREHOUSE"),
    **dict.fromkeys(("head", "cat", "select", "sample", "print", "where", "filter"), _QUERY),
    **dict.fromkeys(("describe", "desc", "schema", "info", "stats", "inspect", "blocks", "columns"), _SHOW),
    **dict.fromkeys(("snapshots", "versions", "commits"), _LOG),
    **dict.fromkeys(("insert", "upsert", "put", "load", "import", "copy", "write", "add"), "say ingest TABLE FILE"),
    **dict.fromkeys(("zorder", "z-order", "sort"), "say cluster-by TABLE COLUMNS --method zorder, and recluster TABLE"),
    **dict.fromkeys(("expire", "expire-snapshots", "gc", "clean", "purge"), "say vacuum TABLE"),
    **dict.fromkeys(("indexes", "create-index", "add-index"), "say index list TABLE, or index create TABLE NAME"),
    **dict.fromkeys(("rollback", "undo", "checkout"), "say restore TABLE VERSION"),
    **dict.fromkeys(("due", "check", "status"), "say maintain TABLE --dry-run"),
    **dict.fromkeys(("init", "new", "namespace"), "say create TABLE, or catalog init WAREHOUSE"),
    "count": "say query TABLE --count",
    "drop": "say catalog drop WAREHOUSE NAME; a table without a name is its folder",
    "rename": "say catalog rename WAREHOUSE NAME TO",
    "set-properties": "say set TABLE NAME=VALUE",
    "alter": "say add-column, drop-column, rename-column or change-type",
    "version": "say --version",
    "help": "say --help",
}
"""Commands by what other programs call them."""
_FILE = "results are printed: say --json, and > FILE"
_WHERE = "say --where 'id = 1'; whole statements are for Spark or DuckDB"
_READ = "CSV has commas and a header, and TSV tabs: rows of others are read by pandas, and given to append in Python"
OTHERS_OPTIONS: Mapping[str, str] = {
    **dict.fromkeys(("--output", "--out", "-o", "--csv", "--format", "--to-csv"), _FILE),
    **dict.fromkeys(("--sql", "--filter", "--query", "-q", "-e"), _WHERE),
    **dict.fromkeys(("--select", "--fields", "--cols"), "say --columns id,city"),
    **dict.fromkeys(("--order-by", "--sort", "--sort-by"), "rows come in the order in which they are kept"),
    **dict.fromkeys(("--older-than", "--retain", "--keep"), "say --retention 7d"),
    **dict.fromkeys(("--delimiter", "--sep", "--header", "--no-header"), _READ),
    **dict.fromkeys(("--target-size", "--target-file-size", "--max-file-size"), "say set TABLE block_bytes=BYTES"),
    "--mode": "say ingest to add rows, or overwrite to replace them",
    "--store": "say it before the command: fuse-index --store NAME=VALUE …",
    "--plugin": "say it before the command: fuse-index --plugin FILE.py …",
    "--by": "the clustering key is set by cluster-by TABLE COLUMNS",
    "--force": "nothing here asks before it acts",
    "--to": "say it without --to, as --help shows",
    "--since": "say the version without --since, as --help shows",
    "--port": "say --connect PORT, or --jdbc PORT",
    "-v": "say --version",
}
"""Options by what other programs call them; a command that has one of them takes it."""
