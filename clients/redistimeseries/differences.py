"""The known differences between the two servers: docs/differences.md has them for people."""

import math
import re
from commands import EXTREME, OPTIONS
from servers import UNASKED, Error

# name: why the answers may differ.
KNOWN = {
    "unknown word": "a word that is no option is refused; Redis ignores it",
    "unit": "UNIT is an option of Tidemark",
    "given twice": "an option that is given twice is refused; Redis takes the first",
    "labels swallow options": "words after LABELS are labels only; Redis takes option words there as options too",
    "options always checked": "wrong options are refused always; Redis does not read them if the series exists, nor ON_DUPLICATE if it does not",
    "order of errors": "of several wrong words, the error is about the first in the command; in Redis about the first of a fixed list",
    "garbage after a value": "1x and 1,5 are no values; Redis takes the digits at the beginning",
    "infinite increment": "an infinite amount or result, also of the policy sum, and a negative time are refused",
    "NaN is a value": "as in Redis 8.6; Redis 1.12 refuses it",
    "prefix of errors": "all errors begin with ERR, and WRONGTYPE stands alone",
    "text of duplicates": "the text is that of Redis 8.6",
    "arithmetic": "sums are rounded once, and variances keep their digits",
    "extreme arithmetic": "sums overflow only if their result does; in Redis if a step does",
    "edges of EMPTY": "buckets up to the points around the range are returned, as in Redis 8.10",
    "count of nothing": "REDUCE count of buckets without a number is 0, as in Redis 8.8; Redis 1.12 has NaN",
    "reverse": "the reverse of the forward answer, as in Redis 8.10",
    "place of EMPTY": "EMPTY and BUCKETTIMESTAMP come directly after the duration; Redis counts words, and ignores them without AGGREGATION",
    "twa of filtered points": "neighbours are those that the filter leaves; Redis 1.12 mixes them with others",
    "limits of Redis": "there may be any number of times and labels; Redis drops times after the 128th, and refuses labels after the 50th",
    "names in any case": "SELECTED_LABELS takes names as they are; Redis takes the first label of the same letters",
    "option words as names": "a key or a label may be named like an option; Redis reads it as both",
    "selected labels": "SELECTED_LABELS ends at every option word; Redis takes some of them as labels",
    "shared labels": "a label that all series of a group share is returned; Redis 1.12 returns null",
    "value after =": "the value of a filter is everything after the first =",
    "beyond the range": "1e400 is infinite as a limit of FILTER_BY_VALUE; Redis refuses it",
    "end of time": "the end of a bucket is 2^63-1 at most; in Redis it becomes negative",
    "regular expressions": "a=~b and a!~b are regular expressions; Redis finds the value ~b by the first and refuses the second",
    "relative times": "now and -5m are times relative to that of the command; Redis refuses them",
    "blocks": "TS.INFO describes Tidemark's blocks",
    "policy in force": "TS.INFO says block if no policy was given, as in Redis 8; Redis 1.12 has null",
    "retention is final": "points that the retention has dropped are gone",
    "clock": "the clocks are two",
}

ARITHMETIC = {b"avg", b"sum", b"std.p", b"std.s", b"var.p", b"var.s", b"twa"}
MULTI = {b"TS.MRANGE", b"TS.MREVRANGE"}
RANGES = {b"TS.RANGE", b"TS.REVRANGE", *MULTI}
ADDS = {b"TS.ADD", b"TS.INCRBY", b"TS.DECRBY"}
DEFINITIONS = {b"TS.CREATE", b"TS.ALTER", *ADDS}
VALUE_WITH_GARBAGE = re.compile(rb"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?.+", re.DOTALL)


def upper(words):
    return [word.upper() for word in words]


