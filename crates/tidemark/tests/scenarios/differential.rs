//! The same random commands go to Debian's `redis-server` and to Tidemark; every answer is equal,
//! except for the differences named in [`RULES`] and listed in docs/differences.md.

use crate::commands::{Generator, Line, Random, Times, shown};
use crate::support::Server;
use crate::support::redis::{
    Redis, diverging, line_that_both_know, name_of, over_equal_scores, setting, without_our_words,
};
use crate::support::wire::{Pipeline, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Commands that are sent before their answers are read.
const BLOCK: usize = 64;

/// Unexplained differences after which the test stops.
const ENOUGH: usize = 25;

/// A comparison that replaces equality of the plain answers, and why.
struct Rule {
    commands: &'static [&'static str],
    /// Why the plain answers may differ.
    reason: &'static str,
    same: fn(&Line, &Value, &Value) -> bool,
}

const RULES: &[Rule] = &[
    Rule {
        commands: &["keys", "smembers", "sinter", "sunion", "sdiff", "hkeys", "hvals"],
        reason: "the order is not specified: elements are compared as a multiset",
        same: |_, ours, theirs| same(&sorted(ours, 1), &sorted(theirs, 1)),
    },
    Rule {
        commands: &["hgetall"],
        reason: "the order is not specified: pairs are compared as a multiset",
        same: |_, ours, theirs| same(&sorted(ours, 2), &sorted(theirs, 2)),
    },
    Rule {
        commands: &["spop", "srandmember", "hrandfield", "zrandmember", "randomkey"],
        reason: "the choice is random: the form and the number of elements are compared",
        same: same_form,
    },
    Rule {
        commands: &["scan", "sscan", "hscan", "zscan"],
        reason: "cursors are the server's own: complete answers are compared as multisets, others by form",
        same: same_scan,
    },
    Rule {
        commands: &["ttl", "expiretime"],
        reason: "the clocks are two: seconds may differ by two",
        same: |_, ours, theirs| within(ours, theirs, 2),
    },
    Rule {
        commands: &["pttl", "pexpiretime"],
        reason: "the clocks are two: milliseconds may differ by two thousand",
        same: |_, ours, theirs| within(ours, theirs, 2000),
    },
    Rule {
        commands: &["object|idletime"],
        reason: "a command that Redis refuses after it has read a key counts there as an access: a minute is allowed; \
                 small integers, which Redis shares among keys, are idle for longer",
        same: |_, ours, theirs| within(ours, theirs, 60) || is_longer(theirs, ours),
    },
    Rule {
        commands: &["object|refcount"],
        reason: "the answer's content is particular to the server: the form is compared",
        same: same_form,
    },
    Rule {
        commands: &["object|encoding"],
        reason: "how a string came to be decides in Redis whether it is embstr or raw, here its length does",
        same: |_, ours, theirs| same(ours, theirs) || (is_plain_string(ours) && is_plain_string(theirs)),
    },
    Rule {
        commands: &["blpop", "brpop", "blmove", "brpoplpush", "blmpop", "bzpopmin", "bzpopmax", "bzmpop"],
        reason: "a timeout beyond all bounds is refused in other words",
        same: |_, ours, theirs| same(ours, theirs) || (is_about_timeout(ours) && is_about_timeout(theirs)),
    },
    Rule {
        commands: &["sort", "sort_ro"],
        reason: "equal weights leave Redis any order, and a set has none: what belongs together is a multiset",
        same: same_sort,
    },
    Rule {
        commands: &["geosearch", "georadius", "georadius_ro", "georadiusbymember", "georadiusbymember_ro"],
        reason: "equal distances leave Redis any order, and any choice if there are too many",
        same: same_search,
    },
    Rule {
        commands: &["xpending", "xinfo|consumers"],
        reason: "the clocks are two: milliseconds may differ by two thousand",
        same: |_, ours, theirs| nearly(ours, theirs),
    },
    Rule {
        commands: &["xinfo|stream"],
        reason: "the clocks are two, and blocks are in no radix tree: its nodes are not compared",
        same: |_, ours, theirs| nearly(ours, theirs),
    },
    Rule {
        commands: &["dbsize"],
        reason: "a key that is written with a time in the past is counted by Redis until it meets the key: it may count more",
        same: |_, ours, theirs| same(ours, theirs) || (is_longer(theirs, ours) && within(ours, theirs, 8)),
    },
    Rule {
        commands: &["object|help", "xgroup|help", "xinfo|help"],
        reason: "the texts are our own",
        same: same_kind,
    },
];

