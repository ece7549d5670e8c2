//! `COMMAND` and its subcommands: the command table, as clients read it.

use crate::command::command_categories::categories;
use crate::command::rows::{ConnectionCommand, command_table, connection_command_of};
use crate::command::{command_syntax, watch_command};
use crate::session::Session;
use tidemark_engine::command::{self, ScriptAction, flags, parse};
use tidemark_engine::{Command, CommandError, KeySpec, Reply, Run};

/// `COMMAND`, alone or with one of its subcommands.
pub(crate) fn run(
    session: &mut Session,
    which: ConnectionCommand,
    args: &[&[u8]],
) -> Result<(), CommandError> {
    use ConnectionCommand as C;
    match which {
        C::Command => all(session),
        C::CommandCount => count(session),
        C::CommandDocs => docs(session, args),
        C::CommandInfo => info(session, args),
        C::CommandList => list(session, args),
        C::CommandGetKeys => get_keys(session, args),
        C::CommandGetKeysAndFlags => get_keys_and_flags(session, args),
        _ => Err(CommandError::Syntax),
    }
}

fn all(session: &mut Session) -> Result<(), CommandError> {
    session.outbox.reply.array(command_table().all().count());
    command_table().all().for_each(|row| describe(&mut session.outbox.reply, row));
    Ok(())
}

/// `COMMAND COUNT`
fn count(session: &mut Session) -> Result<(), CommandError> {
    session.outbox.reply.count(command_table().all().count());
    Ok(())
}

/// `COMMAND INFO [name ...]`
fn info(session: &mut Session, args: &[&[u8]]) -> Result<(), CommandError> {
    let names = args.get(2..).unwrap_or_default();
    if names.is_empty() {
        return all(session);
    }
    session.outbox.reply.array(names.len());
    for name in names {
        match by_full_name(name) {
            Some(row) => describe(&mut session.outbox.reply, row),
            None => session.outbox.reply.null_array(),
        }
    }
    Ok(())
}

/// `COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern]`: lists commands and
/// subcommands.
fn list(session: &mut Session, args: &[&[u8]]) -> Result<(), CommandError> {
    let matches: Box<dyn Fn(&Command) -> bool> = match args.get(2..).unwrap_or_default() {
        [] => Box::new(|_| true),
        [filter, kind, value] if parse::is(filter, "FILTERBY") => {
            let value = value.to_ascii_lowercase();
            if parse::is(kind, "MODULE") {
                Box::new(|_| false)
            } else if parse::is(kind, "ACLCAT") {
                Box::new(move |row| {
                    categories(row)
                        .iter()
                        .any(|category| category.as_bytes().strip_prefix(b"@") == Some(&value))
                })
            } else if parse::is(kind, "PATTERN") {
                Box::new(move |row| parse::glob(&value, command_table().full_name(row).as_bytes()))
            } else {
                return Err(CommandError::Syntax);
            }
        }
        _ => return Err(CommandError::Syntax),
    };
    let rows = command_table().all().flat_map(|row| std::iter::once(row).chain(row.subcommands));
    let names: Vec<String> =
        rows.filter(|row| matches(row)).map(|row| command_table().full_name(row)).collect();
    session.outbox.reply.array(names.len());
    names.iter().for_each(|name| session.outbox.reply.bulk(name.as_bytes()));
    Ok(())
}

/// `COMMAND DOCS [name ...]`
fn docs(session: &mut Session, args: &[&[u8]]) -> Result<(), CommandError> {
    let names = args.get(2..).unwrap_or_default();
    let rows: Vec<&Command> = if names.is_empty() {
        command_table().all().collect()
    } else {
        names.iter().filter_map(|name| by_full_name(name)).collect()
    };
    session.outbox.reply.map(rows.len());
    for row in rows {
        session.outbox.reply.bulk(command_table().full_name(row).as_bytes());
        document(&mut session.outbox.reply, row);
    }
    Ok(())
}

/// `COMMAND GETKEYS command [arg ...]`
fn get_keys(session: &mut Session, args: &[&[u8]]) -> Result<(), CommandError> {
    let (_, keys) = keys_of(args)?;
    session.outbox.reply.array(keys.len());
    keys.iter().for_each(|key| session.outbox.reply.bulk(key));
    Ok(())
}

/// `COMMAND GETKEYSANDFLAGS command [arg ...]`
fn get_keys_and_flags(session: &mut Session, args: &[&[u8]]) -> Result<(), CommandError> {
    let (row, keys) = keys_of(args)?;
    let uses = command::key_uses_of(row, args.get(2..).unwrap_or_default());
    // The last use applies to all further keys.
    let uses = uses.iter().chain(uses.last().into_iter().cycle());
    session.outbox.reply.array(keys.len());
    for (key, key_use) in keys.iter().zip(uses) {
        session.outbox.reply.array(2);
        session.outbox.reply.bulk(key);
        write_words(&mut session.outbox.reply, key_use.split(' '));
    }
    Ok(())
}

