//! Holds replies until the records that they depend on are committed.

use crate::context::Context;
use crate::durability::log_state::{CommitLost, has_failed};
use crate::events::publishing::send_published;
use crate::net::outbox::Until;
use crate::session::Session;
use crate::shared::Shared;
use tidemark_engine::Executed;
use tidemark_fault::{Fault, is_planted};
use tidemark_log::Lsn;

/// Prefix of the reply to a change that the log has refused.
const REFUSAL: &[u8] = b"-MISCONF ";

/// Error of a command that has changed nothing, and would show what the failed log has not
/// committed.
pub(crate) const COMMIT_LOST: &str = "MISCONF the log has failed, and the answer may show changes that are not on \
                                      disk: repair the disk and restart";

/// Holds the reply that begins at `mark` until the change is committed, if required. A command that
/// changed nothing waits for the changes that its reply may show, its own or other clients';
/// `shown` returns the last of them. So no reply shows what may be taken back. A refused command
/// shows nothing. If the log has failed before it committed what the reply may show, the reply
/// becomes an error.
#[inline]
pub(crate) fn finish(
    session: &mut Session,
    executed: &Executed<'_>,
    mark: usize,
    durable: bool,
    shown: impl Fn() -> Lsn,
    cx: &Context<'_>,
) {
    if executed.lsn.is_some() {
        session.last_write = executed.lsn;
    }
    send_published(executed.published(), cx.shared);
    let answer = &session.outbox.reply.bytes()[mark..];
    match holds_back(executed, durable, answer, shown, cx.shared) {
        Ok(None) => {}
        Ok(Some(until)) => session.outbox.hold(mark, until),
        Err(CommitLost) => refuse(session, mark),
    }
}

/// Replaces the reply that begins at `mark`. The error waits for what the reply waited for.
#[cold]
pub(crate) fn refuse(session: &mut Session, mark: usize) {
    session.outbox.rewrite(mark);
    session.outbox.reply.error_text(COMMIT_LOST);
}

/// What the reply to a command waits for; see [`finish`].
///
/// # Errors
/// The reply shows what the failed log has not committed. The command has changed nothing, or its change is
/// in the log, and the log does not take the record that has members sync it.
#[inline]
pub(crate) fn holds_back(
    executed: &Executed<'_>,
    durable: bool,
    answer: &[u8],
    shown: impl Fn() -> Lsn,
    shared: &Shared,
) -> Result<Option<Until>, CommitLost> {
    if !(durable || executed.durable || shared.settings.waits_for_commit()) || is_planted(Fault::EarlyAnswer)
    {
        return Ok(None);
    }
    if let Some(lsn) = executed.lsn {
        let until = if durable || executed.durable { shared.synced_with(lsn)? } else { lsn };
        return Ok(Some(Until::Committed(until)));
    }
    let log = shared.engine.log();
    let newest = log.appended();
    if newest <= log.committed() || answer.starts_with(REFUSAL) {
        return Ok(None);
    }
    if executed.blocks() {
        // `shown` would take locks that a command about to block still holds. If the log has
        // failed, the end of the wait finds that.
        return Ok((!has_failed(log)).then_some(Until::Committed(newest)));
    }
    until_committed(shown(), shared)
}

/// What an answer that shows the record `shown`, and none after it, waits for.
fn until_committed(shown: Lsn, shared: &Shared) -> Result<Option<Until>, CommitLost> {
    let log = shared.engine.log();
    if shown <= log.committed() {
        Ok(None)
    } else if has_failed(log) {
        Err(CommitLost)
    } else {
        Ok(Some(Until::Committed(shown)))
    }
}

/// Holds the reply that begins at `mark` until a record is committed, if required.
pub(crate) fn hold_change(session: &mut Session, mark: usize, record: Lsn, cx: &Context<'_>) {
    session.last_write = Some(record);
    if cx.waits_for_commit() {
        session.outbox.hold(mark, Until::Committed(record));
    }
}

/// Holds the reply that begins at `mark` until everything that it may show is committed.
pub(crate) fn hold_what_is_shown(session: &mut Session, mark: usize, cx: &Context<'_>) {
    hold_until_shown(session, mark, cx.shared.engine.log().appended(), cx);
}

/// Holds the reply that begins at `mark` until the newest record that it may show is committed. If
/// the log has failed before, the reply becomes an error.
pub(crate) fn hold_until_shown(session: &mut Session, mark: usize, shown: Lsn, cx: &Context<'_>) {
    match until_committed(shown, cx.shared) {
        Ok(None) => {}
        Ok(Some(until)) => session.outbox.hold(mark, until),
        Err(CommitLost) => refuse(session, mark),
    }
}

/// Holds the reply that begins at `mark` and shows the state at `lsn`.
pub(crate) fn hold_position(session: &mut Session, mark: usize, lsn: Lsn, cx: &Context<'_>) {
    if let Some(until) = cx.shared.holds_back_position(lsn, false) {
        session.outbox.hold(mark, until);
    }
}
