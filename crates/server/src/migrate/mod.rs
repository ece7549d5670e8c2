//! `MIGRATE`: moves keys to another server.
//!
//! ```text
//! connection ─► begin ─► queue ─► one thread: watch the key ─► DUMP ─► RESTORE at the target ─► is it unchanged? DEL
//!         connection ◄─ Message::Done ◄─┘                  ▲──────── changed: send it again ────────┘
//! ```
//!
//! The client waits, and all others go on. A key is deleted only when the target has said OK and the key has not
//! changed since it was read: both are one step under the key's lock, as for `WATCH` and `EXEC`. There is one
//! thread, because two migrations of one key could each take the other's deletion for a client's.

mod options;
pub(crate) mod queue;
mod target;
mod transfer;

use crate::context::Context;
use crate::net::inbox::Message;
use crate::session::{Session, WaitFor};
use crate::shared::Shared;
use crate::wait;
use options::Options;
use queue::Migration;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use tidemark_engine::CommandError;

/// Starts the thread, which ends when the queue is stopped.
pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let work = move || {
        while let Some(job) = shared.migrations.next() {
            let (worker, client) = (job.worker, job.client);
            let done = Box::new(transfer::run(job, &shared));
            shared.inboxes[worker].send(Message::Done(client, done));
        }
    };
    std::thread::Builder::new().name("tidemark-migrate".into()).spawn(work)
}

/// `MIGRATE host port key|"" db timeout [COPY] [REPLACE] [AUTH password | AUTH2 user password] [KEYS key …]`
pub(crate) fn begin(session: &mut Session, args: &[&[u8]], cx: &Context<'_>) -> Result<(), CommandError> {
    let options = Options::parse(args)?;
    let job = Migration {
        options,
        db: session.db,
        reply: session.outbox.reply.apart(),
        worker: session.client.worker,
        client: session.connection_id(),
    };
    if !cx.shared.migrations.push(job) {
        return Err(CommandError::text("IOERR the server is shutting down"));
    }
    wait::begin(session, WaitFor::Long, None);
    Ok(())
}
