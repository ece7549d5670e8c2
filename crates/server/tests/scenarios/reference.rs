//! Checks that the book's command reference equals the printed command table. `TIDEMARK_UPDATE=1
//! cargo test -p tidemark-server --test scenarios reference` writes the reference.

use std::fmt::Write;
use tidemark_engine::command::{Command, Group, syntax};
use tidemark_server::{command_table, is_watching, read_of};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");

const GROUPS: [(Group, &str); 21] = [
    (Group::String, "Strings"),
    (Group::Bitmap, "Bits"),
    (Group::HyperLogLog, "HyperLogLogs"),
    (Group::Generic, "Keys"),
    (Group::List, "Lists"),
    (Group::Hash, "Hashes"),
    (Group::Set, "Sets"),
    (Group::SortedSet, "Sorted sets"),
    (Group::Geo, "Points on the earth"),
    (Group::Stream, "Streams"),
    (Group::Counter, "Counters"),
    (Group::Limit, "Limiters"),
    (Group::Pool, "Pools"),
    (Group::Series, "Time series"),
    (Group::Lens, "Lenses"),
    (Group::Transactions, "Transactions"),
    (Group::PubSub, "Publish and subscribe"),
    (Group::Connection, "Connection"),
    (Group::Cluster, "Groups, as a Redis Cluster"),
    (Group::Scripting, "Scripts and functions"),
    (Group::Server, "Server"),
];

fn reference() -> String {
    let mut text = String::from(
        "# Commands\n\nEvery command of Tidemark, printed from its command table; `COMMAND DOCS` returns the same.\n\
         Names and replies are those of Redis 7. *Since* is the version of Redis that introduced a command, or \
         Tidemark's own.\n`DURABLE` before a command that changes something delays its reply until the change is on \
         disk.\n\nA read whose name ends with `.WATCH` answers, and answers again whenever its answer changes: \
         `GET.WATCH key`,\n`ZRANGE.WATCH board 0 9`. These reads can be watched: ",
    );
    let watched: Vec<String> = command_table()
        .all()
        .filter(|row| is_watching(row))
        .map(|row| format!("`{}`", read_of(row).to_ascii_uppercase()))
        .collect();
    text.push_str(&watched.join(", "));
    text.push_str(".\n");
    for (group, title) in GROUPS {
        let rows = command_table().all().filter(|row| row.group == group && !is_watching(row));
        write!(text, "\n## {title}\n\n| command | what it does | cost | since |\n|---|---|---|---|\n")
            .expect("a String");
        for row in rows {
            if row.subcommands.is_empty() {
                push_row(&mut text, row.name, row);
            }
            for subcommand in row.subcommands {
                push_row(&mut text, &format!("{} {}", row.name, subcommand.name), subcommand);
            }
        }
    }
    text
}

fn push_row(text: &mut String, name: &str, row: &Command) {
    let usage = format!("{} {}", name.to_ascii_uppercase(), row.syntax).trim_end().replace('|', "\\|");
    writeln!(text, "| `{usage}` | {} | {} | {} |", row.summary, row.complexity, row.since).expect("a String");
}

#[test]
fn the_reference_in_the_book_is_the_command_table() {
    let expected = reference();
    if std::env::var_os("TIDEMARK_UPDATE").is_some() {
        std::fs::write(PATH, &expected).expect("docs/commands.md can be written");
    }
    let found = std::fs::read_to_string(PATH).unwrap_or_default();
    assert!(
        found == expected,
        "docs/commands.md is not what the command table says; run \
         TIDEMARK_UPDATE=1 cargo test -p tidemark-server --test scenarios reference"
    );
}

#[test]
fn every_row_is_documented_and_has_a_syntax_that_can_be_read() {
    for row in command_table().all().flat_map(|row| std::iter::once(row).chain(row.subcommands)) {
        assert!(!row.since.is_empty() && !row.complexity.is_empty(), "{}", row.name);
        assert!(row.summary.ends_with('.'), "{}: {}", row.name, row.summary);
        assert_eq!(row.name, row.name.to_ascii_lowercase());
        let open = row.syntax.matches('[').count();
        assert_eq!(open, row.syntax.matches(']').count(), "{}: {}", row.name, row.syntax);
        assert_eq!(syntax::parse(row.syntax).is_empty(), row.syntax.is_empty(), "{}", row.name);
    }
}
