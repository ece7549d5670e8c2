//! Debian's `redis-server`, and random commands that both servers accept.

use super::wire::{Pipeline, Value};
use crate::commands::{Generator, Line};
use std::process::{Child, Command, Stdio};

/// Debian's `redis-server`, in a directory of its own.
pub(crate) struct Redis {
    child: Child,
    pub(crate) port: u16,
    _directory: tempfile::TempDir,
}

impl Redis {
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let port = super::free_port();
        let child = Command::new("redis-server")
            // SORT compares text by locale.
            .env("LC_ALL", "C")
            .args([
                "--port",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
                // Redis unblocks clients at its next timer tick: every 100 ms by default.
                "--hz",
                "500",
                "--dir",
            ])
            .arg(directory.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("Debian's redis-server is installed: apt-get install redis-server");
        for _ in 0..5000 {
            if Pipeline::connect(port).is_ok() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        Self { child, port, _directory: directory }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends the lines to both servers, under RESP2 and RESP3, after all keys are gone and the command `flush` was
/// sent. All answers must be the same.
pub(crate) fn compare_answers(redis: &Redis, port: u16, flush: &[&str], lines: &[&[&str]]) {
    for hello in ["2", "3"] {
        let mut theirs = Pipeline::connect(redis.port).expect("a connection");
        let mut ours = Pipeline::connect(port).expect("a connection");
        let flush: Vec<&[u8]> = flush.iter().map(|word| word.as_bytes()).collect();
        for side in [&mut theirs, &mut ours] {
            side.call(&[b"HELLO", hello.as_bytes()]).expect("an answer");
            side.call(&[b"FLUSHALL"]).expect("an answer");
            side.call(&flush).expect("an answer");
        }
        let mut different = Vec::new();
        for line in lines {
            let words: Vec<&[u8]> = line.iter().map(|word| word.as_bytes()).collect();
            let expected = theirs.call(&words).expect("an answer of Redis");
            let got = ours.call(&words).expect("an answer");
            if got != expected {
                different.push(format!("{line:?}\n  Redis: {expected:?}\n  ours:  {got:?}"));
            }
        }
        assert!(different.is_empty(), "RESP{hello}:\n{}", different.join("\n"));
    }
}

/// What a key holds, in an order that does not depend on the server.
pub(crate) fn contents(server: &mut Pipeline, key: &[u8]) -> (String, Vec<Vec<u8>>) {
    let mut call = |words: &[&[u8]]| server.call(words).expect("an answer");
    let Value::Status(kind) = call(&[b"TYPE", key]) else { panic!("a type") };
    let answer = match kind.as_str() {
        "string" => call(&[b"GET", key]),
        "list" => call(&[b"LRANGE", key, b"0", b"-1"]),
        "set" => call(&[b"SMEMBERS", key]),
        "hash" => call(&[b"HGETALL", key]),
        "zset" => call(&[b"ZRANGE", key, b"0", b"-1"]),
        "stream" => call(&[b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0"]),
        "none" => Value::Null,
        other => panic!("Redis has no {other}"),
    };
    let mut elements: Vec<Vec<u8>> = match &answer {
        Value::Bulk(bytes) => vec![bytes.clone()],
        other => other.elements().iter().map(|element| element.bytes().to_vec()).collect(),
    };
    match kind.as_str() {
        // All of it: entries, groups, pending entries, consumers, and how many blocks there are. Only the nodes
        // of the tree are each server's own.
        "stream" => {
            let fields = answer.elements().chunks(2).filter(|pair| pair[0].bytes() != b"radix-tree-nodes");
            elements = fields.map(|pair| format!("{pair:?}").into_bytes()).collect();
        }
        "set" => elements.sort_unstable(),
        "hash" => {
            let mut pairs: Vec<Vec<u8>> = elements.chunks(2).map(|pair| pair.join(&b"="[..])).collect();
            pairs.sort_unstable();
            elements = pairs;
        }
        // Scores, printed by each server with other digits.
        "zset" => {
            let ends = [&b"(0"[..], b"0", b"(1", b"5", b"-5", b"100"];
            for [min, max] in ends.map(|end| [&b"-inf"[..], end]) {
                let Value::Integer(count) = call(&[b"ZCOUNT", key, min, max]) else { panic!("a count") };
                elements.push(count.to_string().into_bytes());
            }
        }
        _ => {}
    }
    (kind, elements)
}

/// Commands after which the two states may differ; their key is removed on both sides.
const DIVERGING: [&str; 2] = ["incrbyfloat", "hincrbyfloat"];

/// Returns the command's name; for a subcommand, with its parent's name.
pub(crate) fn name_of(line: &Line) -> String {
    let word =
        |index: usize| String::from_utf8_lossy(line.get(index).map_or(b"", Vec::as_slice)).to_lowercase();
    let has_subcommands = ["object", "xgroup", "xinfo"].contains(&word(0).as_str());
    if has_subcommands { format!("{}|{}", word(0), word(1)) } else { word(0) }
}

/// Gives ranges by text keys of their own, to which a member is added first: such ranges are
/// defined only if all scores are equal, which both servers leave to the caller.
pub(crate) fn over_equal_scores(mut line: Line, generator: &mut Generator) -> Vec<Line> {
    let name = name_of(&line);
    let source = if name == "zrangestore" { 2 } else { 1 };
    let is_lexical = name.contains("lex") || line.iter().any(|word| word.eq_ignore_ascii_case(b"bylex"));
    let Some(key) = line.get_mut(source).filter(|_| is_lexical) else { return vec![line] };
    let own = generator.random.pick(&["text:0", "text:1"]).as_bytes();
    *key = own.to_vec();
    let member = generator.member();
    vec![[b"zadd", own, b"0", &member].map(<[u8]>::to_vec).to_vec(), line]
}

/// Returns the key that may differ between the two states after a command.
pub(crate) fn diverging(name: &str, line: &Line) -> Option<Vec<u8>> {
    if name == "sort" {
        let store = line.iter().rposition(|word| word.eq_ignore_ascii_case(b"store"))?;
        return line.get(store + 1).cloned();
    }
    // Of equal distances, each server may store others; and the last digit of a distance may differ.
    let has = |option: &str| line.iter().any(|word| word.eq_ignore_ascii_case(option.as_bytes()));
    if name == "geosearchstore" && (has("COUNT") || has("STOREDIST")) {
        return line.get(1).cloned();
    }
    if matches!(name, "georadius" | "georadiusbymember") && (has("COUNT") || has("STOREDIST")) {
        let store = line.iter().rposition(|word| {
            word.eq_ignore_ascii_case(b"store") || word.eq_ignore_ascii_case(b"storedist")
        })?;
        return line.get(store + 1).cloned();
    }
    line.get(1).cloned().filter(|_| DIVERGING.contains(&name))
}

/// Returns a command that Redis 7.0 accepts as well: ZRANK has a fourth argument since 7.2, and
/// LPOS refuses the lowest rank since 7.2. Nor does it set a bit field to the lowest integer, whose
/// distance from the field's highest value overflows in Redis.
pub(crate) fn line_that_both_know(generator: &mut Generator) -> Line {
    loop {
        let mut line = generator.line();
        if !of_one_time(&mut line) {
            continue;
        }
        without_cached_estimates(&mut line);
        let too_new = match name_of(&line).as_str() {
            "zrank" | "zrevrank" => line.len() > 3,
            // Since 7.4.
            "xread" => line.iter().any(|word| word == b"+"),
            "lpos" | "bitfield" if line.iter().any(|word| word == b"-9223372036854775808") => true,
            // What Redis refuses after it has looked the key up counts there as an access.
            "restore" | "restore-asking" => line.iter().any(|word| word.eq_ignore_ascii_case(b"idletime")),
            // Compression is the server's own: a test compares the values.
            "dump" => true,
            // Redis finds damage of a HyperLogLog when it meets it, Tidemark in each command.
            "append" | "setrange" | "setbit" | "bitfield" => {
                line.iter().any(|word| word.starts_with(b"hll:"))
            }
            "hscan" => line.iter().skip(3).any(|word| word.eq_ignore_ascii_case(b"novalues")),
            // Since 8.4.
            "set" => line.iter().skip(3).any(|word| {
                [&b"ifeq"[..], b"ifne", b"ifdeq", b"ifdne"].contains(&&word.to_ascii_lowercase()[..])
            }),
            name => !is_redis_s(name),
        };
        if !too_new && !waits_for_ever(&line) {
            return line;
        }
    }
}

/// Makes a command on streams independent of two clocks and of how entries are divided into blocks.
/// Returns whether that was possible.
fn of_one_time(line: &mut Line) -> bool {
    let name = name_of(line);
    let is = |word: &Vec<u8>, other: &str| word.eq_ignore_ascii_case(other.as_bytes());
    match name.as_str() {
        "xadd" | "xtrim" => {
            for word in line.iter_mut().skip(2) {
                match &word[..] {
                    b"~" => *word = b"=".to_vec(),
                    b"*" => *word = b"8-*".to_vec(),
                    _ => {}
                }
            }
            !line.iter().any(|word| is(word, "LIMIT"))
        }
        "xclaim" | "xautoclaim" => {
            let idle = line.get_mut(4).filter(|word| [&b"1"[..], b"50"].contains(&&word[..]));
            idle.into_iter().for_each(|word| *word = b"0".to_vec());
            true
        }
        "xpending" => !line.iter().any(|word| is(word, "IDLE")),
        "xread" | "xreadgroup" => !line.windows(2).any(|pair| is(&pair[0], "BLOCK") && pair[1] == b"0"),
        _ => true,
    }
}

/// Names the key of `PFCOUNT` twice: of one key, Redis keeps the estimate in the value.
fn without_cached_estimates(line: &mut Line) {
    if let [name, key] = &line[..]
        && name.eq_ignore_ascii_case(b"pfcount")
    {
        let key = key.clone();
        line.push(key);
    }
}

/// Returns whether a command is one of Redis 7.0: the version field of other commands names their
/// product as well.
fn is_redis_s(name: &str) -> bool {
    let name = name.split('|').next().unwrap_or(name);
    let row = tidemark_server::command_table().find(name.as_bytes());
    let is_known = |since: &str| {
        since.starts_with(|first: char| first.is_ascii_digit())
            && !since.starts_with("7.4")
            && !since.starts_with('8')
    };
    row.is_none_or(|row| is_known(row.since))
}

/// Returns whether a blocking command has a timeout of zero, after its name or at its end: no other
/// client would unblock it.
fn waits_for_ever(line: &Line) -> bool {
    let blocks = name_of(line).starts_with('b') && !name_of(line).starts_with("bit");
    blocks && [line.get(1), line.last()].into_iter().flatten().any(|word| word == b"0")
}

/// Returns the command in the syntax of Redis: `DURABLE` and `SYNC` at the end of a SET are
/// extensions.
pub(crate) fn without_our_words(line: &Line) -> Line {
    let ours = |word: &Vec<u8>| word.eq_ignore_ascii_case(b"durable") || word.eq_ignore_ascii_case(b"sync");
    if name_of(line) != "set" {
        return line.clone();
    }
    line.iter().filter(|word| !ours(word)).cloned().collect()
}

pub(crate) fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
