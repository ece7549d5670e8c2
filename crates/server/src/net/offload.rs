//! Offload of long commands: a worker hands one over and its client waits, while all other clients
//! continue.
//!
//! ```text
//! connection ─► begin: how many elements? ─► queue ─► a thread: Engine::execute_as
//!                                     connection ◄─ Message::Done ◄─┘
//! ```
//!
//! A script goes there until it is known to be quick, which it is told after each run there.
//!
//! The command locks only the shards of its keys, as in the event loop.

use crate::context::Context;
use crate::durability::hold::{COMMIT_LOST, holds_back};
use crate::durability::log_state::CommitLost;
use crate::events::publishing::send_published;
use crate::net::client_eviction::NO_MEMORY;
use crate::net::inbox::Message;
use crate::net::offload_queue::{OffloadJob, OffloadResult};
use crate::session::{Session, WaitFor};
use crate::shared::Shared;
use crate::wait;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use tidemark_engine::{Call, Command, Run, Terms};

/// Elements from which on a command is offloaded. It takes a millisecond or more, so the handover's
/// tens of microseconds are negligible.
const LONG: usize = 10_000;

/// Long commands that run at a time. Further ones wait, which delays only clients that send long
/// commands.
const THREADS: usize = 2;

/// Starts the threads, which end when the queue is stopped.
pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<Vec<JoinHandle<()>>> {
    (0..THREADS)
        .map(|number| {
            let shared = Arc::clone(shared);
            let work = move || {
                while let Some(job) = shared.offload.next() {
                    let (worker, client) = (job.worker, job.client);
                    let done = Box::new(run(&shared, job));
                    shared.inboxes[worker].send(Message::Done(client, done));
                }
            };
            std::thread::Builder::new().name(format!("tidemark-offload-{number}")).spawn(work)
        })
        .collect()
}

fn run(shared: &Shared, job: OffloadJob) -> OffloadResult {
    let OffloadJob { command, args, db, mut reply, .. } = job;
    let args: Vec<&[u8]> = args.iter().map(|arg| &**arg).collect();
    let call = Call { command, args: &args, db, now_us: shared.clock.now_us() };
    let announced = shared.engine.announce_script(command, &args);
    let executed = shared.engine.execute_as(&call, Terms::default(), &mut reply);
    drop(announced);
    send_published(executed.published(), shared);
    assert!(!executed.blocks(), "no command that visits all waits for keys: {}", command.name);
    let shown = || shared.engine.newest_shown(command, &args);
    let held_until =
        holds_back(&executed, false, reply.bytes(), shown, shared).unwrap_or_else(|CommitLost| {
            reply.truncate(0);
            reply.error_text(COMMIT_LOST);
            None
        });
    OffloadResult { lsn: executed.lsn, held_until, reply }
}

/// Offloads a command that visits all elements, or a script, if it is or may be long, and blocks its client. Returns
/// whether it did.
#[cold]
pub(crate) fn begin(
    session: &mut Session,
    command: &'static Command,
    args: &[&[u8]],
    cx: &Context<'_>,
) -> bool {
    // Tracked reads are noted under the locks of the read, on the client's own thread.
    if !session.is_plain() || session.tracking.is_some() {
        return false;
    }
    let call = Call { command, args, db: session.db, now_us: cx.now_us };
    let is_script = matches!(command.run, Run::Script(_));
    if is_script && cx.shared.engine.is_quick(command, args) {
        return false;
    }
    if !is_script && cx.shared.engine.effort(&call) < LONG {
        return false;
    }
    let job = OffloadJob {
        command,
        args: args.iter().map(|arg| (*arg).into()).collect(),
        db: session.db,
        reply: session.outbox.reply.apart(),
        worker: session.client.worker,
        client: session.connection_id(),
    };
    if !cx.shared.offload.push(job) {
        return false;
    }
    wait::begin(session, WaitFor::Long, None);
    true
}

/// Answers a client with the reply to its long command.
pub(crate) fn finish(session: &mut Session, done: &OffloadResult, cx: &Context<'_>) {
    let wait = session.wait.take().expect("a client waits for its long command, and for nothing else");
    assert!(
        matches!(wait.what, WaitFor::Long),
        "a client is given the answer to a command that it has not sent"
    );
    let mark = session.outbox.reply.len();
    if done.reply.was_refused() {
        session.outbox.reply.error_text(NO_MEMORY);
    } else {
        session.outbox.reply.encoded(done.reply.bytes());
        if session.outbox.reply.was_refused() {
            session.outbox.give_up(mark);
            session.outbox.reply.error_text(NO_MEMORY);
        } else if done.reply.has_overflowed() {
            session.outbox.reply.overflow();
        }
    }
    if let [b'-', error @ ..] = done.reply.bytes() {
        cx.shared.errors.count(error);
    }
    if done.lsn.is_some() {
        session.last_write = done.lsn;
    }
    if let Some(until) = done.held_until {
        session.outbox.hold(mark, until);
    }
    session.show_state();
    session.client.end_wait();
}
