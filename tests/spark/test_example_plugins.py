"""Index kinds of strangers, installed as wheels, skip blocks and rows in Spark SQL."""

import json

import pytest

from tests.plugins.test_examples import EXAMPLES, installed
from tests.spark import programs

pytestmark = pytest.mark.any_spark


def test_kinds_of_installed_wheels_are_used_in_spark_sql(tmp_path):
    reader = installed(tmp_path, *EXAMPLES)

    program = f"{programs.__path__[0]}/example_plugins.py"
    told = json.loads(reader.shell(f"python {program} {tmp_path}/warehouse", "Spark").strip().splitlines()[-1])

    assert told == {
        "line LIKE '%timeout%'": [1, 1, 1000, 4000],
        "contains(line, 'no such thing')": [0, 0, 0, 4000],
        "line RLIKE 'by a time(out|less)'": [1, 4, 4000, 4000],
        "line RLIKE 'ended by .* time'": [1, 1, 1000, 4000],
        "NOT (line RLIKE 'ended')": [3998, 4, 4000, 4000],
        "line ILIKE '%A TIMEOUT%'": [1, 1, 1000, 4000],
        "substring(line, 1, 3) = 'req' AND line RLIKE 'no such'": [0, 0, 0, 4000],
        "city = 'Lima'": [1000, 4, 1000, 4000],
        "city NOT IN ('Lima', 'Oslo')": [2000, 4, 2000, 4000],
    }
