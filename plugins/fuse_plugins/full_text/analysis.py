"""Text analysis, from text to terms as tantivy's analysers have it: what is a word, and as what it is kept.

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

TokenNumbers = npt.NDArray[np.int64]
"""Numbers of tokens, terms, rows or positions, in one dimension."""
OccurrenceNumbers = npt.NDArray[np.int32]
"""The term, row or position of each token of a block, in one dimension: of 4 bytes, because getting memory for twice as
many takes longer than all that is done with them."""

MAX_WORD_BYTES = 40
"""Tokens of so many bytes and more are dropped, where words are split at punctuation: tantivy's default."""
TEXTS_PER_SLICE = 1 << 13
"""Texts that are split at a time."""
MAX_TERM_BYTES = 65_530
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
NGRAM_TOKENIZER = re.compile(r"ngram\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_WORD_TABLE = bytes.maketrans(
    bytes(range(128)), bytes(ord(chr(code).lower()) if chr(code).isalnum() else 32 for code in range(128))
)  # letters and digits, small; all else separates
_BLANK_TABLE = bytes.maketrans(b"\t\n\f\r", b"    ")


class MissingLibrary(RuntimeError):
    """A library of the extra ``fulltext`` is not installed."""


@dataclass(frozen=True)
class TokenizedTexts:
    """The n tokens of some texts, by row and position."""

    terms: pa.StringArray
    """The distinct terms, in any order."""
    term: OccurrenceNumbers
    """The term of each token, as an index of ``terms``: int32 of shape (n,)."""
    row: OccurrenceNumbers
    """Int32 of shape (n,), as is ``position``, which counts tokens from 0 in each row."""
    position: OccurrenceNumbers


