//! The whole state at one LSN, taken while commands run.
//!
//! The cut is made while all shards are locked briefly; then the walk visits the shards in bounded
//! slices. A command that is about to change an entry before the walk has reached it writes the
//! entry first. Large collections are written in parts, and an element that is about to change
//! likewise first. Entries created after the cut are not written. A frame holds entries of one
//! database, in the form that `keyspace::form` describes:
//!
//! ```text
//! frame   database u8 │ (entry │ value in parts │ part)*
//! ```

use crate::engine::Engine;
use crate::keyspace::{Cut, Database, Detached, SESSIONS};
use crate::persist::blocks::{BlockPlacement, Blocks};
use crate::value::Pieces;
use crate::watch::{self, Named};
use tidemark_fault::{Fault, is_planted};
use tidemark_log::Lsn;

/// Small entries per lock: some tens of microseconds, unless an entry is a long string.
const SLICE: usize = 256;

/// Size up to which frames are filled; only a larger entry or element makes a larger frame.
const FRAME_BYTES: usize = 512 << 10;

/// A running snapshot. Dropping it unfinished is safe: the drop completes the walk and discards its
/// output.
pub struct Snapshot<'e> {
    engine: &'e Engine,
    lsn: Lsn,
    shard: usize,
    frame: Vec<u8>,
    /// Pieces of database `number` not yet in a frame, the next one last.
    waiting: Vec<Vec<u8>>,
    number: u8,
    /// Values that left their keys before the walk saw them.
    detached: Vec<Detached>,
    /// Numbers of the values in parts that were begun; `ended` counts the complete ones.
    cut: Cut,
    ended: u64,
    /// The last watched read that was saved.
    query: Lsn,
    /// Named subscriptions as of the cut.
    names: Vec<(Box<[u8]>, Named)>,
}

/// A large value is incomplete in a snapshot; the snapshot must not be used.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error(
    "of {begun} large values {ended} came to their end: this is a defect of Tidemark, please report it; the log has every \
     change"
)]
pub struct Incomplete {
    begun: u64,
    ended: u64,
}

impl Engine {
    /// Cuts a snapshot of the current state; see [`Snapshot::next_frame`]. The caller takes one at
    /// a time.
    pub fn snapshot(&self) -> Snapshot<'_> {
        Snapshot::begin(self, Blocks::default())
    }

    /// Like [`Engine::snapshot`], with blocks of series by reference to block files: the caller writes
    /// those that `placement` wants written.
    pub(crate) fn snapshot_with(&self, placement: &BlockPlacement) -> Snapshot<'_> {
        Snapshot::begin(self, placement.blocks())
    }
}

impl<'e> Snapshot<'e> {
    /// Makes the cut. The caller ensures that only one snapshot runs.
    pub(crate) fn begin(engine: &'e Engine, blocks: Blocks) -> Self {
        let cut = Cut { blocks, ..Cut::default() };
        let between_records = engine.between_records();
        let mut shards = engine.keyspace().lock_all();
        for shard in &mut shards {
            for (number, database) in shard.databases_mut().iter_mut().enumerate() {
                if number == usize::from(SESSIONS) && is_planted(Fault::SessionsNotSaved) {
                    continue;
                }
                database.begin_copying(number as u8, cut.clone());
            }
        }
        // Every change is appended under its shards' locks: with all locks held, the end of the log
        // is the state's LSN. Names have a lock of their own. Memory that follows is behind that end.
        let mut locked = engine.registry().names.lock();
        let lsn = if is_planted(Fault::SnapshotAhead) { engine.log().appended() } else { engine.applied() };
        shards.iter_mut().for_each(|shard| shard.note_cut(lsn));
        locked.note_cut(lsn);
        let names = locked.iter().map(|(name, named)| (name.clone(), named.clone())).collect();
        drop(locked);
        engine.begin_saving_queries(lsn);
        drop((shards, between_records));
        Self {
            engine,
            lsn,
            shard: 0,
            frame: Vec::new(),
            waiting: Vec::new(),
            number: 0,
            detached: Vec::new(),
            cut,
            ended: 0,
            query: Lsn::ZERO,
            names,
        }
    }

    /// LSN of the last record that the snapshot contains.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// Progress of the walk, between 0 and 1.
    pub fn progress(&self) -> f64 {
        self.shard as f64 / self.engine.keyspace().shard_count() as f64
    }

    /// Iterates over the frames of the watched reads, which have a section of their own in a
    /// snapshot. Each is in the form that [`crate::Engine::load_queries`] reads.
    pub fn query_frames(&mut self) -> impl Iterator<Item = Vec<u8>> {
        std::iter::from_fn(|| self.engine.save_queries(&mut self.query, FRAME_BYTES))
    }

