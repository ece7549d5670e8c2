//! `docs/compatibility.md` is made from the command table, Redis's own list of commands, and the
//! results of the client suites and of programs. `TIDEMARK_UPDATE=1 cargo test -p tidemark --test
//! scenarios compatibility::` rewrites it.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use tidemark_server::{command_table, is_watching};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compatibility.md");
const SUITES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/suites");

/// Programs that use Redis.
const PROGRAMS: &str = include_str!("../../../../clients/programs/programs.json");
/// Their results, which `clients/programs/run --update` writes.
const RESULTS_OF_PROGRAMS: &str = include_str!("../../../../clients/programs/results.json");

/// Every command of Redis with its group.
const REDIS_COMMANDS: &str = include_str!("compatibility/redis-commands.txt");
/// The commands that the suites of many clients use.
const COMMON_COMMANDS: &str = include_str!("compatibility/common-commands.txt");
/// The section about the other protocol.
const DICE: &str = include_str!("compatibility/dice.md");
/// Reasons for missing commands.
const MISSING: &str = include_str!("compatibility/missing.txt");

/// The groups of Redis's commands, in the order of the command reference.
const GROUPS: [&str; 16] = [
    "string",
    "bitmap",
    "generic",
    "list",
    "hash",
    "set",
    "sorted-set",
    "transactions",
    "pubsub",
    "connection",
    "server",
    "stream",
    "geo",
    "hyperloglog",
    "scripting",
    "cluster",
];

#[test]
fn the_document_is_what_the_command_table_and_the_suites_say() {
    let expected = document();
    if std::env::var_os("TIDEMARK_UPDATE").is_some() {
        std::fs::write(DOCUMENT, &expected).expect("docs/compatibility.md can be written");
    }
    let found = std::fs::read_to_string(DOCUMENT).unwrap_or_default();
    assert!(
        found == expected,
        "docs/compatibility.md is not what the command table and the suites say; run \
         TIDEMARK_UPDATE=1 cargo test -p tidemark --test scenarios compatibility::"
    );
}

#[test]
fn a_command_is_either_there_or_missing_for_a_reason() {
    let ours = our_commands();
    let reasons = reasons();
    let missing = Missing::read();
    for (name, _) in redis_commands() {
        match missing.reason(name) {
            Some(reason) => {
                assert!(!ours.contains(name), "{name} is implemented: compatibility/missing.txt lists it");
                assert!(reasons.contains_key(reason), "clients/suites/reasons.txt has no {reason}");
            }
            None => {
                assert!(
                    ours.contains(name),
                    "{name} is not implemented: compatibility/missing.txt must say why"
                );
            }
        }
    }
    let covers_any = |pattern: &str| redis_commands().any(|(name, _)| matches(pattern, name));
    for (_, pattern) in &missing.lines {
        assert!(covers_any(pattern), "{pattern} in compatibility/missing.txt means no command");
    }
}

#[test]
fn each_program_has_a_result() {
    let names = |list| programs(list).iter().map(|program| string(&program["name"]).to_owned()).collect();
    let (listed, with_results): (BTreeSet<String>, BTreeSet<String>) =
        (names(PROGRAMS), names(RESULTS_OF_PROGRAMS));
    assert_eq!(with_results, listed, "clients/programs/run --update NAME writes a missing result");
}

fn document() -> String {
    let mut text = String::from(
        "# Compatibility with Redis\n\nWhat of Redis 7.0.15 is implemented, and what the tests of Redis and its clients say \
         about it. This page is printed from the command table, Redis's own list of commands, and the results of \
         [the suites](../clients/suites/README.md) and of [programs](../clients/README.md#programs). Where a command answers differently, \
         [differences.md](differences.md) says how and why.\n",
    );
    push_commands(&mut text);
    push_common(&mut text);
    push_programs(&mut text);
    push_suites(&mut text);
    write!(text, "\n{DICE}").expect("a String");
    text
}

// ---- commands ----

