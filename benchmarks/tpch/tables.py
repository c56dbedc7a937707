"""TPC-H's eight tables at any scale, from a seed: numpy draws what the specification has, as far as queries look at it.

Keys, prices, dates, flags, and the words that the 22 queries ask for are distributed as published; names, addresses and
comments are short. Amounts are DECIMAL(15,2). ``lineitem`` and ``orders`` come in the order of their dates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_Numbers = npt.NDArray[np.int64]

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = {
    "ALGERIA": 0, "ARGENTINA": 1, "BRAZIL": 1, "CANADA": 1, "EGYPT": 4, "ETHIOPIA": 0, "FRANCE": 3, "GERMANY": 3,
    "INDIA": 2, "INDONESIA": 2, "IRAN": 4, "IRAQ": 4, "JAPAN": 2, "JORDAN": 4, "KENYA": 0, "MOROCCO": 0,
    "MOZAMBIQUE": 0, "PERU": 1, "CHINA": 2, "ROMANIA": 3, "SAUDI ARABIA": 4, "VIETNAM": 2, "RUSSIA": 3,
    "UNITED KINGDOM": 3, "UNITED STATES": 1,
}  # fmt: skip
"""Each with the number of its region."""
_COLOURS = """
    almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse chiffon
    chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted gainsboro
    ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon
    medium metallic midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder
    puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle
    tomato turquoise violet wheat white yellow
