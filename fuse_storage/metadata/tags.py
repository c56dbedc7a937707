"""Tags: names for snapshots, for ever or until a time.

What a tag names is kept by every vacuum; an expired tag names nothing any more. A name can be given again, and by a key
of its own each time: the first tag of a name has number 0, and whatever replaces or drops it has the next number. So of
several who do that at once one wins, and none deletes what another made.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from fuse_storage.card import Shown
from fuse_storage.errors import (
    AlreadyExists,
    Conflict,
    Corrupt,
    FormatError,
    InvalidArgument,
    NotFound,
    TableUrl,
    Unsupported,
)
from fuse_storage.metadata.encoding import (
    decode_checksummed_json,
    encode_checksummed_json,
    format_timestamp,
    utc_now,
)
from fuse_storage.metadata.file_ref import FileRef, read_verified
from fuse_storage.metadata.refs import REF_NAME_PATTERN, Branch, check_new_ref_name
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.store.abilities import list_keys_after, read_at_most
from fuse_storage.store.ranges import ObjectMeta
from fuse_storage.store.store import Store
from fuse_storage.validation.json_members import MAX_REF_BYTES, TagMembers, convert_members, parse_stored_time

TAG_FOLDER = "_refs/tag"
_REF_PLACE = re.compile(rf"_refs/(?:branch|tag)(?:/{REF_NAME_PATTERN.pattern}(?:/[0-9]{{20}}\.json)?)?")
_TAG_FILE = re.compile(rf"{TAG_FOLDER}/(?P<name>{REF_NAME_PATTERN.pattern})(?:/(?P<number>[0-9]{{20}}))?\.json")


@dataclass(frozen=True, slots=True, repr=False)
class Tag(Shown):
    """A name for one snapshot. ``expires`` (UTC): from when on it is as if there were no such tag; None is never.

    ``holder``: the URL of the table that needs the snapshot; None where a person does.
    """

    _shown = "name snapshot_id timestamp expires holder"

    name: str
    timestamp: datetime
    snapshot_id: str
    reference: FileRef
    expires: datetime | None = None
    holder: str | None = None

    def expired(self, now: datetime | None = None) -> bool:
        return self.expires is not None and self.expires <= (now or utc_now())

    @property
    def dropped(self) -> bool:
        """Whether it only says that the tag before it was dropped: it had expired when it was made."""
        return self.expired(self.timestamp)

    def encode(self) -> bytes:
        members: dict[str, Any] = {
            "kind": "tag",
            "name": self.name,
            "timestamp": format_timestamp(self.timestamp),
        }
        if self.expires is not None:
            members["expires"] = format_timestamp(self.expires)
        if self.holder is not None:
            members["holder"] = self.holder
        members["snapshot"] = {"id": self.snapshot_id, **self.reference.to_json()}
        return encode_checksummed_json(members)

    @staticmethod
    def decode(data: bytes, where: str) -> Tag:
        """Raises Corrupt for bytes that are not as they were written, FormatError for what is no tag."""
        members = decode_checksummed_json(data, where)
        try:
            found = convert_members(members, TagMembers)
            return Tag(
                found.name,
                parse_stored_time(found.timestamp),
                found.snapshot.id,
                FileRef.from_members(found.snapshot),
                None if found.expires is None else parse_stored_time(found.expires),
                found.holder,
            )
        except ValueError as problem:
            raise FormatError(f"{where} is no tag: {problem}") from problem


@dataclass(frozen=True, slots=True)
class TagFile:
    """One file of a tag. ``newest``: the last of its name, and so what the name means."""

    file: ObjectMeta
    tag: Tag
    newest: bool


def may_hold_ref(key: str) -> bool:
    """Tell whether a branch's or a tag's file or folder may have this key.

    >>> [may_hold_ref(key) for key in ("_refs/tag", "_refs/branch/main", "_refs/branch/.DS_Store", "_refs/main")]
    [True, True, False, False]
    """
    return _REF_PLACE.fullmatch(key) is not None


def check_free_of_branch(store: Store, name: str) -> None:
    """Raise AlreadyExists if a branch has the name that a tag is to have, which would hide its head."""
    check_new_ref_name(name, "tag")
    newest = Branch(store, name).newest_entry()
    if newest is not None and newest.kind != "tombstone":
        raise AlreadyExists(
            TableUrl(store.url) + f" already has a branch {name!r}, which a tag of that name would hide: choose another"
        )


def create_tag(store: Store, tag: Tag) -> str:
    """Write a tag, also in place of an expired one of its name, and return its key.

    Raises AlreadyExists if the name is taken by a tag that has not expired, InvalidArgument if it is no name for a tag,
    Conflict if somebody else makes and drops one of this name meanwhile.
    """
    check_new_ref_name(tag.name, "tag")
    if tag.expired(tag.timestamp):
        raise InvalidArgument(
            f"tag {tag.name!r} would expire at {format_timestamp(tag.expires or tag.timestamp)}, which "
            f"is past: give a later time"
        )
    number, before = _find_newest(store, tag.name)
    try:
        if before is not None and not before.expired():
            raise AlreadyExists(f"it names snapshot {before.snapshot_id}")
        number += before is not None
        key = _create(store, tag, number)
    except AlreadyExists as taken:
        raise AlreadyExists(
            TableUrl(store.url) + f" already has a tag {tag.name!r}: choose another name, or untag it first"
        ) from taken
    if max(_numbers(store, tag.name), default=0) > number:  # one was dropped while its number seemed to be free
        store.delete([key])
        raise Conflict(
            TableUrl(store.url) + f": somebody else made and dropped a tag {tag.name!r} meanwhile: try again"
        )
    return key


def keep_tag_forever(store: Store, tag: Tag) -> str:
    """Let a tag that expires, and that only its maker knows of, stay for ever; return the key of its new file.

    The file that it has stays, too, for a vacuum that has listed it and reads it only now.
    """
    return _create(store, replace(tag, expires=None), _find_newest(store, tag.name)[0] + 1)


def find_tag(store: Store, name: str) -> Tag | None:
    """Read the tag of this name, expired or not; None if there is none."""
    tag = _find_newest(store, name)[1] if REF_NAME_PATTERN.fullmatch(name) else None
    return None if tag is None or tag.dropped else tag


def drop_tag(store: Store, name: str) -> None:
    """Forget a tag; what it named stays as long as anything else keeps it.

    A tag of the same name that is created concurrently survives: it has a higher number. Raises NotFound, which names
    near names, and Conflict if somebody else was first.
    """
    number, tag = _find_newest(store, name) if REF_NAME_PATTERN.fullmatch(name) else (0, None)
    if tag is None or tag.dropped:
        raise NotFound(
            TableUrl(store.url) + f" has no tag {name!r}{did_you_mean(name, [tag.name for tag in list_tags(store)])}"
        )
    _check_writable(store, tag)
    now = utc_now()
    try:
        _create(store, replace(tag, timestamp=now, expires=now), number + 1)
    except AlreadyExists as made:
        raise Conflict(
            TableUrl(store.url) + f": somebody else just changed tag {name!r}: look what it is now"
        ) from made
    store.delete([_key(name, older) for older in {0, *_numbers(store, name)} if older <= number])


def list_tags(store: Store) -> list[Tag]:
    """Read all tags in the order of their names, expired ones too. Lists the folder of tags."""
    newest = [found.tag for found in list_tag_files(store) if found.newest and not found.tag.dropped]
    return sorted(newest, key=lambda tag: tag.name)


def list_tag_files(store: Store) -> list[TagFile]:
    """Read all files of tags, whatever they mean; files of other names are passed over. Raises as ``Tag.decode``."""
    found: dict[str, dict[int, ObjectMeta]] = {}
    for file in store.list(TAG_FOLDER):
        if (match := _TAG_FILE.fullmatch(file.key)) is not None:
            found.setdefault(match["name"], {})[int(match["number"] or 0)] = file
    tags = [
        (file, _read(store, name, number), number == max(files))
        for name, files in found.items()
        for number, file in files.items()
    ]
    return [TagFile(file, tag, newest) for file, tag, newest in tags if tag is not None]


def _check_writable(store: Store, tag: Tag) -> None:
    """Raise Unsupported if the snapshot of a tag is of a newer version; of one that is lost nothing is asked."""
    try:
        Snapshot.decode(read_verified(store, tag.reference), tag.reference.path).check_writable()
    except Unsupported:
        raise
    except (NotFound, FormatError):
        pass


def _find_newest(store: Store, name: str) -> tuple[int, Tag | None]:
    """The number and content of the last tag of this name, dropped or not; 0 and None if there is none."""
    while True:
        number = max(_numbers(store, name), default=0)
        if (tag := _read(store, name, number)) is not None or not number:
            return number, tag


def _numbers(store: Store, name: str) -> list[int]:
    """The numbers of the tags of this name that are not the first."""
    matches = map(_TAG_FILE.fullmatch, list_keys_after(store, f"{TAG_FOLDER}/{name}/0"))
    return [int(match["number"]) for match in matches if match is not None]


def _read(store: Store, name: str, number: int) -> Tag | None:
    key = _key(name, number)
    try:
        tag = Tag.decode(read_at_most(store, key, MAX_REF_BYTES), f"{store.url}/{key}")
    except NotFound:
        return None
    if tag.name != name:
        raise Corrupt(f"{store.url}/{key} is of a tag {tag.name!r}: it was copied from elsewhere; remove it")
    return tag


def _create(store: Store, tag: Tag, number: int) -> str:
    key = _key(tag.name, number)
    store.create(key, tag.encode())
    return key


def did_you_mean(name: str, names: list[str]) -> str:
    """Make the end of a message for whoever mistyped a name: near names, or some that there are; empty without any."""
    near = difflib.get_close_matches(name, names, 3)
    return f"; did you mean {near}?" if near else f": it has {sorted(names)[:10]}" if names else ""


def _key(name: str, number: int) -> str:
    return f"{TAG_FOLDER}/{name}/{number:020}.json" if number else f"{TAG_FOLDER}/{name}.json"
