"""Random `TS.` commands over few keys, so that they collide."""

KEYS = [b"a", b"b", b"c", b"d", b"e"]
# Its values are too large for sums, or too small; it has no labels, so that reads of several series do without it.
EXTREME = b"extreme"
ALL_KEYS = [*KEYS, EXTREME]
# Has no labels either. Its points may be far from each other, where Redis would fill gaps by billions of buckets.
FAR = b"far"
TEXT = b"text"
LABELS = [b"room", b"unit", b"Room", b"x=y"]
LABEL_VALUES = [b"hall", b"attic", b"c", b"k v", b"a=b"]
AGGREGATORS = [b"avg", b"sum", b"min", b"max", b"range", b"count", b"std.p", b"std.s", b"var.p", b"var.s", b"first",
               b"last", b"twa"]
REDUCERS = AGGREGATORS[:10]
POLICIES = [b"block", b"first", b"last", b"min", b"max", b"sum"]
# Replacements of one word by a wrong one, or by one that is right in few places.
JUNK = [b"", b"x", b"-1", b"0", b"+5", b"05", b"1.5", b" 1", b"9223372036854775807", b"9223372036854775808", b"-", b"+",
        b"*", b"now", b"-5m", b"nan", b"inf", b"1e400", b"0x10", b"NONE", b"avg", b"(", b"a=(b", b"=", b"!=", b"LABELS", b"COUNT",
        b"\xff\xfe", b"a" * 300]
OPTIONS = [b"RETENTION", b"ENCODING", b"CHUNK_SIZE", b"DUPLICATE_POLICY", b"ON_DUPLICATE", b"IGNORE", b"LABELS",
           b"TIMESTAMP", b"LATEST", b"FILTER_BY_TS", b"FILTER_BY_VALUE", b"COUNT", b"ALIGN", b"AGGREGATION",
           b"BUCKETTIMESTAMP", b"EMPTY", b"WITHLABELS", b"SELECTED_LABELS", b"FILTER", b"GROUPBY", b"REDUCE",
           b"UNCOMPRESSED", b"COMPRESSED", b"DEBUG"]


def number(value):
    return str(value).encode()


