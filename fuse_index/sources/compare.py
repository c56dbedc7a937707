"""Files of a source's state, compared with the blocks of a table: which are gone, and which are as they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fuse_storage import BlockFrame, OpenedFile, SourceFile, modified_microseconds


def as_opened(file: SourceFile, opened: OpenedFile) -> SourceFile:
    """The file as its store had it when it was opened, where it was asked."""
    if opened.meta is None:
        return file
    return replace(file, modified=modified_microseconds(opened.meta), etag=opened.meta.etag)


def compare_files(
    blocks: BlockFrame, files: Sequence[SourceFile], opened: Sequence[OpenedFile] = ()
) -> tuple[list[int], set[str]]:
    """The blocks whose files are gone or changed, by their numbers in the frame, and the locations of all others.

    ``opened``: the files, where they were looked into.
    """
    live = {file.location: file for file in files}
    seals = {file.location: each.seal for file, each in zip(files, opened, strict=False)}
    gone, kept = [], set[str]()
    known = zip(blocks.sizes.tolist(), blocks.seals.tolist(), strict=True)
    versions = zip(blocks.foreign.modified.tolist(), blocks.foreign.etags, strict=True)
    rows = zip(blocks.locations, known, versions, strict=True)
    for number, (location, (size, seal), version) in enumerate(rows):
        file = live.get(location)
        same = file is not None and (size, seals.get(location, seal)) == (file.size, seal)
        if file is None or not same or location in kept or _is_newer(file, *version):
            gone.append(number)
        else:
            kept.add(location)
    return gone, kept


def _is_newer(file: SourceFile, modified: int, etag: str | None) -> bool:
    """Whether what a store says of a file is not what it said once, as far as it says anything."""
    return file.modified not in (None, modified) or (None not in (file.etag, etag) and file.etag != etag)
