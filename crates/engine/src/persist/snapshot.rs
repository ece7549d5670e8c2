//! The whole state at one LSN, taken while commands go on.
//!
//! The cut is made with all shards locked for a moment; then the walk visits the shards in bounded slices. An entry that
//! is about to change before the walk has reached it is written out first, by whoever changes it; large collections are
//! written in parts, and an element that is about to change likewise. What is born after the cut is not written at all. A
//! frame holds what belongs to one database, in the form that `keyspace::form` describes:
//!
//! ```text
//! frame   database u8 │ (entry │ value in parts │ part)*
//! ```

use crate::engine::Engine;
use crate::keyspace::{Database, Detached, Numbers};
use crate::value::Pieces;
use crate::watch::{self, Named};
use tidemark_log::Lsn;

/// What the walk takes under one lock, in small entries: some tens of microseconds, unless one is a long string.
const SLICE: usize = 256;

/// Frames are filled up to so many bytes; only an entry or element that is larger by itself makes a larger one.
const FRAME_BYTES: usize = 512 << 10;

/// A snapshot under way. Dropping it unfinished is safe: the rest of the walk is done without keeping anything.
pub struct Snapshot<'e> {
    engine: &'e Engine,
    lsn: Lsn,
    shard: usize,
    frame: Vec<u8>,
    /// Pieces of database `number` that wait for their turn, the next one last.
    waiting: Vec<Vec<u8>>,
    number: u8,
    /// What left its keys before it was seen.
    detached: Vec<Detached>,
    /// Values in parts that were begun, and how many of them are complete.
    numbers: Numbers,
    ended: u64,
    /// The last watched read that was looked at.
    query: Lsn,
    /// Named subscriptions as of the cut.
    names: Vec<(Box<[u8]>, Named)>,
}

/// A large value is not whole in a snapshot, which must not be used.
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
    /// Cuts a snapshot of the whole state here and now; see [`Snapshot::next_frame`]. The caller takes one at a time.
    pub fn snapshot(&self) -> Snapshot<'_> {
        Snapshot::begin(self)
    }
}

impl<'e> Snapshot<'e> {
    /// Makes the cut. One snapshot at a time: the caller sees to it.
    pub(crate) fn begin(engine: &'e Engine) -> Self {
        let numbers = Numbers::default();
        let mut shards = engine.keyspace().lock_all();
        for shard in &mut shards {
            for (number, database) in shard.databases_mut().iter_mut().enumerate() {
                database.begin_copying(number as u8, numbers.clone());
            }
        }
        // Every change is appended under its shards' locks, so with all of them held the log's end is the state.
        // Names change under a lock of their own.
        let mut locked = engine.registry().names.lock();
        let lsn = engine.log().appended();
        shards.iter_mut().for_each(|shard| shard.note_cut(lsn));
        locked.note_cut(lsn);
        let names = locked.iter().map(|(name, named)| (name.clone(), named.clone())).collect();
        drop(locked);
        engine.begin_saving_queries(lsn);
        Self {
            engine,
            lsn,
            shard: 0,
            frame: Vec::new(),
            waiting: Vec::new(),
            number: 0,
            detached: Vec::new(),
            numbers,
            ended: 0,
            query: Lsn::ZERO,
            names,
        }
    }

    /// The last record whose effect the snapshot contains.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// How far the walk has come, between 0 and 1.
    pub fn progress(&self) -> f64 {
        self.shard as f64 / self.engine.keyspace().shard_count() as f64
    }

    /// Frames of the watched reads, which a snapshot keeps in a section of their own: each is a sequence of the form that
    /// [`crate::Engine::load_queries`] reads.
    pub fn query_frames(&mut self) -> impl Iterator<Item = Vec<u8>> {
        std::iter::from_fn(|| self.engine.save_queries(&mut self.query, FRAME_BYTES))
    }

    /// Frames of the named subscriptions, which a snapshot keeps behind the watched reads, in a section of their own: each is
    /// of the form that [`crate::Engine::load_names`] reads.
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

    /// The next frame; `None` at the end.
    pub fn next_frame(&mut self) -> Option<Vec<u8>> {
        self.next_frame_at_ease(|| ())
    }

    /// As [`Snapshot::next_frame`]; `rest` is called after every slice that brought something, without a lock, so that a
    /// caller may leave the processor to those who serve.
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
    /// To be called at the end and before the snapshot is used in place of the log: whether every large value is whole.
    pub fn check(&self) -> Result<(), Incomplete> {
        let (begun, ended) = (self.numbers.given(), self.ended);
        if begun == ended { Ok(()) } else { Err(Incomplete { begun, ended }) }
    }

    /// Goes on by a slice: what it brought, and of which database; `None` at the end.
    fn step(&mut self) -> Option<(u8, Pieces)> {
        while let Some(detached) = self.detached.last_mut() {
            if let Some(pieces) = detached.step(SLICE) {
                return Some((detached.number, pieces));
            }
            self.detached.pop();
        }
        while let Some(index) = self.next_shard() {
            let mut shard = self.engine.keyspace().lock(index);
            // By need and not by number: SWAPDB may move a database that has not been walked to a lower number.
            let database = shard.databases_mut().iter_mut().find(|database| database.is_copying());
            if let Some(mut slice) = database.and_then(|database| database.copy_slice(SLICE)) {
                self.detached.append(&mut slice.detached);
                return Some((slice.number, slice.entries));
            }
            self.shard += 1;
        }
        None
    }

    /// The shard where the walk goes on. Behind the last one, those that a captured value has moved to.
    fn next_shard(&mut self) -> Option<usize> {
        let keyspace = self.engine.keyspace();
        if self.shard >= keyspace.shard_count() {
            // All at one moment: a value could otherwise move from a shard not yet looked at to one that was.
            let shards = keyspace.lock_all();
            self.shard =
                shards.iter().position(|shard| shard.databases().iter().any(Database::is_copying))?;
        }
        Some(self.shard)
    }

    /// Ends the walk at once. For the last snapshot of an engine only: entries that it has not seen are not told from
    /// those that a snapshot 65,536 later will have seen.
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
