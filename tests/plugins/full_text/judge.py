"""tantivy itself as the judge: an index of its own in memory, and each query of ours as one of its own queries."""

from collections.abc import Sequence
from functools import reduce

import tantivy

from fuse_plugins.full_text.analysis import NGRAM_TOKENIZER, Analyzer
from fuse_plugins.full_text.syntax import BooleanQuery, Fuzzy, Phrase, Prefix, Query, TermRange, Word


def analyser(chosen: Analyzer) -> tantivy.TextAnalyzer:
    """As tantivy's own register has it."""
    kinds, filters = tantivy.Tokenizer, tantivy.Filter
    if grams := NGRAM_TOKENIZER.fullmatch(chosen.tokenizer):
        made = tantivy.TextAnalyzerBuilder(kinds.ngram(int(grams[1]), int(grams[2]))).filter(filters.lowercase())
    elif chosen.tokenizer == "raw":
        made = tantivy.TextAnalyzerBuilder(kinds.raw())
    elif chosen.tokenizer == "whitespace":
        made = tantivy.TextAnalyzerBuilder(kinds.whitespace())
    else:
        made = tantivy.TextAnalyzerBuilder(kinds.simple()).filter(filters.remove_long(40)).filter(filters.lowercase())
    if chosen.stop_words:
        made = made.filter(filters.custom_stopword(chosen.stop_words.split(",")))
    return (made.filter(filters.stemmer(chosen.language)) if chosen.language else made).build()


class Judge:
    def __init__(self, texts: Sequence[str | None], chosen: Analyzer) -> None:
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("text", tokenizer_name="ours", index_option="position")
        builder.add_unsigned_field("row", stored=True)
        self.schema = builder.build()
        self.index = tantivy.Index(self.schema)
        self.index.register_tokenizer("ours", analyser(chosen))
        writer = self.index.writer(heap_size=15_000_000, num_threads=1)
        for row, text in enumerate(texts):
            document = tantivy.Document(row=row)
            if text is not None:
                document.add_text("text", text)
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        self.index.reload()
        self.rows = len(texts)

    def scores(self, query: Query) -> dict[int, float]:
        """Each row that matches, with its score."""
        searcher = self.index.searcher()
        found = searcher.search(self.translated(query), limit=max(self.rows, 1)).hits
        return {searcher.doc(address)["row"][0]: score for score, address in found}

    def translated(self, query: Query) -> tantivy.Query:
        made, occur = tantivy.Query, tantivy.Occur
        match query:
            case Word(term):
                return made.term_query(self.schema, "text", term, index_option="position")
            case Phrase(terms):
                return made.phrase_query(self.schema, "text", list(terms))
            case Prefix(start):
                return made.regex_query(
                    self.schema, "text", reduce(lambda so_far, c: so_far + escaped(c), start, "") + "(.|\n)*"
                )
            case Fuzzy(term, distance):
                return made.fuzzy_term_query(self.schema, "text", term, distance=distance, transposition_cost_one=True)
            case TermRange(low, high, with_low, with_high):
                raise NotImplementedError((low, high, with_low, with_high))
            case BooleanQuery(must, may, never):
                parts = [(occur.Must, self.translated(part)) for part in must]
                parts += [(occur.Should, self.translated(part)) for part in may]
                parts += [(occur.MustNot, self.translated(part)) for part in never]
                if not must and not may:
                    parts.append((occur.Must, made.all_query()))
                return made.boolean_query(parts)
        raise AssertionError(query)


def escaped(letter: str) -> str:
    return "\\" + letter if letter in r".+*?()|[]{}^$\#&-~" else letter
