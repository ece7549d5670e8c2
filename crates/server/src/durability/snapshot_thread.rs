//! The thread that takes snapshots.

use crate::durability::snapshots::{KEYSPACE, NAMED, Request, Requests, Snapshots, TakeError, WATCHED};
use crate::net::inbox::Message;
use crate::shared::Shared;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tidemark_engine::{BlockPlacement, BlockWriteError, Delivery, Engine, Protocol, Reply};
use tidemark_log::{Lsn, SnapshotError, SnapshotWriter, Snapshots as LogSnapshots};

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
            if let Ok((_, bytes)) = &taken {
                log.note_snapshot(*bytes, written_bytes);
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

/// Takes a snapshot while commands run. Returns its LSN and its size in bytes when it is complete
/// and durable, and the log before the oldest kept snapshot has been released. If it `relieves` a
/// disk that gets full, releases all of the log before this snapshot.
fn take(engine: &Engine, snapshots: &Snapshots, relieves: bool) -> Result<(Lsn, u64), TakeError> {
    // On a disk that gets full there is no space to write blocks again.
    let taken = match write(engine, snapshots, relieves, !relieves) {
        // A damaged block stays where it is, so that the rest of the state has a snapshot.
        Err(TakeError::Block(BlockWriteError::Unreadable(_))) => write(engine, snapshots, relieves, false),
        taken => taken,
    };
    // Also after a failure, which may have left a file.
    match engine.log().block_files().remove_unused() {
        Err(error @ SnapshotError::Sync(_)) if taken.is_ok() => Err(error.into()),
        // A file that stays takes space only, and the next snapshot tries again.
        _ => taken,
    }
}

/// Drops points of series that take too much memory: after a snapshot, more of them are in files.
fn drop_points(shared: &Shared) {
    shared.engine.drop_points(|| std::thread::sleep(REST));
}

/// Writes a snapshot. If it `compacts`, blocks of files that are to go are written again.
fn write(
    engine: &Engine,
    snapshots: &Snapshots,
    relieves: bool,
    compacts: bool,
) -> Result<(Lsn, u64), TakeError> {
    let log = engine.log();
    let kept = LogSnapshots::new(Arc::clone(log.storage()));
    let mut placement = if compacts {
        BlockPlacement::begin_compacting(log.block_files(), &kept)?
    } else {
        BlockPlacement::begin(log.block_files())?
    };
    let mut snapshot = engine.snapshot_with(&placement);
    let lsn = snapshot.lsn();
    let mut writer = SnapshotWriter::create(Arc::clone(log.storage()), lsn)?;
    placement.prepare(&mut writer);
    let rest = || {
        if !snapshots.is_last_wanted() {
            std::thread::sleep(REST);
        }
    };
    while let Some(frame) = snapshot.next_frame_at_ease(rest) {
        if snapshots.is_given_up() {
            snapshot.give_up();
            return Err(TakeError::GivenUp);
        }
        writer.write_frame(KEYSPACE, &frame)?;
        placement.write(&mut writer)?;
    }
    for frame in snapshot.query_frames() {
        writer.write_frame(WATCHED, &frame)?;
    }
    for frame in snapshot.name_frames() {
        writer.write_frame(NAMED, &frame)?;
    }
    snapshot.check()?;
    drop(snapshot);
    placement.list(&mut writer);
    let block_bytes = writer.block_bytes();
    if relieves {
        log.finish_relief(writer)?;
    } else {
        log.finish_snapshot(writer)?;
    }
    placement.settle()?;
    Ok((lsn, kept.bytes(lsn)? + block_bytes))
}

fn answer(taken: &Result<(Lsn, u64), TakeError>) -> Vec<u8> {
    let mut reply = Reply::new(Protocol::Resp2);
    match taken {
        Ok(_) => reply.ok(),
        Err(error) => reply.error_text(&format!("ERR the snapshot failed: {error}")),
    }
    reply.take()
}
