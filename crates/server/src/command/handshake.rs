//! How a client introduces itself, checks and ends its connection: `HELLO`, `AUTH`, `SELECT`,
//! `PING`, `ECHO`, `RESET`, `QUIT`.

use crate::command::client_command::check_name;
use crate::command::transaction;
use crate::context::Context;
use crate::events::invalidation;
use crate::login_guard::Login;
use crate::net::client::flags;
use crate::session::{Replies, Session};
use crate::subscription::lifecycle;
use crate::version::{REDIS_VERSION, TIME_SERIES_MODULE};
use sha2::{Digest, Sha256};
use tidemark_engine::command::parse;
use tidemark_engine::{CommandError, Protocol, Reply};

/// Name of the only user.
const DEFAULT_USER: &[u8] = b"default";
/// Wrong passwords after which a connection is closed: further guesses cost a new connection.
const FAILED_LOGINS_LIMIT: u32 = 10;

const WRONG_PASSWORD: CommandError =
    CommandError::text("WRONGPASS invalid username-password pair or user is disabled.");

const TOO_MANY_LOGINS: CommandError = CommandError::text(
    "WRONGPASS too many wrong passwords came from this address, so this one was not checked: wait a second and try again",
);

/// `PING [message]`
pub(crate) fn ping(session: &mut Session, args: &[&[u8]]) -> Result<(), CommandError> {
    let reply = &mut session.outbox.reply;
    match args {
        // A subscribed RESP2 client expects the reply in the form of a message.
        [_, ..] if session.subscriptions.any() && reply.protocol() == Protocol::Resp2 => {
            reply.array(2);
            reply.bulk(b"pong");
            reply.bulk(args.get(1).copied().unwrap_or_default());
        }
        [_] => reply.simple("PONG"),
        [_, message] => reply.bulk(message),
        _ => return Err(CommandError::Arity("ping".into())),
    }
    Ok(())
}

/// `ECHO message`
pub(crate) fn echo(session: &mut Session, args: &[&[u8]]) -> Result<(), CommandError> {
    session.outbox.reply.bulk(args[1]);
    Ok(())
}

/// `SELECT index`
pub(crate) fn select(session: &mut Session, args: &[&[u8]]) -> Result<(), CommandError> {
    session.db = parse::database(args[1])?;
    session.outbox.reply.ok();
    Ok(())
}

/// `AUTH [username] password`
pub(crate) fn auth(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    match args {
        [_, _] if cx.config.requirepass.is_empty() => {
            return Err(CommandError::text(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                 configuration is correct?",
            ));
        }
        [_, password] => log_in(session, DEFAULT_USER, password, cx)?,
        [_, user, password] => log_in(session, user, password, cx)?,
        _ => return Err(CommandError::Syntax),
    }
    session.outbox.reply.ok();
    Ok(())
}

fn log_in(session: &mut Session, user: &[u8], password: &[u8], cx: &Context<'_>) -> Result<(), CommandError> {
    let configured = &cx.config.requirepass;
    // Both are always computed, so that the time taken does not reveal which was wrong.
    let known_user = user == DEFAULT_USER;
    let right_password = configured.is_empty() || same_secret(password, configured.as_bytes());
    match cx.shared.logins.judge(&session.client.address, known_user && right_password) {
        Login::Right => {
            session.authenticated = true;
            session.failed_logins = 0;
            return Ok(());
        }
        Login::Wrong => {}
        Login::Refused => {
            session.closing = true;
            return Err(TOO_MANY_LOGINS);
        }
    }
    session.failed_logins += 1;
    if session.failed_logins >= FAILED_LOGINS_LIMIT {
        session.closing = true;
    }
    Err(WRONG_PASSWORD)
}

/// Compares all bytes of two digests: the time taken depends on the content of neither text.
pub fn same_secret(given: &[u8], expected: &[u8]) -> bool {
    let (given, expected) = (Sha256::digest(given), Sha256::digest(expected));
    given.iter().zip(expected.iter()).fold(0, |difference, (one, other)| difference | (one ^ other)) == 0
}

/// Options of `HELLO`.
#[derive(Default)]
struct Greeting<'a> {
    protocol: Option<Protocol>,
    login: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
}

