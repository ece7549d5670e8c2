//! What is held back until it is safe to be told.

use crate::context::Context;
use crate::net::outbox::Until;
use crate::session::Session;
use crate::shared::Shared;
use tidemark_engine::Executed;
use tidemark_log::Lsn;

/// How the answer begins to a change that the log has refused.
const REFUSAL: &[u8] = b"-MISCONF ";

/// Holds the reply that begins at `mark` back until the change is durable, if it must be. A command that changed nothing
/// then waits for the changes that it may show, the last of which `shown` says, be they its own or others': nobody is told
/// what a crash could take back. A command that was refused shows nothing.
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
    let answer = session.outbox.reply.bytes().get(mark..).unwrap_or_default();
    if let Some(until) = holds_back(executed, durable, answer, shown, cx.shared) {
        session.outbox.hold(mark, until);
    }
}

/// What the answer to a command waits for, as [`finish`] has it.
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
        // A client that is to wait still has the locks that the question would take.
        let shown = if executed.block.is_some() { newest } else { shown() };
        Some(shown).filter(|lsn| *lsn > shared.engine.log().durable())
    };
    executed.lsn.or_else(seen).map(Until::Durable)
}

/// Holds the reply that begins at `mark` back until a record is as safe as answers to changes are to be.
pub(crate) fn hold_change(session: &mut Session, mark: usize, record: Lsn, cx: &Context<'_>) {
    session.last_write = Some(record);
    if cx.always_durable() {
        session.outbox.hold(mark, Until::Durable(record));
    }
}

/// Holds the reply that begins at `mark` back until everything that it may show is durable.
pub(crate) fn hold_what_is_shown(session: &mut Session, mark: usize, cx: &Context<'_>) {
    if let Some(seen) = cx.shared.not_yet_durable() {
        session.outbox.hold(mark, Until::Durable(seen));
    }
}

/// Holds back the answer that begins at `mark` and shows the state at `lsn`.
pub(crate) fn hold_position(session: &mut Session, mark: usize, lsn: Lsn, cx: &Context<'_>) {
    if let Some(until) = cx.shared.holds_back_position(lsn, false) {
        session.outbox.hold(mark, until);
    }
}
