"""JSON paths: which blocks, and which zones, hold a value at a path of a text column with documents.

Of each path a block's summary says what kinds of values there are, how many documents have one, and ranges: of texts,
of what casts make of them. The values themselves are bloomed, all paths in one filter a zone. So it votes on what
``get_json_object`` finds, compared as text or through a cast, on its being NULL, and on ``json_contains``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.plugin import (
    VARIANT,
    Ballot,
    BlockBatch,
    Conjunction,
    Function,
    IndexKind,
    Input,
    Pack,
    Probe,
    Reason,
    Refusal,
    Sidecar,
    hookimpl,
    variant_documents,
)
from fuse_index.predicate import Context, Leaf
from fuse_plugins.bloom import BloomOptions
from fuse_plugins.json_path.contains import JSON_CONTAINS
from fuse_plugins.json_path.discovery import frequent_paths
from fuse_plugins.json_path.extract import ZoneValues
from fuse_plugins.json_path.known_names import NAMES_ENTRY, KnownNames, merge_known_names
from fuse_plugins.json_path.path_statistics import KIND_NAMES, PATH_SUMMARY_TYPE, merge_path_summaries, summarize_path
from fuse_plugins.json_path.paths import PathPattern, parse_pattern
from fuse_plugins.json_path.question import PathProbe, bloom_keys, compile_path_probe
from fuse_plugins.json_path.vote import BLOOM, BloomView, vote_on_path

AUTO = "auto"
_DOCUMENT_COUNTS = ("documents", "unusual", "doubtful")
"""Counts of a block: documents not NULL, those that not all readers read alike, those of which nothing is sure."""


@dataclass(frozen=True)
class JsonPathOptions:
    """Options of a JSON path index.

    ``paths``: those to index, as RFC 9535 has them (see ``standard``), or ``auto`` to find them in each block: at most
    ``count`` paths to scalars, not deeper than ``depth`` names, that so large a share of documents as ``presence`` has.
    ``fpp``: the share of zones without a value that are read for it all the same.
    """

    paths: tuple[str, ...] | str = AUTO
    presence: float = 0.1
    count: int = 8
    depth: int = 4
    fpp: float = 0.001

    def __post_init__(self) -> None:
        if isinstance(self.paths, str) and self.paths != AUTO:
            object.__setattr__(self, "paths", tuple(part.strip() for part in self.paths.split(";")))
        if self.paths != AUTO:
            object.__setattr__(self, "paths", tuple(self.paths))
            if not self.paths:
                raise ValueError("paths=(): name at least one, or say paths='auto'")
            for path in self.paths:
                parse_pattern(path)
        for name, least, most in (("presence", 0.0, 1.0), ("count", 1, 64), ("depth", 1, 16)):
            if not least <= getattr(self, name) <= most:
                raise ValueError(f"{name}={getattr(self, name)!r}: choose from {least} to {most}")
        BloomOptions(self.fpp)

    def patterns(self, documents: pa.Array) -> list[PathPattern]:
        """List the paths to index, of a block with these documents."""
        if self.paths == AUTO:
            return frequent_paths(documents, self.presence, self.count, self.depth)
        return list(dict.fromkeys(map(parse_pattern, self.paths)))


class JsonPaths(IndexKind):
    """An index of what documents hold at some paths."""

    name = "json_path"
    Options = JsonPathOptions

    def accepts(self, inputs: Sequence[Input], options: JsonPathOptions) -> Refusal | None:
        if len(inputs) == 1 and inputs[0].type in (pa.string(), VARIANT):
            return None
        types = ", ".join(str(index_input.type) for index_input in inputs)
        expected = "json_path is on one column of text that holds JSON documents, or of VARIANT"
        return Refusal(
            Reason.TYPE_MISMATCH, f"{expected}, not on {types}; fields of a struct need no JSON: index them directly"
        )

    def summary_type(self, inputs: Sequence[Input], options: JsonPathOptions) -> pa.DataType:
        values = BLOOM.summary_type(inputs, BloomOptions(options.fpp))
        counts = [(name, pa.int32()) for name in _DOCUMENT_COUNTS]
        return pa.struct([*counts, ("paths", pa.list_(PATH_SUMMARY_TYPE)), ("values", values)])

    def build(self, rows: pa.Table, zones: npt.NDArray[np.int64], options: JsonPathOptions) -> Sidecar:
        """Index the documents of n zones of the one column; ``zones``: row offsets, int64 of shape (n + 1,)."""
        documents, beyond_json = _documents(rows.column(0).combine_chunks())
        patterns = options.patterns(documents)
        names = KnownNames() if options.paths == AUTO else None
        zone_summaries, keys_of_zones, document_counts = [], [], dict.fromkeys(_DOCUMENT_COUNTS, 0)
        for start, end in zip(zones[:-1].tolist(), zones[1:].tolist(), strict=True):
            zone = ZoneValues(patterns, names=names)
            zone.add_documents(documents.slice(start, end - start))
            zone.unusual += int(np.count_nonzero(beyond_json[start:end]))
            texts = [pa.array(values.texts, pa.string()) for values in zone.values]
            pairs = zip(texts, zone.values, strict=True)
            zone_summaries.append(
                [
                    summarize_path(texts_at_path, values.kinds) | {"present": values.present}
                    for texts_at_path, values in pairs
                ]
            )
            bloomed = [
                bloom_keys(pattern, texts_at_path) for pattern, texts_at_path in zip(patterns, texts, strict=True)
            ]
            keys_of_zones.append(pa.concat_arrays([pa.array([], pa.string()), *bloomed]))
            document_counts = {name: count + getattr(zone, name) for name, count in document_counts.items()}
        paths = [
            _merge_zones(pattern, [summaries[number] for summaries in zone_summaries])
            for number, pattern in enumerate(patterns)
        ]
        if names is not None and (entry := names.entry()) is not None:
            paths.append(entry)
        offsets = np.append(0, np.cumsum([len(keys) for keys in keys_of_zones])).astype(np.int64)
        filters = BLOOM.build(
            pa.table([pa.concat_arrays(keys_of_zones)], ["0"]), offsets, BloomOptions(options.fpp, long_text=True)
        )
        return replace(filters, summary=document_counts | {"paths": paths, "values": filters.summary})

    def pack(self, sidecars: Sequence[Sidecar]) -> Pack:
        pack = BLOOM.pack([replace(sidecar, summary=sidecar.summary["values"]) for sidecar in sidecars])
        summaries = [
            sidecar.summary | {"values": values} for sidecar, values in zip(sidecars, pack.summaries, strict=True)
        ]
        return replace(pack, summaries=summaries)

    def compile(
        self, what: Leaf | Conjunction, inputs: Sequence[Input], options: JsonPathOptions, context: Context
    ) -> Probe[PathProbe] | Refusal:
        path_probe = compile_path_probe(what, inputs[0].term, options.fpp)
        if isinstance(path_probe, Refusal):
            return path_probe
        if (
            path_probe.reading != "nothing"
            and options.paths != AUTO
            and path_probe.path not in {parse_pattern(path).text for path in options.paths}
        ):
            return Refusal(
                Reason.NO_INDEX, f"path {path_probe.path} is not indexed; these are: {', '.join(options.paths)}"
            )
        return Probe(path_probe, cost=200.0 if path_probe.probe_values is not None else 0.0, judges_null=True)

    def probe(self, probe: Probe[PathProbe], batch: BlockBatch) -> Ballot:
        return vote_on_path(probe.what, batch)

    def roll_up(self, summaries: pa.Array) -> pa.Scalar | None:
        blocks = summaries.to_pylist()
        if None in blocks:
            return None
        parts = [{path["path"]: path for path in block["paths"]} for block in blocks]
        shared = [path for path in parts[0] if path != NAMES_ENTRY and all(path in part for part in parts)]
        paths = [
            merge_path_summaries(summaries_at_path := [part[path] for part in parts])
            | {"path": path, "present": _total_present(summaries_at_path)}
            for path in shared
        ]
        entries = [part[NAMES_ENTRY] for part in parts if part.get(NAMES_ENTRY, {}).get("low") is not None]
        if len(entries) == len(parts) and (entry := merge_known_names(entries)) is not None:
            paths.append(entry)
        counts = {name: sum(block[name] for block in blocks) for name in _DOCUMENT_COUNTS}
        return pa.scalar(counts | {"paths": paths, "values": None}, summaries.type)

    def inspect(self, sidecars: BlockBatch, options: JsonPathOptions) -> Mapping[str, Any]:
        if sidecars.summaries is None:
            return {}
        blocks = [block for block in sidecars.summaries.to_pylist() if block is not None]
        summaries_by_path: dict[str, list[dict[str, Any]]] = {}
        for block in blocks:
            for path in (path for path in block["paths"] if path["path"] != NAMES_ENTRY):
                summaries_by_path.setdefault(path["path"], []).append(path)
        documents, unusual, doubtful = (sum(block[name] for block in blocks) for name in _DOCUMENT_COUNTS)
        values = BLOOM.inspect(BloomView(sidecars, np.ones(len(sidecars), np.bool_)), BloomOptions(options.fpp))
        return {
            "documents": documents,
            "unusual_documents": unusual,
            "doubtful_documents": doubtful,
            "paths": {
                path: _describe_path(summaries, documents) for path, summaries in sorted(summaries_by_path.items())
            },
            "filters": values.get("filters", 0),
            "filter_bytes": values.get("filter_bytes", 0),
        }


def _documents(column: pa.Array) -> tuple[pa.StringArray, npt.NDArray[np.bool_]]:
    """The documents of a column, and which of them are of VARIANT and more than JSON: bool, shape (rows,)."""
    if column.type == VARIANT:
        return variant_documents(column)
    return column, np.zeros(len(column), np.bool_)


def _merge_zones(pattern: PathPattern, zones: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    present = None if pattern.single_steps is None else _total_present(zones)
    return merge_path_summaries(zones) | {"path": pattern.text, "present": present}


def _total_present(parts: Sequence[Mapping[str, Any]]) -> int | None:
    counts = [part["present"] for part in parts]
    return None if None in counts else sum(counts)


def _describe_path(parts: Sequence[Mapping[str, Any]], documents: int) -> dict[str, Any]:
    """Describe a path for people, from its summaries in some blocks."""
    whole = merge_path_summaries(parts)
    description: dict[str, Any] = {
        "types": [name for bit, name in KIND_NAMES.items() if whole["kinds"] & bit],
        "blocks": len(parts),
    }
    if (present := _total_present(parts)) is not None and documents:
        description["presence"] = round(present / documents, 3)
    for name, low, high in (("text", "low", "high"), ("numbers", "least", "greatest"), ("days", "first", "last")):
        if whole[low] is not None:
            description[name] = [str(whole[low]), "…" if whole[high] is None else str(whole[high])]
    return description


@hookimpl
def fuse_index_kinds() -> list[type[IndexKind]]:
    return [JsonPaths]


@hookimpl
def fuse_index_functions() -> list[Function]:
    return [JSON_CONTAINS]
