//! `X.WATCH … | CHANNEL name`, and `WATCHES CHANNELS`, `UNWATCH CHANNEL`.

use crate::context::Context;
use crate::durability::hold::hold_position;
use crate::session::Session;
use crate::subscription::channel_message;
use crate::subscription::channel_publisher::beginning;
use crate::subscription::cursor::{Cursor, Place};
use crate::subscription::delivery::{Delivery, Start};
use crate::subscription::pending_resumption::{ResumeRequest, Resumption};
use crate::subscription::reply::{integer, write_read};
use crate::subscription::resume_error::ResumeError;
use crate::subscription::resumption;
use tidemark_engine::CommandError;
use tidemark_engine::command::parse::glob;
use tidemark_engine::watch::Read;
use tidemark_log::Lsn;

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
    cx.shared.channel_publisher.check(channel, Some(query.id()), cx.shared)?;
    let asked = ResumeRequest::Channel(channel.into());
    let delivery = Delivery::default();
    resumption::go_on(session, Resumption { query, lsn, delivery, asked }, cx)
}

/// Starts a watch with the current answer. `missed` is the reason why it does not resume after the
/// client's position.
pub(crate) fn begin(
    session: &mut Session,
    channel: &[u8],
    read: Read,
    missed: Option<ResumeError>,
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let (shared, watches) = (cx.shared, &cx.shared.channel_publisher);
    let known = shared.engine.query_of(&read);
    watches.check(channel, known.as_ref().map(|query| query.id()), shared)?;
    if known.is_some_and(|query| query.is_dormant() && watches.contains(channel, query.id())) {
        return Err(CommandError::text(
            "TRYAGAIN the channel has the read already, and its emissions are being replayed from the log",
        ));
    }
    let subscribed = shared.engine.subscribe(read, watches.listener(), cx.now_us)?;
    shared.watching_began(cx.now_us);
    let (cursor, mark) = (beginning(&subscribed), session.outbox.reply.len());
    let json = shared.http_registry.json.of(&subscribed.answer);
    let line = channel_message::position(&cursor, Some(&json), missed);
    watches.insert(channel, cursor, shared)?;
    session.outbox.reply.bulk(&line);
    let floor = missed.map_or(Lsn::ZERO, ResumeError::lsn);
    hold_position(session, mark, subscribed.lsn.max(floor), cx);
    Ok(())
}

/// Resumes a watch at a place after `lsn`.
pub(crate) fn go_on(
    session: &mut Session,
    channel: &[u8],
    place: Place,
    lsn: Lsn,
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let cursor = Cursor::at(place.for_another(), 0, lsn);
    let line = channel_message::position(&cursor, None, None);
    cx.shared.channel_publisher.insert(channel, cursor, cx.shared)?;
    session.outbox.reply.bulk(&line);
    Ok(())
}

/// `UNWATCH CHANNEL channel [subscription ...]`: ends watches of the channel, all of them if none
/// is named, and returns their number.
pub(crate) fn end(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let [channel, names @ ..] = args else { return Err(CommandError::Arity("unwatch".into())) };
    let ended = cx.shared.channel_publisher.unwatch(channel, names, cx.shared);
    session.outbox.reply.count(ended);
    Ok(())
}

/// `WATCHES CHANNELS [pattern]`: lists all watches of channels.
pub(crate) fn list(session: &mut Session, pattern: Option<&[u8]>, cx: &Context<'_>) {
    let all = cx.shared.channel_publisher.all(|name| pattern.is_none_or(|pattern| glob(pattern, name)));
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