fn keys_of<'a>(args: &[&'a [u8]]) -> Result<(&'static Command, Vec<&'a [u8]>), CommandError> {
    let inner = args.get(2..).unwrap_or_default();
    let name = inner.first().copied().unwrap_or_default();
    let found = command_table().find(name).ok_or(CommandError::text("ERR Invalid command specified"))?;
    let is_watching = connection_command_of(found) == Some(ConnectionCommand::WatchRead);
    // The arguments after the bar of a watched read are its options.
    let inner = if is_watching { watch_command::split(inner).0 } else { inner };
    let row = command_table()
        .resolve(inner)
        .map_err(|_| CommandError::text("ERR Invalid number of arguments specified for command"))?;
    if matches!(row.keys, KeySpec::None | KeySpec::All | KeySpec::Each) {
        return Err(CommandError::text("ERR The command has no key arguments"));
    }
    let keys: Vec<&[u8]> = row.keys.keys(inner).collect();
    // A script needs no keys.
    if keys.is_empty() && !matches!(row.run, Run::Script(_)) {
        return Err(CommandError::text("ERR Invalid arguments specified for command"));
    }
    Ok((row, keys))
}

/// Returns the row of `name` or of `container|subcommand`.
fn by_full_name(name: &[u8]) -> Option<&'static Command> {
    let mut parts = name.splitn(2, |byte| *byte == b'|');
    let row = command_table().find(parts.next()?)?;
    match parts.next() {
        None => Some(row),
        Some(sub) => row.subcommands.iter().find(|other| sub.eq_ignore_ascii_case(other.name.as_bytes())),
    }
}

/// Writes the ten fields of `COMMAND INFO`.
fn describe(reply: &mut Reply, row: &Command) {
    let (first, last, step) = positions(row.keys);
    reply.array(10);
    reply.bulk(command_table().full_name(row).as_bytes());
    reply.integer(i64::from(row.arity));
    write_words(reply, flags::NAMES.iter().filter(|(flag, _)| is_shown(row, *flag)).map(|(_, name)| *name));
    reply.integer(first);
    reply.integer(last);
    reply.integer(step);
    write_words(reply, categories(row));
    reply.array(row.tips.len());
    row.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    write_key_specs(reply, row);
    reply.array(row.subcommands.len());
    row.subcommands.iter().for_each(|sub| describe(reply, sub));
}

/// Whether a flag of a command is shown. Redis does not count a script as a change.
fn is_shown(row: &Command, flag: u32) -> bool {
    let is_script =
        matches!(row.run, Run::Script(ScriptAction::Text | ScriptAction::Id | ScriptAction::Function));
    row.is(flag) && !(flag == flags::WRITE && is_script)
}

fn write_words<'a>(reply: &mut Reply, words: impl IntoIterator<Item = &'a str>) {
    let words: Vec<&str> = words.into_iter().collect();
    reply.set(words.len());
    words.iter().for_each(|word| reply.simple(word));
}

/// Returns first key, last key and step, zeros if positions alone do not give the keys.
fn positions(keys: KeySpec) -> (i64, i64, i64) {
    match keys {
        KeySpec::Range { first, last, step } => (i64::from(first), i64::from(last), i64::from(step)),
        KeySpec::OneAndCounted { .. } | KeySpec::OneAndAny | KeySpec::OneAndStored { .. } => (1, 1, 1),
        KeySpec::TwoAndBesides => (1, 2, 1),
        KeySpec::Migrated => (3, 3, 1),
        KeySpec::None | KeySpec::All | KeySpec::Each | KeySpec::Counted { .. } | KeySpec::Streams => {
            (0, 0, 0)
        }
    }
}

