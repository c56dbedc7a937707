"""Files that a converted table still has of its former source, and that were touched, copied or restored since."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from fuse_index.sources.plan import FileProgress
from fuse_index.sources.sync import SyncResult
from fuse_storage import (
    BlockReplacement,
    Corrupt,
    FileRules,
    OpenedFile,
    ReplaceBlocks,
    SourceFile,
    SourceVersion,
    StoredTable,
    has_page_zones,
    live_row_masks,
    modified_microseconds,
    open_source_files,
    reads_as_logged,
    stage_source_files,
)


@dataclass(frozen=True, slots=True)
class _Touched:
    block: int
    file: SourceFile
    opened: OpenedFile


def renew_files(
    head: StoredTable, source: SourceVersion, progress: FileProgress | None = None
) -> tuple[StoredTable, SyncResult]:
    """Take files of a former source anew whose footers are what they were and that look otherwise, and tell how many.

    One commit, or none. Raises Corrupt, naming the file, for one with another footer, and as ``open_source_files``.
    """
    blocks, schemas = head.blocks(), head.snapshot.schemas
    foreign = np.flatnonzero(blocks.foreign.mask).tolist()
    live = live_row_masks(blocks)
    files = [
        SourceFile(
            blocks.locations[block],
            int(blocks.sizes[block]),
            deleted=~live[block] if block in live else None,
            constants={
                field.physical_name: blocks.foreign.constants[block][field.id]
                for field in schemas[int(blocks.schema_ids[block])].fields
                if field.id in blocks.foreign.constants[block]
            },
        )
        for block in foreign
    ]
    groups: dict[tuple[int, bool], list[_Touched]] = defaultdict(list)
    opened_files = open_source_files(head.store, source.url, files, progress)
    for block, (file, opened) in zip(foreign, opened_files, strict=True):
        known = blocks.file(block).foreign
        assert known is not None
        assert opened.meta is not None
        if opened.seal != blocks.seals[block]:
            raise Corrupt(f"{opened.where} is another file than the one that was attached: restore it from a copy")
        if (known.modified, known.etag) != (modified_microseconds(opened.meta), opened.meta.etag):
            groups[int(blocks.schema_ids[block]), known.by_id].append(_Touched(block, file, opened))
    transaction = head.transaction()
    for (schema_id, by_id), touched in groups.items():
        pairs = [(each.file, each.opened) for each in touched]
        # what a file's types may be was seen when it was attached
        rules = FileRules(by_id, reads_as_logged, page_zones=has_page_zones(head.snapshot))
        staged = stage_source_files(head.store, schemas[schema_id], rules, pairs).segments
        removed = blocks.take(np.array([each.block for each in touched], np.int64))
        segment_ids = head.segments().segments_containing(removed.ordinals)
        replacements = [BlockReplacement((block_id,), 1) for block_id in removed.ids]
        transaction.stage(ReplaceBlocks(replacements, staged, segment_ids, name="sync", same_rows=True), staged)
    renewed = sum(map(len, groups.values()))
    done = transaction.commit("sync") if renewed else head
    kept, row_count = done.snapshot.block_count - renewed, done.snapshot.row_count
    version = "" if source.version is None else source.version
    return done, SyncResult(version, renewed, renewed, kept, row_count, True, done.snapshot.id)
