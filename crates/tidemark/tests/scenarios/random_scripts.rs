//! Random scripts beside Debian's `redis-server`: from a grammar, so that they mostly run for a while before they
//! fail. Replies and the state in the end must be equal.
//!
//! `TIDEMARK_RANDOM_SCRIPTS` sets how many, `TIDEMARK_DIFFERENTIAL_SEED` which.

use crate::commands::Random;
use crate::support::Server;
use crate::support::redis::{Redis, contents, setting};
use crate::support::wire::{Pipeline, Value};
use std::fmt::Write;

/// Names of the keys that a script is given, by what they mostly hold.
const KEYS: [&str; 6] = ["string:1", "number:1", "list:1", "hash:1", "set:1", "zset:1"];
const FIELDS: &[&str] = &["a", "b", "c", "1", "-7", "long-field-name"];
const TEXTS: &[&str] =
    &["''", "'a'", "'b'", "'0'", "'10'", "'-3'", "'3.5'", "'1e3'", "'0x10'", "'text with \\0 zero'", "' 5 '"];
const NUMBERS: &[&str] = &["0", "1", "2", "-1", "7", "100", "2.5", "-0.1", "1e15", "2^53", "1/0", "-1/0"];

/// Writes a script.
struct Author<'r> {
    random: &'r mut Random,
    text: String,
    /// Number of local variables in scope, named v1, v2 …
    locals: u64,
    /// What may still be written: a bound on its length and nesting.
    left: u32,
}