/// Writes the key specifications, one for each use of keys.
fn write_key_specs(reply: &mut Reply, row: &Command) {
    let uses = row.key_uses;
    reply.array(uses.len());
    match (row.keys, uses) {
        (KeySpec::Range { first, last, step }, [only]) => {
            write_range(reply, only, first, if last < 0 { last } else { last - first }, step);
        }
        (KeySpec::Range { first, last, step }, [one, others]) => {
            let next = first + step;
            write_range(reply, one, first, 0, step);
            write_range(reply, others, next, if last < 0 { last } else { last - next }, step);
        }
        (KeySpec::Counted { at }, [only]) => write_counted(reply, only, at),
        (KeySpec::OneAndCounted { at }, [one, others]) => {
            write_range(reply, one, 1, 0, 1);
            write_counted(reply, others, at);
        }
        (KeySpec::OneAndAny, [one, others @ ..]) => {
            write_range(reply, one, 1, 0, 1);
            others.iter().for_each(|key_use| write_unknown(reply, key_use));
        }
        (KeySpec::Streams, [only]) => write_streams(reply, only),
        (KeySpec::OneAndStored { from }, [one, stored, stored_distances]) => {
            write_range(reply, one, 1, 0, 1);
            write_keyword(reply, stored, "STORE", i64::from(from), 0);
            write_keyword(reply, stored_distances, "STOREDIST", i64::from(from), 0);
        }
        (KeySpec::Migrated, [one, others]) => {
            write_range(reply, one, 3, 0, 1);
            write_keyword(reply, others, "KEYS", -2, -1);
        }
        (KeySpec::TwoAndBesides, [one, two, others]) => {
            write_range(reply, one, 1, 0, 1);
            write_range(reply, two, 2, 0, 1);
            write_unknown(reply, others);
        }
        _ => debug_assert!(uses.is_empty(), "{row:?} has keys of another kind than uses"),
    }
}

fn write_range(reply: &mut Reply, key_use: &str, first: i16, last: i16, step: i16) {
    write_begin(reply, key_use, i64::from(first));
    write_find(reply, "range", &[("lastkey", i64::from(last)), ("keystep", i64::from(step)), ("limit", 0)]);
}

fn write_counted(reply: &mut Reply, key_use: &str, at: u8) {
    write_begin(reply, key_use, i64::from(at));
    write_find(reply, "keynum", &[("keynumidx", 0), ("firstkey", 1), ("keystep", 1)]);
}

/// Writes the specification of `XREAD`: the keys are half of the arguments behind a keyword.
fn write_streams(reply: &mut Reply, key_use: &str) {
    write_begin_at_keyword(reply, key_use, "STREAMS", 1);
    write_find(reply, "range", &[("lastkey", -1), ("keystep", 1), ("limit", 2)]);
}

/// Writes the specification of the keys behind a keyword, up to the one at `last` from the first or, if negative,
/// from the end.
fn write_keyword(reply: &mut Reply, key_use: &str, keyword: &str, from: i64, last: i64) {
    write_begin_at_keyword(reply, key_use, keyword, from);
    write_find(reply, "range", &[("lastkey", last), ("keystep", 1), ("limit", 0)]);
}

/// Writes a specification for keys that have no fixed positions.
fn write_unknown(reply: &mut Reply, key_use: &str) {
    write_begin_of(reply, key_use, "unknown", 0);
    write_find(reply, "unknown", &[]);
}

fn write_begin(reply: &mut Reply, key_use: &str, index: i64) {
    write_begin_of(reply, key_use, "index", 1);
    reply.bulk(b"index");
    reply.integer(index);
}

/// Begins a specification that is searched for behind a keyword, from the argument `from` on.
fn write_begin_at_keyword(reply: &mut Reply, key_use: &str, keyword: &str, from: i64) {
    write_begin_of(reply, key_use, "keyword", 2);
    reply.bulk(b"keyword");
    reply.bulk(keyword.as_bytes());
    reply.bulk(b"startfrom");
    reply.integer(from);
}

/// Begins a specification up to the fields of where its search begins.
fn write_begin_of(reply: &mut Reply, key_use: &str, kind: &str, fields: usize) {
    reply.map(3);
    reply.bulk(b"flags");
    write_words(reply, key_use.split(' '));
    reply.bulk(b"begin_search");
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(fields);
}

fn write_find(reply: &mut Reply, kind: &str, spec: &[(&str, i64)]) {
    reply.bulk(b"find_keys");
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(spec.len());
    for (name, value) in spec {
        reply.bulk(name.as_bytes());
        reply.integer(*value);
    }
}

fn document(reply: &mut Reply, row: &Command) {
    let arguments = command::syntax::parse(row.syntax);
    reply.map(4 + usize::from(!arguments.is_empty()) + usize::from(!row.subcommands.is_empty()));
    for (name, value) in [
        ("summary", row.summary.trim_end_matches('.')),
        ("since", row.since),
        ("group", row.group.name()),
        ("complexity", row.complexity),
    ] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    if !arguments.is_empty() {
        reply.bulk(b"arguments");
        command_syntax::write(reply, &arguments);
    }
    if !row.subcommands.is_empty() {
        reply.bulk(b"subcommands");
        reply.map(row.subcommands.len());
        for sub in row.subcommands {
            reply.bulk(command_table().full_name(sub).as_bytes());
            document(reply, sub);
        }
    }
}