/// Commands whose arguments are looked at before their key, as in Redis since 7.4: an error of the arguments comes
/// before that of the key, and in place of the answer about an absent one.
const ARGUMENTS_FIRST: [&str; 2] = ["bitcount", "bitpos"];

fn rule(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.commands.contains(&name))
}

fn agree(line: &Line, ours: &Value, theirs: &Value) -> bool {
    let is_of_key = match theirs {
        Value::Integer(answer) => *answer <= 0,
        Value::Error(text) => text.starts_with("WRONGTYPE"),
        _ => false,
    };
    if matches!(ours, Value::Error(_)) && is_of_key && ARGUMENTS_FIRST.contains(&name_of(line).as_str()) {
        return true;
    }
    match (rule(&name_of(line)), ours, theirs) {
        (None, ..) => same(ours, theirs),
        (Some(rule), Value::Error(_), _) | (Some(rule), _, Value::Error(_)) => {
            same(ours, theirs) || (is_about_timeout(ours) && (rule.same)(line, ours, theirs))
        }
        (Some(rule), ..) => (rule.same)(line, ours, theirs),
    }
}

/// Returns whether two answers are equal. Numbers with a fraction are compared as numbers, because
/// Redis 7.0 prints all 17 digits and Tidemark, like Redis 7.2, as many as are needed; and zero has
/// no sign.
fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Double(one), Value::Double(other)) => {
            one.total_cmp(other).is_eq() || one.abs() + other.abs() <= 0.0
        }
        (Value::Bulk(one), Value::Bulk(other)) => one == other || same_number(one, other),
        (Value::Array(one), Value::Array(other))
        | (Value::Set(one), Value::Set(other))
        | (Value::Map(one), Value::Map(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        _ => ours == theirs,
    }
}

fn number(bytes: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.contains(['.', 'e']) || *text == "-0")?;
    text.parse().ok()
}

fn same_number(one: &[u8], other: &[u8]) -> bool {
    // Of a whole number beyond 2^53, such as a weighted score, Redis 7.0 prints digits that mean nothing.
    let are_long = one.len() >= 17 && one.len() == other.len() && one[..15] == other[..15];
    let either = are_long || number(one).is_some() || number(other).is_some();
    let value = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.parse::<f64>().ok();
    either && value(one).is_some() && value(one) == value(other)
}

fn sorted(value: &Value, width: usize) -> Value {
    let mut groups: Vec<Vec<Value>> = value.elements().chunks(width).map(<[Value]>::to_vec).collect();
    groups.sort_by_key(|group| group.iter().map(|it| it.bytes().to_vec()).collect::<Vec<_>>());
    let elements = groups.into_iter().flatten().collect();
    match value {
        Value::Array(_) => Value::Array(elements),
        Value::Set(_) => Value::Set(elements),
        Value::Map(_) => Value::Map(elements),
        other => other.clone(),
    }
}

fn same_kind(_: &Line, ours: &Value, theirs: &Value) -> bool {
    std::mem::discriminant(ours) == std::mem::discriminant(theirs)
}

fn same_form(line: &Line, ours: &Value, theirs: &Value) -> bool {
    let (one, other) = (ours.elements(), theirs.elements());
    same_kind(line, ours, theirs)
        && one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| same_form(line, one, other))
}

