"""What a hostile writer leaves: wrong numbers in payloads and summaries behind right checksums, as a process.

``python -m tests.plugins.hostile_payloads KIND SEED CASES`` prints how many cases were tried, how many raised, and each
that took or reserved memory before it did. A crash ends the process, and so does a case that takes too long.
"""

import faulthandler
import io
import random
import resource
import sys
from dataclasses import replace
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fuse_index.aggregates.finalize import finalize_state
from fuse_index.aggregates.sketches import build_sketch
from fuse_index.aggregates.state import merge_states, sketch_damage
from fuse_index.plugin import Aggregation, Input, Probe
from fuse_index.predicate import Call, Cast, Column, Compare, Context, In, IsNull, JsonPath, Like, Literal
from fuse_index.testing.worlds.memory_batch import KindUnderTest, MemoryBatch, MemoryFiles
from fuse_plugins.aggregate import AggregateIndex, AggregateOptions
from fuse_plugins.bloom import Bloom, BloomOptions
from fuse_plugins.full_text import FullText, FullTextOptions, layout
from fuse_plugins.full_text.match_function import MATCH_FUNCTION
from fuse_plugins.json_path import JsonPathOptions, JsonPaths
from fuse_plugins.json_path.contains import JSON_CONTAINS
from fuse_storage import Cache, add_checksums

MEMORY_BYTES = 256 << 20
"""What asking a damaged index may take beyond what asking a sound one takes."""
_ADDRESS_BYTES = 2 << 30
"""Address space beyond that of a sound index: whoever reserves more believes a number that was not checked."""
_SECONDS = 60
"""For one case, which takes a few milliseconds."""

TEXT, NUMBER = Column(("c",), pa.string()), Column(("n",), pa.int64())
WIDE_NUMBERS = [-1, 0, 1, 2, 7, 255, 65536, 1 << 20, 1 << 24, 1 << 27, 1 << 30, (1 << 31) - 1, (1 << 32) - 1]
WIDER_NUMBERS = [*WIDE_NUMBERS, -(1 << 31), -(1 << 63), 1 << 40, 1 << 60, (1 << 63) - 1]


def blocks_of(**columns):
    """Two blocks of two zones each."""
    table = pa.table(columns)
    size = len(table) // 4
    zones = [table.slice(start, size) for start in range(0, 4 * size, size)]
    return [zones[:2], zones[2:]]


def bloom_world():
    subject = KindUnderTest(Bloom(), (Input(NUMBER, pa.int64()),), BloomOptions())
    leaves = [
        Compare("=", NUMBER, Literal(3, pa.int64())),
        In(NUMBER, tuple(Literal(number, pa.int64()) for number in range(-50, 50))),
    ]
    return subject, blocks_of(n=list(range(400))), leaves


def full_text_world():
    words = ["late", "refund", "order", "the", "west", *(f"w{number}" for number in range(600))]
    rows = [" ".join(words[(row * step) % len(words)] for step in (1, 2, 3, 5, 7)) + " the late" for row in range(400)]
    subject = KindUnderTest(FullText(), (Input(TEXT, pa.string()),), FullTextOptions(), {"match": MATCH_FUNCTION})
    queries = ["late", "nowhere", '"the late"', "w1*", "lete~1", "[a TO x]", "NOT order", "+late w5"]
    return subject, blocks_of(c=rows), [Call("match", (TEXT, Literal(query, pa.string()))) for query in queries]


def json_path_world():
    rows = [f'{{"a": {row}, "b": {{"c": "x{row % 50}"}}, "d": [{row}, "y"]}}' for row in range(400)]
    options = JsonPathOptions(("$.a", "$.b.c", "$.d[*]"))
    subject = KindUnderTest(JsonPaths(), (Input(TEXT, pa.string()),), options, {"json_contains": JSON_CONTAINS})
    number = Cast(JsonPath(TEXT, "$.a"), pa.int64(), "try")
    leaves = [
        Compare("=", JsonPath(TEXT, "$.b.c"), Literal("x7", pa.string())),
        Compare("<", number, Literal(3, pa.int64())),
        Compare("=", number, Literal(3, pa.int64())),
        In(JsonPath(TEXT, "$.b.c"), tuple(Literal(f"y{number}", pa.string()) for number in range(20))),
        IsNull(JsonPath(TEXT, "$.a")),
        Like(JsonPath(TEXT, "$.b.c"), Literal("x1%", pa.string())),
        Call("json_contains", (TEXT, Literal("$.d[*]", pa.string()), Literal("y", pa.string()))),
    ]
    return subject, blocks_of(c=rows), leaves


AGGREGATES = ("count(*)", "sum(n)", "avg(n)", "min(c)", "hll_sketch_agg(n, 12)")


