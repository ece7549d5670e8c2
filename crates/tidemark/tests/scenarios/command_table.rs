//! `COMMAND` describes each command as Debian's `redis-server` 7.0 does: clients and proxies use it
//! to find how many arguments a command has, which of them are keys, and what happens to those.

use crate::support::{Answer, Client, Server};
use std::collections::BTreeMap;
use std::process::Command;

/// Commands that Redis 7.0 describes differently, and why.
const DIFFERENT: [(&str, &str); 10] = [
    ("unwatch", "ends subscriptions to reads, too, if it names any"),
    ("pfcount", "changes nothing: Redis keeps the estimate in the value"),
    ("zrank", "has WITHSCORE, which came with Redis 7.2"),
    ("zrevrank", "has WITHSCORE, which came with Redis 7.2"),
    ("command|getkeys", "explains a command without arguments, as since Redis 7.2"),
    ("command|getkeysandflags", "explains a command without arguments, as since Redis 7.2"),
    ("xreadgroup", "Redis shows its keys as only read, although it changes their groups"),
    ("spublish", "Redis shows the channel as a key that is none"),
    ("ssubscribe", "Redis shows the channels as keys that are none"),
    ("sunsubscribe", "Redis shows the channels as keys that are none"),
];

/// The fields of a command that clients read.
#[derive(Debug, PartialEq)]
struct Description {
    arity: Answer,
    positions: [Answer; 3],
    categories: String,
    tips: String,
    key_specs: Vec<BTreeMap<String, String>>,
}

#[test]
fn commands_are_described_as_by_redis() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut redis = Command::new("redis-server");
    redis.args(["--save", "", "--dir"]).arg(directory.path());
    let redis = Server::spawn(redis);
    let data = directory.path().join("tidemark");
    let ours = Server::start(&data, &[]);
    let (theirs, ours) = (describe_all(&mut redis.client()), describe_all(&mut ours.client()));
    let is_excepted = |name: &str| DIFFERENT.iter().any(|(other, _)| *other == name);
    let common: Vec<&String> = ours.keys().filter(|name| theirs.contains_key(*name)).collect();
    assert!(common.len() > 200, "only {} commands in common", common.len());
    for name in common {
        let same = ours[name] == theirs[name];
        assert_ne!(
            same,
            is_excepted(name),
            "{name} is described as\n{:?}\nbut Redis says\n{:?}",
            ours[name],
            theirs[name]
        );
    }
}

fn describe_all(client: &mut Client) -> BTreeMap<String, Description> {
    let mut descriptions = BTreeMap::new();
    for row in client.call(&["COMMAND"]).expect("an answer").array() {
        describe(row, &mut descriptions);
    }
    descriptions
}

/// Adds a row of `COMMAND` and the rows of its subcommands.
fn describe(row: Answer, descriptions: &mut BTreeMap<String, Description>) {
    let fields: [Answer; 10] = row.array().try_into().expect("ten fields");
    let [name, arity, _flags, first, last, step, categories, tips, key_specs, subcommands] = fields;
    let key_specs = key_specs.array().into_iter().map(read_key_spec).collect();
    let (categories, tips) = (words(&categories), words(&tips));
    let description = Description { arity, positions: [first, last, step], categories, tips, key_specs };
    assert!(descriptions.insert(text(&name), description).is_none(), "{name:?} comes twice");
    for subcommand in subcommands.array() {
        describe(subcommand, descriptions);
    }
}

/// Returns a key specification as names with values, without its notes.
fn read_key_spec(spec: Answer) -> BTreeMap<String, String> {
    let items = spec.array();
    let pairs = items.chunks_exact(2).map(|pair| (text(&pair[0]), words(&pair[1])));
    pairs.filter(|(name, _)| name != "notes").collect()
}

/// Returns the words of an answer, sorted because flags are a set. The flag `variable_flags` is not
/// compared.
fn words(answer: &Answer) -> String {
    let mut words = Vec::new();
    collect(answer, &mut words);
    words.retain(|word| word != "variable_flags");
    words.sort_unstable();
    words.join(" ")
}

fn collect(answer: &Answer, words: &mut Vec<String>) {
    match answer {
        Answer::Array(items) => items.iter().for_each(|item| collect(item, words)),
        other => words.push(text(other)),
    }
}

fn text(answer: &Answer) -> String {
    match answer {
        Answer::Status(text) | Answer::Bulk(text) => text.clone(),
        Answer::Integer(value) => value.to_string(),
        other => panic!("neither text nor a number: {other:?}"),
    }
}