class Case:
    """One command with both answers. `uses` collects the known differences that explain it."""

    def __init__(self, words, done, ours, theirs, ask):
        self.words, self.done, self.ours, self.theirs, self.ask = words, done, ours, theirs, ask
        self.upper = upper(words)
        self.name = self.upper[0]
        self.uses = set()

    def agrees(self):
        """Returns whether the answers are equal, or differ as is known."""
        if same(self.ours, self.theirs):
            return True
        if self.theirs is UNASKED and isinstance(self.ours, Error):
            return Case(self.forward()[0], self.done, *self.ask(self.forward()[0]), self.ask).agrees()
        if self.name in RANGES and not isinstance(self.ours, Error) and not isinstance(self.theirs, Error):
            return self.ranges_agree()
        return self.answers_agree(self.ours, self.theirs)

    def use(self, name, applies=True):
        if applies:
            assert name in KNOWN, name
            self.uses.add(name)
        return applies

    def answers_agree(self, ours, theirs):
        if same(ours, theirs):
            return True
        if isinstance(ours, Error) or isinstance(theirs, Error):
            return self.errors_agree(ours, theirs)
        if self.has_clock():
            if isinstance(ours, int) and isinstance(theirs, int):
                return self.use("clock", abs(ours - theirs) < 5000)
        if self.name == b"TS.INFO":
            return self.info_agrees(ours, theirs)
        if self.name == b"TS.MADD" and len(ours) == len(theirs):
            return self.items_agree(ours, theirs)
        if self.name == b"TS.DEL":
            return self.use("retention is final", isinstance(theirs, int) and ours < theirs and self.ask.has_retention(self.words[1]))
        if odd := self.odd_filter():
            return self.use(odd)
        if self.name == b"TS.MGET" and b"SELECTED_LABELS" in self.upper:
            if same(lower(ours), lower(theirs)):
                return self.use("names in any case")
            return self.use("selected labels", self.has_options_after_selected())
        return False

    def has_options_after_labels(self):
        after = self.upper[self.upper.index(b"LABELS") + 1:] if b"LABELS" in self.upper else []
        return self.name in DEFINITIONS and any(word in OPTIONS for word in after)

    def has_options_after_selected(self):
        """Whether words follow SELECTED_LABELS that Redis takes as labels, or drops from them."""
        after = self.upper[self.upper.index(b"SELECTED_LABELS") + 1:] if b"SELECTED_LABELS" in self.upper else []
        return any(word in OPTIONS for word in after[:-1] if word not in (b"FILTER", b"GROUPBY", b"REDUCE"))

    def has_clock(self):
        """Whether a time may be that of the server."""
        return b"*" in self.words or (self.name in (b"TS.INCRBY", b"TS.DECRBY") and b"TIMESTAMP" not in self.upper[3:])

    def items_agree(self, ours, theirs):
        """Compares the answers about the points of TS.MADD; those on a key that differs already are let pass."""
        diverged = set()
        for at, (one, other) in enumerate(zip(ours, theirs)):
            words = self.words[1 + 3 * at:4 + 3 * at]
            if words[0] in diverged or same(one, other):
                continue
            item = Case([b"TS.MADD", *words], self.done, one, other, self.ask)
            if not item.agrees():
                return False
            self.uses |= item.uses
            if isinstance(one, Error) != isinstance(other, Error):
                diverged.add(words[0])
        return True

    def odd_filter(self):
        """Returns the difference that is due to a filter, if there is one."""
        if b"FILTER" not in self.upper and self.name != b"TS.QUERYINDEX":
            return None
        if any(b"=~" in word or b"!~" in word for word in self.words):
            return "regular expressions"
        is_odd = any(word.count(b"=") > 1 or word[:1] == b"=" or word[:2] == b"!=" for word in self.words)
        return "value after =" if is_odd else None

    def errors_agree(self, ours, theirs):
        if isinstance(ours, Error) and isinstance(theirs, Error):
            one, other = (text.removeprefix("ERR ") for text in (ours, theirs))
            if one == other:
                return self.use("prefix of errors")
            if one.startswith(other) and "BLOCK mode" in other:
                return self.use("text of duplicates")
        if isinstance(theirs, Error) and self.name in ADDS | {b"TS.MADD"} and "invalid value" in theirs:
            if any(word.lower() == b"nan" for word in self.words):
                return self.use("NaN is a value")
        if isinstance(ours, Error) and self.refused_here(ours, theirs):
            return True
        if not isinstance(ours, Error) and isinstance(theirs, Error):
            if odd := self.odd_filter():
                return self.use(odd)
            if "fromTimestamp" in theirs or "toTimestamp" in theirs:
                return self.use("relative times", b"now" in self.words or b"-5m" in self.words)
            if b"1e400" in self.words and ("MIN" in theirs or "MAX" in theirs):
                return self.use("beyond the range")
            if "reached max size" in theirs:
                return self.use("limits of Redis")
            named = any(word in OPTIONS and word.decode() in theirs for word in self.upper)
            return (self.use("option words as names", self.upper[1] in OPTIONS or named and self.done != "nothing")
                    or self.use("labels swallow options", self.has_options_after_labels()))
        if isinstance(ours, Error) and isinstance(theirs, Error):
            return self.use("order of errors", self.done != "nothing" or b"low" in self.words)
        return False

    def refused_here(self, ours, theirs):
        """Whether Tidemark refuses what Redis takes, or takes to be wrong for another reason."""
        if found := re.search("syntax error: (.*) is no option of the command$", ours):
            word = found[1].strip("'\"").encode().upper()
            if word in (b"EMPTY", b"BUCKETTIMESTAMP"):
                return self.use("place of EMPTY")
            return self.use("unknown word", self.done != "nothing" or word == b"ON_DUPLICATE")
        if found := re.search("syntax error: (.*) is given twice$", ours):
            word = found[1].strip("'\"").encode().upper()
            return self.use("given twice", self.upper.count(word) > 1 or word in (b"COMPRESSED", b"UNCOMPRESSED", b"ENCODING"))
        if "cannot accept WITHLABELS" in ours:
            return self.use("given twice", self.upper.count(b"WITHLABELS") > 1 or self.upper.count(b"SELECTED_LABELS") > 1)
        if "flag should be the" in ours:
            return self.use("place of EMPTY")
        if any(word in OPTIONS and self.upper.count(word) > 1 for word in self.upper) and self.done != "nothing":
            return self.use("given twice")
        if self.name in ADDS | {b"TS.MADD"} and "invalid value" in ours:
            return self.use("garbage after a value", any(VALUE_WITH_GARBAGE.fullmatch(word) for word in self.words[2:]))
        if "the sum of the two values is out of range" in ours:
            return self.use("infinite increment", EXTREME in self.words)
        if self.name in (b"TS.INCRBY", b"TS.DECRBY") and ("invalid increase" in ours or "invalid timestamp" in ours):
            if isinstance(theirs, int):
                return self.use("infinite increment", b"inf" in self.words or any(word[:1] == b"-" for word in self.words) or EXTREME in self.words)
        if not isinstance(theirs, Error) and self.has_options_after_labels():
            return self.use("labels swallow options")
        if self.name in ADDS and "invalid" not in ours and "timestamp" not in ours and "is older" not in ours:
            return self.use("options always checked")
        if "UNIT must be" in ours:
            return self.use("unit", b"UNIT" in self.upper)
        if odd := self.odd_filter():
            return self.use(odd)
        if self.name in RANGES and not isinstance(theirs, Error) and self.done == "words":
            return self.use("selected labels", b"SELECTED_LABELS" in self.upper)
        if self.ask.has_retention(self.words[1]) and "older than retention" in ours:
            return self.use("retention is final")
        return False

    def info_agrees(self, ours, theirs):
        self.use("blocks")
        one, other = fields(ours), fields(theirs)
        for name in ("memoryUsage", "chunkCount", "Chunks"):
            one.pop(name, None)
            other.pop(name, None)
        if other["duplicatePolicy"] is None and one["duplicatePolicy"] in ("block", b"block"):
            self.use("policy in force")
            other["duplicatePolicy"] = one["duplicatePolicy"]
        return list(one) == list(other) and all(same(one[name], other[name]) for name in one)

    def ranges_agree(self):
        """Compares answers of ranges in one form: forward, and without a limit on rows."""
        is_reverse = b"REV" in self.name
        forward, count = self.forward()
        ours, theirs = self.ask(forward)
        if isinstance(ours, Error) or isinstance(theirs, Error):
            asked = Case(forward, self.done, ours, theirs, self.ask)
            agrees = isinstance(self.ours, Error) == isinstance(ours, Error) and asked.errors_agree(ours, theirs)
            self.uses |= asked.uses
            return agrees
        if not same(rows_of(self.ours), [cut(rows, is_reverse, count) for rows in rows_of(ours)]):
            return False
        if self.theirs is not UNASKED and is_reverse and not same(rows_of(self.theirs), [cut(rows, True, count) for rows in rows_of(theirs)]):
            self.use("reverse")
        return self.forward_ranges_agree(ours, theirs)

    def forward(self):
        """Returns the command in the order of time and without a limit on rows, and the limit."""
        words = [self.name.replace(b"REV", b""), *self.words[1:]]
        for at in range(1, len(words) - 1):
            if words[at].upper() == b"COUNT" and words[at - 1].upper() != b"AGGREGATION" and words[at + 1].isdigit():
                return words[:at] + words[at + 2:], int(words[at + 1])
        return words, None

    def forward_ranges_agree(self, ours, theirs):
        if not same(heads_of(ours), heads_of(theirs)):
            if odd := self.odd_filter():
                return self.use(odd)
            if b"GROUPBY" in self.upper and nulled(heads_of(ours), heads_of(theirs)):
                self.use("shared labels")
            elif same(lower(heads_of(ours)), lower(heads_of(theirs))):
                self.use("names in any case")
            elif not self.use("selected labels", self.has_options_after_selected()):
                return False
        pairs = list(zip(rows_of(ours), rows_of(theirs)))
        return all(self.rows_agree(one, other) for one, other in pairs)

    def rows_agree(self, ours, theirs):
        if same(ours, theirs):
            return True
        if self.has_many_times():
            return self.use("limits of Redis")
        if len(ours) == len(theirs) and any(row[0] < 0 for row in theirs):
            self.use("end of time")
            pairs = list(zip(ours, theirs))
            if not all(one[0] == (other[0] if other[0] >= 0 else 2**63 - 1) for one, other in pairs):
                return False
            ours = [[other[0], *one[1:]] for one, other in pairs]
        if len(ours) != len(theirs) or any(one[0] != other[0] for one, other in zip(ours, theirs)):
            if b"EMPTY" not in self.upper or b"AGGREGATION" not in self.upper:
                return False
            there = {row[0]: row for row in theirs}
            here = {row[0] for row in ours}
            if not set(there) <= here:
                return False
            self.use("edges of EMPTY")
            ours = [row for row in ours if row[0] in there]
        return all(self.value_agrees(one[1], other[1]) for one, other in zip(ours, theirs))

    def has_many_times(self):
        return b"FILTER_BY_TS" in self.upper and len(self.words) > 128

    def value_agrees(self, ours, theirs):
        if same(ours, theirs):
            return True
        if self.upper[-1] == b"COUNT" and float(ours) == 0 and math.isnan(float(theirs)):
            return self.use("count of nothing")
        used = {word.lower() for word in self.words} & ARITHMETIC
        if not used:
            return b"last" in [word.lower() for word in self.words] and b"EMPTY" in self.upper and self.use("edges of EMPTY")
        if b"twa" in used and any(word.startswith(b"FILTER_BY") for word in self.upper):
            return self.use("twa of filtered points")
        one, other = float(ours), float(theirs)
        if EXTREME in self.words or EXTREME in repr(self.ours).encode():
            return self.use("extreme arithmetic")
        # Redis subtracts squares, which are up to 25 million here.
        slack = 1e-6 if used & {b"std.p", b"std.s"} else 1e-7 if used & {b"var.p", b"var.s"} else 1e-9
        return self.use("arithmetic", math.isclose(one, other, rel_tol=1e-9, abs_tol=slack))


