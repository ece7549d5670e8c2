//! `CLIENT PAUSE`: for some time clients' commands wait, all of them or those that change something.
//!
//! A command that has to wait stays in the input of its connection and runs from its beginning when the pause is over, so
//! nothing is remembered about it. Nothing expires actively meanwhile.

use crate::context::Context;
use crate::named_command;
use crate::session::Session;
use crate::transaction;
use crate::wait::{self, WaitFor};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidemark_engine::command::{self, ConnectionCommand, flags, parse};
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

    /// How long the pause goes on, if there is one now.
    #[inline]
    pub(crate) fn rest(&self, now_us: u64) -> Option<Duration> {
        let rest_us = self.until_ms().saturating_mul(1000).saturating_sub(now_us);
        (rest_us > 0).then_some(Duration::from_micros(rest_us))
    }

    fn is_of_changes_only(&self) -> bool {
        self.state.load(Ordering::Acquire) & 1 == 1
    }
}

/// Lets a client wait if there is a pause that concerns its command; whether it does.
#[inline]
pub(crate) fn postpone(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> bool {
    cx.shared.pause.rest(cx.now_us).is_some_and(|rest| postpone_for(session, args, rest, cx))
}

#[cold]
fn postpone_for(session: &mut Session, args: &[&[u8]], rest: Duration, cx: &Context<'_>) -> bool {
    // What would be refused is refused at once.
    let Ok(command) = command::resolve(args) else { return false };
    if !session.authenticated {
        return false;
    }
    if cx.shared.pause.is_of_changes_only() && !changes_something(session, command, args) {
        return false;
    }
    wait::begin(session, WaitFor::Unpaused, Some(rest));
    true
}

/// Whether a command may write to the log or reach other clients.
fn changes_something(session: &Session, command: &Command, args: &[&[u8]]) -> bool {
    let queued = session.transaction.as_ref().filter(|_| transaction::is_exec(command));
    is_change(command, args)
        || queued.is_some_and(|transaction| {
            transaction.commands().any(|(command, args)| {
                is_change(command, &args.iter().map(|arg| &**arg).collect::<Vec<&[u8]>>())
            })
        })
}

fn is_change(command: &Command, args: &[&[u8]]) -> bool {
    use ConnectionCommand as C;
    let Run::Connection(which) = command.run else { return command.is(flags::WRITE) };
    match which {
        // That a read is watched from now on, and that somebody has a name, are records.
        C::Publish | C::Spublish | C::WatchRead => true,
        C::EmitAck => named_command::acknowledgement(args).is_some(),
        C::Unwatch => args.get(1).is_some_and(|word| parse::is(word, "NAMED")),
        _ => command.is(flags::WRITE),
    }
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
        assert_eq!(pause.rest(999_999), Some(Duration::from_micros(1)));
        assert_eq!(pause.rest(1_000_000), None);
        pause.begin(u64::MAX, true);
        assert_eq!((pause.until_ms(), pause.is_of_changes_only()), (u64::MAX >> 1, true));
        pause.end();
        assert_eq!(pause.until_ms(), 0);
    }
}
