"""Tags: names for snapshots, for ever or until a time.

What a tag names is kept by every vacuum; an expired tag names nothing any more.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fuse_storage.errors import AlreadyExists, FormatError, InvalidArgument, NotFound
from fuse_storage.metadata.encoding import (
    decode_checksummed_json,
    encode_checksummed_json,
    format_timestamp,
    is_iso_time,
)
from fuse_storage.metadata.file_ref import FileRef
from fuse_storage.metadata.refs import REF_NAME_PATTERN, check_ref_name, is_snapshot_id
from fuse_storage.store.abilities import read_at_most
from fuse_storage.store.store import Store
from fuse_storage.validation.json_members import MAX_REF_BYTES, TagMembers, convert_members, parse_stored_time

TAG_FOLDER = "_refs/tag"


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for one snapshot. ``expires`` (UTC): from when on it is as if there were no such tag; None is never.

    ``holder``: the URL of the table that needs the snapshot; None where a person does.
    """

    name: str
    timestamp: datetime
    snapshot_id: str
    reference: FileRef
    expires: datetime | None = None
    holder: str | None = None

    def expired(self, now: datetime | None = None) -> bool:
        return self.expires is not None and self.expires <= (now or datetime.now(UTC))

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


def create_tag(store: Store, tag: Tag) -> None:
    """Write a tag, in place of an expired one of its name.

    Raises AlreadyExists if the name is taken by a tag that has not expired, InvalidArgument if it is no name for a tag.
    """
    check_ref_name(tag.name, "tag")
    if is_snapshot_id(tag.name) or is_iso_time(tag.name):
        raise InvalidArgument(f"{tag.name!r} is no name for a tag: it could be taken for a time or a snapshot id")
    if tag.expired(tag.timestamp):
        raise InvalidArgument(
            f"tag {tag.name!r} would expire at {format_timestamp(tag.expires or tag.timestamp)}, which "
            f"is past: give a later time"
        )
    if (before := find_tag(store, tag.name)) is not None and before.expired():
        store.delete([_key(tag.name)])
    try:
        store.create(_key(tag.name), tag.encode())
    except AlreadyExists as taken:
        raise AlreadyExists(
            f"{store.url} already has a tag {tag.name!r}: choose another name, or untag it first"
        ) from taken


def find_tag(store: Store, name: str) -> Tag | None:
    """Read the tag of this name, expired or not; None if there is none."""
    if REF_NAME_PATTERN.fullmatch(name) is None:
        return None
    try:
        data = read_at_most(store, _key(name), MAX_REF_BYTES)
    except NotFound:
        return None
    return Tag.decode(data, f"{store.url}/{_key(name)}")


def drop_tag(store: Store, name: str) -> None:
    """Forget a tag; what it named stays as long as anything else keeps it. Raises NotFound, which names near names."""
    if find_tag(store, name) is None:
        raise NotFound(f"{store.url} has no tag {name!r}{did_you_mean(name, [tag.name for tag in list_tags(store)])}")
    store.delete([_key(name)])


def list_tags(store: Store) -> list[Tag]:
    """Read all tags in the order of their names, expired ones too. Lists the folder of tags."""
    keys = sorted(file.key for file in store.list(TAG_FOLDER))
    tags = (find_tag(store, key.removeprefix(f"{TAG_FOLDER}/").removesuffix(".json")) for key in keys)
    return [tag for tag in tags if tag is not None]


def did_you_mean(name: str, names: list[str]) -> str:
    """Make the end of a message for whoever mistyped a name: near names, or some that there are; empty without any."""
    near = difflib.get_close_matches(name, names, 3)
    return f"; did you mean {near}?" if near else f": it has {sorted(names)[:10]}" if names else ""


def _key(name: str) -> str:
    return f"{TAG_FOLDER}/{name}.json"