fn same_scan(line: &Line, ours: &Value, theirs: &Value) -> bool {
    let ([our_cursor, ours], [their_cursor, theirs]) = (ours.elements(), theirs.elements()) else {
        return false;
    };
    let from_start = line.iter().take(3).any(|word| word == b"0");
    if from_start && our_cursor.bytes() == b"0" && their_cursor.bytes() == b"0" {
        let width = if matches!(name_of(line).as_str(), "hscan" | "zscan") { 2 } else { 1 };
        return same(&sorted(ours, width), &sorted(theirs, width));
    }
    same_kind(line, our_cursor, their_cursor) && same_kind(line, ours, theirs)
}

fn same_search(line: &Line, ours: &Value, theirs: &Value) -> bool {
    let has = |option: &str| line.iter().any(|word| word.eq_ignore_ascii_case(option.as_bytes()));
    let is_cut = has("COUNT") && ours.elements().len() == theirs.elements().len();
    is_cut || same(&sorted(ours, 1), &sorted(theirs, 1))
}

fn same_sort(line: &Line, ours: &Value, theirs: &Value) -> bool {
    let times =
        |option: &str| line.iter().filter(|word| word.eq_ignore_ascii_case(option.as_bytes())).count();
    if times("BY") + times("ALPHA") == 0 || !matches!(ours, Value::Array(_)) {
        return same(ours, theirs);
    }
    let width = times("GET").max(1);
    let is_cut = times("LIMIT") > 0 && ours.elements().len() == theirs.elements().len();
    is_cut || same(&sorted(ours, width), &sorted(theirs, width))
}

fn within(ours: &Value, theirs: &Value, slack: u64) -> bool {
    match (ours, theirs) {
        (Value::Integer(one), Value::Integer(other)) if *one >= 0 && *other >= 0 => {
            one.abs_diff(*other) <= slack
        }
        _ => ours == theirs,
    }
}

/// Returns whether two answers are equal but for integers that differ by at most two thousand.
fn nearly(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Array(one), Value::Array(other)) | (Value::Map(one), Value::Map(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| nearly(one, other))
        }
        _ => same(ours, theirs) || within(ours, theirs, 2000),
    }
}

fn is_longer(one: &Value, other: &Value) -> bool {
    matches!((one, other), (Value::Integer(one), Value::Integer(other)) if one > other)
}

/// Two servers, with a connection to each for both protocols, and the differences so far.
struct Comparison {
    ours: [Pipeline; 2],
    theirs: [Pipeline; 2],
    /// The latest commands, for reports.
    history: Vec<Line>,
    /// Differences by command: their number, and the first one.
    differences: BTreeMap<String, (u64, String)>,
}

impl Comparison {
    fn new(our_port: u16, their_port: u16) -> Self {
        let connect = |port: u16| {
            let plain = Pipeline::connect(port).expect("a connection");
            let mut rich = Pipeline::connect(port).expect("a connection");
            assert!(matches!(rich.call(&[b"HELLO", b"3"]), Ok(Value::Map(_))), "RESP3 is spoken");
            [plain, rich]
        };
        Self {
            ours: connect(our_port),
            theirs: connect(their_port),
            history: Vec::new(),
            differences: BTreeMap::new(),
        }
    }

