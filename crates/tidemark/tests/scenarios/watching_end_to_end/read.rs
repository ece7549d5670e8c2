//! The watched reads: over the keys that the writers change, with and without operators.

use crate::commands::{Generator, Random};
use tidemark_engine::{Protocol, command, watch};

/// Form in which a subscriber gets answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// In wire format.
    Wire,
    Json,
    /// In the form of DiceDB's protocol.
    Dice,
}

/// A watched read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) db: u8,
    pub(crate) protocol: Protocol,
    /// The plain command, its name first.
    pub(crate) words: Vec<Vec<u8>>,
    /// Its operators as text; empty if there are none.
    pub(crate) operators: String,
    pub(crate) form: Form,
}

/// Reads of one key, with `#` for the number of a key of the writers, and whether the answer is a
/// number, always or mostly.
const OF_ONE: [(bool, &str); 34] = [
    (true, "GET string:#"),
    (true, "GET counter:#"),
    (true, "STRLEN string:#"),
    (true, "BITCOUNT string:#"),
    (true, "LLEN list:#"),
    (true, "SCARD set:#"),
    (true, "HLEN hash:#"),
    (true, "ZCARD zset:#"),
    (true, "ZCOUNT zset:# 0 10"),
    (true, "ZSCORE zset:# 1"),
    (true, "EXISTS string:#"),
    (true, "PEXPIRETIME string:#"),
    (true, "LINDEX list:# 0"),
    (false, "GETRANGE string:# 0 5"),
    (false, "GET string:#"),
    (false, "GET bulky"),
    (false, "TYPE list:#"),
    (false, "LRANGE list:# 0 -1"),
    (false, "LRANGE list:# -3 -1"),
    (false, "LPOS list:# 1"),
    (false, "HGETALL hash:#"),
    (false, "HGET hash:# a"),
    (false, "HMGET hash:# a b 1 2"),
    (false, "HKEYS hash:#"),
    (false, "HVALS hash:#"),
    (false, "HSCAN hash:# 0"),
    (false, "SMEMBERS set:#"),
    (false, "SMISMEMBER set:# a b 1 2"),
    (false, "SSCAN set:# 0 MATCH [0-9]*"),
    (false, "ZRANGE zset:# 0 -1 WITHSCORES"),
    (false, "ZRANGE zset:# 0 1"),
    (false, "ZREVRANGEBYSCORE zset:# 10 0 LIMIT 0 3"),
    (false, "ZSCAN zset:# 0"),
    (false, "EXPIRETIME list:#"),
];

/// Reads of several keys, and of all keys.
const OF_SEVERAL: [(bool, &str); 16] = [
    (false, "MGET string:0 string:1 counter:# string:3"),
    (true, "EXISTS string:0 list:1 hash:2 set:3 zset:4"),
    (false, "SUNION set:0 set:1 set:#"),
    (false, "SINTER set:0 set:#"),
    (false, "SDIFF set:# set:1 set:2"),
    (true, "SINTERCARD 2 set:0 set:#"),
    (false, "ZUNION 2 zset:0 zset:# WITHSCORES"),
    (false, "ZINTER 2 zset:1 zset:#"),
    (false, "SORT_RO list:# BY string:* GET # GET string:*"),
    (true, "DBSIZE"),
    (false, "KEYS *"),
    (false, "KEYS s*:#"),
    (false, "KEYS ?ist:[0-2]"),
    (false, "SCAN 0 MATCH string:*"),
    (false, "SCAN 0 TYPE zset COUNT 3"),
    (false, "SCAN 0"),
];

/// Operators for reads whose answers are numbers.
const OPERATORS: [&str; 14] = [
    "HIGH",
    "LOW",
    "EVERY 2",
    "EVERY 3",
    "DIFF",
    "LIMIT 4",
    "SKIP 3",
    "RANGE 1 8",
    "WINDOW 3 AVG",
    "WINDOW 2 SUM",
    "WINDOW 4 MIN | DIFF",
    "WINDOW 5 MAX EVERY 2",
    "RANGE 0 100 | HIGH",
    "THROTTLE 5",
];

