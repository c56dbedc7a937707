"""From text to terms, as tantivy's analysers have it: what is a word, and as what it is kept.

Two steps. A tokenizer splits a text, and numbers what it finds; then filters see one token at a time, so each distinct
token is filtered once. Texts of ASCII letters alone are split by Arrow, ten times faster than by tantivy and the same
way; what only Unicode's tables can tell is left to tantivy. Knows no queries and no files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]

LONGEST = 40
"""Tokens of so many bytes and more are dropped, where words are split at punctuation: tantivy's default."""
SLICE = 1 << 13
"""Texts that are split at a time."""
LONGEST_TERM = 65_530
"""No term of tantivy's is longer, in bytes."""
STEMMERS = {
    "ar": "arabic",
    "da": "danish",
    "nl": "dutch",
    "en": "english",
    "fi": "finnish",
    "fr": "french",
    "de": "german",
    "el": "greek",
    "hu": "hungarian",
    "it": "italian",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "es": "spanish",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}
NGRAM = re.compile(r"ngram\(\s*(\d+)\s*,\s*(\d+)\s*\)")
WORDS = bytes.maketrans(
    bytes(range(128)), bytes(ord(chr(code).lower()) if chr(code).isalnum() else 32 for code in range(128))
)  # letters and digits, small; all else separates
BLANKS = bytes.maketrans(b"\t\n\f\r", b"    ")


class MissingLibrary(RuntimeError):
    """What the extra brings is not installed."""


@dataclass(frozen=True)
class Tokens:
    """All tokens of some texts, by row and position. ``term``: which of ``terms`` each is."""

    terms: pa.StringArray
    term: Numbers
    row: Numbers
    position: Numbers