/// `HELLO [protover [AUTH username password] [SETNAME clientname]]`
pub(crate) fn hello(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let greeting = read_greeting(args)?;
    if let Some((user, password)) = greeting.login {
        log_in(session, user, password, cx)?;
    }
    if !session.authenticated {
        return Err(CommandError::text(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
             <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the \
             same time",
        ));
    }
    let changes_protocol =
        greeting.protocol.is_some_and(|protocol| protocol != session.outbox.reply.protocol());
    if changes_protocol && !session.subscriptions.reads.is_empty() {
        return Err(CommandError::text(
            "ERR the watched reads are answered in the present protocol; end them with UNWATCH before changing it",
        ));
    }
    if let Some(name) = greeting.name {
        check_name(name, "Client names")?;
        session.client.names().name = name.to_vec();
    }
    if let Some(protocol) = greeting.protocol {
        session.outbox.reply.set_protocol(protocol);
        session.show_state();
    }
    describe_server(session, cx);
    Ok(())
}

fn read_greeting<'a>(args: &[&'a [u8]]) -> Result<Greeting<'a>, CommandError> {
    let mut greeting = Greeting::default();
    let mut rest = args.get(1..).unwrap_or_default();
    if let [version, options @ ..] = rest {
        greeting.protocol = Some(match parse::integer(version) {
            Ok(2) => Protocol::Resp2,
            Ok(3) => Protocol::Resp3,
            Ok(_) => return Err(CommandError::text("NOPROTO unsupported protocol version")),
            Err(_) => {
                return Err(CommandError::text("ERR Protocol version is not an integer or out of range"));
            }
        });
        rest = options;
    }
    loop {
        rest = match rest {
            [] => return Ok(greeting),
            [option, user, password, after @ ..] if parse::is(option, "AUTH") => {
                greeting.login = Some((user, password));
                after
            }
            [option, name, after @ ..] if parse::is(option, "SETNAME") => {
                greeting.name = Some(name);
                after
            }
            [option, ..] => {
                let option = String::from_utf8_lossy(option.get(..64).unwrap_or(option)).into_owned();
                return Err(CommandError::Text(
                    format!("ERR Syntax error in HELLO option '{option}'").into(),
                ));
            }
        };
    }
}

fn describe_server(session: &mut Session, cx: &Context<'_>) {
    let id = session.client.id;
    let reply = &mut session.outbox.reply;
    reply.map(7);
    reply.bulk(b"server");
    // Clients check this name and misread servers that report another.
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(REDIS_VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.integer(if reply.protocol() == Protocol::Resp3 { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(id as i64);
    reply.bulk(b"mode");
    reply.bulk(if cx.shared.group.is_some() { b"cluster" } else { b"standalone" });
    reply.bulk(b"role");
    reply.bulk(if cx.shared.leads() { b"master" } else { b"replica" });
    reply.bulk(b"modules");
    reply.array(1);
    describe_module(reply);
}

/// Writes which module of Redis is part of the server.
fn describe_module(reply: &mut Reply) {
    let (name, version) = TIME_SERIES_MODULE;
    reply.map(4);
    reply.bulk(b"name");
    reply.bulk(name.as_bytes());
    reply.bulk(b"ver");
    reply.integer(version);
    reply.bulk(b"path");
    reply.bulk(b"");
    reply.bulk(b"args");
    reply.array(0);
}

/// `QUIT`
pub(crate) fn quit(session: &mut Session) -> Result<(), CommandError> {
    session.outbox.reply.ok();
    session.closing = true;
    Ok(())
}

/// `RESET`: returns the connection to its initial state.
pub(crate) fn reset(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    session.transaction = None;
    transaction::forget_watches(session, cx);
    session.unsubscribe_all(cx.shared);
    lifecycle::end_all(session, cx);
    session.subscriptions.following = None;
    invalidation::end(session, cx);
    session.db = 0;
    session.replies = Replies::On;
    session.reads_followers = false;
    session.client.names().name.clear();
    session.client.flag(flags::NO_TOUCH | flags::NO_EVICT, false);
    if session.authenticated && !cx.config.requirepass.is_empty() {
        session.authenticated = false;
        session.stranger_since = cx.shared.clock.now();
    }
    session.outbox.reply.set_protocol(Protocol::Resp2);
    session.outbox.reply.simple("RESET");
    session.show_state();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_the_same_only_if_they_are() {
        assert!(same_secret(b"secret", b"secret"));
        assert!(!same_secret(b"secre", b"secret"));
        assert!(!same_secret(b"", b"secret"));
    }
}