fn push_commands(text: &mut String) {
    let ours = our_commands();
    let missing = Missing::read();
    let (total, there) =
        (redis_commands().count(), redis_commands().filter(|(name, _)| ours.contains(*name)).count());
    write!(
        text,
        "\n## Commands\n\nOf Redis's {total} commands and subcommands {there} are implemented. What they take and cost is in \
         [commands.md](commands.md).\n\n| group | implemented | missing |\n|---|---|---|\n"
    )
    .expect("a String");
    for group in GROUPS {
        let of_group = || redis_commands().filter(|(_, other)| *other == group).map(|(name, _)| name);
        let there = joined(of_group().filter(|name| ours.contains(*name)));
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for name in of_group() {
            if let Some(reason) = missing.reason(name) {
                by_reason.entry(reason).or_default().push(name);
            }
        }
        let cells =
            by_reason.iter().map(|(reason, names)| format!("{reason}: {}", joined(names.iter().copied())));
        let cells: Vec<String> = cells.collect();
        writeln!(text, "| {group} | {there} | {} |", cells.join("<br>")).expect("a String");
    }
    text.push_str("\nWhy a command is missing:\n\n");
    let used: BTreeSet<&str> = redis_commands().filter_map(|(name, _)| missing.reason(name)).collect();
    push_reasons(text, used.iter().map(|reason| (*reason, None)));
    let redis: BTreeSet<&str> = redis_commands().map(|(name, _)| name).collect();
    let own = joined(ours.iter().map(String::as_str).filter(|name| !redis.contains(name) && !is_debug(name)));
    writeln!(text, "\nTidemark's own, of Redis's sentinels, or younger than Redis 7.0: {own}.")
        .expect("a String");
}

/// Redis's list does not include the subcommands of `DEBUG`.
fn is_debug(name: &str) -> bool {
    name.starts_with("debug|")
}

fn push_common(text: &mut String) {
    let ours = our_commands();
    let missing = Missing::read();
    let names: Vec<&str> = lines(COMMON_COMMANDS).collect();
    let there = names.iter().filter(|name| ours.contains(**name)).count();
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in &names {
        if let Some(reason) = missing.reason(name) {
            by_reason.entry(reason).or_default().push(name);
        }
    }
    write!(
        text,
        "\n## What all clients use\n\nThe suites of redis-py, go-redis, ioredis, fakeredis and Redis itself have {} \
         commands in common. {there} of them are implemented; missing are:\n\n| why | commands |\n|---|---|\n",
        names.len()
    )
    .expect("a String");
    for (reason, names) in by_reason {
        writeln!(text, "| {reason} | {} |", joined(names.into_iter())).expect("a String");
    }
}

/// Returns all commands except `X.WATCH`, which nearly every read has.
fn our_commands() -> BTreeSet<String> {
    command_table()
        .all()
        .filter(|row| !is_watching(row))
        .flat_map(|row| std::iter::once(row).chain(row.subcommands))
        .map(|row| command_table().full_name(row))
        .collect()
}

fn redis_commands() -> impl Iterator<Item = (&'static str, &'static str)> {
    lines(REDIS_COMMANDS).map(|line| line.split_once(' ').expect("a command and its group"))
}

/// Missing commands, each with the reason.
struct Missing {
    /// Reason and pattern.
    lines: Vec<(&'static str, &'static str)>,
}

impl Missing {
    fn read() -> Self {
        let read = |line: &'static str| line.split_once(' ').expect("a reason and a command");
        Self { lines: lines(MISSING).map(read).map(|(reason, pattern)| (reason, pattern.trim())).collect() }
    }

    fn reason(&self, name: &str) -> Option<&'static str> {
        self.lines.iter().find(|(_, pattern)| matches(pattern, name)).map(|(reason, _)| *reason)
    }
}

/// Returns whether a pattern, which may end in `*`, matches a name.
fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix))
}

// ---- programs ----

fn push_programs(text: &mut String) {
    text.push_str(
        "\n## Programs\n\nLibraries that keep queues, locks, limits, caches and channels in Redis, unmodified. Each does a short \
         job that checks itself, beside a server of its own with durability `always`. In the middle of each job the \
         server is killed with SIGKILL and restarted, and the job goes on as the library promises. `clients/programs/run` runs \
         them, `clients/programs/run --redis` runs the same with Redis 7.0.15.\n\n\
         | program | version | language | job | Redis | Tidemark |\n|---|---|---|---|---|---|\n",
    );
    for program in &programs(RESULTS_OF_PROGRAMS) {
        let [title, version, language, job, redis, tidemark] =
            ["title", "version", "language", "job", "redis", "tidemark"].map(|name| string(&program[name]));
        let language = match language {
            "node" => "Node.js".to_owned(),
            other => other[..1].to_uppercase() + &other[1..],
        };
        let lacks = program["lacks"].as_str().map(|lacks| format!(", without {lacks}")).unwrap_or_default();
        writeln!(text, "| {title} | {version} | {language} | {job} | {redis} | {tidemark}{lacks} |")
            .expect("a String");
    }
}

fn programs(list: &str) -> Vec<Value> {
    serde_json::from_str(list).expect("a list of programs is JSON")
}

// ---- suites ----

fn push_suites(text: &mut String) {
    text.push_str(
        "\n## Test suites\n\nThe own tests of Redis and its clients, unmodified, run by `clients/suites/run`. A test that fails is \
         listed with its reason; a listed test that passes, and any other that fails, is an error of `./check`.\n",
    );
    for suite in suites() {
        push_suite(text, &suite);
    }
}