    /// Iterates over the frames of the named subscriptions, which have a section of their own after
    /// the watched reads. Each is in the form that [`crate::Engine::load_names`] reads.
    pub fn name_frames(&mut self) -> impl Iterator<Item = Vec<u8>> {
        let mut names = std::mem::take(&mut self.names).into_iter();
        std::iter::from_fn(move || {
            let mut frame = Vec::new();
            for (name, named) in names.by_ref() {
                watch::encode_named(&name, &named, &mut frame);
                if frame.len() >= FRAME_BYTES {
                    break;
                }
            }
            Some(frame).filter(|frame| !frame.is_empty())
        })
    }

    /// Returns the next frame; `None` at the end.
    pub fn next_frame(&mut self) -> Option<Vec<u8>> {
        self.next_frame_at_ease(|| ())
    }

    /// As [`Snapshot::next_frame`]. Calls `rest`, without locks, after every slice with output, so
    /// that the caller can yield the processor to serving threads.
    pub fn next_frame_at_ease(&mut self, mut rest: impl FnMut()) -> Option<Vec<u8>> {
        loop {
            while let Some(mut piece) = self
                .waiting
                .pop_if(|piece| self.frame.is_empty() || self.frame.len() + piece.len() <= FRAME_BYTES)
            {
                if self.frame.is_empty() {
                    self.frame.push(self.number);
                }
                self.frame.append(&mut piece);
            }
            if !self.waiting.is_empty() {
                return Some(std::mem::take(&mut self.frame));
            }
            let Some((number, pieces)) = self.step() else {
                return Some(std::mem::take(&mut self.frame)).filter(|frame| !frame.is_empty());
            };
            self.ended += pieces.ended;
            self.waiting = pieces.into_inner();
            self.waiting.reverse();
            if !self.waiting.is_empty() {
                rest();
            }
            let last_number = std::mem::replace(&mut self.number, number);
            if last_number != number && !self.frame.is_empty() {
                return Some(std::mem::take(&mut self.frame));
            }
        }
    }
}

impl Snapshot<'_> {
    /// Checks that every large value is complete. Call it at the end, before the snapshot replaces
    /// log records.
    pub fn check(&self) -> Result<(), Incomplete> {
        let (begun, ended) = (self.cut.numbers.given(), self.ended);
        if begun == ended { Ok(()) } else { Err(Incomplete { begun, ended }) }
    }

    /// Advances by a slice. Returns its pieces and their database; `None` at the end.
    fn step(&mut self) -> Option<(u8, Pieces)> {
        while let Some(detached) = self.detached.last_mut() {
            if let Some(pieces) = detached.step(SLICE) {
                return Some((detached.number, pieces));
            }
            self.detached.pop();
        }
        while let Some(index) = self.next_shard() {
            let mut shard = self.engine.keyspace().lock(index);
            // Selected by state, not by number: SWAPDB may move a database that has not been walked
            // to a lower number.
            let database = shard.databases_mut().iter_mut().find(|database| database.is_copying());
            if let Some(mut slice) = database.and_then(|database| database.copy_slice(SLICE)) {
                self.detached.append(&mut slice.detached);
                return Some((slice.number, slice.entries));
            }
            self.shard += 1;
        }
        None
    }

    /// The shard in which the walk continues; after the last one, shards to which captured values
    /// have moved.
    fn next_shard(&mut self) -> Option<usize> {
        let keyspace = self.engine.keyspace();
        if self.shard >= keyspace.shard_count() {
            // Checked under all locks: otherwise a value could move from an unchecked shard to a
            // checked one.
            let shards = keyspace.lock_all();
            self.shard =
                shards.iter().position(|shard| shard.databases().iter().any(Database::is_copying))?;
        }
        Some(self.shard)
    }

    /// Ends the walk immediately. Only for the last snapshot of an engine: entries that it has not
    /// seen look as if seen by the snapshot 65,536 numbers later.
    pub fn give_up(mut self) {
        for shard in 0..self.engine.keyspace().shard_count() {
            let mut shard = self.engine.keyspace().lock(shard);
            shard.databases_mut().iter_mut().for_each(Database::stop_copying);
        }
        self.shard = self.engine.keyspace().shard_count();
        self.frame.clear();
        self.waiting.clear();
        self.detached.clear();
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        self.engine.end_saving_queries();
        while self.next_frame().is_some() {}
    }
}
