"""Conditions on terms without a column: every function that is known here, with every operator."""

from collections.abc import Iterator

TEXTS = [
    "lower('A')",
    "upper(lower('a'))",
    "CAST(length('abcde') AS STRING)",
    """get_json_object('{"a":1}', '$.a')""",
    "get_json_object('{}', '$.a')",
    "lower(NULL)",
]
NUMBERS = [
    "length('')",
    "length('abcde')",
    "year('2024-05-03')",
    "month(DATE'2024-05-03')",
    "day(CAST(lower('2024-05-03') AS DATE))",
    "CAST(lower('5') AS INT)",
    "TRY_CAST(lower('x') AS INT)",
    "CAST(lower('5') AS DECIMAL(4,2))",
    "CAST(upper('nan') AS DOUBLE)",
]
TIMES = ["date_trunc('MONTH', TIMESTAMP'2024-05-03 04:05:06')", "CAST(lower('2024-05-01') AS DATE)"]
TRUTHS = ["CAST(lower('TRUE') AS BOOLEAN)", "CAST(length('') AS BOOLEAN)"]
LITERALS = {
    "text": ["'a'", "'5'", "NULL"],
    "number": ["5", "2024", "0.5", "NULL"],
    "time": ["DATE'2024-05-01'", "NULL"],
}
OPERATORS = ["=", "<=>", "<>", "<", "<=", ">", ">="]


def leaves() -> Iterator[str]:
    """Some four hundred conditions without a column."""
    for kind, terms in (("text", TEXTS), ("number", NUMBERS), ("time", TIMES)):
        for term in terms:
            literals = LITERALS[kind]
            yield from (f"{term} {operator} {literal}" for operator in OPERATORS for literal in literals)
            yield from (f"{literals[0]} {operator} {term}" for operator in OPERATORS)
            yield from (f"{term} {word} ({', '.join(literals)})" for word in ("IN", "NOT IN"))
            yield from (f"{term} {word} ({literals[0]})" for word in ("IN", "NOT IN"))
            yield from (f"{term} IS NULL", f"{term} IS NOT NULL", f"{term} BETWEEN {literals[0]} AND {literals[0]}")
            yield f"{literals[0]} IN ({term}, {literals[0]})"
    for term in TEXTS:
        yield from (f"{term} LIKE 'a%'", f"{term} NOT LIKE '_'", f"'a' LIKE {term}", f"{term} LIKE NULL")
        yield from (f"{function}({term}, lower('A'))" for function in ("startswith", "endswith", "contains"))
    for term in TRUTHS:
        yield from (term, f"NOT {term}", f"{term} IS TRUE", f"{term} IS NOT FALSE", f"{term} = true")


CONNECTIVES = ["{}", "NOT ({})", "{} OR id = 1", "{} AND id = 1", "NOT ({}) OR id IS NULL", "id < 3 AND NOT ({})"]