class Generator:
    """Commands of one seed."""

    def __init__(self, random, names):
        self.random, self.names = random, names
        self.makers = [(weight, make) for weight, make, needed in (
            (4, self.create, b"ts.create"), (2, self.alter, b"ts.alter"), (24, self.add, b"ts.add"),
            (8, self.madd, b"ts.madd"), (4, self.step, b"ts.incrby"), (2, self.delete_points, b"ts.del"),
            (4, self.get, b"ts.get"), (3, self.mget, b"ts.mget"), (16, self.range, b"ts.range"),
            (12, self.mrange, b"ts.mrange"), (3, self.query, b"ts.queryindex"), (3, self.info, b"ts.info"),
            (2, self.key, None)) if needed is None or needed in names]
        self.weights = [weight for weight, _ in self.makers]

    def command(self):
        """Returns a command, and what was done to it: nothing, `value` (one word is another) or `words` (words are
        missing, doubled, moved or added)."""
        make = self.random.choices(self.makers, self.weights)[0][1]
        words = make()
        roll = self.random.random()
        if len(words) < 2 or words[0] in (b"DEL", b"RENAME", b"COPY", b"SET"):
            return words, "nothing"
        if roll < 0.05:
            words[self.random.randrange(1, len(words))] = self.random.choice(JUNK)
            return words, "value"
        if roll < 0.09:
            return self.rearranged(words), "words"
        return [self.any_case(word) for word in words], "nothing"

    def any_case(self, word):
        if self.random.random() < 0.02 and (word in OPTIONS or word in AGGREGATORS or word in POLICIES):
            return word.swapcase()
        return word

    def rearranged(self, words):
        at = self.random.randrange(1, len(words))
        kind = self.random.randrange(4)
        if kind == 0:
            return words[:at] + words[at + 1:]
        if kind == 1:
            return words[:at] + [words[at]] + words[at:]
        if kind == 2:
            other = self.random.randrange(1, len(words))
            words[at], words[other] = words[other], words[at]
            return words
        return words[:at] + [self.random.choice(OPTIONS)] + words[at:]

    def pick(self, items):
        return self.random.choice(items)

    def maybe(self, share=0.5):
        return self.random.random() < share

    def any_key(self):
        roll = self.random.random()
        if roll < 0.16:
            return TEXT if roll < 0.02 else b"missing" if roll < 0.04 else EXTREME if roll < 0.12 else FAR
        return self.pick(KEYS)

    def time(self, key=None):
        if key == FAR:
            return number(self.pick([0, 10**12, 2**63 - 1, 2**63 - 2, 2**53, 2**62, self.random.randrange(10**12)]))
        roll = self.random.random()
        return number(self.random.randrange(0, 2000) if roll < 0.9 else self.random.randrange(0, 20) * 100)

    def value(self, key):
        if key == EXTREME:
            return self.pick([b"1e308", b"-1e308", b"1e16", b"1", b"-1e16", b"5e-324", b"0.1", b"-0", b"9007199254740993",
                              b"123456789012345680000", b"1E-7", b"1.7976931348623157e308", b"4503599627370497"])
        roll = self.random.random()
        if roll < 0.5:
            return number(self.random.randrange(-50, 50))
        if roll < 0.97:
            return number(self.random.randrange(-5000, 5000) / 100)
        return self.pick([b"NaN", b"1x", b"1,5", b"0x10", b".5", b"+1", b"1e3", b"-0", b"", b"inf"])

    def definition(self, key, labels=True):
        words = []
        if self.maybe(0.15):
            words += [b"RETENTION", self.pick([b"0", b"100", b"500", b"1000000"])]
        if self.maybe(0.15):
            words += [b"ENCODING", self.pick([b"COMPRESSED", b"UNCOMPRESSED"])]
        if self.maybe(0.2):
            words += [b"CHUNK_SIZE", self.pick([b"48", b"128", b"4096"])]
        if self.maybe(0.5):
            words += [b"DUPLICATE_POLICY", self.pick(POLICIES)]
        if self.maybe(0.15):
            words += [b"IGNORE", self.pick([b"0", b"5", b"100"]), self.pick([b"0", b"1.5", b"10"])]
        if labels:
            words += self.labels(key)
        return words

    def labels(self, key):
        if self.maybe(0.2) or key in (EXTREME, FAR):
            return []
        words = [b"LABELS"]
        for name in self.random.sample(LABELS, self.random.randrange(0, 4)):
            words += [name, self.pick(LABEL_VALUES)]
        if self.maybe(0.03):
            words += [self.pick(LABELS), self.pick([b"", b"a,b", b"(a)", b"hall"])]
        return words

    def create(self):
        key = self.any_key()
        return [b"TS.CREATE", key, *self.definition(key)]

    def alter(self):
        key = self.any_key()
        words = [b"TS.ALTER", key]
        if self.maybe(0.2):
            words += [b"RETENTION", self.pick([b"0", b"100", b"500", b"1000000"])]
        if self.maybe(0.2):
            words += [b"DUPLICATE_POLICY", self.pick(POLICIES)]
        return words + (self.labels(key) if self.maybe(0.6) else [])

    def add(self):
        key = self.any_key()
        words = [b"TS.ADD", key, b"*" if self.maybe(0.005) else self.time(key), self.value(key)]
        if self.maybe(0.2):
            words += self.definition(key, labels=False)
        if self.maybe(0.3):
            words += [b"ON_DUPLICATE", self.pick(POLICIES)]
        return words + (self.labels(key) if self.maybe(0.3) else [])

    def madd(self):
        words = [b"TS.MADD"]
        for _ in range(self.random.choice([1, 2, 5, 20])):
            key = self.any_key()
            words += [key, self.time(key), self.value(key)]
        return words

    def step(self):
        key = self.any_key()
        amount = self.pick([b"1", b"-2.5", b"0", b"0x10", b".5", b"+1", b"x", b"nan", b"1e2"])
        words = [self.pick([b"TS.INCRBY", b"TS.DECRBY"]), key, amount]
        if self.maybe(0.95):
            words += [b"TIMESTAMP", self.pick([self.time(key), number(self.random.randrange(1800, 2200))])]
        if self.maybe(0.2) and amount not in (b"x", b"nan"):
            words += self.definition(key)
        return words

    def ends(self):
        one, other = sorted((self.random.randrange(0, 2200), self.random.randrange(0, 2200)))
        if self.maybe(0.04):
            one, other = other, one
        start = b"-" if self.maybe(0.4) else number(one)
        return [start, b"+" if self.maybe(0.4) else number(other)]

    def delete_points(self):
        return [b"TS.DEL", self.any_key(), *self.ends()]

    def get(self):
        return [b"TS.GET", self.any_key()] + ([b"LATEST"] if self.maybe(0.1) else [])

    def filters(self):
        words = []
        for _ in range(self.random.choice([1, 1, 1, 2, 3])):
            name, value, other = self.pick(LABELS[:3]), self.pick(LABEL_VALUES[:4]), self.pick(LABEL_VALUES[:4])
            words.append(self.pick([b"%s=%s" % (name, value)] * 3 + [b"%s=(%s,%s)" % (name, value, other)] * 2 + [
                b"%s!=%s" % (name, value), b"%s=" % name, b"%s!=" % name, b"%s!=(%s,%s)" % (name, value, other)]))
        if self.maybe(0.01):
            words.append(self.pick([b"room=~h.*|c", b"room=~.*", b"unit!~c", b"room=~h("]))
        if self.maybe(0.02):
            words.append(self.pick([b"x=y=a=b", b"room==hall", b"=hall", b"room=(hall,)", b"room=()", b"room", b"room<hall"]))
        return words

    def selected(self):
        roll = self.random.random()
        if roll < 0.25:
            return [b"WITHLABELS"]
        if roll < 0.4:
            return [b"SELECTED_LABELS", *self.random.sample(LABELS, self.random.randrange(1, 3))]
        return []

    def mget(self):
        latest = [b"LATEST"] if self.maybe(0.1) else []
        return [b"TS.MGET", *latest, *self.selected(), b"FILTER", *self.filters()]

    def range_options(self):
        parts = []
        if self.maybe(0.15):
            count = 130 if self.maybe(0.02) else self.random.choice([1, 3, 20, 100])
            parts.append([b"FILTER_BY_TS", *(number(self.random.randrange(0, 2000)) for _ in range(count))])
        if self.maybe(0.15):
            parts.append([b"FILTER_BY_VALUE", self.pick([b"-10", b"-inf", b"0", b"2.5", b"1e1"]), self.pick([b"10", b"inf", b"20.5"])])
        if self.maybe(0.3):
            parts.append([b"COUNT", self.pick([b"1", b"2", b"5", b"100"])])
        if self.maybe(0.05):
            parts.append([b"LATEST"])
        if self.maybe(0.65):
            part = [b"AGGREGATION", self.pick(AGGREGATORS), self.pick([b"1", b"7", b"50", b"100", b"1000", b"5000"])]
            if part[2] in (b"1", b"7") or not self.maybe(0.25):
                more = []
            else:
                more = [b"EMPTY"]
            if self.maybe(0.2):
                stamp = [b"BUCKETTIMESTAMP", self.pick([b"-", b"+", b"~", b"start", b"end", b"mid", b"low"])]
                more = more + stamp if self.maybe() else stamp + more
            part += more
            if self.maybe(0.2):
                align = [b"ALIGN", self.pick([b"-", b"+", b"start", b"end", b"0", b"5", b"77"])]
                part = align + part if self.maybe(0.8) else part + align
            parts.append(part)
        self.random.shuffle(parts)
        return [word for part in parts for word in part]

    def range(self):
        return [self.pick([b"TS.RANGE", b"TS.REVRANGE"]), self.any_key(), *self.ends(), *self.range_options()]

    def mrange(self):
        words = [self.pick([b"TS.MRANGE", b"TS.MREVRANGE"]), *self.ends()]
        options, selected = self.range_options(), self.selected()
        words += selected + options \
            if self.maybe(0.1 if selected[:1] == [b"SELECTED_LABELS"] else 0.5) else options + selected
        words += [b"FILTER", *self.filters()]
        if self.maybe(0.3):
            words += [b"GROUPBY", self.pick(LABELS), b"REDUCE", self.pick([*REDUCERS, b"twa"])]
        return words

    def query(self):
        return [b"TS.QUERYINDEX", *self.filters()]

    def info(self):
        return [b"TS.INFO", self.any_key()]

    def key(self):
        key, other = self.pick(KEYS), self.pick(KEYS)
        return self.pick([[b"DEL", self.pick(ALL_KEYS)], [b"RENAME", key, other], [b"COPY", key, other, b"REPLACE"]])