@dataclass(frozen=True, slots=True)
class Analyzer:
    """An analyser, which makes terms of texts. Raises ValueError for a tokenizer that there is not.

    ``tokenizer``: default, raw, whitespace, en_stem and other languages' stemmers, ngram(min,max). ``stop_words``:
    words to leave out, separated by commas, or a language by its name (``english``).
    """

    tokenizer: str = "default"
    stop_words: str = ""

    def __post_init__(self) -> None:
        grams = NGRAM_TOKENIZER.fullmatch(self.tokenizer)
        if grams and not 0 < int(grams[1]) <= int(grams[2]) <= 32:
            raise ValueError(f"tokenizer={self.tokenizer!r}: give the least and the greatest length, from 1 to 32")
        if not grams and self.tokenizer not in ("default", "raw", "whitespace") and self.language is None:
            known = f"default, raw, whitespace, ngram(min,max), {', '.join(f'{code}_stem' for code in STEMMERS)}"
            raise ValueError(f"tokenizer={self.tokenizer!r}: choose one of {known}")

    @property
    def language(self) -> str | None:
        """The language whose stemmer is used, if one is."""
        return STEMMERS.get(self.tokenizer.removesuffix("_stem")) if self.tokenizer.endswith("_stem") else None

    @property
    def is_ngram(self) -> bool:
        """True if all tokens of a text stand at one position: then a phrase is all of its terms, in any order."""
        return self.tokenizer.startswith("ngram")

    @property
    def keeps_letters(self) -> bool:
        """True if a term stands in its text as it is, but for the case of letters."""
        return self.language is None

    def analyze(self, text: str) -> list[tuple[int, str]]:
        """List the terms of one text, with their positions."""
        tokens = self.tokenize(pa.array([text], pa.string()))
        terms = tokens.terms.to_pylist()
        return [(int(position), terms[term]) for position, term in zip(tokens.position, tokens.term, strict=True)]

    def normalize_word(self, word: str) -> str | None:
        """Return a word's token before stemming and stop words; None if it is not exactly one."""
        if self.is_ngram:
            return None
        terms = Analyzer("default" if self.language else self.tokenizer).analyze(word)
        return terms[0][1] if len(terms) == 1 else None

    def filter_token(self, token: str) -> str | None:
        """Return the term that one token of the tokenizer becomes; None if it is dropped."""
        filtered: str | None = self._filtered_terms(pa.array([token], pa.large_string()))[0].as_py()
        return filtered

    def tokenize(self, texts: pa.Array) -> TokenizedTexts:
        """Split an array of strings into tokens and filter them; null ones have no tokens."""
        texts = texts.cast(pa.large_string())
        is_ascii = pc.fill_null(pc.string_is_ascii(texts), True)
        if self.is_ngram or self.tokenizer == "raw":
            is_ascii = pc.and_(is_ascii, False)
        ascii_mask = is_ascii.to_numpy(zero_copy_only=False)
        tokens, row, position = self._tokenize_ascii(
            texts if ascii_mask.all() else pc.if_else(is_ascii, texts, pa.scalar("", pa.large_string()))
        )
        if not ascii_mask.all():
            unicode_rows = np.flatnonzero(~ascii_mask & pc.is_valid(texts).to_numpy(zero_copy_only=False))
            unicode_texts = texts.take(pa.array(unicode_rows))
            unicode_tokens, more_rows, more_positions = self._tokenize_unicode(unicode_texts, unicode_rows)
            tokens.append(unicode_tokens)
            row, position = np.concatenate([row, more_rows]), np.concatenate([position, more_positions])
        distinct, term = _number_tokens(tokens)
        if not ascii_mask.all():
            order = np.argsort(row, kind="stable")
            term, row, position = term[order], row[order], position[order]
        return self._filter_tokens(distinct, term, row, position)

    # --- splitting ------------------------------------------------------------------------------------------------

    def _tokenize_ascii(
        self, texts: pa.LargeStringArray
    ) -> tuple[list[pa.LargeStringArray], OccurrenceNumbers, OccurrenceNumbers]:
        """Split ASCII texts: n tokens, in several arrays, with rows and positions, both int32 of shape (n,).

        A few texts at a time stay in the processor's cache: a fifth of the time less.
        """
        tokens = [pa.array([], pa.large_string())]
        rows, positions = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
        for start in range(0, len(texts), TEXTS_PER_SLICE):
            part, counts = self._split(texts.slice(start, TEXTS_PER_SLICE))
            tokens.append(part)
            rows.append(np.repeat(np.arange(start, start + len(counts), dtype=np.int32), counts))
            positions.append(_positions(counts))
        return tokens, np.concatenate(rows), np.concatenate(positions)

    def _split(self, texts: pa.LargeStringArray) -> tuple[pa.LargeStringArray, TokenNumbers]:
        """Split at blanks, once all that separates is a blank; counts the tokens of each of n texts: int64, (n,)."""
        table = _BLANK_TABLE if self.tokenizer == "whitespace" else _WORD_TABLE
        joined = pa.concat_arrays([pc.fill_null(texts, "")])  # begins at offset 0 of its buffers
        offsets = np.frombuffer(joined.buffers()[1], np.int64)[: len(joined) + 1]
        letters = np.frombuffer(_buffer_bytes(joined.buffers()[2])[: offsets[-1]].translate(table), np.uint8)
        in_token = letters != ord(" ")
        token_begins = in_token.copy()
        token_begins[1:] &= ~in_token[:-1]
        text_starts = offsets[:-1][np.diff(offsets) > 0]
        token_begins[text_starts] = in_token[text_starts]  # no token goes from one text into the next
        token_letters = letters[in_token]
        cuts = np.append(np.flatnonzero(token_begins[in_token]), len(token_letters))
        tokens = pa.Array.from_buffers(
            pa.large_string(), len(cuts) - 1, [None, pa.py_buffer(cuts), pa.py_buffer(token_letters)]
        )
        return tokens, np.diff(np.searchsorted(np.flatnonzero(token_begins), offsets))

    def _tokenize_unicode(
        self, texts: pa.LargeStringArray, rows: TokenNumbers
    ) -> tuple[pa.LargeStringArray, OccurrenceNumbers, OccurrenceNumbers]:
        """Split texts by tantivy, as ``_tokenize_ascii``; ``rows`` numbers the texts, int64 of shape (len(texts),)."""
        split_text = build_tokenizer(self.tokenizer).analyze
        tokens_of_texts = [split_text(text) for text in texts.to_pylist()]
        counts = np.array([len(tokens) for tokens in tokens_of_texts], np.int64)
        positions = _positions(counts)
        all_tokens = pa.array([token for tokens in tokens_of_texts for token in tokens], pa.large_string())
        row = np.repeat(rows.astype(np.int32), counts)
        return all_tokens, row, positions * np.int32(0) if self.is_ngram else positions

    # --- filtering ------------------------------------------------------------------------------------------------

    def _filter_tokens(
        self,
        distinct: pa.LargeStringArray,
        token: OccurrenceNumbers,
        row: OccurrenceNumbers,
        position: OccurrenceNumbers,
    ) -> TokenizedTexts:
        """Filter each distinct token once; of n tokens: which it is, its row and position, all int32 of shape (n,)."""
        terms = self._filtered_terms(distinct)
        if terms.equals(distinct):
            return TokenizedTexts(terms.cast(pa.string()), token, row, position)
        encoded = terms.dictionary_encode()
        term = encoded.indices.fill_null(-1).to_numpy()[token]
        is_kept = term >= 0
        return TokenizedTexts(encoded.dictionary.cast(pa.string()), term[is_kept], row[is_kept], position[is_kept])

    def _filtered_terms(self, tokens: pa.LargeStringArray) -> pa.LargeStringArray:
        """Return the term that each token becomes; null where it is dropped."""
        byte_limit = MAX_TERM_BYTES + 1 if self.tokenizer in ("raw", "whitespace") or self.is_ngram else MAX_WORD_BYTES
        is_short = pc.less(pc.binary_length(tokens), byte_limit)
        tokens = pc.if_else(is_short, tokens, pa.scalar(None, tokens.type))
        as_is = self.tokenizer in ("raw", "whitespace")
        if (
            not self.stop_words
            and self.language is None
            and (as_is or pc.all(pc.string_is_ascii(tokens), min_count=0).as_py())
        ):
            return tokens if as_is else pc.ascii_lower(tokens)
        filter_token = _token_filters(self.tokenizer, self.stop_words).analyze
        filtered = [None if token is None else next(iter(filter_token(token)), None) for token in tokens.to_pylist()]
        return pa.array(filtered, tokens.type)