    /// Sends a block to both servers and compares the answers.
    fn block(&mut self, protocol: usize, lines: &[Line]) {
        self.ours[protocol].send(lines).expect("our server takes commands");
        let known: Vec<Line> = lines.iter().map(without_our_words).collect();
        self.theirs[protocol].send(&known).expect("Redis takes commands");
        let (mut queued, mut in_transaction) = (Vec::new(), false);
        let mut suspects = Vec::new();
        for line in lines {
            let ours =
                self.ours[protocol].read().unwrap_or_else(|error| panic!("{error} after {}", shown(line)));
            let theirs = self.theirs[protocol].read().expect("Redis answers");
            self.history.push(line.clone());
            match (name_of(line).as_str(), &ours, &theirs) {
                ("multi", ..) => in_transaction = true,
                ("exec", Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
                    in_transaction = false;
                    let answers = ours.iter().zip(theirs);
                    for (line, (ours, theirs)) in std::mem::take(&mut queued).into_iter().zip(answers) {
                        self.compare(protocol, line, ours, theirs, &mut suspects);
                    }
                    continue;
                }
                ("exec", ..) => {
                    in_transaction = false;
                    queued.clear();
                }
                _ if in_transaction && matches!(&theirs, Value::Status(_)) => queued.push(line),
                _ => {}
            }
            let plain = in_transaction && ours == theirs;
            if !plain {
                self.compare(protocol, line, &ours, &theirs, &mut suspects);
            }
            if !in_transaction && name_of(line) == "spop" && suspects.is_empty() {
                self.pop_the_same(protocol, line, &ours, &theirs);
            }
        }
        self.agree_again(suspects);
        let excess = self.history.len().saturating_sub(BLOCK * 8);
        self.history.drain(..excess);
    }

    fn compare(
        &mut self,
        protocol: usize,
        line: &Line,
        ours: &Value,
        theirs: &Value,
        suspects: &mut Vec<Vec<u8>>,
    ) {
        if agree(line, ours, theirs) {
            return;
        }
        let keys: Vec<Vec<u8>> = line.iter().filter(|word| word.contains(&b':')).cloned().collect();
        let mut before: Vec<String> = self
            .history
            .iter()
            .rev()
            .skip(1)
            .filter(|other| other.iter().any(|word| keys.contains(word)))
            .take(8)
            .map(|line| shown(line))
            .collect();
        before.reverse();
        let report = format!(
            "RESP{}: {}\n  ours:   {ours:?}\n  theirs: {theirs:?}\n  before on its keys:\n    {}",
            protocol + 2,
            shown(line),
            before.join("\n    ")
        );
        self.differences.entry(name_of(line)).or_insert((0, report)).0 += 1;
        suspects.extend(keys);
    }

    /// Makes Tidemark's set equal to Redis's, from which other random members were popped. Each
    /// server must have answered with members.
    fn pop_the_same(&mut self, protocol: usize, line: &Line, ours: &Value, theirs: &Value) {
        let members = |answer: &Value| match answer {
            Value::Bulk(member) => BTreeSet::from([member.clone()]),
            answer => answer.elements().iter().map(|member| member.bytes().to_vec()).collect(),
        };
        let (ours, theirs) = (members(ours), members(theirs));
        for (name, members) in [("sadd", ours.difference(&theirs)), ("srem", theirs.difference(&ours))] {
            let mut words: Line = [name.into()].into_iter().chain(line.get(1).cloned()).collect();
            words.extend(members.cloned());
            let count = words.len().saturating_sub(2);
            if count > 0 {
                self.ours[protocol].send(std::slice::from_ref(&words)).expect("our server takes commands");
                let answer = self.ours[protocol].read().expect("an answer");
                assert_eq!(answer, Value::Integer(count as i64), "{} after {}", shown(&words), shown(line));
            }
        }
    }

    /// Removes the keys on both sides, so that one difference is not reported repeatedly.
    fn agree_again(&mut self, keys: Vec<Vec<u8>>) {
        for key in keys {
            for connection in [&mut self.ours[0], &mut self.theirs[0]] {
                connection.call(&[b"DEL", &key]).expect("an answer");
            }
        }
    }

