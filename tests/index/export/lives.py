"""Random lives of tables with exports and with writers of any age, and a model of what they are."""

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fuse_index as fuse
from tests.index.export.readers import read_delta, read_iceberg, sorted_rows

STEPS = 30
"""Steps of a life."""
KEYS = 40


@dataclass
class Handle:
    """A handle, and the numbers of its columns by the names that they had when it was opened, or last wrote."""

    table: fuse.Table
    names: dict[str, int]


@dataclass
class Life:
    """A table and its model: rows by key, of values by the number of a column; a name may be of several in turn."""

    place: Path
    keyed: bool
    chance: random.Random
    rows: dict[int, dict[int, Any]] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=lambda: {"a": 0, "b": 1})
    handles: list[Handle] = field(default_factory=list)
    writer: Handle | None = None
    count: int = 2

    def __post_init__(self) -> None:
        properties = {"exports": "delta, iceberg", "block_rows": 8, "hot_rows": 3, "delete_mode": "merge-on-read"}
        key = {"primary_key": ["id"]} if self.keyed else {}
        fuse.create_table(self.place, "id BIGINT NOT NULL, a INT, b INT", properties=properties, **key)

    def handle(self, fresh: bool = False) -> Handle:
        """A handle of today, which is kept for later, or one of those that are there."""
        if fresh or not self.handles or self.chance.random() < 0.4:
            self.handles.append(Handle(fuse.open_table(self.place), dict(self.names)))
            self.writer = self.handles[-1]
        else:
            self.writer = self.chance.choice(self.handles)
        return self.writer

    def step(self) -> str:
        put = self.put if self.keyed else self.append
        steps = [put, put, put, self.delete, self.update, self.add, self.rename, self.drop, self.widen, self.tend]
        chosen = self.chance.choice(steps)
        told = f"{chosen.__name__}: {chosen()}"
        if self.writer is not None and self.writer.table.version == fuse.open_table(self.place).version:
            self.writer.names = dict(self.names)
        return told

    def put(self) -> str:
        handle = self.handle()
        given = [name for name in handle.names if self.chance.random() < 0.8]
        keys = self.chance.sample(range(KEYS), self.chance.choice([1, 2, 12]))
        rows = [{"id": key, **{name: self.chance.randint(0, 99) for name in given}} for key in keys]
        current = {name: number for name, number in self.names.items() if handle.names.get(name) == number}
        try:
            handle.table.upsert(rows)
        except fuse.Conflict:
            assert not set(given) <= set(current), (given, handle.names, self.names)
            self.handles.remove(handle)
            return "a column of it is gone"
        assert set(given) <= set(current), (given, handle.names, self.names)
        for row in rows:
            known = self.rows.setdefault(row["id"], {})
            known.update({current[name]: row[name] for name in given})
        return f"{len(rows)} rows"

    def append(self) -> str:
        handle = self.handle(fresh=True)
        keys = [key for key in self.chance.sample(range(KEYS), 12) if key not in self.rows][
            : self.chance.choice([1, 9])
        ]
        rows = [{"id": key, **{name: self.chance.randint(0, 99) for name in self.names}} for key in keys]
        if rows:
            handle.table.append(rows)
        for row in rows:
            self.rows[row["id"]] = {number: row[name] for name, number in self.names.items()}
        return f"{len(rows)} rows"

    def delete(self) -> str:
        first = self.chance.randrange(KEYS)
        self.handle(fresh=True).table.delete(f"id BETWEEN {first} AND {first + 4}")
        self.rows = {key: row for key, row in self.rows.items() if not first <= key <= first + 4}
        return f"from {first}"

    def update(self) -> str:
        name, first = self.chance.choice(list(self.names)), self.chance.randrange(KEYS)
        self.handle(fresh=True).table.update(f"id BETWEEN {first} AND {first + 2}", {name: "id + 1000"})
        for key, row in self.rows.items():
            if first <= key <= first + 2:
                row[self.names[name]] = key + 1000
        return f"{name} from {first}"

    def add(self) -> str:
        free = [name for name in "abcdef" if name not in self.names]
        if not free:
            return "no more"
        name = self.chance.choice(free)
        self.handle(fresh=True).table.add_column(name, "INT")
        self.names[name], self.count = self.count, self.count + 1
        return name

    def rename(self) -> str:
        free = [name for name in "abcdef" if name not in self.names]
        if not free:
            return "no more"
        old, new = self.chance.choice(list(self.names)), self.chance.choice(free)
        self.handle(fresh=True).table.rename_column(old, new)
        self.names[new] = self.names.pop(old)
        return f"{old} to {new}"

    def drop(self) -> str:
        if len(self.names) < 2:
            return "the last one stays"
        name = self.chance.choice(list(self.names))
        self.handle(fresh=True).table.drop_column(name)
        del self.names[name]
        return name

    def widen(self) -> str:
        name = self.chance.choice(list(self.names))
        self.handle(fresh=True).table.change_type(name, "BIGINT")
        return name

    def tend(self) -> str:
        table = self.handle(fresh=True).table
        steps = [
            table.maintenance.tier,
            table.maintenance.compact,
            lambda: table.create_index("by_id", "bloom", ["id"]),
        ]
        chosen = self.chance.choice(steps)
        if chosen is not steps[-1] or "by_id" not in table.inspect.indexes()["name"].to_pylist():
            chosen()
        return "done"

    def expected(self) -> list[dict[str, Any]]:
        rows = [{"id": key, **{name: row.get(n) for name, n in self.names.items()}} for key, row in self.rows.items()]
        return sorted_rows(rows)

    def check(self) -> None:
        expected, table = self.expected(), fuse.open_table(self.place)
        assert sorted_rows(table.to_arrow().to_pylist()) == expected
        key = self.chance.randrange(KEYS)
        assert sorted_rows(table.scan(f"id = {key}").to_arrow().to_pylist()) == [r for r in expected if r["id"] == key]

    def check_exports(self) -> None:
        table = fuse.open_table(self.place)
        table.export_delta()
        table.export_iceberg()
        for name, found in [*read_delta(self.place), *read_iceberg(self.place)]:
            assert found == self.expected(), name


def live(place: Path, keyed: bool, seed: int) -> None:
    """Go through a life. Raises AssertionError, with its steps, where rows here or exported are not the model's."""
    life, done = Life(place, keyed, random.Random(seed)), list[str]()
    for number in range(STEPS):
        done.append(life.step())
        try:
            life.check()
            if number % 5 == 4:
                life.check_exports()
        except AssertionError as wrong:
            raise AssertionError("\n".join([f"after {done}", str(wrong)])) from wrong
