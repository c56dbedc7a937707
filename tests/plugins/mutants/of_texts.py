"""Mutants of a kind that keeps pairs of letters: what LIKE, contains, starts and ends are, and roll-ups of them."""

import pyarrow as pa

from fuse_index.plugin import ALL, NONE, SOME, Probe
from fuse_index.predicate import Cast, Compare, Contains, EndsWith, Like, Literal, StartsWith
from tests.plugins.mutants.sound import NO, OnLongTexts, OnTexts, Pairs, mutants


class EscapeIsALetter(Pairs):
    """Knows one escape character."""

    def like_texts(self, pattern, escape):
        return super().like_texts(pattern, "\\")


class EscapedIsAWildcard(Pairs):
    """Cuts patterns at each % and _, escaped or not, and keeps the escapes."""

    def like_texts(self, pattern, escape):
        return pattern.replace("_", "%").split("%")


class Joined(Pairs):
    """Reads ``a%b`` as ``ab``."""

    def like_texts(self, pattern, escape):
        return ["".join(super().like_texts(pattern, escape))]


class UnderscoreIsNothing(Pairs):
    """Reads ``a_b`` as ``ab``."""

    def like_texts(self, pattern, escape):
        return super().like_texts(pattern.replace("_", ""), escape)


class UnderscoreIsItself(Pairs):
    def like_texts(self, pattern, escape):
        return super().like_texts(pattern.replace("_", escape + "_"), escape)


class PercentIsALetter(Pairs):
    def like_texts(self, pattern, escape):
        return [pattern.replace("%", "x")]


class FoldedWhenBuilt(Pairs):
    """Keeps letters folded, and asks for them as they are."""

    def build(self, rows, zones, options):
        return super().build(pa.table({"0": pa.compute.utf8_lower(rows.column(0))}), zones, options)


class AllWhereItMay(Pairs):
    """TRUE on all rows where the pairs are there."""

    def judge(self, wanted, pairs):
        return ALL if super().judge(wanted, pairs) == SOME and wanted else super().judge(wanted, pairs)


class AllWithoutPairs(Pairs):
    """A pattern without a pair is TRUE on all."""

    def judge(self, wanted, pairs):
        return super().judge(wanted, pairs) if wanted else ALL


class AnyPairWill(Pairs):
    """NONE where one pair is there and another is: takes the pairs for alternatives that exclude each other."""

    def judge(self, wanted, pairs):
        held = wanted & set(pairs)
        return NONE if len(held) > 1 else super().judge(wanted, pairs)


class ForgetsTheLastPair(Pairs):
    def pairs(self, text):
        return super().pairs(text[:-1] if len(text) > 3 else text)

    def texts(self, what, own):
        found = super().texts(what, own)
        return None if found is None else [text[-3:] for text in found]


class CutsLongTexts(Pairs):
    """Keeps the pairs of the first 20 letters."""

    def pairs(self, text):
        return super().pairs(text[:20])


class EqualIsContains(Pairs):
    """Takes ``=`` of a cast for contains."""

    def compile(self, what, inputs, options, context):
        match what:
            case Compare("<", Cast(), Literal(value)) | Compare("=", Cast(), Literal(value)):
                return Probe(frozenset({str(value), "never there"}))
        return super().compile(what, inputs, options, context)


class AnyTerm(Pairs):
    """Does not look what is compared."""

    def compile(self, what, inputs, options, context):
        match what:
            case Compare("=", _, Literal(value)) if what.left != inputs[0].term:
                return Probe(frozenset(self.pairs(str(value))) | {"zz"})
        return super().compile(what, inputs, options, context)


class StartsIsEqual(Pairs):
    """Keeps beginnings of texts, and takes them for the texts."""

    def texts(self, what, own):
        return [what.text.value + "$"] if isinstance(what, StartsWith) else super().texts(what, own)


class EndsBackwards(Pairs):
    def texts(self, what, own):
        return [what.text.value[::-1]] if isinstance(what, EndsWith) else super().texts(what, own)


class ContainsWithEnds(Pairs):
    """Looks for a text between two ends that were never kept."""

    def texts(self, what, own):
        return [f"^{what.text.value}$"] if isinstance(what, Contains) else super().texts(what, own)


class RaisesOnOddPatterns(Pairs):
    """A pattern that ends in a letter, it takes for one that begins with it."""

    def texts(self, what, own):
        found = super().texts(what, own)
        if isinstance(what, Like) and found and len(found) == 2 and found[0] and found[1]:
            return [found[1] + found[0]]
        return found


class RollsUpTheFirst(Pairs):
    def roll_up(self, summaries):
        return summaries[0]


class RollsUpThree(Pairs):
    """A segment has three blocks at most."""

    def roll_up(self, summaries):
        return super().roll_up(summaries.slice(0, 3))


class RollsUpWhatIsCommon(Pairs):
    def roll_up(self, summaries):
        common = set.intersection(*map(set, summaries.to_pylist()))
        return pa.scalar(sorted(common), summaries.type)


class UnknownHoldsNothing(Pairs):
    def judge(self, wanted, pairs):
        return super().judge(wanted, pairs or [])


class RaisesWhereUnknown(Pairs):
    """Cannot judge where a block has no summary, and so judges no other."""

    def judge(self, wanted, pairs):
        return SOME if wanted <= set(pairs) else NONE


class NeverRulesOut(Pairs):
    """Sound, and of no use."""

    def judge(self, wanted, pairs):
        return SOME


class RefusesAll(Pairs):
    """Sound, and never asked."""

    def compile(self, what, inputs, options, context):
        return NO


class AcceptsNothing(Pairs):
    """On no column at all, so that there is nothing to test."""

    def accepts(self, inputs, options):
        return NO


class BigSummary(Pairs):
    def pairs(self, text):
        return {text + "x" * 4000}


MUTANTS = mutants(OnLongTexts, (CutsLongTexts, "small")) + mutants(
    OnTexts,
    *((kind, "small") for kind in (EscapeIsALetter, EscapedIsAWildcard, Joined, UnderscoreIsNothing)),
    *((kind, "small") for kind in (UnderscoreIsItself, PercentIsALetter, FoldedWhenBuilt, AllWhereItMay)),
    *((kind, "small") for kind in (AllWithoutPairs, AnyPairWill, ForgetsTheLastPair, StartsIsEqual)),
    *((kind, "small") for kind in (EndsBackwards, ContainsWithEnds, RaisesOnOddPatterns)),
    *((kind, "else") for kind in (EqualIsContains, AnyTerm)),
    *((kind, "roll-up") for kind in (RollsUpTheFirst, RollsUpThree, RollsUpWhatIsCommon)),
    (RaisesWhereUnknown, "unindexed", "NoneType", {}, TypeError),
    (NeverRulesOut, "small", "never rules anything out"),
    (RefusesAll, "small", "refuses every question"),
    (AcceptsNothing, "small", "nothing is tested", {"inputs": None}),
    (BigSummary, "size", "the summary of a block takes", {"summary_bytes": 1024}),
)
RIGHT = [
    (Pairs, OnTexts),
    (UnknownHoldsNothing, OnTexts),  # votes on blocks without a summary do not count
]
