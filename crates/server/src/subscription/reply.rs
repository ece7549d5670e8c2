//! Replies to commands on subscriptions.

use crate::context::Context;
use crate::durability::hold::hold_position;
use crate::session::Session;
use crate::subscription::resume_error::ResumeError;
use tidemark_engine::Reply;
use tidemark_engine::watch::Read;
use tidemark_log::Lsn;

/// Answers a subscription that has begun or resumed, with the state at `lsn`. `value` is `None` if
/// emissions deliver it.
pub(crate) fn begun(session: &mut Session, query: Lsn, lsn: Lsn, value: Option<&[u8]>) {
    let Session { subscriptions, outbox, .. } = session;
    let begun = subscriptions.reads.get_mut(query).expect("the subscription has just begun");
    let reply = &mut outbox.reply;
    reply.map(4);
    reply.bulk(b"sub_id");
    reply.bulk(&begun.name());
    reply.bulk(b"lsn");
    integer(reply, lsn.0);
    reply.bulk(b"seq");
    integer(reply, begun.cursor.sequence());
    reply.bulk(b"value");
    match value {
        Some(value) => reply.encoded(value),
        None => reply.null(),
    }
}

/// Error text for a subscription that cannot resume after an LSN.
pub(crate) fn refusal(not_resumed: ResumeError) -> String {
    let word = not_resumed.word();
    match not_resumed {
        ResumeError::Stale(floor) => format!("{word} emissions up to LSN {floor} are not retained any more"),
        ResumeError::Invalid(head) => format!("{word} the log ends at LSN {head}"),
        ResumeError::NotFound => format!("{word} the read is not watched"),
        ResumeError::TryAgain => {
            format!("{word} too many subscriptions wait for replay, or the server stops; try again")
        }
    }
}

/// Answers why a subscription cannot resume, once the position in the answer survives a crash.
pub(crate) fn refuse(session: &mut Session, not_resumed: ResumeError, cx: &Context<'_>) {
    hold_position(session, session.outbox.reply.len(), not_resumed.lsn(), cx);
    answer(session, not_resumed.word(), not_resumed.lsn().0);
}

pub(crate) fn answer(session: &mut Session, outcome: &str, number: u64) {
    let reply = &mut session.outbox.reply;
    reply.array(2);
    reply.bulk(outcome.as_bytes());
    integer(reply, number);
}

/// Writes an LSN or a sequence number.
pub(crate) fn integer(reply: &mut Reply, value: u64) {
    reply.integer(i64::try_from(value).unwrap_or(i64::MAX));
}

/// Writes the fields of a listed subscription or query that contain its command and operators.
pub(crate) fn write_read(reply: &mut Reply, read: &Read) {
    reply.bulk(b"command");
    reply.array(read.args().len());
    read.args().for_each(|arg| reply.bulk(arg));
    reply.bulk(b"operators");
    reply.array(read.operators().len());
    read.operators().for_each(|word| reply.bulk(word));
}
