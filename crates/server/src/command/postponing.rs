//! Commands that wait for the end of `CLIENT PAUSE`.

use crate::command::{named_command, transaction};
use crate::context::Context;
use crate::session::{Session, WaitFor};
use crate::wait;
use std::time::Duration;
use tidemark_engine::command::{self, ConnectionCommand, flags, parse};
use tidemark_engine::{Command, Run};

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
        C::Unwatch => args.get(1).is_some_and(|word| parse::is(word, "NAMED") || parse::is(word, "QUERY")),
        _ => command.is(flags::WRITE),
    }
}
