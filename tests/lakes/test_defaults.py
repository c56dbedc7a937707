"""Defaults that change: a table of Iceberg's own connector, ours beside it, and ours attached to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import Row, SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark


class Pair:
    """A table of Iceberg's, whose columns change by its Java interface alone, and one of ours, changed by SQL."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        name, warehouse = f"t{uuid4().hex[:8]}", home / f"ours-{uuid4().hex[:8]}"
        self.spark, self.theirs, self.ours = spark, f"ice.db.{name}", f"fuse.db.{name}"
        self.place = home / "ice" / "db" / name
        fuse_spark.install(spark, warehouse=str(warehouse))
        spark.sql("CREATE NAMESPACE fuse.db")
        spark.sql(f"CREATE TABLE {self.theirs} (id BIGINT) USING iceberg TBLPROPERTIES ('format-version' = '3')")
        spark.sql(f"CREATE TABLE {self.ours} (id BIGINT)")

    def say(self, statement: str) -> None:
        for name in (self.theirs, self.ours):
            self.spark.sql(statement.replace("$T", name))

    def add_column(self, name: str, kind: str, sql: str, value: Any) -> None:
        jvm = self.spark._jvm
        types = jvm.org.apache.iceberg.types.Types
        theirs = {"STRING": types.StringType.get(), "INT": types.IntegerType.get(), "DOUBLE": types.DoubleType.get()}
        self._schema().addColumn(name, theirs[kind], jvm.org.apache.iceberg.expressions.Literal.of(value)).commit()
        self.spark.sql(f"ALTER TABLE {self.ours} ADD COLUMN {name} {kind} DEFAULT {sql}")
        self.spark.sql(f"REFRESH TABLE {self.theirs}")

    def set_default(self, name: str, sql: str, value: Any) -> None:
        literal = self.spark._jvm.org.apache.iceberg.expressions.Literal.of(value)
        self._schema().updateColumnDefault(name, literal).commit()
        self.spark.sql(f"ALTER TABLE {self.ours} ALTER COLUMN {name} SET DEFAULT {sql}")
        self.spark.sql(f"REFRESH TABLE {self.theirs}")

    def _schema(self) -> Any:
        util = self.spark._jvm.org.apache.iceberg.spark.Spark3Util
        return util.loadIcebergTable(self.spark._jsparkSession, self.theirs).updateSchema()

    def rows(self) -> list[Row]:
        theirs, ours = (self.spark.table(name).orderBy("id").collect() for name in (self.theirs, self.ours))
        assert ours == theirs
        return theirs


def test_our_defaults_do_what_icebergs_do(spark: SparkSession, home: Path) -> None:
    pair = Pair(spark, home)
    pair.say("INSERT INTO $T VALUES (1)")
    pair.add_column("city", "STRING", "'Bonn'", "Bonn")
    pair.add_column("n", "INT", "5", 5)
    pair.say("INSERT INTO $T VALUES (2, DEFAULT, 2)")
    pair.set_default("city", "'Rome'", "Rome")
    pair.set_default("n", "7", 7)
    assert pair.rows() == [Row(id=1, city="Bonn", n=5), Row(id=2, city="Bonn", n=2)]
    pair.say("INSERT INTO $T VALUES (3, DEFAULT, DEFAULT), (4, NULL, DEFAULT)")
    pair.say("UPDATE $T SET city = DEFAULT WHERE id = 1")
    pair.say(
        "MERGE INTO $T t USING (SELECT explode(array(2L, 5L)) AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET n = DEFAULT WHEN NOT MATCHED THEN INSERT (id, city, n) VALUES (id, DEFAULT, 1)"
    )
    pair.say("DELETE FROM $T WHERE id = 4")
    assert [tuple(row) for row in pair.rows()] == [(1, "Rome", 5), (2, "Bonn", 7), (3, "Rome", 7), (5, "Rome", 1)]


def test_an_attached_table_has_both_defaults(spark: SparkSession, home: Path) -> None:
    pair = Pair(spark, home)
    pair.say("INSERT INTO $T VALUES (1)")
    options = {"shared_places": str(home)}
    table = fuse.attach(pair.place, home / f"attached-{uuid4().hex[:8]}", format="iceberg", options=options)
    pair.add_column("city", "STRING", "'Bonn'", "Bonn")
    pair.add_column("f", "DOUBLE", "0.5D", 0.5)
    pair.say("INSERT INTO $T VALUES (2, DEFAULT, DEFAULT)")
    table.sync()
    assert table.to_arrow().sort_by("id").to_pylist() == [row.asDict() for row in pair.rows()]
    pair.set_default("city", "'Rome'", "Rome")
    pair.set_default("f", "1.5D", 1.5)
    pair.say("INSERT INTO $T VALUES (3, DEFAULT, 1)")
    table.sync()
    assert table.to_arrow().sort_by("id").to_pylist() == [row.asDict() for row in pair.rows()]
    assert [field.write_default for field in table.snapshot.schema.fields] == [None, "Rome", 1.5]

    table.convert()
    table.append([{"id": 4}])
    pair.say("INSERT INTO $T VALUES (4, DEFAULT, DEFAULT)")
    found = spark.table(pair.theirs).orderBy("id").collect()
    assert table.to_arrow().sort_by("id").to_pylist() == [row.asDict() for row in found]
    spark.sql(f"INSERT INTO fuse.`{table.stored.store.url}` VALUES (5, DEFAULT, 2)")
    assert table.refresh().scan("id = 5").to_arrow().to_pylist() == [{"id": 5, "city": "Rome", "f": 2.0}]


def test_an_export_has_both_for_icebergs_own_reader(spark: SparkSession, home: Path) -> None:
    place = home / "ice" / "db" / f"exported{uuid4().hex[:8]}"
    table = fuse.create_table(place, "id BIGINT")
    table.append([{"id": 1}])
    table.add_column("city", "STRING", default="Bonn")
    table.set_default("city", "Rome")
    table.append([{"id": 2}])
    table.export_iceberg()

    found = spark.table(f"ice.db.{place.name}")
    assert sorted(found.collect()) == [Row(id=1, city="Bonn"), Row(id=2, city="Rome")]
    told = found.schema["city"].metadata
    assert (told["EXISTS_DEFAULT"], told["CURRENT_DEFAULT"]) == ("'Bonn'", "'Rome'")
