//! The thread that takes snapshots.

use crate::durability::snapshots::{Request, Requests, Snapshots};
use crate::net::inbox::Message;
use crate::shared::Shared;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tidemark_engine::{Delivery, Engine, Protocol, Reply, TakeError, TakenSnapshot};

/// Rest after some tens of microseconds of work. Without it, on a machine without a free core, the
/// thread would delay a serving thread by a whole scheduler slice, which is milliseconds.
const REST: Duration = Duration::from_micros(150);

/// Starts the thread, which ends with [`Snapshots::stop`] and returns the result of a last
/// snapshot.
pub(crate) fn start(
    shared: Arc<Shared>,
    requests: Requests,
) -> io::Result<JoinHandle<Result<(), TakeError>>> {
    let work = move || {
        loop {
            let client = match requests.next() {
                Request::Stop => break,
                Request::DropPoints => {
                    drop_points(&shared);
                    continue;
                }
                Request::Take(client) => client,
            };
            assert!(shared.engine.is_loaded(), "a snapshot of what is not loaded would lose the rest");
            let log = shared.engine.log();
            let (tried, written_bytes) = (log.appended(), log.written_bytes());
            let relieves = log.wants_relief();
            let taken = take(&shared.engine, &shared.snapshots, relieves);
            drop_points(&shared);
            if let Ok(taken) = &taken {
                log.note_snapshot(taken.bytes + taken.block_bytes, written_bytes);
            }
            shared.snapshots.note(&taken, tried, written_bytes);
            if relieves {
                log.end_relief();
            } else if log.wants_relief() {
                // Relief was requested during the snapshot.
                shared.snapshots.request(None);
            }
            if let Some((worker, connection_id)) = client {
                let delivery = Delivery { reply: answer(&taken), overflowed: false, lsn: None };
                shared.inboxes[worker].send(Message::Deliver(connection_id, delivery));
            }
        }
        if shared.snapshots.is_last_wanted() {
            take(&shared.engine, &shared.snapshots, false)?;
        }
        Ok(())
    };
    std::thread::Builder::new().name("tidemark-snapshot".to_owned()).spawn(work)
}

/// Takes a snapshot while commands run. If it `relieves` a disk that gets full, releases all of the log
/// before it.
fn take(engine: &Engine, snapshots: &Snapshots, relieves: bool) -> Result<TakenSnapshot, TakeError> {
    let rest = || {
        if !snapshots.is_last_wanted() {
            std::thread::sleep(REST);
        }
    };
    engine.take_snapshot(relieves, rest, || !snapshots.is_given_up())
}

/// Drops points of series that take too much memory: after a snapshot, more of them are in files.
fn drop_points(shared: &Shared) {
    shared.engine.drop_points(|| std::thread::sleep(REST));
}

fn answer(taken: &Result<TakenSnapshot, TakeError>) -> Vec<u8> {
    let mut reply = Reply::new(Protocol::Resp2);
    match taken {
        Ok(_) => reply.ok(),
        Err(error) => reply.error_text(&format!("ERR the snapshot failed: {error}")),
    }
    reply.take()
}