    /// Compares the final contents of the two servers, key by key.
    fn compare_states(&mut self) -> usize {
        let mut keys_compared = 0;
        for db in 0..16 {
            let select: Line = vec![b"select".to_vec(), db.to_string().into()];
            self.block(0, &[select, vec![b"keys".to_vec(), b"*".to_vec()]]);
            let Ok(found) = self.theirs[0].call(&[b"KEYS", b"*"]) else { continue };
            for key in found.elements().iter().map(|key| key.bytes().to_vec()) {
                let of = |words: &[&[u8]]| words.iter().map(|word| word.to_vec()).collect::<Line>();
                let lines = [
                    of(&[b"type", &key]),
                    of(&[b"pexpiretime", &key]),
                    of(&[b"object", b"encoding", &key]),
                    of(&[b"get", &key]),
                    of(&[b"lrange", &key, b"0", b"-1"]),
                    of(&[b"hgetall", &key]),
                    of(&[b"smembers", &key]),
                    of(&[b"zrange", &key, b"0", b"-1", b"withscores"]),
                    of(&[b"xrange", &key, b"-", b"+"]),
                    of(&[b"xinfo", b"stream", &key, b"full", b"count", b"0"]),
                ];
                self.block(0, &lines);
                keys_compared += 1;
            }
        }
        keys_compared
    }
}

/// Returns random commands, some in transactions, with the commands that keep the states equal.
fn next_block(generator: &mut Generator) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    if generator.random.once_in(8) {
        let db = generator.random.pick(&["0", "0", "1", "2", "16", "x"]);
        lines.push(vec![b"select".to_vec(), db.into()]);
    }
    while lines.len() < BLOCK {
        let together = if generator.random.once_in(20) { 1 + generator.random.below(6) } else { 0 };
        if together > 0 {
            lines.push(vec![b"multi".to_vec()]);
        }
        for _ in 0..together.max(1) {
            let line = line_that_both_know(generator);
            let name = name_of(&line);
            let key = diverging(&name, &line);
            let sorted = line.get(1).cloned().filter(|_| name == "sort" || name == "sort_ro");
            let popped = line.get(1).cloned().filter(|_| name == "spop");
            lines.extend(over_equal_scores(line, generator));
            lines.extend(key.map(|key| vec![b"del".to_vec(), key]));
            lines.extend(sorted.into_iter().flat_map(as_skiplist));
            if let Some(key) = popped {
                if together == 0 {
                    // Its answers are compared before any other command.
                    return lines;
                }
                lines.push(vec![b"del".to_vec(), key]);
            }
        }
        if together > 0 {
            lines.push(vec![b"exec".to_vec()]);
        }
    }
    lines
}

/// Makes a sorted set a skiplist on both servers: in Redis `SORT` converts a small one, so reading
/// may change a key's encoding. A member that is too long for the small encoding is added and
/// removed again.
fn as_skiplist(key: Vec<u8>) -> [Line; 2] {
    let member = vec![b'S'; 65];
    [vec![b"zadd".to_vec(), key.clone(), b"0".to_vec(), member.clone()], vec![b"zrem".to_vec(), key, member]]
}

fn is_plain_string(encoding: &Value) -> bool {
    matches!(encoding, Value::Bulk(name) if matches!(name.as_slice(), b"embstr" | b"raw"))
}

fn is_about_timeout(answer: &Value) -> bool {
    matches!(answer, Value::Error(text) if text.starts_with("ERR timeout"))
}

#[test]
fn random_commands_are_answered_as_redis_answers_them() {
    let commands = setting("TIDEMARK_DIFFERENTIAL_COMMANDS", 200_000);
    let seed = setting("TIDEMARK_DIFFERENTIAL_SEED", 1);
    let directory = tempfile::tempdir().expect("a directory");
    let (server, redis) = (Server::start(directory.path(), &["--durability", "off"]), Redis::start());
    let mut comparison = Comparison::new(server.port, redis.port);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let mut generator = Generator::new(seed, Times::FarOrPast, now.as_millis() as u64);
    let (mut sent, mut protocol) = (0, 0);
    while sent < commands && comparison.differences.len() < ENOUGH {
        let lines = next_block(&mut generator);
        comparison.block(protocol, &lines);
        sent += lines.len() as u64;
        protocol = 1 - protocol;
    }
    let keys = comparison.compare_states();
    assert!(keys > 0, "something is left to compare");
    println!("{sent} commands, {keys} keys in the end, seed {seed}");
    let differences: Vec<String> = comparison
        .differences
        .values()
        .map(|(count, first)| format!("{count} times, first {first}"))
        .collect();
    assert!(
        differences.is_empty(),
        "answers differ without a rule. Once more: TIDEMARK_DIFFERENTIAL_SEED={seed} cargo test --profile test-fast \
         -p tidemark --test scenarios differential::\n{}",
        differences.join("\n")
    );
}

