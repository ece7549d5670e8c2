//! What is held back until it is safe to be told.

use crate::context::Context;
use crate::output::Until;
use crate::session::Session;
use tidemark_engine::Executed;
use tidemark_log::Lsn;

/// Holds the reply that begins at `mark` back until the change is durable, if it must be. A command that changed nothing
/// then waits for the changes that it may show, which are its own or others': nobody is told what a crash could take
/// back.
#[inline]
pub(crate) fn finish(
    session: &mut Session,
    executed: &Executed<'_>,
    mark: usize,
    durable: bool,
    cx: &Context<'_>,
) {
    let durable = durable || executed.durable || cx.always_durable();
    match executed.lsn {
        Some(lsn) => {
            session.last_write = Some(lsn);
            if durable {
                session.output.hold(mark, Until::Durable(lsn));
            }
        }
        None if durable => hold_what_is_shown(session, mark, cx),
        None => {}
    }
}

/// Holds the reply that begins at `mark` back until a record is as safe as answers to changes are to be.
pub(crate) fn hold_change(session: &mut Session, mark: usize, record: Lsn, cx: &Context<'_>) {
    session.last_write = Some(record);
    if cx.always_durable() {
        session.output.hold(mark, Until::Durable(record));
    }
}

/// Holds the reply that begins at `mark` back until everything that it may show is durable.
pub(crate) fn hold_what_is_shown(session: &mut Session, mark: usize, cx: &Context<'_>) {
    if let Some(seen) = cx.shared.not_yet_durable() {
        session.output.hold(mark, Until::Durable(seen));
    }
}

/// Holds back the answer that begins at `mark` and shows the state at `lsn`.
pub(crate) fn hold_position(session: &mut Session, mark: usize, lsn: Lsn, cx: &Context<'_>) {
    if let Some(until) = cx.shared.holds_back_position(lsn, false) {
        session.output.hold(mark, until);
    }
}
