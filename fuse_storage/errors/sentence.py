"""Sentences of errors: text, and between it the values that each surface calls by a name of its own.

Python prints ``key_by(['id'])``, a shell ``key-by``, SQL an ALTER TABLE; a table goes by what its user typed. So a
sentence keeps tables and operations as values, and whoever prints it has ``Words`` for them:

>>> sentence = TableUrl("/data/t") + " has no key: give it one with " + Advice.call("key_by", ["id"])
>>> str(sentence)
"/data/t has no key: give it one with key_by(['id'])"
>>> sentence.advice[0].to_dict()
{'operation': 'key_by', 'arguments': [['id']]}
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self


class Words:
    """The words of a surface for what sentences keep as values; these are Python's."""

    def table(self, url: str) -> str:
        """The name of the table at ``url``."""
        return url

    def operation(self, meant: Operation) -> str:
        """A call, as who reads it would type it; or, where only arguments are meant, these."""
        arguments = [f"{name}={_python(value)}" if name else _python(value) for name, value in meant.arguments]
        if not meant.whole:
            return ", ".join(arguments)
        return f"{meant.name}({', '.join(arguments)})" if arguments else meant.name

    def say(self, meant: Operation) -> str:
        """An invitation to give arguments to what was called."""
        return f"say {self.operation(meant)}"


class _Part(ABC):
    """A value in a sentence. Adding text to it gives a sentence."""

    __slots__ = ()

    def __add__(self, other: str | _Part | Sentence) -> Sentence:
        return Sentence((self,)) + other

    def __radd__(self, text: str) -> Sentence:
        return Sentence((text, self))

    def __str__(self) -> str:
        return self.spell(Words())

    @abstractmethod
    def spell(self, words: Words) -> str:
        """The value in the words of a surface."""


@dataclass(frozen=True, slots=True)
class TableUrl(_Part):
    """A table that a sentence is about, by its path or URL."""

    url: str

    __str__ = _Part.__str__

    def spell(self, words: Words) -> str:
        return words.table(self.url)


@dataclass(frozen=True, slots=True)
class Operation(_Part):
    """An operation that a sentence is about, by its name in Python.

    ``arguments``: pairs of a name, empty where it goes by its position, and a value, in which ``...`` stands for what
    the caller knows. ``whole``: whether the call is meant, and not only these arguments of it. ``said``: whether the
    caller is invited to say these.
    """

    name: str
    arguments: tuple[tuple[str, Any], ...] = ()
    whole: bool = True
    said: bool = False

    __str__ = _Part.__str__

    @classmethod
    def call(cls, name: str, *arguments: Any, **named: Any) -> Self:
        """A call.

        >>> str(Operation.call("upsert")), str(Operation.call("overwrite", where=...))
        ('upsert', 'overwrite(where=...)')
        """
        return cls(name, (*(("", value) for value in arguments), *named.items()))

    @classmethod
    def argument(cls, operation: str, /, **named: Any) -> Self:
        """Arguments of an operation.

        >>> str(Operation.argument("merge", on=["id"])), str(Operation.argument("create", key=[...]))
        ("on=['id']", 'key=[...]')
        """
        return cls(operation, tuple(named.items()), whole=False)

    @classmethod
    def say(cls, operation: str, /, **named: Any) -> Self:
        """Arguments, and an invitation to give them.

        >>> str(Operation.say("vacuum", force=True))
        'say force=True'
        """
        return cls(operation, tuple(named.items()), whole=False, said=True)

    def spell(self, words: Words) -> str:
        return words.say(self) if self.said else words.operation(self)

    def to_dict(self) -> dict[str, Any]:
        """The operation for JSON: values by their names where they have some, and ``...`` as text."""
        named = {name: _json(value) for name, value in self.arguments if name}
        arguments = named or [_json(value) for _, value in self.arguments]
        return {"operation": self.name, "arguments": arguments} if arguments else {"operation": self.name}


class Advice(Operation):
    """An operation, or arguments of one, by which whoever reads a sentence gets further."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Sentence:
    """Text and values, in the order in which they are read. Grows by ``+``; as ``str`` it is in Python's words."""

    parts: tuple[str | _Part, ...]

    def __add__(self, other: str | _Part | Sentence) -> Sentence:
        return Sentence((*self.parts, *(other.parts if isinstance(other, Sentence) else (other,))))

    def __radd__(self, text: str) -> Sentence:
        return Sentence((text, *self.parts))

    def __str__(self) -> str:
        return self.spell(Words())

    def spell(self, words: Words) -> str:
        """The sentence in the words of a surface."""
        return "".join(part if isinstance(part, str) else part.spell(words) for part in self.parts)

    @property
    def advice(self) -> tuple[Advice, ...]:
        """What to do, in the order in which it is told."""
        return tuple(part for part in self.parts if isinstance(part, Advice))

    def to_json(self) -> list[Any]:
        """The parts for JSON, of which ``from_json`` makes the sentence again."""
        return [part if isinstance(part, str) else _encode(part) for part in self.parts]

    @classmethod
    def from_json(cls, parts: Sequence[Any]) -> Sentence:
        """The sentence of ``to_json``."""
        return cls(tuple(part if isinstance(part, str) else _decode(part) for part in parts))


def _encode(part: _Part) -> dict[str, Any]:
    if isinstance(part, TableUrl):
        return {"table": part.url}
    assert isinstance(part, Operation)
    return {
        "operation": part.name,
        "arguments": [[name, _json(value)] for name, value in part.arguments],
        "flags": [part.whole, part.said, isinstance(part, Advice)],
    }


def _decode(part: dict[str, Any]) -> _Part:
    if "table" in part:
        return TableUrl(part["table"])
    whole, said, is_advice = part["flags"]
    arguments = tuple((name, _value(value)) for name, value in part["arguments"])
    return (Advice if is_advice else Operation)(part["operation"], arguments, whole, said)


def _python(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_python, value))}]"
    return "..." if value is ... else repr(value)


def _json(value: Any) -> Any:
    if isinstance(value, list):
        return [_json(each) for each in value]
    return "..." if value is ... else value


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return [_value(each) for each in value]
    return ... if value == "..." else value