impl Author<'_> {
    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        self.random.pick(from)
    }

    fn chance(&mut self, times: u64) -> bool {
        self.random.once_in(times)
    }

    fn local(&mut self) -> String {
        match self.locals {
            // Not a global, which would be an error of its own kind too often.
            0 => "KEYS".into(),
            count => format!("v{}", 1 + self.random.below(count)),
        }
    }

    fn key(&mut self) -> String {
        match self.random.below(12) {
            0 => format!("ARGV[{}]", 1 + self.random.below(4)),
            // None, which is an argument that no command takes.
            1 if self.chance(4) => "KEYS[9]".into(),
            _ => format!("KEYS[{}]", 1 + self.random.below(KEYS.len() as u64)),
        }
    }

    fn key_of(&mut self, kind: usize) -> String {
        if self.chance(12) { self.key() } else { format!("KEYS[{}]", kind + 1) }
    }

    fn text_or_local(&mut self) -> String {
        match self.random.below(8) {
            0 => format!("text({})", self.local()),
            1 => format!("ARGV[{}]", 1 + self.random.below(5)),
            2 => self.pick(&["0", "1", "-1", "7", "2.5", "100"]).into(),
            _ => self.pick(TEXTS).into(),
        }
    }

    fn field(&mut self) -> String {
        format!("'{}'", self.pick(FIELDS))
    }

    /// A command, as the arguments of `redis.call`.
    fn command(&mut self) -> String {
        let (value, other) = (self.text_or_local(), self.text_or_local());
        let (field, second) = (self.field(), self.field());
        let integer = self.pick(&["0", "1", "-1", "2", "-2", "5", "'x'", "2.5"]);
        let end = self.pick(&["-1", "0", "2", "'-1'"]);
        let [string, number, list, hash, set, zset] = [0, 1, 2, 3, 4, 5].map(|kind| self.key_of(kind));
        match self.random.below(44) {
            0 => format!("'SET', {string}, {value}"),
            1 => format!("'GET', {string}"),
            2 => format!("'APPEND', {string}, {value}"),
            3 => format!("'GETRANGE', {string}, {integer}, {end}"),
            4 => format!("'SETRANGE', {string}, {integer}, {value}"),
            5 => format!("'STRLEN', {string}"),
            6 => format!("'SETNX', {string}, {value}"),
            7 => format!("'GETSET', {string}, {value}"),
            8 => format!("'INCR', {number}"),
            9 => format!("'INCRBY', {number}, {value}"),
            10 => format!("'DECRBY', {number}, {integer}"),
            11 => format!("'GET', {number}"),
            12 => format!("'SETBIT', {string}, {integer}, 1"),
            13 => format!("'BITCOUNT', {string}"),
            14 => format!("'RPUSH', {list}, {value}, {other}"),
            15 => format!("'LPUSH', {list}, {value}"),
            16 => format!("'LPOP', {list}"),
            17 => format!("'RPOP', {list}, {integer}"),
            18 => format!("'LRANGE', {list}, {integer}, {end}"),
            19 => format!("'LINDEX', {list}, {integer}"),
            20 => format!("'LSET', {list}, {integer}, {value}"),
            21 => format!("'LREM', {list}, {integer}, {value}"),
            22 => format!("'LTRIM', {list}, {integer}, {end}"),
            23 => format!("'LINSERT', {list}, 'BEFORE', {value}, {other}"),
            24 => format!("'HSET', {hash}, {field}, {value}, {second}, {other}"),
            25 => format!("'HGET', {hash}, {field}"),
            26 => format!("'HMGET', {hash}, {field}, {second}, 'none'"),
            27 => format!("'HINCRBY', {hash}, {field}, {integer}"),
            28 => format!("'HDEL', {hash}, {field}"),
            29 => format!("'HEXISTS', {hash}, {field}"),
            30 => format!("'SADD', {set}, {value}, {other}"),
            31 => format!("'SREM', {set}, {value}"),
            32 => format!("'SISMEMBER', {set}, {value}"),
            33 => format!("'SCARD', {set}"),
            34 => format!("'ZADD', {zset}, {integer}, {field}, {end}, {second}"),
            35 => format!("'ZINCRBY', {zset}, {integer}, {field}"),
            36 => format!("'ZRANGE', {zset}, {integer}, {end}, 'WITHSCORES'"),
            37 => format!("'ZRANGEBYSCORE', {zset}, '-inf', {integer}"),
            38 => format!("'ZSCORE', {zset}, {field}"),
            39 => format!("'ZRANK', {zset}, {field}"),
            40 => format!("'ZPOPMIN', {zset}"),
            41 => format!("'DEL', {}", self.key()),
            42 => format!("'TYPE', {}", self.key()),
            _ => self.odd_command(),
        }
    }

    /// A command that is refused, or seldom sent.
    fn odd_command(&mut self) -> String {
        let (key, other) = (self.key(), self.key());
        match self.random.below(14) {
            0 => "'NOPE'".into(),
            1 => "'GET'".into(),
            2 => format!("'GET', {key}, {other}"),
            3 => "'MULTI'".into(),
            4 => "'SUBSCRIBE', 'x'".into(),
            5 => format!("'RENAME', {key}, {other}"),
            6 => format!("'COPY', {key}, {other}, 'REPLACE'"),
            7 => format!("'EXISTS', {key}, {other}, {key}"),
            8 => format!("'BLPOP', {key}, 0"),
            9 => "'PING'".into(),
            10 => "'ECHO', 'hello'".into(),
            11 => format!("'LMOVE', {key}, {other}, 'LEFT', 'RIGHT'"),
            12 => format!("'MGET', {key}, {other}"),
            _ => format!("'OBJECT', 'ENCODING', {key}"),
        }
    }

    fn call(&mut self) -> String {
        let how = if self.chance(3) { "pcall" } else { "call" };
        format!("redis.{how}({})", self.command())
    }

    fn expression(&mut self, depth: u32) -> String {
        if depth == 0 || self.left == 0 {
            return match self.random.below(5) {
                0 => self.pick(NUMBERS).into(),
                1 => self.pick(TEXTS).into(),
                2 => self
                    .pick(&[
                        "nil",
                        "true",
                        "false",
                        "{}",
                        "{1, 2, nil, 4}",
                        "{ok = 'fine'}",
                        "{err = 'ERR own'}",
                    ])
                    .into(),
                _ => self.local(),
            };
        }
        self.left -= 1;
        let (one, two) = (self.expression(depth - 1), self.expression(depth - 1));
        match self.random.below(26) {
            0 => format!("({one} {} {two})", self.pick(&["+", "-", "*", "/", "%", "^", ".."])),
            1 => format!("({one} {} {two})", self.pick(&["==", "~=", "and", "or"])),
            2 => format!("({one} {} {two})", self.pick(&["<", "<=", ">", ">="])),
            3 => format!("tonumber({one})"),
            4 => format!("type({one})"),
            5 => format!("#({one})"),
            6 => format!("(not {one})"),
            7 => format!("{{{one}, {two}}}"),
            8 => format!("{{a = {one}, b = {two}}}"),
            9 => format!("({})[{}]", self.local(), self.pick(&["1", "2", "'a'", "'err'", "'ok'"])),
            10 => format!("string.{}({one})", self.pick(&["len", "upper", "lower", "reverse"])),
            11 => format!(
                "string.sub({one}, {}, {})",
                self.pick(&["1", "2", "-2"]),
                self.pick(&["1", "-1", "3"])
            ),
            12 => format!("string.format('%s|%5d|%q|%.3f', text({one}), 7, 'x', tonumber({two}) or 0)"),
            13 => {
                format!("string.find(text({one}), {})", self.pick(&["'a'", "'%d+'", "'^(.)'", "'(x?)(.*)$'"]))
            }
            14 => format!("(string.gsub(text({one}), '%w', '<%0>'))"),
            15 => format!("math.{}({one})", self.pick(&["floor", "ceil", "abs", "sqrt"])),
            16 => format!("math.max({one}, {two})"),
            17 => format!("select('#', {one}, {two})"),
            18 => format!("{{pcall(function() return {one} + 1 end)}}"),
            19 => format!("table.concat({{{one}, {two}}}, ',')"),
            20 => format!("cjson.encode({{{one}, {two}}})"),
            21 => format!("cjson.decode(cjson.encode({{x = {one}}}))"),
            22 => format!("cmsgpack.unpack(cmsgpack.pack({one}))"),
            23 => format!("redis.sha1hex(text({one}))"),
            24 => format!("bit.{}(tonumber({one}) or 1, 5)", self.pick(&["band", "bor", "bxor", "lshift"])),
            _ => self.call(),
        }
    }

    fn indented(&mut self, depth: usize, line: &str) {
        writeln!(self.text, "{}{line}", "  ".repeat(depth)).expect("text grows");
    }

    fn block(&mut self, depth: usize) {
        let before = self.locals;
        for _ in 0..=self.random.below(4) {
            if self.left == 0 {
                break;
            }
            self.statement(depth);
        }
        self.locals = before;
    }

    fn statement(&mut self, depth: usize) {
        self.left = self.left.saturating_sub(1);
        match self.random.below(16) {
            0..=4 => {
                let value = if self.chance(2) { self.call() } else { self.expression(2) };
                let name = self.locals + 1;
                self.indented(depth, &format!("local v{name} = {value}"));
                self.locals += 1;
            }
            5..=8 => {
                let call = self.call();
                self.indented(depth, &call);
            }
            9 | 10 if depth < 4 => {
                let condition = self.expression(2);
                self.indented(depth, &format!("if {condition} then"));
                self.block(depth + 1);
                if self.chance(2) {
                    self.indented(depth, "else");
                    self.block(depth + 1);
                }
                self.indented(depth, "end");
            }
            11 if depth < 4 => {
                let bound = 1 + self.random.below(4);
                self.locals += 1;
                let name = self.locals;
                self.indented(depth, &format!("for v{name} = 1, {bound} do"));
                self.block(depth + 1);
                self.indented(depth, "end");
                self.locals -= 1;
            }
            12 if depth < 4 => {
                let list = self.local();
                self.indented(
                    depth,
                    &format!("if type({list}) == 'table' then for i, x in ipairs({list}) do"),
                );
                let call = self.call();
                self.indented(depth + 1, &call);
                self.indented(depth, "end end");
            }
            13 if self.locals > 0 => {
                let (name, value) = (self.local(), self.expression(2));
                self.indented(depth, &format!("{name} = {value}"));
            }
            14 if self.chance(6) => {
                let what = self.pick(&[
                    "error('own')",
                    "error({err = 'ERR table'})",
                    "x = 1",
                    "return y",
                    "error()",
                ]);
                self.indented(depth, &format!("do {what} end"));
            }
            15 if self.chance(3) => {
                let value = self.expression(3);
                self.indented(depth, &format!("do return {value} end"));
            }
            _ => {
                let value = self.expression(2);
                let name = self.locals + 1;
                self.indented(depth, &format!("local v{name} = {value}"));
                self.locals += 1;
            }
        }
    }
}

