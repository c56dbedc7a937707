"""The commands about a warehouse: its namespaces, the names of its tables, and what was done to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from fuse_index import Catalog, catalog
from fuse_index.cli import output
from fuse_index.cli.options import JsonOption, parse_pairs
from fuse_index.errors import InputError
from fuse_index.warehouse.handle import namespaces_within
from fuse_storage import CatalogTable, Identifier, join_identifier, parse_identifier

catalog_app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Make, list, rename, drop and bring back the names of a warehouse."
)

_WarehouseArgument = Annotated[
    str, typer.Argument(metavar="WAREHOUSE", help="Path or URL of the warehouse (/data/w, s3://bucket/w).")
]
_NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A name with its namespaces: sales.eu.orders.")]
_NamespaceArgument = Annotated[str, typer.Argument(metavar="NAMESPACE", help="A namespace: sales.eu.")]
_SettingsOption = Annotated[
    list[str] | None, typer.Option("--set", help="A property, such as comment=Orders or owner=ann; repeatable.")
]
_UnsetOption = Annotated[list[str] | None, typer.Option("--unset", help="A property to remove; repeatable.")]
_DryRunOption = Annotated[bool, typer.Option("--dry-run", help="List, and delete nothing.")]


@catalog_app.command("init")
def _init(warehouse: _WarehouseArgument, as_json: JsonOption = False) -> None:
    """Make a warehouse; nothing happens where there is one."""
    made = catalog(warehouse, create=True)
    record = {"warehouse": made.url, "id": made.warehouse.id}
    output.print_result(record, f"{warehouse} is a warehouse", as_json)


@catalog_app.command("create-namespace")
def _create_namespace(
    warehouse: _WarehouseArgument,
    namespace: _NamespaceArgument,
    settings: _SettingsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a namespace."""
    catalog(warehouse).create_namespace(namespace, _parse_texts(settings))
    output.print_result({"namespace": namespace}, f"created namespace {namespace}", as_json)