/// Returns the directories of the suites that have results.
fn suites() -> Vec<std::path::PathBuf> {
    let folders =
        std::fs::read_dir(SUITES).expect("clients/suites").map(|entry| entry.expect("an entry").path());
    let mut suites: Vec<_> = folders.filter(|folder| folder.join("results.json").exists()).collect();
    suites.sort();
    assert!(!suites.is_empty(), "no suite has results");
    suites
}

fn push_suite(text: &mut String, folder: &Path) {
    let read = |name: &str| {
        std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let results: Value = serde_json::from_str(&read("results.json")).expect("results.json is JSON");
    let (suite, version) = (string(&results["suite"]), string(&results["version"]));
    write!(text, "\n### {suite} {version}\n\n{}\n", read("about.md").trim()).expect("a String");
    let configurations = results["configurations"].as_array().expect("configurations");
    for configuration in configurations {
        push_configuration(text, configuration);
    }
    let counts: BTreeMap<&str, String> = counts_by_reason(configurations);
    text.push_str("\nExpected failures by reason (");
    let names: Vec<&str> =
        configurations.iter().map(|configuration| string(&configuration["name"])).collect();
    writeln!(text, "{}):\n", names.join(", ")).expect("a String");
    push_reasons(text, counts.iter().map(|(reason, counts)| (*reason, Some(counts.as_str()))));
    write!(
        text,
        "\nEach of them by name: [expected-failures.txt](../clients/suites/{suite}/expected-failures.txt).\n"
    )
    .expect("a String");
}

fn push_configuration(text: &mut String, configuration: &Value) {
    let files = configuration["files"].as_object().expect("files");
    let sum = |what: &str| files.values().map(|counts| number(&counts[what])).sum::<u64>();
    write!(
        text,
        "\n**{}**: {} passed, {} expected to fail, {} skipped by the suite itself.\n\n\
         | file | passed | expected to fail | skipped |\n|---|---|---|---|\n",
        string(&configuration["name"]),
        sum("passed"),
        sum("expected"),
        sum("skipped")
    )
    .expect("a String");
    for (file, counts) in files {
        let [passed, expected, skipped] = ["passed", "expected", "skipped"].map(|what| number(&counts[what]));
        writeln!(text, "| {file} | {passed} | {expected} | {skipped} |").expect("a String");
    }
}

/// Returns the number of expected failures by reason: one number for each configuration, or a
/// single one if all are equal.
fn counts_by_reason(configurations: &[Value]) -> BTreeMap<&str, String> {
    let reasons: BTreeSet<&str> = configurations
        .iter()
        .flat_map(|configuration| configuration["reasons"].as_object().expect("reasons").keys())
        .map(String::as_str)
        .collect();
    let counts = |reason: &str| {
        let of = |configuration: &Value| configuration["reasons"][reason].as_u64().unwrap_or(0).to_string();
        let mut counts: Vec<String> = configurations.iter().map(of).collect();
        counts.dedup();
        counts.join(", ")
    };
    reasons.into_iter().map(|reason| (reason, counts(reason))).collect()
}

/// Writes the table that explains reasons, with their numbers where known.
fn push_reasons<'a>(text: &mut String, reasons_used: impl Iterator<Item = (&'a str, Option<&'a str>)>) {
    let reasons = reasons();
    let mut is_first = true;
    for (reason, count) in reasons_used {
        if std::mem::take(&mut is_first) {
            let (title, line) = if count.is_some() { (" tests |", "---|") } else { ("", "") };
            writeln!(text, "| reason |{title} meaning |\n|---|{line}---|").expect("a String");
        }
        let count = count.map(|count| format!(" {count} |")).unwrap_or_default();
        let explanation =
            reasons.get(reason).unwrap_or_else(|| panic!("clients/suites/reasons.txt has no {reason}"));
        writeln!(text, "| {reason} |{count} {explanation} |").expect("a String");
    }
}

/// Returns the reasons for missing features: keys with their explanations.
fn reasons() -> BTreeMap<String, String> {
    let text =
        std::fs::read_to_string(Path::new(SUITES).join("reasons.txt")).expect("clients/suites/reasons.txt");
    let pair = |line: &str| {
        let (key, explanation) = line.split_once(": ").expect("a key and an explanation");
        (key.to_owned(), explanation.to_owned())
    };
    lines(&text).map(pair).collect()
}

// ---- text ----

/// Returns the lines of a list, without comments and empty lines.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Returns commands as a user types them, separated by commas.
fn joined<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> =
        names.map(|name| format!("`{}`", name.replace('|', " ").to_ascii_uppercase())).collect();
    names.join(", ")
}

fn string(value: &Value) -> &str {
    value.as_str().expect("a string")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}