def aggregate_world():
    inputs = [
        Input(TEXT, pa.string()),
        Input(Literal(1, pa.int32()), pa.int32(), "count"),
        *(Input(NUMBER, pa.int64(), function) for function in ("sum", "avg")),
        Input(TEXT, pa.string(), "min"),
        Input(NUMBER, pa.int64(), "hll_sketch_agg", 12),
    ]
    subject = KindUnderTest(AggregateIndex(), tuple(inputs), AggregateOptions(AGGREGATES))
    rows = blocks_of(c=[f"group {row % 40}" for row in range(400)], n=list(range(400)))
    return subject, rows, [Aggregation((TEXT,), tuple(one.aggregate for one in inputs if one.function))]


WORLDS = {
    "bloom": bloom_world,
    "full_text": full_text_world,
    "json_path": json_path_world,
    "aggregate": aggregate_world,
}


# --- asking -------------------------------------------------------------------------------------------------------


def questions(subject, batch, leaves):
    """Everything that the engine asks of an index, one call each."""
    kind, options = subject.kind, subject.options
    for leaf in leaves:
        if isinstance(leaf, Aggregation):
            yield from (lambda unit=unit, leaf=leaf: answer(subject, batch, unit, leaf) for unit in range(len(batch)))
            continue
        probe = kind.compile(leaf, subject.inputs, options, Context())
        assert isinstance(probe, Probe), probe
        yield lambda probe=probe: kind.probe(probe, batch)
        if isinstance(kind, FullText):
            yield lambda leaf=leaf: rank(subject, batch, leaf)
    yield lambda: kind.inspect(batch, options)
    if hasattr(kind, "roll_up"):
        yield lambda: kind.roll_up(batch.summaries.drop_null())


def answer(subject, batch, unit, request):
    """A state as the engine takes it: checked for its sketches, merged, finished."""
    probe = subject.kind.match(request, subject.inputs, subject.options, Context())
    assert isinstance(probe, Probe), probe
    state = subject.kind.state(probe, batch, unit)
    if isinstance(state, pa.Table) and sketch_damage(request, state) is None:
        finalize_state(request, merge_states(request, [state]))


def rank(subject, batch, call):
    kind = subject.kind
    probe = kind.compile_ranking(call, subject.inputs, subject.options, Context())
    statistics = kind.gather(probe, batch)
    kind.bound(probe, statistics, batch)
    for unit in range(len(batch)):
        kind.top(probe, statistics, batch, unit, 5, None)


# --- changing -----------------------------------------------------------------------------------------------------


def changed_bytes(data, chance):
    """The same bytes with some bits, or words of them, changed, or some cut out."""
    changed = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 8])):
        place = chance.randrange(len(changed))
        match chance.choice(["flip", "flip", "word", "cut"]):
            case "flip":
                changed[place] ^= 1 << chance.randrange(8)
            case "word":
                width = chance.choice([1, 2, 4, 8])
                word = (chance.choice(WIDER_NUMBERS) & ((1 << 8 * width) - 1)).to_bytes(width, "little")
                changed[place : place + width] = word[: len(changed) - place]
            case "cut":
                length = chance.choice([1, 4, 100])
                del changed[place : place + length]
                changed += bytes(len(data) - len(changed))
    return bytes(changed)


def with_changed_packs(batch, chance):
    """Packs with other bytes, and with checksums of these."""

    def change(sealed):
        chunk = next(place.chunk for place in batch.locations if place is not None)
        stride = chunk + 4
        pieces = [sealed[start : start + stride][:-4] for start in range(0, len(sealed), stride)]
        return add_checksums(changed_bytes(b"".join(pieces), chance), chunk)

    return batch.with_changed_packs(change)


def changed_value(value, chance):
    """A value of the same type, with some of its parts changed."""
    match value:
        case dict():
            name = chance.choice(list(value))
            return value | {name: changed_value(value[name], chance)}
        case list():
            if not value or chance.random() < 0.1:
                return chance.choice([[], value * 2, value[::-1], [*value, None]])
            place = chance.randrange(len(value))
            return [*value[:place], changed_value(value[place], chance), *value[place + 1 :]]
        case bool():
            return not value
        case int() | None:
            return chance.choice([*WIDER_NUMBERS, None, *([] if value is None else [value + 1, value - 1, 2 * value])])
        case float():
            return chance.choice([float("nan"), float("inf"), -value])
        case str() | bytes():
            return chance.choice([value * 2, value[:1], value[:0], value * 100_000])


def with_changed_summaries(batch, chance):
    values = batch.summaries.to_pylist()
    place = chance.randrange(len(values))
    values[place] = changed_value(values[place], chance)
    try:
        return replace(batch, summaries=pa.array(values, batch.summaries.type), cache=Cache(1 << 24))
    except (pa.ArrowException, OverflowError, TypeError):  # not a value of the type
        return with_changed_summaries(batch, chance)


def with_changed_arrays(subject, blocks, chance):
    """A full-text index whose writer put other numbers into its blobs before they were compressed."""
    compress, left = layout.compress_arrays, [chance.randrange(30)]

    def hostile(*arrays):
        left[0] -= 1
        if left[0] == 0:
            arrays = list(arrays)
            place = chance.randrange(len(arrays))
            arrays[place] = changed_array(arrays[place], chance)
        return compress(*arrays)

    with mock.patch.object(layout, "compress_arrays", hostile):
        return MemoryBatch.index_blocks(subject, blocks)