/// Returns a number as people and programs write it: short and long ones, at the limits of what a
/// double and an 80-bit number hold, in the middle between two of them, and texts that are no
/// numbers.
fn number_text(random: &mut Random) -> String {
    let mut digits = |most: u64| -> String {
        (0..=random.below(most)).map(|_| char::from(b'0' + random.below(10) as u8)).collect()
    };
    let (whole, fraction) = (digits(20), digits(24));
    let (short, cents) = (digits(4), digits(2));
    let sign = random.pick(&["", "", "-", "+"]);
    match random.below(10) {
        0..3 => format!("{sign}{short}.{cents}"),
        3 => format!("{sign}{whole}"),
        4 => format!("{sign}{whole}.{fraction}"),
        5 => format!("{sign}{whole}e{}", random.below(60) as i64 - 30),
        6 => format!("{sign}{whole}.{cents}E{}", random.below(10_400) as i64 - 5_200),
        7 => {
            let odd = (u128::from(random.next() | 1 << 63) << 1) | 1;
            format!("{sign}{}", odd << random.below(40))
        }
        8 => format!("{sign}0x{:x}.{}p{}", random.next(), random.below(9), random.below(99) as i64 - 80),
        _ => random
            .pick(&["inf", "-inf", "nan", "1e", ".", ".5", "-.0", "1 ", "0x", "1e5000", "1e-4951"])
            .to_owned(),
    }
}

#[test]
fn sums_of_floats_have_the_digits_of_redis() {
    let sums = setting("TIDEMARK_DIFFERENTIAL_SUMS", 20_000);
    let mut random = Random::new(setting("TIDEMARK_DIFFERENTIAL_SEED", 1));
    let directory = tempfile::tempdir().expect("a directory");
    let (server, redis) = (Server::start(directory.path(), &["--durability", "off"]), Redis::start());
    let connect = |port: u16| Pipeline::connect(port).expect("a connection");
    let (mut ours, mut theirs) = (connect(server.port), connect(redis.port));
    for _ in 0..sums.div_ceil(BLOCK as u64) {
        let lines: Vec<Line> = (0..BLOCK)
            .flat_map(|_| {
                let (old, delta) = (number_text(&mut random), number_text(&mut random));
                let of = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect::<Line>();
                [
                    of(&["set", "k", &old]),
                    of(&["incrbyfloat", "k", &delta]),
                    of(&["hset", "h", "f", &old]),
                    of(&["hincrbyfloat", "h", "f", &delta]),
                    of(&["hincrbyfloat", "h", "f", &old]),
                ]
            })
            .collect();
        ours.send(&lines).expect("our server takes commands");
        theirs.send(&lines).expect("Redis takes commands");
        for (index, line) in lines.iter().enumerate() {
            let (ours, theirs) = (ours.read().expect("an answer"), theirs.read().expect("an answer"));
            assert_eq!(ours, theirs, "{}, after {}", shown(line), shown(&lines[index.saturating_sub(1)]));
        }
    }
}

#[test]
fn every_rule_is_documented() {
    let documented = include_str!("../../../../docs/differences.md");
    for rule in RULES {
        for name in rule.commands {
            let shown = format!("`{}`", name.replace('|', " ").to_uppercase());
            assert!(documented.contains(&shown), "docs/differences.md names {shown}: {}", rule.reason);
        }
    }
}
