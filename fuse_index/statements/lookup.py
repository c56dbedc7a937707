"""Rows by their keys: of keys that the tail has, from its blocks; of others, from the base by votes and pages.

No other keys are compared: the base's row of a key counts where the tail does not have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

import fuse_storage as storage
from fuse_index.handle import resolve_predicate
from fuse_index.indexes.engine import Engine
from fuse_index.predicate import And, Column, In, Literal, Predicate
from fuse_index.pruning.planner import ScanPlan, full_scan_plan, plan_scan
from fuse_index.query.scan import Scan
from fuse_storage import BlockFrame, ScanUnits, Schema, StoredTable, UnitFrame

_MAX_UNASKED_ZONES = 4
"""Zones that are read sooner than indexes are asked about them."""


def look_up(stored: StoredTable, keys: pa.Table, names: Sequence[str], engine: Engine) -> pa.Table:
    """Columns of the rows of these keys in a state, in the order of the keys; those that are missing are left out.

    ``keys``: the key's columns, in the table's types. Raises StorageError.
    """
    key = stored.snapshot.key
    wanted = tuple(dict.fromkeys([*names, *key]))
    found = stored.snapshot.schema.empty_table().select(list(wanted))
    if not len(keys):
        return found.select(list(names))
    places = storage.find_in_tail(stored.segments(), keys)
    if (in_tail := places.blocks >= 0).any():
        found = _read_tail(stored, places.blocks[in_tail], places.rows[in_tail], wanted)
    if (in_base := places.blocks == storage.NOT_IN_TAIL).any():
        base = stored.without_tail() if stored.snapshot.tail else stored
        sought = keys.filter(pa.array(in_base))
        predicate = resolve_predicate(_key_predicate(sought, key, stored.snapshot.schema), base.snapshot, engine)
        rows = Scan(_plan(base, sought, predicate, engine), wanted, engine.host.functions).to_arrow()
        own = storage.places_of_keys(storage.key_table(sought, key), storage.key_table(rows, key))
        found = pa.concat_tables([found, rows.take(pa.array(np.unique(own[own >= 0])))])  # others may be of the tail
    place = storage.places_of_keys(storage.key_table(keys, key), storage.key_table(found, key))
    return found.take(pa.array(place[place >= 0])).select(list(names))


def _read_tail(stored: StoredTable, numbers: np.ndarray, rows: np.ndarray, columns: Sequence[str]) -> pa.Table:
    """Read these rows of these blocks, each once. ``numbers``, ``rows``: int64, shape (n,)."""
    blocks, chosen = stored.blocks(), []
    for number in np.unique(numbers).tolist():
        mask = np.zeros(blocks.row_counts[number], np.bool_)
        mask[rows[numbers == number]] = True
        chosen.append((number, None, mask))
    return pa.concat_tables(stored.read_blocks(blocks, columns, chosen))


def _plan(
    base: StoredTable, keys: pa.Table, predicate: Predicate | None, engine: Engine
) -> ScanPlan[BlockFrame] | ScanPlan[ScanUnits]:
    """What is read to find these keys: the few zones that statistics leave; where that are more, what indexes leave."""
    sought = storage.SoughtKeys(storage.key_table(keys, base.snapshot.key))

    def may_have_some(units: UnitFrame) -> np.ndarray:
        return sought.may_be_in([units.statistics(each) for each in base.snapshot.key_ids], len(units))

    blocks = base.blocks(np.flatnonzero(may_have_some(base.segments())), base.snapshot.key_ids)
    near = blocks.take(np.flatnonzero(may_have_some(blocks)))
    if len(near) <= _MAX_UNASKED_ZONES:
        zones = may_have_some(base.zones(near))
        if np.count_nonzero(zones) <= _MAX_UNASKED_ZONES:
            plan = full_scan_plan(base, predicate, engine.context, near)
            return replace(plan, zones=plan.zones & zones)
    return plan_scan(base, predicate, engine)


def _key_predicate(keys: pa.Table, names: Sequence[str], schema: Schema) -> Predicate:
    """What is true on the rows of these keys, and with a key of several columns perhaps on others."""
    terms = []
    for name in names:
        field = schema.find([name])
        values = keys.column(name).unique().to_pylist()
        literals = tuple(Literal(value, field.type) for value in values)
        terms.append(In(Column((field.name,), field.type), literals))
    return terms[0] if len(terms) == 1 else And(tuple(terms))