@dataclass(frozen=True, slots=True)
class Analyzer:
    """``tokenizer``: default, raw, whitespace, en_stem and other languages' stemmers, ngram(min,max). ``stop_words``:
    words to leave out, separated by commas, or a language by its name (``english``). Raises ValueError for what there
    is not.
    """

    tokenizer: str = "default"
    stop_words: str = ""

    def __post_init__(self) -> None:
        grams = NGRAM.fullmatch(self.tokenizer)
        if grams and not 0 < int(grams[1]) <= int(grams[2]) <= 32:
            raise ValueError(f"tokenizer={self.tokenizer!r}: give the least and the greatest length, from 1 to 32")
        if not grams and self.tokenizer not in ("default", "raw", "whitespace") and self.language is None:
            known = f"default, raw, whitespace, ngram(min,max), {', '.join(f'{code}_stem' for code in STEMMERS)}"
            raise ValueError(f"tokenizer={self.tokenizer!r}: choose one of {known}")

    @property
    def language(self) -> str | None:
        return STEMMERS.get(self.tokenizer.removesuffix("_stem")) if self.tokenizer.endswith("_stem") else None

    @property
    def grams(self) -> bool:
        """Whether all tokens of a text stand at one position: then a phrase is all of its terms, in any order."""
        return self.tokenizer.startswith("ngram")

    @property
    def keeps_letters(self) -> bool:
        """Whether a term stands in its text as it is, but for the case of letters."""
        return self.language is None

    def words(self, text: str) -> list[tuple[int, str]]:
        """The terms of one text, with their positions."""
        found = self.tokens(pa.array([text], pa.string()))
        names = found.terms.to_pylist()
        return [(int(place), names[term]) for place, term in zip(found.position, found.term, strict=True)]

    def plain(self, word: str) -> str | None:
        """One word as its token before stemming and stop words; None if it is not exactly one."""
        if self.grams:
            return None
        found = Analyzer("default" if self.language else self.tokenizer).words(word)
        return found[0][1] if len(found) == 1 else None

    def filtered(self, token: str) -> str | None:
        """What one token of the tokenizer's is kept as, if at all."""
        kept: str | None = self._terms(pa.array([token], pa.large_string()))[0].as_py()
        return kept

    def tokens(self, texts: pa.Array) -> Tokens:
        """``texts``: strings; null ones have no tokens."""
        texts = texts.cast(pa.large_string())
        ascii = pc.fill_null(pc.string_is_ascii(texts), True)
        if self.grams or self.tokenizer == "raw":
            ascii = pc.and_(ascii, False)
        plain = ascii.to_numpy(zero_copy_only=False)
        split, rows, places = self._fast(
            texts if plain.all() else pc.if_else(ascii, texts, pa.scalar("", pa.large_string()))
        )
        if not plain.all():
            other = np.flatnonzero(~plain & pc.is_valid(texts).to_numpy(zero_copy_only=False))
            slow, slow_rows, slow_places = self._slow(texts.take(pa.array(other)), other)
            split = pa.concat_arrays([split, slow])
            rows, places = np.concatenate([rows, slow_rows]), np.concatenate([places, slow_places])
            order = np.argsort(rows, kind="stable")
            split, rows, places = split.take(pa.array(order)), rows[order], places[order]
        return self._filtered(split.dictionary_encode(), rows, places)

    # --- splitting ------------------------------------------------------------------------------------------------

    def _fast(self, texts: pa.LargeStringArray) -> tuple[pa.LargeStringArray, Numbers, Numbers]:
        """Tokens of ASCII texts. A few texts at a time, which stay in the processor's cache: a fifth of the time
        less.
        """
        parts = [self._split(texts.slice(start, SLICE)) for start in range(0, len(texts), SLICE)]
        counts = np.concatenate([np.zeros(0, np.int64), *(counts for _, counts in parts)])
        places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        found = pa.concat_arrays([pa.array([], pa.large_string()), *(found for found, _ in parts)])
        return found, np.repeat(np.arange(len(counts)), counts), places

    def _split(self, texts: pa.LargeStringArray) -> tuple[pa.LargeStringArray, Numbers]:
        """What lies between blanks, once all that separates is a blank; and how many each text has."""
        table = BLANKS if self.tokenizer == "whitespace" else WORDS
        whole = pa.concat_arrays([pc.fill_null(texts, "")])  # begins at offset 0 of its buffers
        offsets = np.frombuffer(whole.buffers()[1], np.int64)[: len(whole) + 1]
        letters = np.frombuffer(_bytes(whole.buffers()[2])[: offsets[-1]].translate(table), np.uint8)
        inside = letters != ord(" ")
        begins = inside.copy()
        begins[1:] &= ~inside[:-1]
        heads = offsets[:-1][np.diff(offsets) > 0]
        begins[heads] = inside[heads]  # no token goes from one text into the next
        kept = letters[inside]
        cuts = np.append(np.flatnonzero(begins[inside]), len(kept))
        found = pa.Array.from_buffers(pa.large_string(), len(cuts) - 1, [None, pa.py_buffer(cuts), pa.py_buffer(kept)])
        return found, np.diff(np.searchsorted(np.flatnonzero(begins), offsets))

    def _slow(self, texts: pa.LargeStringArray, rows: Numbers) -> tuple[pa.LargeStringArray, Numbers, Numbers]:
        split = splitter(self.tokenizer).analyze
        found = [split(text) for text in texts.to_pylist()]
        counts = np.array([len(tokens) for tokens in found], np.int64)
        places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        flat = pa.array([token for tokens in found for token in tokens], pa.large_string())
        return flat, np.repeat(rows, counts), places * 0 if self.grams else places

    # --- filtering ------------------------------------------------------------------------------------------------

    def _filtered(self, split: pa.DictionaryArray, rows: Numbers, places: Numbers) -> Tokens:
        """Each distinct token through the filters, once."""
        terms = self._terms(split.dictionary)
        if terms.equals(split.dictionary):
            return Tokens(terms.cast(pa.string()), split.indices.to_numpy().astype(np.int64), rows, places)
        distinct = terms.dictionary_encode()
        kept = distinct.indices.fill_null(-1).to_numpy()[split.indices.to_numpy()].astype(np.int64)
        real = kept >= 0
        return Tokens(distinct.dictionary.cast(pa.string()), kept[real], rows[real], places[real])

    def _terms(self, tokens: pa.LargeStringArray) -> pa.LargeStringArray:
        """What each token is kept as; null where it is dropped."""
        longest = LONGEST_TERM + 1 if self.tokenizer in ("raw", "whitespace") or self.grams else LONGEST
        short = pc.less(pc.binary_length(tokens), longest)
        tokens = pc.if_else(short, tokens, pa.scalar(None, tokens.type))
        as_is = self.tokenizer in ("raw", "whitespace")
        if (
            not self.stop_words
            and self.language is None
            and (as_is or pc.all(pc.string_is_ascii(tokens), min_count=0).as_py())
        ):
            return tokens if as_is else pc.ascii_lower(tokens)
        through = _filters(self.tokenizer, self.stop_words).analyze
        made = [None if token is None else next(iter(through(token)), None) for token in tokens.to_pylist()]
        return pa.array(made, tokens.type)


def _bytes(buffer: pa.Buffer | None) -> bytes:
    return b"" if buffer is None else buffer.to_pybytes()


def tantivy() -> Any:
    """The library. Raises MissingLibrary."""
    try:
        import tantivy as library
    except ImportError as missing:
        raise MissingLibrary(f"full text needs tantivy: pip install 'fuse-index[fulltext]' ({missing})") from None
    return library


@lru_cache(maxsize=64)
def splitter(tokenizer: str) -> Any:
    kinds = tantivy().Tokenizer
    if grams := NGRAM.fullmatch(tokenizer):
        made = kinds.ngram(int(grams[1]), int(grams[2]))
    else:
        made = (
            kinds.raw() if tokenizer == "raw" else kinds.whitespace() if tokenizer == "whitespace" else kinds.simple()
        )
    return tantivy().TextAnalyzerBuilder(made).build()


@lru_cache(maxsize=64)
def _filters(tokenizer: str, stop_words: str) -> Any:
    """What happens to a token, as an analyser of texts that are one token."""
    kinds = tantivy().Filter
    language = Analyzer(tokenizer).language
    made = tantivy().TextAnalyzerBuilder(tantivy().Tokenizer.raw())
    if tokenizer not in ("raw", "whitespace"):
        made = made.filter(kinds.lowercase())
    if stop_words:
        known = stop_words.strip().lower() in STEMMERS.values()
        words = [word.strip() for word in stop_words.split(",")]
        made = made.filter(kinds.stopword(stop_words.strip().lower()) if known else kinds.custom_stopword(words))
    if language:
        made = made.filter(kinds.stemmer(language))
    return made.build()