def _positions(counts: TokenNumbers) -> OccurrenceNumbers:
    """Count from 0 in each text: [2, 3] becomes [0, 1, 0, 1, 2]. ``counts``: tokens of each of n texts, int64, (n,)."""
    ends = np.cumsum(counts)
    return np.arange(counts.sum(), dtype=np.int32) - np.repeat((ends - counts).astype(np.int32), counts)


def _number_tokens(tokens: list[pa.LargeStringArray]) -> tuple[pa.LargeStringArray, OccurrenceNumbers]:
    """The distinct tokens of some arrays, and for each of n tokens which it is: int32 of shape (n,)."""
    chunks = pa.chunked_array(tokens, pa.large_string()).dictionary_encode().chunks
    # All chunks that Arrow encodes at once share one dictionary; it drops those that are empty.
    distinct = chunks[0].dictionary if chunks else pa.array([], pa.large_string())
    return distinct, np.concatenate([np.zeros(0, np.int32), *(chunk.indices.to_numpy() for chunk in chunks)])


def _buffer_bytes(buffer: pa.Buffer | None) -> bytes:
    return b"" if buffer is None else buffer.to_pybytes()


def load_tantivy() -> Any:
    """Import tantivy. Raises MissingLibrary."""
    try:
        import tantivy as library
    except ImportError as missing:
        raise MissingLibrary(f"full text needs tantivy: pip install tantivy ({missing})") from None
    return library


@lru_cache(maxsize=64)
def build_tokenizer(tokenizer: str) -> Any:
    """Build tantivy's analyser of texts that only splits them."""
    tokenizers = load_tantivy().Tokenizer
    if grams := NGRAM_TOKENIZER.fullmatch(tokenizer):
        splitter = tokenizers.ngram(int(grams[1]), int(grams[2]))
    elif tokenizer == "raw":
        splitter = tokenizers.raw()
    else:
        splitter = tokenizers.whitespace() if tokenizer == "whitespace" else tokenizers.simple()
    return load_tantivy().TextAnalyzerBuilder(splitter).build()


@lru_cache(maxsize=64)
def _token_filters(tokenizer: str, stop_words: str) -> Any:
    """Build tantivy's analyser of texts that are one token, which only filters it."""
    filters = load_tantivy().Filter
    language = Analyzer(tokenizer).language
    builder = load_tantivy().TextAnalyzerBuilder(load_tantivy().Tokenizer.raw())
    if tokenizer not in ("raw", "whitespace"):
        builder = builder.filter(filters.lowercase())
    if stop_words:
        is_language = stop_words.strip().lower() in STEMMERS.values()
        words = [word.strip() for word in stop_words.split(",")]
        builder = builder.filter(
            filters.stopword(stop_words.strip().lower()) if is_language else filters.custom_stopword(words)
        )
    if language:
        builder = builder.filter(filters.stemmer(language))
    return builder.build()