def same(one, other):
    """Equality that knows NaN and types."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other) or one != one and other != other
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one == other


def fields(info):
    if isinstance(info, dict):
        return {str(name): value for name, value in info["map"]}
    return {str(name): value for name, value in zip(info[::2], info[1::2])}


def series_of(answer):
    """Returns the series of an answer of ranges: a head, and rows."""
    if isinstance(answer, dict):
        return [((key, parts[:-1]), parts[-1]) for key, parts in answer["map"]]
    if answer and isinstance(answer[0][0], bytes):
        return [(parts[:-1], parts[-1]) for parts in answer]
    return [(None, answer)]


def rows_of(answer):
    return [rows for _, rows in series_of(answer)]


def heads_of(answer):
    return [head for head, _ in series_of(answer)]


def cut(rows, is_reverse, count):
    rows = rows[::-1] if is_reverse else rows
    return rows if count is None else rows[:count]


def lower(value):
    """Returns labels, whose values may be those of other labels, with names in small letters."""
    if isinstance(value, (list, tuple)):
        if len(value) == 2 and isinstance(value[0], bytes) and (value[1] is None or isinstance(value[1], bytes)):
            return [value[0].lower()]
        return [lower(item) for item in value]
    if isinstance(value, dict):
        return [lower(item) for item in value.values()]
    return value


def nulled(ours, theirs):
    """Whether two heads are equal but for nulls of theirs."""
    if theirs is None:
        return True
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, (list, tuple)):
        return len(ours) == len(theirs) and all(map(nulled, ours, theirs))
    if isinstance(ours, dict):
        return nulled(list(ours.items()), list(theirs.items()))
    return ours == theirs
