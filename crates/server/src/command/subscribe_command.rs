//! `SUBSCRIBE`, `PUBLISH`, `PUBSUB` and related commands.

use crate::command::rows::{ConnectionCommand, connection_command_of};
use crate::context::Context;
use crate::durability::hold::COMMIT_LOST;
use crate::durability::log_state::CommitLost;
use crate::events::publication::Kind;
use crate::events::publishing::send;
use crate::session::{NAMES_LIMIT, Session};
use crate::subscription::channel_publisher;
use tidemark_engine::{Command, CommandError};

/// `SUBSCRIBE`, `PSUBSCRIBE`, `SSUBSCRIBE`: one confirmation for each name.
pub(crate) fn subscribe(
    session: &mut Session,
    kind: Kind,
    args: &[&[u8]],
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let present = session.subscriptions.of(kind).len();
    if present + args.len() > NAMES_LIMIT {
        return Err(CommandError::text("ERR too many subscriptions"));
    }
    let subscriber = session.address();
    for name in args.iter().skip(1) {
        if session.subscriptions.of_mut(kind).insert(Box::from(*name)) {
            cx.shared.pubsub.subscribe(kind, name, subscriber);
        }
        confirm(session, kind, kind.subscribed(), Some(name));
    }
    session.show_state();
    Ok(())
}

/// `UNSUBSCRIBE`, `PUNSUBSCRIBE`, `SUNSUBSCRIBE`: one confirmation for each name; without names,
/// all subscriptions end.
pub(crate) fn unsubscribe(
    session: &mut Session,
    kind: Kind,
    args: &[&[u8]],
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let subscriber = session.address();
    let named = args.get(1..).unwrap_or_default();
    let names: Vec<Box<[u8]>> = if named.is_empty() {
        session.subscriptions.of(kind).iter().cloned().collect()
    } else {
        named.iter().map(|name| Box::from(*name)).collect()
    };
    for name in &names {
        if session.subscriptions.of_mut(kind).remove(name) {
            channel_publisher::unsubscribe(cx.shared, kind, name, subscriber);
        }
        confirm(session, kind, kind.unsubscribed(), Some(name));
    }
    if names.is_empty() {
        confirm(session, kind, kind.unsubscribed(), None);
    }
    session.show_state();
    Ok(())
}

fn confirm(session: &mut Session, kind: Kind, what: &str, name: Option<&[u8]>) {
    let count = session.subscriptions.count(kind);
    let reply = &mut session.outbox.reply;
    reply.push(3);
    reply.bulk(what.as_bytes());
    reply.bulk_or_null(name);
    reply.count(count);
}

/// `PUBLISH channel message`, `SPUBLISH shardchannel message`. Subscribers of all members of a group
/// get the message; those of this one are counted.
pub(crate) fn publish(
    session: &mut Session,
    kind: Kind,
    args: &[&[u8]],
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let [_, channel, message] = args else { return Err(CommandError::Syntax) };
    let sent =
        send(cx.shared, kind, channel, message).map_err(|CommitLost| CommandError::text(COMMIT_LOST))?;
    session.outbox.reply.count(sent);
    Ok(())
}

/// `PUBSUB CHANNELS [pattern]`, `PUBSUB SHARDCHANNELS [pattern]`
pub(crate) fn channels(
    session: &mut Session,
    kind: Kind,
    args: &[&[u8]],
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    if args.len() > 3 {
        return Err(CommandError::Syntax);
    }
    let names = cx.shared.pubsub.names(kind, args.get(2).copied());
    session.outbox.reply.array(names.len());
    for name in names {
        session.outbox.reply.bulk(&name);
    }
    Ok(())
}

/// `PUBSUB NUMSUB [channel ...]`, `PUBSUB SHARDNUMSUB [channel ...]`
pub(crate) fn numsub(
    session: &mut Session,
    kind: Kind,
    args: &[&[u8]],
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let names = args.get(2..).unwrap_or_default();
    session.outbox.reply.array(names.len() * 2);
    for name in names {
        session.outbox.reply.bulk(name);
        session.outbox.reply.count(cx.shared.pubsub.subscribers(kind, name));
    }
    Ok(())
}

/// `PUBSUB NUMPAT`
pub(crate) fn numpat(session: &mut Session, cx: &Context<'_>) -> Result<(), CommandError> {
    let (_, patterns, _) = cx.shared.pubsub.counts();
    session.outbox.reply.count(patterns);
    Ok(())
}

/// Whether the output from `mark` confirms changed subscriptions: these are messages, not a reply.
pub(crate) fn is_confirmed(session: &Session, mark: usize, command: &Command) -> bool {
    use ConnectionCommand as C;
    let is_array = matches!(session.outbox.reply.bytes().get(mark), Some(b'*' | b'>'));
    let changes_subscriptions = matches!(
        connection_command_of(command),
        Some(
            C::Subscribe | C::Psubscribe | C::Ssubscribe | C::Unsubscribe | C::Punsubscribe | C::Sunsubscribe
        )
    );
    is_array && changes_subscriptions
}