impl Read {
    /// Returns a random read.
    pub(crate) fn any(generator: &mut Generator, protocol: Protocol) -> Self {
        let chosen = generator.random.below(10);
        let ((is_number, line), has_line) = match chosen {
            0..6 => (*choose(&OF_ONE, &mut generator.random), true),
            6..8 => (*choose(&OF_SEVERAL, &mut generator.random), true),
            _ => ((false, ""), false),
        };
        let random = &mut generator.random;
        let has_operators = random.once_in(if is_number { 2 } else { 8 });
        let operators = if has_operators { random.pick(&OPERATORS) } else { "" }.to_owned();
        let db = u8::from(random.once_in(12));
        let number = random.below(5).to_string();
        let words = if has_line {
            line.split(' ').map(|word| word.replace('#', &number).into_bytes()).collect()
        } else {
            judged_line(generator)
        };
        // `SORT_RO … GET #` means the element itself.
        let words = if line.starts_with("SORT_RO") { sorted(words) } else { words };
        Self { db, protocol, words, operators, form: Form::Wire }
    }

    /// Returns `X.WATCH …` with the operators before the options.
    pub(crate) fn watch(&self, options: &[String]) -> Vec<Vec<u8>> {
        let mut words = self.words.clone();
        words[0].extend_from_slice(b".WATCH");
        let behind: Vec<&str> =
            self.operators.split_whitespace().chain(options.iter().map(String::as_str)).collect();
        if !behind.is_empty() {
            words.push(b"|".to_vec());
        }
        words.extend(behind.into_iter().map(|word| word.as_bytes().to_vec()));
        words
    }

    /// Returns the key that its subscribers name when they resume.
    pub(crate) fn key(&self) -> Vec<u8> {
        let words: Vec<&[u8]> = self.words.iter().map(Vec::as_slice).collect();
        let row = command::resolve(&words).ok();
        let at = row.and_then(|row| row.keys.positions(&words).first().copied());
        at.map_or_else(|| b"any".to_vec(), |at| self.words[at].clone())
    }

    /// Returns whether what a subscriber received equals this answer.
    pub(crate) fn has_received(&self, received: &[u8], answer: &[u8]) -> bool {
        match self.form {
            Form::Wire => received == answer,
            Form::Dice => serde_json::from_slice(received).is_ok_and(|received: serde_json::Value| {
                received == super::dice_wire::of(&self.words, answer)
            }),
            Form::Json => serde_json::from_slice(received).is_ok_and(|received: serde_json::Value| {
                received == super::json::received(&super::json::of(answer))
            }),
        }
    }

    /// Returns whether two reads are the same, where that can be determined: an iteration can be
    /// written in many ways.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let is_same_name = self.words[0].eq_ignore_ascii_case(&other.words[0]);
        let is_iteration = self.words[0].to_ascii_lowercase().ends_with(b"scan");
        (self.db, self.protocol, &self.operators) == (other.db, other.protocol, &other.operators)
            && is_same_name
            && (is_iteration || self.words[1..] == other.words[1..])
    }

    /// Returns the read as a user types it.
    pub(crate) fn shown(&self) -> String {
        let protocol = match self.protocol {
            Protocol::Resp2 => "RESP2",
            Protocol::Resp3 => "RESP3",
        };
        let line = crate::commands::shown(&self.words);
        format!("{line} | {} (database {}, {protocol})", self.operators, self.db)
    }
}

fn choose<'a, T>(from: &'a [T], random: &mut Random) -> &'a T {
    &from[random.below(from.len() as u64) as usize]
}

/// Returns a read of the command table with arguments by its syntax, valid or not.
fn judged_line(generator: &mut Generator) -> Vec<Vec<u8>> {
    loop {
        let line = generator.line();
        let words: Vec<&[u8]> = line.iter().map(Vec::as_slice).collect();
        let how = command::resolve(&words).ok().and_then(watch::watchable);
        // Ranges of series emit changes, which the judge does not fold; `watched_ranges` does.
        let is_judged = how.is_some_and(|how| !how.emits_changes());
        if is_judged && !line.iter().any(|word| word == b"|") {
            return line;
        }
    }
}

fn sorted(mut words: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    if let Some(at) = words.iter().position(|word| word == b"GET") {
        words[at + 1] = b"#".to_vec();
    }
    words
}