fn script(random: &mut Random) -> String {
    let mut text = String::new();
    if random.once_in(12) {
        text.push_str(random.pick(&["#!lua\n", "#!lua flags=no-writes\n", "#!lua flags=allow-oom\n"]));
    }
    if random.once_in(20) {
        text.push_str("redis.setresp(3)\n");
    }
    // The address of a table is the interpreter's own.
    text.push_str(
        "local function text(x) if type(x) == 'table' then return 'table' end return tostring(x) end ",
    );
    let mut author = Author { random, text, locals: 0, left: 40 };
    // Local variables of a script are those of its end, too.
    for _ in 0..2 + author.random.below(6) {
        author.statement(0);
    }
    let value = author.expression(3);
    author.indented(0, &format!("return {value}"));
    author.text
}

/// The arguments behind the keys.
fn arguments(random: &mut Random) -> Vec<&'static str> {
    (0..random.below(5)).map(|_| random.pick(&["1", "-5", "string:1", "abc", "3.7", ""])).collect()
}

fn send(server: &mut Pipeline, words: &[&[u8]]) -> Value {
    server.call(words).expect("an answer")
}

#[test]
fn random_scripts_do_the_same_as_in_redis() {
    let count = setting("TIDEMARK_RANDOM_SCRIPTS", 1_000);
    let seed = setting("TIDEMARK_DIFFERENTIAL_SEED", 1);
    let directory = tempfile::tempdir().expect("a directory");
    let (server, redis) = (Server::start(directory.path(), &["--durability", "off"]), Redis::start());
    let connect = |port: u16| Pipeline::connect(port).expect("a connection");
    let (mut ours, mut theirs) = (connect(server.port), connect(redis.port));
    let mut random = Random::new(seed);
    let (mut refused, mut bad) = (0_u64, Vec::new());
    for number in 0..count {
        let (text, args) = (script(&mut random), arguments(&mut random));
        let keys = KEYS.len().to_string();
        let mut words: Vec<&[u8]> = vec![b"EVAL", text.as_bytes(), keys.as_bytes()];
        words.extend(KEYS.iter().chain(&args).map(|word| word.as_bytes()));
        let expected = send(&mut theirs, &words);
        let got = send(&mut ours, &words);
        refused += u64::from(matches!(expected, Value::Error(_)));
        let mut is_same = got == expected;
        let mut report =
            format!("script {number} with {args:?}:\n{text}\n  Redis: {expected:?}\n  ours:  {got:?}");
        if number % 20 == 19 || !is_same {
            for key in KEYS.iter().chain(&["1", "-5", "abc", "3.7", ""]) {
                let [at_redis, here] = [&mut theirs, &mut ours].map(|side| contents(side, key.as_bytes()));
                if at_redis != here {
                    is_same = false;
                    write!(report, "\n  {key} at Redis: {at_redis:?}\n  and here: {here:?}")
                        .expect("text grows");
                }
            }
        }
        if !is_same {
            bad.push(report);
            assert!(bad.len() < 10, "seed {seed}:\n{}", bad.join("\n\n"));
            for side in [&mut ours, &mut theirs] {
                send(side, &[b"FLUSHALL"]);
            }
        }
        if number % 500 == 499 {
            for side in [&mut ours, &mut theirs] {
                send(side, &[b"FLUSHALL"]);
            }
        }
    }
    assert!(bad.is_empty(), "seed {seed}:\n{}", bad.join("\n\n"));
    assert!(refused < count, "a script ends without an error");
    println!("{count} scripts, {refused} of which ended with an error, seed {seed}");
}
