"""LIKE patterns, taken apart once for everybody: what they say to a value set, and to a regular expression."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MAX_REGEX_CHARACTERS = 10_000


@dataclass(frozen=True, slots=True)
class LikePattern:
    """A pattern as texts and wildcards in turn: ``texts[0] wildcards[0] texts[1] … texts[-1]``.

    A wildcard is a run of % and _.
    """

    texts: tuple[str, ...]
    wildcards: tuple[str, ...]

    @classmethod
    def parse(cls, pattern: str, escape: str = "\\") -> LikePattern:
        """Raises ValueError where Spark does: the escape character may only stand before %, _ or itself."""
        texts, wildcards = [""], list[str]()
        letters = iter(pattern)
        for letter in letters:
            if letter == escape:
                escaped = next(letters, None)
                if escaped is None or escaped not in ("%", "_", escape):
                    raise ValueError(
                        f"LIKE pattern {pattern!r}: the escape character {escape!r} must stand before %, _ or itself"
                    )
                texts[-1] += escaped
            elif letter not in ("%", "_"):
                texts[-1] += letter
            elif wildcards and not texts[-1]:
                wildcards[-1] += letter
            else:
                wildcards.append(letter)
                texts.append("")
        return cls(tuple(texts), tuple(wildcards))

    @property
    def shape(self) -> tuple[bool, ...]:
        """Per text, whether there is one; () where a wildcard is more than %, so that no shape says it all."""
        return tuple(bool(text) for text in self.texts) if all(set(run) == {"%"} for run in self.wildcards) else ()

    def regex(self) -> str:
        """For RE2, to be searched for: the whole text, any character also being a line break.

        Raises ValueError for more than RE2 takes: it looks for all of a pattern at once, and never goes back.
        """
        length = sum(map(len, (*self.texts, *self.wildcards)))
        if length > _MAX_REGEX_CHARACTERS:
            raise ValueError(f"a LIKE pattern of {length} characters, {_MAX_REGEX_CHARACTERS} being the most here")
        runs = [*(_run(wildcard) for wildcard in self.wildcards), ""]
        return r"\A(?s:" + "".join(re.escape(text) + run for text, run in zip(self.texts, runs, strict=True)) + r")\z"


def _run(wildcards: str) -> str:
    return "." * wildcards.count("_") + (".*" if "%" in wildcards else "")
