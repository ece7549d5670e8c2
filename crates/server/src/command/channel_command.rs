//! `X.WATCH … | CHANNEL name`, and `WATCHES CHANNELS`, `UNWATCH CHANNEL`.

use crate::context::Context;
use crate::session::Session;
use crate::subscription::channel_publisher::ChannelPublisher;
use crate::subscription::channel_watch::begin;
use crate::subscription::delivery::{Delivery, Start};
use crate::subscription::pending_resumption::{ResumeRequest, Resumption};
use crate::subscription::reply::{integer, write_read};
use crate::subscription::resume_error::ResumeError;
use crate::subscription::resumption;
use tidemark_engine::CommandError;
use tidemark_engine::command::parse::glob;
use tidemark_engine::watch::Read;

/// Publishes a read's emissions on a channel. The reply is formatted like the published messages.
pub(crate) fn watch(
    session: &mut Session,
    channel: &[u8],
    read: Read,
    start: Start,
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let Start::Resume(lsn) = start else { return begin(session, channel, read, None, cx) };
    let Some(query) = cx.shared.engine.query_of(&read) else {
        return begin(session, channel, read, Some(ResumeError::NotFound), cx);
    };
    ChannelPublisher::new(cx.shared).check(channel, Some(query.id()))?;
    let asked = ResumeRequest::Channel(channel.into());
    let delivery = Delivery::default();
    resumption::go_on(session, Resumption { query, lsn, delivery, asked }, cx)
}

/// `UNWATCH CHANNEL channel [subscription ...]`: ends watches of the channel, all of them if none
/// is named, and returns their number.
pub(crate) fn end(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let [channel, names @ ..] = args else { return Err(CommandError::Arity("unwatch".into())) };
    let ended = ChannelPublisher::new(cx.shared).unwatch(channel, names);
    session.outbox.reply.count(ended);
    Ok(())
}

/// `WATCHES CHANNELS [pattern]`: lists all watches of channels.
pub(crate) fn list(session: &mut Session, pattern: Option<&[u8]>, cx: &Context<'_>) {
    let all = cx.shared.channel_registry.all(|name| pattern.is_none_or(|pattern| glob(pattern, name)));
    let reply = &mut session.outbox.reply;
    reply.array(all.len());
    for (channel, cursor) in all {
        let read = cursor.query().read();
        reply.map(8);
        reply.bulk(b"channel");
        reply.bulk(&channel);
        reply.bulk(b"sub_id");
        reply.bulk(cursor.name().as_bytes());
        write_read(reply, read);
        reply.bulk(b"db");
        reply.count(read.db().into());
        reply.bulk(b"lsn");
        integer(reply, cursor.lsn().0);
        reply.bulk(b"seq");
        integer(reply, cursor.sequence());
        reply.bulk(b"lag");
        integer(reply, cursor.lag());
    }
}
