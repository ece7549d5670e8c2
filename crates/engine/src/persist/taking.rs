//! Taking a snapshot: the frames of the state, and the blocks that they refer to, written to the
//! storage of the log while commands run.

use crate::engine::Engine;
use crate::persist::blocks::{BlockPlacement, BlockWriteError};
use crate::persist::section;
use crate::persist::snapshot::Incomplete;
use std::sync::Arc;
use tidemark_log::{Lsn, SnapshotError, SnapshotWriter, Snapshots};

/// A snapshot that is complete and durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenSnapshot {
    /// Last record that it contains.
    pub lsn: Lsn,
    /// Bytes of the snapshot itself.
    pub bytes: u64,
    /// Bytes of its block file: blocks that were in no file, or in one that is to go.
    pub block_bytes: u64,
}

/// Why a snapshot was not taken.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// It could not be written.
    #[error(transparent)]
    Failed(#[from] SnapshotError),
    /// A block of a series could not be written.
    #[error(transparent)]
    Block(#[from] BlockWriteError),
    /// It is incomplete, so the log must not be released.
    #[error(transparent)]
    Incomplete(#[from] Incomplete),
    /// The caller has ended it.
    #[error("it was given up because the server stops; the log has every change")]
    GivenUp,
}

impl Engine {
    /// Takes a snapshot, and releases the log before the oldest kept one. If it `relieves` a disk that
    /// gets full, releases all of the log before this one. The caller takes one at a time.
    ///
    /// Calls `rest`, without locks, after every slice of the walk, and `goes_on` before each frame of
    /// keys is written. If that returns `false`, the walk ends: only for the last snapshot of an engine.
    ///
    /// # Errors
    /// [`TakeError`]. All snapshots that were there are kept.
    pub fn take_snapshot(
        &self,
        relieves: bool,
        mut rest: impl FnMut(),
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<TakenSnapshot, TakeError> {
        // On a disk that gets full there is no space to write blocks again.
        let taken = match self.write_snapshot(relieves, !relieves, &mut rest, &mut goes_on) {
            // A damaged block stays where it is, so that the rest of the state has a snapshot.
            Err(TakeError::Block(BlockWriteError::Unreadable(_))) => {
                self.write_snapshot(relieves, false, &mut rest, &mut goes_on)
            }
            taken => taken,
        };
        // Also after a failure, which may have left a file.
        match self.log().block_files().remove_unused() {
            Err(error @ SnapshotError::Sync(_)) if taken.is_ok() => Err(error.into()),
            // A file that stays takes space only, and the next snapshot tries again.
            _ => taken,
        }
    }

    /// Writes a snapshot. If it `compacts`, blocks of files that are to go are written again.
    fn write_snapshot(
        &self,
        relieves: bool,
        compacts: bool,
        rest: &mut impl FnMut(),
        goes_on: &mut impl FnMut() -> bool,
    ) -> Result<TakenSnapshot, TakeError> {
        let log = self.log();
        let kept = Snapshots::new(Arc::clone(log.storage()));
        let mut placement = if compacts {
            BlockPlacement::begin_compacting(log.block_files(), &kept)?
        } else {
            BlockPlacement::begin(log.block_files())?
        };
        let mut snapshot = self.snapshot_with(&placement);
        let lsn = snapshot.lsn();
        let mut writer = SnapshotWriter::create(Arc::clone(log.storage()), lsn)?;
        placement.prepare(&mut writer);
        while let Some(frame) = snapshot.next_frame_at_ease(&mut *rest) {
            if !goes_on() {
                snapshot.give_up();
                return Err(TakeError::GivenUp);
            }
            writer.write_frame(section::KEYSPACE, &frame)?;
            placement.write(&mut writer)?;
        }
        for frame in snapshot.query_frames() {
            writer.write_frame(section::WATCHED, &frame)?;
        }
        for frame in snapshot.name_frames() {
            writer.write_frame(section::NAMED, &frame)?;
        }
        snapshot.check()?;
        drop(snapshot);
        placement.list(&mut writer)?;
        let block_bytes = writer.block_bytes();
        if relieves {
            log.finish_relief(writer)?;
        } else {
            log.finish_snapshot(writer)?;
        }
        placement.settle()?;
        Ok(TakenSnapshot { lsn, bytes: kept.bytes(lsn)?, block_bytes })
    }
}
