//! Holds replies until the records that they depend on are durable.

use crate::context::Context;
use crate::net::outbox::Until;
use crate::session::Session;
use crate::shared::Shared;
use tidemark_engine::Executed;
use tidemark_log::Lsn;

/// Prefix of the reply to a change that the log has refused.
const REFUSAL: &[u8] = b"-MISCONF ";

/// Holds the reply that begins at `mark` until the change is durable, if required. A command that
/// changed nothing waits for the changes that its reply may show, its own or other clients';
/// `shown` returns the last of them. So no reply shows what a crash could take back. A refused
/// command shows nothing.
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
    let answer = &session.outbox.reply.bytes()[mark..];
    if let Some(until) = holds_back(executed, durable, answer, shown, cx.shared) {
        session.outbox.hold(mark, until);
    }
}

/// What the reply to a command waits for; see [`finish`].
#[inline]
pub(crate) fn holds_back(
    executed: &Executed<'_>,
    durable: bool,
    answer: &[u8],
    shown: impl Fn() -> Lsn,
    shared: &Shared,
) -> Option<Until> {
    if !(durable || executed.durable || shared.settings.is_always_durable()) {
        return None;
    }
    let seen = || {
        let newest = shared.not_yet_durable()?;
        if answer.starts_with(REFUSAL) {
            return None;
        }
        // `shown` would take locks that a command about to block still holds.
        let shown = if executed.block.is_some() { newest } else { shown() };
        Some(shown).filter(|lsn| *lsn > shared.engine.log().durable())
    };
    executed.lsn.or_else(seen).map(Until::Durable)
}

/// Holds the reply that begins at `mark` until a record is durable, if the mode is `always`.
pub(crate) fn hold_change(session: &mut Session, mark: usize, record: Lsn, cx: &Context<'_>) {
    session.last_write = Some(record);
    if cx.always_durable() {
        session.outbox.hold(mark, Until::Durable(record));
    }
}

/// Holds the reply that begins at `mark` until everything that it may show is durable.
pub(crate) fn hold_what_is_shown(session: &mut Session, mark: usize, cx: &Context<'_>) {
    if let Some(seen) = cx.shared.not_yet_durable() {
        session.outbox.hold(mark, Until::Durable(seen));
    }
}

/// Holds the reply that begins at `mark` and shows the state at `lsn`.
pub(crate) fn hold_position(session: &mut Session, mark: usize, lsn: Lsn, cx: &Context<'_>) {
    if let Some(until) = cx.shared.holds_back_position(lsn, false) {
        session.outbox.hold(mark, until);
    }
}
