"""The golden answers to the conditions that people type are still Spark's: a sample, over all rows, in each session."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.golden import make_conditions

pytestmark = pytest.mark.every_spark

EVERY = 12
"""One condition of so many; which ones, goes by the session."""


@pytest.mark.parametrize("session", make_conditions.SESSIONS)
def test_a_sample_of_the_golden_answers_is_what_spark_says(spark: SparkSession, tmp_path: Path, session: str) -> None:
    cases = json.loads((make_conditions.HERE / "conditions.json").read_text("utf-8"))
    zone, ansi = make_conditions.SESSIONS[session]
    first = list(make_conditions.SESSIONS).index(session)
    sample = [condition for condition in list(cases)[first::EVERY] if "e" not in cases[condition][session]]
    settings = {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": str(ansi).lower()}
    former = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        make_conditions.write_rows(str(tmp_path / "rows.parquet"))
        rows = spark.read.parquet(str(tmp_path / "rows.parquet"))
        asked = [f"({condition}) AS c{number}" for number, condition in enumerate(sample)]
        answers = rows.selectExpr("row", *asked).orderBy("row").collect()
    finally:
        for name, value in former.items():
            spark.conf.set(name, value)

    assert len(sample) > 20
    said = {
        condition: "".join(make_conditions.letter(row[number + 1]) for row in answers)
        for number, condition in enumerate(sample)
    }
    assert said == {condition: golden(cases[condition], session, spark.version) for condition in sample}


def golden(case: Mapping[str, Any], session: str, version: str) -> str:
    """What this version of Spark said."""
    answers: str = case[session]
    return case.get("older", {}).get(session, answers) if version.startswith("4.0") else answers
