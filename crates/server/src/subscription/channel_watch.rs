//! Starts and resumes the watch of a channel for the client that requests it.

use crate::context::Context;
use crate::durability::hold::hold_position;
use crate::session::Session;
use crate::subscription::channel_message;
use crate::subscription::channel_publisher::{ChannelPublisher, beginning};
use crate::subscription::cursor::{Cursor, ResumePosition};
use crate::subscription::resume_error::ResumeError;
use tidemark_engine::CommandError;
use tidemark_engine::watch::Read;
use tidemark_log::Lsn;

/// Starts a watch with the current answer. `missed` is the reason why it does not resume after the
/// client's position.
pub(crate) fn begin(
    session: &mut Session,
    channel: &[u8],
    read: Read,
    missed: Option<ResumeError>,
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let (shared, watches) = (cx.shared, &cx.shared.channel_registry);
    let publisher = ChannelPublisher::new(shared);
    let known = shared.engine.query_of(&read);
    publisher.check(channel, known.as_ref().map(|query| query.id()))?;
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
    publisher.insert(channel, cursor)?;
    session.outbox.reply.bulk(&line);
    let floor = missed.map_or(Lsn::ZERO, ResumeError::lsn);
    hold_position(session, mark, subscribed.lsn.max(floor), cx);
    Ok(())
}

/// Resumes a watch at a place after `lsn`.
pub(crate) fn resume(
    session: &mut Session,
    channel: &[u8],
    place: ResumePosition,
    lsn: Lsn,
    cx: &Context<'_>,
) -> Result<(), CommandError> {
    let cursor = Cursor::at(place.for_another(), 0, lsn);
    let line = channel_message::position(&cursor, None, None);
    ChannelPublisher::new(cx.shared).insert(channel, cursor)?;
    session.outbox.reply.bulk(&line);
    Ok(())
}
