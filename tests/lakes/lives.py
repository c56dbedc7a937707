"""Lives of tables: random statements that change rows, columns and files, and queries to ask between them."""

import random
from dataclasses import dataclass, field

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.spark.foreign import typed

OTHER_SIDE = """VALUES ('{a}', {n}, CAST('NaN' AS DOUBLE), {i}L), (NULL, NULL, NULL, NULL),
    ('nobody', -1, -0.0D, 5L) AS o(k, l, y, i)"""
"""Of joins: a row whose keys are found, and some whose keys are not."""


@dataclass
class Life:
    """A table by its name, with the names that its columns have by now, and the numbers that are drawn."""

    spark: SparkSession
    name: str
    chosen: random.Random
    next_id: int = typed.FILES * typed.ROWS
    names: dict[str, str] = field(default_factory=lambda: {name: name for name in typed.COLUMNS})
    refused: int = 0

    @property
    def is_delta(self) -> bool:
        return not self.name.startswith("ice.")

    def do(self, statement: str) -> bool:
        """Run a statement; False where the connector refuses it."""
        try:
            self.spark.sql(statement)
        except PySparkException:
            self.refused += 1
            return False
        return True

    def condition(self) -> str:
        """A condition that Spark understands of the columns as they are now."""
        while True:
            text = typed.condition(self.chosen, self.names)
            try:
                self.spark.sql(f"SELECT 1 FROM {self.name} WHERE {text}").schema  # noqa: B018
                return text
            except PySparkException:
                continue

    def insert(self, first: int, last: int) -> None:
        listed = ", ".join(f"`{self.names[name]}`" for name in typed.COLUMNS)
        columns = ", ".join(typed.COLUMNS)
        self.spark.sql(f"INSERT INTO {self.name} ({listed}) SELECT {columns} FROM ({typed.rows_sql(first, last)})")

    def exchange(self, one: str, other: str) -> None:
        """Two columns get each other's names."""
        first, second = self.names[one], self.names[other]
        renames = ((first, "between"), (second, first), ("between", second))
        if all(self.do(f"ALTER TABLE {self.name} RENAME COLUMN {old} TO {new}") for old, new in renames):
            self.names[one], self.names[other] = second, first

    def drop_and_add(self, column: str) -> None:
        name, kind = self.names[column], typed.WITHOUT_ODD_TYPES[column]
        if self.do(f"ALTER TABLE {self.name} DROP COLUMN {name}"):
            self.do(f"ALTER TABLE {self.name} ADD COLUMN {name} {kind}")

    def step(self) -> None:
        """Change the table in one way."""
        where, name, b, n = self.condition(), self.name, self.names["b"], self.names["n"]
        drawn = self.chosen.randrange(11)
        if drawn == 0:
            self.insert(self.next_id, self.next_id + typed.ROWS)
            self.next_id += typed.ROWS
        elif drawn == 1:
            self.do(f"DELETE FROM {name} WHERE {where} AND id % 3 = 0")
        elif drawn == 2:
            self.do(f"UPDATE {name} SET {b} = 'b1', {n} = {n} + 1 WHERE {where} AND id % 4 = 0")
        elif drawn == 3:
            self.do(
                f"MERGE INTO {name} t USING (SELECT * FROM {name} WHERE {where}) s ON t.id = s.id "
                f"WHEN MATCHED AND s.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET {n} = -1"
            )
        elif drawn == 4:
            self.do(f"DELETE FROM {name} WHERE id IN (SELECT id + 1 FROM {name} WHERE {where} AND id % 5 = 0)")
        elif drawn == 5:
            self.exchange(*self.chosen.sample(["a", "b"] if self.is_delta else ["a", "b", "v", "c"], 2))
        elif drawn == 6:
            self.drop_and_add(self.chosen.choice(["n", "b", "x"]))
        elif drawn == 7:
            self.do(f"ALTER TABLE {name} ALTER COLUMN {n} TYPE BIGINT")
            self.do(f"ALTER TABLE {name} ALTER COLUMN {self.names['m']} TYPE DECIMAL(14,2)")
        elif drawn == 8:
            fields = [f"bucket(4, {n})", self.names["t"], f"truncate(2, {self.names['a']})", b]
            change = self.chosen.choice(["ADD PARTITION FIELD", "DROP PARTITION FIELD"])
            field_ = self.chosen.choice(fields)
            self.do(f"OPTIMIZE {name}" if self.is_delta else f"ALTER TABLE {name} {change} {field_}")
        elif drawn == 9:
            rewrite = f"CALL ice.system.rewrite_data_files(table => '{name.removeprefix('ice.')}')"
            self.do(f"RESTORE TABLE {name} TO VERSION AS OF 1" if self.is_delta else rewrite)
        else:
            self.do(f"INSERT INTO {name} SELECT * FROM {name} WHERE {where}")

    def query(self) -> str:
        """A query of some shape, whose rows are the same whenever it is asked."""
        t, where, also = self.name, self.condition(), self.condition()
        a, b, n, x = (self.names[each] for each in "abnx")
        i = self.chosen.randrange(self.next_id)
        values = OTHER_SIDE.format(a=f"a{i * 7919 % 100_000:05d}", n=i * 31 % 1000, i=i)
        few = f"(SELECT {a}, {b}, id + 1 AS id2 FROM {t} WHERE {where} ORDER BY id, {a}, {n} LIMIT 3)"
        join = self.chosen.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
        on = [f"t.{a} = o.k", f"t.{a} <=> o.k", f"t.{n} = o.l", f"t.{x} = o.y", f"t.{x} <=> o.y", "t.id = o.i"]
        on += [f"t.{a} = o.k AND t.{n} = o.l", f"upper(t.{a}) = upper(o.k)", f"t.{a} = o.k OR t.{n} = o.l"]
        on += [f"t.{n} = o.i", f"coalesce(t.{a}, 'q') = o.k", f"t.{a} COLLATE UTF8_LCASE = o.k"]
        key, order = self.chosen.choice([a, n, x, b, "id"]), self.chosen.choice(["ASC", "DESC"])
        nulls = self.chosen.choice(["FIRST", "LAST"])
        shapes = [
            f"SELECT * FROM {t} WHERE {where}",
            f"SELECT count(*), count({a}), min({n}), max({x}), sum({n}) FROM {t} WHERE {where}",
            f"SELECT t.id FROM {t} t {join} {values} ON {self.chosen.choice(on)}",
            f"SELECT o.k, o.i FROM {values} {join} {t} t ON {self.chosen.choice(on)}",
            f"SELECT p.id, q.id2 FROM {t} p JOIN {few} q ON p.{a} = q.{a}",
            f"SELECT p.id, q.id2 FROM {t} p LEFT JOIN {few} q ON p.{b} = q.{b}",
            f"SELECT p.id FROM {t} p JOIN {t} q ON p.id = q.id + 1 WHERE q.id IN (SELECT id FROM {t} WHERE {where})",
            f"SELECT id FROM {t} WHERE {n} IN (SELECT {n} + 1 FROM {t} WHERE {where}) AND {a} IS NOT NULL",
            f"SELECT id FROM {t} WHERE {n} NOT IN (SELECT {n} FROM {t} WHERE {where})",
            f"SELECT id FROM {t} WHERE {n} = (SELECT max({n}) FROM {t} WHERE {where}) OR {also}",
            f"SELECT id FROM {t} WHERE EXISTS (SELECT 1 FROM {values} WHERE o.k = {a}) OR {also}",
            f"SELECT id FROM {t} WHERE {where} UNION ALL SELECT id FROM {t} WHERE {also}",
            f"SELECT id FROM {t} WHERE {where} EXCEPT SELECT id FROM {t} WHERE {also}",
            f"SELECT z FROM (SELECT id AS {a}, {a} AS z FROM {t} WHERE {where}) q WHERE q.{a} > 10",
            f"WITH w AS (SELECT * FROM {t} WHERE {where}) SELECT u.id, w.id FROM w u JOIN w ON u.{n} = w.{n}",
            f"SELECT id, {key} FROM {t} ORDER BY {key} {order} NULLS {nulls}, id LIMIT {i % 9 * 30 + 1}",
            f"SELECT id FROM {t} WHERE {where} ORDER BY {n} {order} NULLS {nulls}, id LIMIT 4",
            f"SELECT (SELECT max(id) FROM {t} WHERE {where}), (SELECT min(id) FROM {t} WHERE {also})",
        ]
        query = self.chosen.choice(shapes)
        self.spark.sql(query).schema  # noqa: B018 (one that Spark does not understand would compare nothing)
        return query