def changed_array(array, chance):
    if isinstance(array, bytes):
        return chance.choice([b"", array[:-1], array * 2, b"\xff" * len(array), bytes(8 << 20), array[::-1]])
    changed = np.array(array, np.int64)
    numbers = [number for number in WIDE_NUMBERS if number >= 0]
    match chance.choice(["one", "one", "all", "more", "fewer", "many"]):
        case "one" if len(changed):
            changed[chance.randrange(len(changed))] = chance.choice(numbers)
        case "all":
            changed[:] = chance.choice(numbers)
        case "more":
            changed = np.append(changed, changed)
        case "fewer":
            changed = changed[:-1]
        case "many":
            changed = np.zeros(1 << 24, np.int64) + chance.choice(numbers)
    return changed


def repeated(value, times):
    """One value many times, in the memory of one."""
    numbers = pa.array(np.zeros(times, np.int32))
    return pa.DictionaryArray.from_arrays(numbers, pa.array([value], pa.int64() if isinstance(value, int) else None))


def with_other_state(subject, batch, chance):
    """Aggregates whose payload is a Parquet file of other columns, of more rows, or of few bytes that make many."""
    rows = chance.choice([0, 1, 41, 200, 5000, 300_000])
    text = "x" * chance.choice([1, 1, 1 << 18, 1 << 22])
    sketch = build_sketch(range(chance.choice([0, 1, 5, 20, 400])), chance.choice([4, 8, 12, 12, 12]))
    sketch = changed_bytes(sketch[:40], chance) + sketch[40:]
    numbers = {name: chance.choice(WIDER_NUMBERS) for name in ("count_1", "sum_2", "count_2")}
    values = {"group_0": text, **numbers, "total_2": 1.0, "min_4": text, "sketch_5": sketch}
    values.pop(chance.choice([*values, "none"]), None)
    columns = {name: repeated(value, rows) for name, value in values.items()}
    sink = io.BytesIO()
    compression = chance.choice(["zstd", "snappy", "none"])
    pq.write_table(
        pa.table(columns),
        sink,
        compression=compression,
        store_schema=False,
        write_statistics=False,
        dictionary_pagesize_limit=1 << 30,
    )
    data = sink.getvalue()
    files = MemoryFiles({"pack-0": add_checksums(data, 1 << 14)})
    place = replace(
        batch.locations[0], key="pack-0", length=len(files.data["pack-0"]), chunk=1 << 14, span=(0, len(data))
    )
    return replace(batch, files=files, locations=(place,) * len(batch), cache=Cache(1 << 24))


def changed(kind, subject, blocks, batch, chance):
    ways = ["bytes", "bytes", "summaries"]
    ways += {"full_text": ["arrays"] * 4, "aggregate": ["state"] * 2}.get(kind, [])
    match way := chance.choice(ways):
        case "bytes":
            return way, with_changed_packs(batch, chance)
        case "summaries":
            return way, with_changed_summaries(batch, chance)
        case "arrays":
            return way, with_changed_arrays(subject, blocks, chance)
        case "state":
            return way, with_other_state(subject, batch, chance)


# --- the process --------------------------------------------------------------------------------------------------


def memory_bytes(name):
    """``VmRSS``, what the process has in memory, ``VmHWM``, the most that it had, or ``VmSize``, what it reserved."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(name))


def reset_peak():
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")


def limit_addresses(limit):
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def main(kind, seed, cases):
    faulthandler.enable()
    subject, blocks, leaves = WORLDS[kind]()
    batch = MemoryBatch.index_blocks(subject, blocks)
    for question in questions(subject, batch, leaves):
        question()  # a sound index answers them all
    raised = most = 0
    for case in range(seed * cases, (seed + 1) * cases):
        chance = random.Random(f"{kind} {case}")
        way, hostile = changed(kind, subject, blocks, batch, chance)
        pa.default_memory_pool().release_unused()
        for number, question in enumerate(questions(subject, hostile, leaves)):
            reset_peak()
            before = memory_bytes("VmRSS")
            limit_addresses(memory_bytes("VmSize") + _ADDRESS_BYTES)
            faulthandler.dump_traceback_later(_SECONDS, exit=True)
            try:
                question()
            except MemoryError as error:  # Arrow's own is one too
                print(f"case {case} ({way}), question {number}: memory was reserved on trust: {error!r}")
            except Exception:
                raised += 1
            faulthandler.cancel_dump_traceback_later()
            limit_addresses(resource.RLIM_INFINITY)
            most = max(most, taken := memory_bytes("VmHWM") - before)
            if taken > MEMORY_BYTES:
                print(f"case {case} ({way}), question {number}: {taken >> 20} MiB")
    print(f"{cases} cases, {raised} refusals, at most {most >> 20} MiB", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
