//! `CLIENT` and its subcommands.

use crate::context::Context;
use crate::net::client::{Client, flags};
use crate::net::inbox::{Message, Unblock};
use crate::session::{Replies, Session};
use crate::wait;
use std::borrow::Cow;
use std::sync::Arc;
use tidemark_engine::CommandError;
use tidemark_engine::command::parse;

/// Longest name that a client may give itself, in bytes.
const NAME_BYTES: usize = 1024;

/// `CLIENT ID`
pub(crate) fn id(session: &mut Session) -> Result<(), CommandError> {
    session.outbox.reply.integer(session.client.id as i64);
    Ok(())
}

/// `CLIENT GETNAME`
pub(crate) fn get_name(session: &mut Session) -> Result<(), CommandError> {
    let name = session.client.names().name.clone();
    session.outbox.reply.bulk_or_null((!name.is_empty()).then_some(&*name));
    Ok(())
}

/// `CLIENT SETNAME connection-name`
pub(crate) fn set_name(session: &mut Session, args: &[&[u8]]) -> Result<(), CommandError> {
    let name = args.get(2).copied().unwrap_or_default();
    check_name(name, "Client names")?;
    session.client.names().name = name.to_vec();
    session.outbox.reply.ok();
    Ok(())
}

/// `CLIENT SETINFO LIB-NAME | LIB-VER value`
pub(crate) fn set_info(session: &mut Session, args: &[&[u8]]) -> Result<(), CommandError> {
    let [_, _, attribute, value] = args else { return Err(CommandError::Syntax) };
    if parse::is(attribute, "LIB-NAME") {
        check_name(value, "lib-name")?;
        session.client.names().library = value.to_vec();
    } else if parse::is(attribute, "LIB-VER") {
        check_name(value, "lib-ver")?;
        session.client.names().library_version = value.to_vec();
    } else {
        return Err(CommandError::Text(format!("ERR Unrecognized option '{}'", shown(attribute)).into()));
    }
    session.outbox.reply.ok();
    Ok(())
}

/// Checks a name: spaces and control characters would break the lines of `CLIENT LIST`.
pub(crate) fn check_name(name: &[u8], what: &str) -> Result<(), CommandError> {
    if name.len() > NAME_BYTES {
        return Err(CommandError::Text(
            format!("ERR {what} cannot be longer than {NAME_BYTES} bytes.").into(),
        ));
    }
    if name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Ok(());
    }
    Err(CommandError::Text(
        format!("ERR {what} cannot contain spaces, newlines or special characters.").into(),
    ))
}

/// `CLIENT INFO`
pub(crate) fn info(session: &mut Session, args: &[&[u8]]) -> Result<(), CommandError> {
    session.show(0);
    let mut line = session.client.describe(Some(args));
    line.push(b'\n');
    session.outbox.reply.verbatim(&String::from_utf8_lossy(&line));
    Ok(())
}

/// `CLIENT LIST [TYPE type] [ID id [id ...]]`
pub(crate) fn list(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    session.show(0);
    let clients = match args.get(2..).unwrap_or_default() {
        [] => cx.shared.clients.all(),
        [option, class] if parse::is(option, "TYPE") => {
            let class = class_of(class)?;
            let mut clients = cx.shared.clients.all();
            clients.retain(|client| client.class() == class);
            clients
        }
        [option, ids @ ..] if parse::is(option, "ID") && !ids.is_empty() => {
            let ids: Result<Vec<i64>, _> = ids.iter().map(|id| parse::integer(id)).collect();
            let ids = ids.map_err(|_| CommandError::text("ERR Invalid client ID"))?;
            let ids = ids.into_iter().filter_map(|id| u64::try_from(id).ok());
            ids.filter_map(|id| cx.shared.clients.get(id)).collect()
        }
        _ => return Err(CommandError::Syntax),
    };
    let mut lines = Vec::new();
    for client in clients {
        let running = (client.id == session.client.id).then_some(args);
        lines.extend_from_slice(&client.describe(running));
        lines.push(b'\n');
    }
    session.outbox.reply.verbatim(&String::from_utf8_lossy(&lines));
    Ok(())
}