"""
_TYPES = [
    ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
]
_CONTAINERS = [("SM", "LG", "MED", "JUMBO", "WRAP"), ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")]
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
_MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
_WORDS = "furiously carefully express ironic final pending regular even bold silent requests deposits packages"

_EPOCH = date(1970, 1, 1)
_FIRST_ORDER, _LAST_ORDER = ((each - _EPOCH).days for each in (date(1992, 1, 1), date(1998, 8, 2)))
_CURRENT = (date(1995, 6, 17) - _EPOCH).days


def make_tables(scale: float, seed: int = 1) -> Mapping[str, pa.Table]:
    """All tables by name; ``scale`` 1 has 6,000,000 rows in ``lineitem``."""
    parts, suppliers, customers = (max(int(scale * each), 40) for each in (200_000, 10_000, 150_000))
    orders, lineitem = _sales(np.random.default_rng([seed, 0]), parts, suppliers, customers)
    return {
        "region": _region(),
        "nation": _nation(),
        "supplier": _supplier(np.random.default_rng([seed, 1]), suppliers),
        "customer": _customer(np.random.default_rng([seed, 2]), customers),
        "part": _part(np.random.default_rng([seed, 3]), parts),
        "partsupp": _partsupp(np.random.default_rng([seed, 4]), parts, suppliers),
        "orders": orders,
        "lineitem": lineitem,
    }


def _region() -> pa.Table:
    return pa.table({"r_regionkey": range(5), "r_name": REGIONS, "r_comment": ["a region"] * 5})


def _nation() -> pa.Table:
    return pa.table(
        {
            "n_nationkey": range(len(NATIONS)),
            "n_name": list(NATIONS),
            "n_regionkey": list(NATIONS.values()),
            "n_comment": ["a nation"] * len(NATIONS),
        }
    )


def _supplier(draw: np.random.Generator, count: int) -> pa.Table:
    keys, nations = np.arange(1, count + 1), draw.integers(0, 25, count)
    complaints = pa.array(draw.random(count) < 0.02)
    return pa.table(
        {
            "s_suppkey": keys,
            "s_name": _numbered("Supplier#", keys),
            "s_address": _comment(draw, count, 2),
            "s_nationkey": nations,
            "s_phone": _phone(draw, nations),
            "s_acctbal": _decimal(draw.integers(-99_999, 1_000_000, count)),
            "s_comment": pc.if_else(complaints, "slow Customer even Complaints", _comment(draw, count, 4)),
        }
    )


def _customer(draw: np.random.Generator, count: int) -> pa.Table:
    keys, nations = np.arange(1, count + 1), draw.integers(0, 25, count)
    return pa.table(
        {
            "c_custkey": keys,
            "c_name": _numbered("Customer#", keys),
            "c_address": _comment(draw, count, 2),
            "c_nationkey": nations,
            "c_phone": _phone(draw, nations),
            "c_acctbal": _decimal(draw.integers(-99_999, 1_000_000, count)),
            "c_mktsegment": _one_of(draw, _SEGMENTS, count),
            "c_comment": _comment(draw, count, 6),
        }
    )


def _part(draw: np.random.Generator, count: int) -> pa.Table:
    keys = np.arange(1, count + 1)
    makers, brands = draw.integers(1, 6, count), draw.integers(1, 6, count)
    return pa.table(
        {
            "p_partkey": keys,
            "p_name": _words([_one_of(draw, _COLOURS.split(), count) for _ in range(5)]),
            "p_mfgr": pc.binary_join_element_wise("Manufacturer#", _text(makers), ""),
            "p_brand": pc.binary_join_element_wise("Brand#", _text(10 * makers + brands), ""),
            "p_type": _words([_one_of(draw, each, count) for each in _TYPES]),
            "p_size": pa.array(draw.integers(1, 51, count), pa.int32()),
            "p_container": _words([_one_of(draw, each, count) for each in _CONTAINERS]),
            "p_retailprice": _decimal(_retail_cents(keys)),
            "p_comment": _comment(draw, count, 2),
        }
    )


def _partsupp(draw: np.random.Generator, parts: int, suppliers: int) -> pa.Table:
    keys, numbers = np.repeat(np.arange(1, parts + 1), 4), np.tile(np.arange(4), parts)
    return pa.table(
        {
            "ps_partkey": keys,
            "ps_suppkey": _supplier_of(keys, numbers, suppliers),
            "ps_availqty": pa.array(draw.integers(1, 10_000, len(keys)), pa.int32()),
            "ps_supplycost": _decimal(draw.integers(100, 100_001, len(keys))),
            "ps_comment": _comment(draw, len(keys), 6),
        }
    )


def _sales(draw: np.random.Generator, parts: int, suppliers: int, customers: int) -> tuple[pa.Table, pa.Table]:
    count = 10 * customers
    days = np.sort(draw.integers(_FIRST_ORDER, _LAST_ORDER + 1, count))
    buyers = draw.integers(1, customers + 1, count)
    buyers = np.where(buyers % 3 == 0, buyers - 1, buyers)  # a third of all customers never buys
    keys = draw.permutation(count).astype(np.int64)
    keys = keys // 8 * 32 + keys % 8 + 1  # as sparse as published
    order = np.repeat(np.arange(count), draw.integers(1, 8, count))
    lines = len(order)
    starts = np.flatnonzero(np.r_[True, order[1:] != order[:-1]])
    part, quantity = draw.integers(1, parts + 1, lines), draw.integers(1, 51, lines)
    price = quantity * _retail_cents(part)
    discount, tax = draw.integers(0, 11, lines), draw.integers(0, 9, lines)
    shipped = days[order] + draw.integers(1, 122, lines)
    received = shipped + draw.integers(1, 31, lines)
    is_open = shipped > _CURRENT
    returned = np.where(received <= _CURRENT, draw.integers(0, 2, lines), 2)
    total = np.add.reduceat(price * (100 - discount) * (100 + tax) // 10_000, starts)
    open_lines, all_lines = np.add.reduceat(is_open.astype(np.int64), starts), np.diff(np.r_[starts, lines])
    status = np.where(open_lines == all_lines, 0, np.where(open_lines == 0, 1, 2))
    special = pa.array(draw.random(count) < 0.01)
    orders = pa.table(
        {
            "o_orderkey": keys,
            "o_custkey": buyers,
            "o_orderstatus": _chosen(("O", "F", "P"), status),
            "o_totalprice": _decimal(total),
            "o_orderdate": _days(days),
            "o_orderpriority": _one_of(draw, _PRIORITIES, count),
            "o_clerk": _numbered("Clerk#", draw.integers(1, max(count // 1500, 2), count)),
            "o_shippriority": pa.array(np.zeros(count), pa.int32()),
            "o_comment": pc.if_else(special, "even special silent requests", _comment(draw, count, 5)),
        }
    )
    lineitem = pa.table(
        {
            "l_orderkey": keys[order],
            "l_partkey": part,
            "l_suppkey": _supplier_of(part, draw.integers(0, 4, lines), suppliers),
            "l_linenumber": pa.array(np.arange(lines) - starts[order] + 1, pa.int32()),
            "l_quantity": _decimal(100 * quantity),
            "l_extendedprice": _decimal(price),
            "l_discount": _decimal(discount),
            "l_tax": _decimal(tax),
            "l_returnflag": _chosen(("R", "A", "N"), returned),
            "l_linestatus": _chosen(("F", "O"), is_open.astype(np.int64)),
            "l_shipdate": _days(shipped),
            "l_commitdate": _days(days[order] + draw.integers(30, 91, lines)),
            "l_receiptdate": _days(received),
            "l_shipinstruct": _one_of(draw, _INSTRUCTIONS, lines),
            "l_shipmode": _one_of(draw, _MODES, lines),
            "l_comment": _comment(draw, lines, 3),
        }
    )
    return orders, lineitem.take(pa.array(np.argsort(shipped, kind="stable")))


def _retail_cents(part: _Numbers) -> _Numbers:
    return 90_000 + part // 10 % 20_001 + 100 * (part % 1000)


def _supplier_of(part: _Numbers, number: _Numbers, suppliers: int) -> _Numbers:
    """The supplier of this number, 0 to 3, of a part."""
    return (part + number * (suppliers // 4 + (part - 1) // suppliers)) % suppliers + 1


def _decimal(cents: _Numbers) -> pa.Array:
    words = np.empty((len(cents), 2), np.int64)  # of 128 bits, little-endian
    words[:, 0], words[:, 1] = cents, cents >> 63
    return pa.Array.from_buffers(pa.decimal128(15, 2), len(cents), [None, pa.py_buffer(words)])


def _days(days: _Numbers) -> pa.Array:
    return pa.array(days, pa.int32()).cast(pa.date32())


def _text(numbers: _Numbers) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def _numbered(prefix: str, numbers: _Numbers) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pc.utf8_lpad(_text(numbers), 9, "0"), "")


def _phone(draw: np.random.Generator, nations: _Numbers) -> pa.Array:
    parts = [draw.integers(low, high, len(nations)) for low, high in ((100, 1000), (100, 1000), (1000, 10_000))]
    return pc.binary_join_element_wise(_text(nations + 10), *map(_text, parts), "-")


def _chosen(values: Sequence[str], numbers: _Numbers) -> pa.Array:
    return pa.array(values).take(pa.array(numbers))


def _one_of(draw: np.random.Generator, values: Sequence[str], count: int) -> pa.Array:
    return _chosen(values, draw.integers(0, len(values), count))


def _comment(draw: np.random.Generator, count: int, words: int) -> pa.Array:
    return _words([_one_of(draw, _WORDS.split(), count) for _ in range(words)])


def _words(columns: Sequence[pa.Array]) -> pa.Array:
    return pc.binary_join_element_wise(*columns, " ")
