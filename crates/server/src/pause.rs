//! `CLIENT PAUSE`: for some time clients' commands wait, all of them or those that change something.
//!
//! A command that has to wait stays in the input of its connection and runs from its beginning when the pause is over, so
//! nothing is remembered about it. Nothing expires actively meanwhile.

use crate::dispatch::Context;
use crate::session::Session;
use crate::transaction;
use crate::wait::{self, WaitFor};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidemark_engine::command::{self, ConnectionCommand, flags};
use tidemark_engine::{Command, Run};

/// The pause in force, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    /// When it ends in milliseconds since 1970, times two, plus one if it concerns changes only. In one word, so that
    /// the two always belong together.
    state: AtomicU64,
}

impl Pause {
    /// Begins a pause, which replaces any other.
    pub(crate) fn begin(&self, until_ms: u64, changes_only: bool) {
        let until_ms = until_ms.min(u64::MAX >> 1);
        self.state.store((until_ms << 1) | u64::from(changes_only), Ordering::Release);
    }

    /// Ends the pause.
    pub(crate) fn end(&self) {
        self.state.store(0, Ordering::Release);
    }

    /// When the latest pause ends or ended, in milliseconds since 1970.
    pub(crate) fn until_ms(&self) -> u64 {
        self.state.load(Ordering::Acquire) >> 1
    }

    fn is_of_changes_only(&self) -> bool {
        self.state.load(Ordering::Acquire) & 1 == 1
    }
}

/// Lets a client wait if there is a pause that concerns its command; whether it does.
#[inline]
pub(crate) fn postpone(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> bool {
    let until_us = cx.shared.pause.until_ms().saturating_mul(1000);
    until_us > cx.now_us && postpone_for(session, args, until_us - cx.now_us, cx)
}

#[cold]
fn postpone_for(session: &mut Session, args: &[&[u8]], time_us: u64, cx: &Context<'_>) -> bool {
    // What would be refused is refused at once.
    let Ok(command) = command::resolve(args) else { return false };
    if !session.authenticated {
        return false;
    }
    if cx.shared.pause.is_of_changes_only() && !changes_something(session, command) {
        return false;
    }
    wait::begin(session, WaitFor::Unpaused, Some(Duration::from_micros(time_us)));
    true
}

/// Whether a command may change keys or reach other clients.
fn changes_something(session: &Session, command: &Command) -> bool {
    let is_change = |command: &Command| {
        let publishes =
            matches!(command.run, Run::Connection(ConnectionCommand::Publish | ConnectionCommand::Spublish));
        publishes || command.is(flags::WRITE)
    };
    let queued = session.transaction.as_ref().filter(|_| transaction::is_exec(command));
    is_change(command) || queued.is_some_and(|transaction| transaction.commands().any(is_change))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_replaces_the_one_before_it() {
        let pause = Pause::default();
        assert_eq!((pause.until_ms(), pause.is_of_changes_only()), (0, false));
        pause.begin(2_000, true);
        assert_eq!((pause.until_ms(), pause.is_of_changes_only()), (2_000, true));
        pause.begin(1_000, false);
        assert_eq!((pause.until_ms(), pause.is_of_changes_only()), (1_000, false));
        pause.begin(u64::MAX, true);
        assert_eq!((pause.until_ms(), pause.is_of_changes_only()), (u64::MAX >> 1, true));
        pause.end();
        assert_eq!(pause.until_ms(), 0);
    }
}