fn class_of(name: &[u8]) -> Result<&'static str, CommandError> {
    let classes = [
        ("normal", "normal"),
        ("pubsub", "pubsub"),
        ("master", "master"),
        ("replica", "replica"),
        ("slave", "replica"),
    ];
    classes
        .iter()
        .find(|(spelling, _)| name.eq_ignore_ascii_case(spelling.as_bytes()))
        .map(|(_, class)| *class)
        .ok_or_else(|| CommandError::Text(format!("ERR Unknown client type '{}'", shown(name)).into()))
}

/// Conditions of `CLIENT KILL`; a client must meet all of them.
#[derive(Default)]
struct Victims<'a> {
    id: Option<u64>,
    class: Option<&'static str>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    older_than_s: Option<u64>,
    spare_self: bool,
}

impl<'a> Victims<'a> {
    fn parse(filters: &[&'a [u8]]) -> Result<Victims<'a>, CommandError> {
        let mut victims = Victims { spare_self: true, ..Victims::default() };
        if !filters.len().is_multiple_of(2) {
            return Err(CommandError::Syntax);
        }
        for pair in filters.chunks_exact(2) {
            let [filter, value] = *pair else { return Err(CommandError::Syntax) };
            victims.add(filter, value)?;
        }
        Ok(victims)
    }

    fn add(&mut self, filter: &[u8], value: &'a [u8]) -> Result<(), CommandError> {
        if parse::is(filter, "ID") {
            let id = parse::integer(value).ok().and_then(|id| u64::try_from(id).ok()).filter(|id| *id > 0);
            self.id = Some(id.ok_or(CommandError::text("ERR client-id should be greater than 0"))?);
        } else if parse::is(filter, "TYPE") {
            self.class = Some(class_of(value)?);
        } else if parse::is(filter, "ADDR") {
            self.address = Some(value);
        } else if parse::is(filter, "LADDR") {
            self.local_address = Some(value);
        } else if parse::is(filter, "USER") {
            if value != b"default" {
                return Err(CommandError::Text(format!("ERR No such user '{}'", shown(value)).into()));
            }
        } else if parse::is(filter, "MAXAGE") {
            let not_an_integer = |_| CommandError::text("ERR maxage is not an integer or out of range");
            let age = parse::integer(value).map_err(not_an_integer)?;
            let age = u64::try_from(age).ok().filter(|age| *age > 0);
            self.older_than_s = Some(age.ok_or(CommandError::text("ERR maxage should be greater than 0"))?);
        } else if parse::is(filter, "SKIPME") {
            self.spare_self = match value {
                yes if parse::is(yes, "YES") => true,
                no if parse::is(no, "NO") => false,
                _ => return Err(CommandError::Syntax),
            };
        } else {
            return Err(CommandError::Syntax);
        }
        Ok(())
    }

    fn include(&self, client: &Client, own_id: u64) -> bool {
        self.id.is_none_or(|id| client.id == id)
            && self.class.is_none_or(|class| client.class() == class)
            && self.address.is_none_or(|address| client.address.as_bytes() == address)
            && self.local_address.is_none_or(|address| client.local_address.as_bytes() == address)
            && self.older_than_s.is_none_or(|age| client.age().as_secs() >= age)
            && !(self.spare_self && client.id == own_id)
    }
}

/// `CLIENT KILL address` and `CLIENT KILL filter value [filter value ...]`
pub(crate) fn kill(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let (victims, by_address) = match args.get(2..).unwrap_or_default() {
        [address] => (Victims { address: Some(address), ..Victims::default() }, true),
        filters => (Victims::parse(filters)?, false),
    };
    let clients = cx.shared.clients.all();
    let chosen: Vec<&Arc<Client>> =
        clients.iter().filter(|client| victims.include(client, session.client.id)).collect();
    if by_address && chosen.is_empty() {
        return Err(CommandError::text("ERR No such client"));
    }
    for client in &chosen {
        if client.id == session.client.id {
            // The client still receives the reply.
            session.closing = true;
        } else {
            client.kill();
            cx.shared.inboxes[client.worker].send(Message::Kill(client.connection_id));
        }
    }
    if by_address {
        session.outbox.reply.ok();
    } else {
        session.outbox.reply.count(chosen.len());
    }
    Ok(())
}

/// `CLIENT REPLY ON | OFF | SKIP`
pub(crate) fn reply(session: &mut Session, args: &[&[u8]]) -> Result<(), CommandError> {
    let mode = args.get(2).copied().unwrap_or_default();
    if parse::is(mode, "ON") {
        session.replies = Replies::On;
        session.outbox.reply.ok();
    } else if parse::is(mode, "OFF") {
        session.replies = Replies::Off;
    } else if parse::is(mode, "SKIP") {
        if session.replies != Replies::Off {
            session.replies = Replies::SkipThisAndNext;
        }
    } else {
        return Err(CommandError::Syntax);
    }
    Ok(())
}

/// `CLIENT NO-EVICT ON | OFF`
pub(crate) fn no_evict(session: &mut Session, args: &[&[u8]]) -> Result<(), CommandError> {
    switch(session, args, flags::NO_EVICT)
}

/// `CLIENT NO-TOUCH ON | OFF`
pub(crate) fn no_touch(session: &mut Session, args: &[&[u8]]) -> Result<(), CommandError> {
    switch(session, args, flags::NO_TOUCH)
}

fn switch(session: &mut Session, args: &[&[u8]], flag: u64) -> Result<(), CommandError> {
    let value = args.get(2).copied().unwrap_or_default();
    if !parse::is(value, "ON") && !parse::is(value, "OFF") {
        return Err(CommandError::Syntax);
    }
    session.client.flag(flag, parse::is(value, "ON"));
    session.outbox.reply.ok();
    Ok(())
}

/// `CLIENT UNBLOCK client-id [TIMEOUT | ERROR]`
pub(crate) fn unblock(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let how = match args.get(3..).unwrap_or_default() {
        [] => Unblock::Timeout,
        [how] if parse::is(how, "TIMEOUT") => Unblock::Timeout,
        [how] if parse::is(how, "ERROR") => Unblock::Error,
        _ => return Err(CommandError::text("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
    };
    let id = parse::integer(args.get(2).copied().unwrap_or_default())?;
    let client = u64::try_from(id).ok().and_then(|id| cx.shared.clients.get(id));
    let ended = client.is_some_and(|client| end_wait(&client, how, cx));
    session.outbox.reply.integer(i64::from(ended));
    Ok(())
}

/// Ends a client's wait and returns whether it waited. Later values are not for this wait.
fn end_wait(client: &Client, how: Unblock, cx: &Context<'_>) -> bool {
    let waiter = client.waiter();
    let ended = match &waiter {
        Some(waiter) => cx.shared.engine.stop_waiting(waiter),
        None => client.has(flags::BLOCKED),
    };
    if ended {
        cx.shared.inboxes[client.worker].send(Message::Unblock(client.connection_id, how, waiter));
    }
    ended
}

/// `CLIENT PAUSE timeout [WRITE | ALL]`
pub(crate) fn pause(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let changes_only = match args.get(3..).unwrap_or_default() {
        [] => false,
        [mode] if parse::is(mode, "ALL") => false,
        [mode] if parse::is(mode, "WRITE") => true,
        [_] => return Err(CommandError::text("ERR CLIENT PAUSE mode must be WRITE or ALL")),
        _ => return Err(CommandError::Arity("client|pause".into())),
    };
    let time = wait::timeout_ms(args.get(2).copied().unwrap_or_default())?.unwrap_or_default();
    let until_ms = (cx.now_us / 1000).saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    cx.shared.begin_pause(until_ms, changes_only);
    session.outbox.reply.ok();
    Ok(())
}

/// `CLIENT UNPAUSE`
pub(crate) fn unpause(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    cx.shared.end_pause();
    session.outbox.reply.ok();
    Ok(())
}

/// Returns the beginning of an argument, for an error message.
fn shown(arg: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(arg.get(..128).unwrap_or(arg))
}
