"""Tags: names for snapshots, for ever or until a time. What a tag names is kept; an expired tag names nothing any
more.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from datetime import UTC, datetime

from fuse_storage.errors import AlreadyExists, FormatError, InvalidArgument, NotFound
from fuse_storage.metadata.encoding import (
    decode_checksummed_json,
    encode_checksummed_json,
    format_timestamp,
    is_iso_time,
)
from fuse_storage.metadata.file_ref import FileRef
from fuse_storage.metadata.refs import REF_NAME_PATTERN, check_ref_name, is_snapshot_id
from fuse_storage.store.store import Store

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
        found = {"kind": "tag", "name": self.name, "timestamp": format_timestamp(self.timestamp)}
        until = {} if self.expires is None else {"expires": format_timestamp(self.expires)}
        held = {} if self.holder is None else {"holder": self.holder}
        return encode_checksummed_json(
            {**found, **until, **held, "snapshot": {"id": self.snapshot_id, **self.reference.to_json()}}
        )

    @staticmethod
    def decode(data: bytes, where: str) -> Tag:
        """Raises Corrupt for bytes that are not as they were written, FormatError for what is no tag."""
        found = decode_checksummed_json(data, where)
        try:
            held, until = found["snapshot"], found.get("expires")
            reference, expires = FileRef.from_json(held), None if until is None else datetime.fromisoformat(until)
            return Tag(
                found["name"],
                datetime.fromisoformat(found["timestamp"]),
                held["id"],
                reference,
                expires,
                found.get("holder"),
            )
        except (LookupError, TypeError, ValueError) as problem:
            raise FormatError(f"{where} is no tag: {problem!r}") from problem


def create_tag(store: Store, tag: Tag) -> None:
    """Raises AlreadyExists if the name is taken by a tag that has not expired, InvalidArgument if it is no name for a
    tag.
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
    """The tag of this name, expired or not, or None."""
    if REF_NAME_PATTERN.fullmatch(name) is None:
        return None
    try:
        data = store.read(_key(name))
    except NotFound:
        return None
    return Tag.decode(data, f"{store.url}/{_key(name)}")


def drop_tag(store: Store, name: str) -> None:
    """Forget a tag; what it named stays as long as anything else keeps it. Raises NotFound, which names near names."""
    if find_tag(store, name) is None:
        raise NotFound(f"{store.url} has no tag {name!r}{did_you_mean(name, [tag.name for tag in list_tags(store)])}")
    store.delete([_key(name)])


def list_tags(store: Store) -> list[Tag]:
    """All tags by name, expired ones too. Lists the folder of tags."""
    keys = sorted(found.key for found in store.list(TAG_FOLDER))
    return [
        found
        for key in keys
        if (found := find_tag(store, key.removeprefix(f"{TAG_FOLDER}/").removesuffix(".json"))) is not None
    ]


def did_you_mean(name: str, names: list[str]) -> str:
    """A hint for whoever mistyped a name; empty where there are none."""
    found = difflib.get_close_matches(name, names, 3)
    return f"; did you mean {found}?" if found else f": it has {sorted(names)[:10]}" if names else ""


def _key(name: str) -> str:
    return f"{TAG_FOLDER}/{name}.json"