@catalog_app.command("drop-namespace")
def _drop_namespace(
    warehouse: _WarehouseArgument,
    namespace: _NamespaceArgument,
    cascade: Annotated[bool, typer.Option("--cascade", help="With all that is in it; its tables are dropped.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Drop a namespace that is empty."""
    catalog(warehouse).drop_namespace(namespace, cascade=cascade)
    output.print_result({"namespace": namespace}, f"dropped namespace {namespace}", as_json)


@catalog_app.command("list")
def _list(
    warehouse: _WarehouseArgument,
    namespace: Annotated[str, typer.Argument(metavar="NAMESPACE", help="A namespace; by default the outermost.")] = "",
    everything: Annotated[bool, typer.Option("--all", "-a", help="All that is within, at any depth.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the namespaces and tables of a namespace."""
    opened = catalog(warehouse)
    records = list(_records(opened, parse_identifier(namespace) if namespace else (), everything))
    if as_json:
        output.print_json(records)
        return
    output.print_rows(output.records_to_table(records, ("name", "kind", "owner", "comment")))


@catalog_app.command("show")
def _show(warehouse: _WarehouseArgument, name: _NameArgument, as_json: JsonOption = False) -> None:
    """Show what a warehouse knows of a table, or else of a namespace."""
    opened = catalog(warehouse)
    if opened.namespace_exists(name) and not opened.table_exists(name):
        record = {"namespace": name, "properties": opened.load_namespace_properties(name)}
    else:
        record = _table_record(opened, opened.find_table(name))
    output.print_json(record) if as_json else output.print_record(record)


@catalog_app.command("set")
def _set(
    warehouse: _WarehouseArgument,
    name: _NameArgument,
    settings: _SettingsOption = None,
    unset: _UnsetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change what a warehouse says of a table, or else of a namespace."""
    opened, texts = catalog(warehouse), _parse_texts(settings)
    if not texts and not unset:
        raise typer.BadParameter("give --set name=value or --unset name", param_hint="--set")
    if opened.namespace_exists(name) and not opened.table_exists(name):
        properties = opened.update_namespace_properties(name, unset, texts)
    else:
        properties = opened.update_table_properties(name, unset, texts)
    output.print_json(properties) if as_json else output.print_record(properties)


@catalog_app.command("register")
def _register(
    warehouse: _WarehouseArgument,
    name: _NameArgument,
    location: Annotated[str, typer.Argument(metavar="TABLE", help="Path or URL of a table that is there.")],
    as_json: JsonOption = False,
) -> None:
    """Give a table that is there a name; nothing of it moves."""
    table = catalog(warehouse).register_table(name, location)
    url = table.stored.store.url
    output.print_result({"table": name, "location": url}, f"{name} is the table at {url}", as_json)


@catalog_app.command("rename")
def _rename(
    warehouse: _WarehouseArgument,
    name: _NameArgument,
    target: Annotated[str, typer.Argument(metavar="TO", help="The new name, in whatever namespace.")],
    as_json: JsonOption = False,
) -> None:
    """Give a table another name; nothing of it moves."""
    catalog(warehouse).rename_table(name, target)
    output.print_result({"table": target, "was": name}, f"{name} is now {target}", as_json)


@catalog_app.command("drop")
def _drop(
    warehouse: _WarehouseArgument,
    name: _NameArgument,
    purge: Annotated[bool, typer.Option("--purge", help="Delete its files at once; it cannot come back.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Take a table's name away; undrop brings it back, until it is purged."""
    catalog(warehouse).drop_table(name, purge=purge)
    said = "purged" if purge else "dropped"
    output.print_result({"table": name, "purged": purge}, f"{said} {name}", as_json)


@catalog_app.command("undrop")
def _undrop(
    warehouse: _WarehouseArgument,
    name: _NameArgument,
    table_id: Annotated[str | None, typer.Option("--id", help="Which one of that name; see dropped.")] = None,
    target: Annotated[str | None, typer.Option("--to", help="Another name for it.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Give a dropped table its name back."""
    table = catalog(warehouse).undrop_table(name, table_id, target)
    record = {"table": target or name, "snapshot": table.snapshot.id}
    output.print_result(record, f"{target or name} is back", as_json)


@catalog_app.command("history")
def _history(warehouse: _WarehouseArgument, name: _NameArgument, as_json: JsonOption = False) -> None:
    """List what was done to a name, oldest first."""
    told = catalog(warehouse).history(name)
    output.print_json(told.to_pylist()) if as_json else output.print_rows(told.drop_columns(["commit"]))


@catalog_app.command("dropped")
def _dropped(warehouse: _WarehouseArgument, as_json: JsonOption = False) -> None:
    """List the tables that can be undropped, the latest first."""
    found = catalog(warehouse).list_dropped()
    output.print_json(found.to_pylist()) if as_json else output.print_rows(found.drop_columns(["location"]))


@catalog_app.command("purge")
def _purge(
    warehouse: _WarehouseArgument,
    older_than: Annotated[str, typer.Option("--older-than", help="Dropped so long ago: 12h, 7d.")] = "7d",
    dry_run: _DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Delete the files of tables that were dropped long ago."""
    try:
        purged = catalog(warehouse).purge_dropped(older_than, dry_run=dry_run)
    except InputError as problem:
        raise typer.BadParameter(str(problem), param_hint="--older-than") from problem
    if as_json:
        output.print_json(purged.to_pylist())
    else:
        output.print_rows(purged, title="would be purged" if dry_run else "purged")


def _records(opened: Catalog, namespace: Identifier, everything: bool) -> Iterator[dict[str, Any]]:
    """The namespaces and tables of a namespace, of one state of the warehouse."""
    state = opened.warehouse.state()
    for inner in namespaces_within(state, namespace):
        yield _record(inner.identifier, "namespace", dict(inner.properties))
        if everything:
            yield from _records(opened, inner.identifier, everything)
    for table in sorted(state.tables_in(namespace), key=lambda found: found.identifier):
        yield _record(table.identifier, "table", dict(table.properties))


def _record(identifier: Identifier, kind: str, properties: dict[str, str]) -> dict[str, Any]:
    owner, comment = properties.get("owner"), properties.get("comment")
    return {"name": join_identifier(identifier), "kind": kind, "owner": owner, "comment": comment}


def _table_record(opened: Catalog, table: CatalogTable) -> dict[str, Any]:
    return {
        "table": table.name,
        "id": table.id,
        "location": opened.table_url(table.identifier),
        "managed": table.managed,
        "created": table.created,
        "properties": dict(table.properties),
    }


def _parse_texts(settings: list[str] | None) -> dict[str, str]:
    """``name=value`` texts as a dict of texts. Raises typer.BadParameter."""
    parse_pairs(settings or [], "--set")
    return {name: value for name, _, value in (text.partition("=") for text in settings or [])}
