//! One shard's part of one database: its entries, their deadlines, and the hook by which a snapshot sees an entry before
//! it changes.

use super::{Entry, Payload, Table};
use std::collections::BTreeSet;

/// Bytes from which a piece of a snapshot is complete.
const PIECE_BYTES: usize = 256 << 10;

/// An entry of so many bytes costs a snapshot's walk as much as two small ones.
const ENTRY_BYTES: usize = 256;

/// What a write does to the key's deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// Leaves it.
    Keep,
    /// Removes it.
    Clear,
    /// Sets it, in milliseconds since 1970.
    At(u64),
}

/// The part of a database that a running snapshot has to do with.
#[derive(Default)]
struct Copying {
    /// The database's number at the snapshot's cut; `SWAPDB` may have given it another since.
    number: u8,
    /// Snapshot forms of entries that changed before the walk reached them.
    copied: Pieces,
    /// Tables that were flushed whole, to be walked for their unseen entries.
    detached: Vec<Table<Entry>>,
    /// Where the walk stands in hash order.
    cursor: u64,
}

/// Entries and deadlines. Knows nothing of time: callers decide what has expired.
#[derive(Default)]
pub struct Database {
    table: Table<Entry>,
    /// Every deadline with the hash of its key: the order in which active expiry works.
    deadlines: BTreeSet<(u64, u64)>,
    /// Number of the latest snapshot. An entry whose own number is older has not been seen by it.
    epoch: u16,
    copying: Option<Box<Copying>>,
}

impl Database {
    /// How many keys there are, expired but not yet removed ones included.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// How many keys have a deadline.
    pub fn deadline_count(&self) -> usize {
        self.deadlines.len()
    }

    /// The earliest deadline, in milliseconds since 1970.
    pub fn next_deadline(&self) -> Option<u64> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    /// A key whose deadline is `now` or earlier.
    pub fn first_due(&self, now: u64) -> Option<&[u8]> {
        let &(at, hash) = self.deadlines.first().filter(|&&(at, _)| at <= now)?;
        self.table.find(hash, |entry| entry.deadline() == Some(at)).map(Entry::key)
    }

    /// All entries.
    pub fn table(&self) -> &Table<Entry> {
        &self.table
    }

    /// The entry of a key.
    #[inline]
    pub fn get(&self, hash: u64, key: &[u8]) -> Option<&Entry> {
        self.table.get(hash, key)
    }

    /// The entry of a key, to change its value (never its deadline: see [`Database::set_deadline`]).
    #[inline]
    pub fn get_mut(&mut self, hash: u64, key: &[u8]) -> Option<&mut Entry> {
        let entry = self.table.get_mut(hash, key)?;
        before_change(&mut self.copying, self.epoch, entry);
        Some(entry)
    }

    /// Adds an entry whose key is absent.
    #[inline]
    pub fn insert(&mut self, hash: u64, mut entry: Entry) {
        entry.set_epoch(self.epoch);
        if let Some(at) = entry.deadline() {
            self.deadlines.insert((at, hash));
        }
        self.table.insert(hash, entry);
    }

    /// Sets a key's value, whatever it was; `clock` is the time of this access, in seconds since 1970.
    #[inline]
    pub fn set(&mut self, hash: u64, key: &[u8], payload: Payload<'_>, deadline: Deadline, clock: u32) {
        let Some(entry) = self.table.get_mut(hash, key) else {
            let at = if let Deadline::At(at) = deadline { Some(at) } else { None };
            let entry = Entry::new(key, payload, at);
            entry.touch(clock);
            return self.insert(hash, entry);
        };
        entry.touch(clock);
        before_change(&mut self.copying, self.epoch, entry);
        entry.set(payload);
        let new = match deadline {
            Deadline::Keep => return,
            Deadline::Clear => None,
            Deadline::At(at) => Some(at),
        };
        move_deadline(&mut self.deadlines, hash, entry, new);
    }

    /// Takes a key out.
    pub fn remove(&mut self, hash: u64, key: &[u8]) -> Option<Entry> {
        if self.copying.is_some() {
            self.get_mut(hash, key)?;
        }
        let entry = self.table.remove(hash, key)?;
        if let Some(at) = entry.deadline() {
            self.deadlines.remove(&(at, hash));
        }
        Some(entry)
    }

    /// Sets or clears a key's deadline; `false` if the key is absent.
    pub fn set_deadline(&mut self, hash: u64, key: &[u8], deadline: Option<u64>) -> bool {
        let Some(entry) = self.table.get_mut(hash, key) else { return false };
        before_change(&mut self.copying, self.epoch, entry);
        move_deadline(&mut self.deadlines, hash, entry, deadline);
        true
    }

    /// Removes every key and gives the old table to the caller, who may drop it elsewhere. A running snapshot keeps it
    /// until its walk has seen it.
    pub fn clear(&mut self) -> Option<Table<Entry>> {
        self.deadlines = BTreeSet::new();
        let table = std::mem::take(&mut self.table);
        match &mut self.copying {
            Some(copying) => {
                // The walk has nothing left to see here but what was detached.
                copying.cursor = 0;
                copying.detached.push(table);
                None
            }
            None => Some(table),
        }
    }

    /// Opens the database to a snapshot whose cut is now.
    pub(crate) fn begin_copying(&mut self, number: u8) {
        debug_assert!(self.copying.is_none(), "one snapshot at a time");
        self.epoch = self.epoch.wrapping_add(1);
        self.copying = Some(Box::new(Copying { number, ..Copying::default() }));
    }

    /// Closes the database to a snapshot that will not be completed.
    pub(crate) fn stop_copying(&mut self) {
        self.copying = None;
    }

    /// Whether a running snapshot has still to do with this database.
    pub(crate) fn is_copying(&self) -> bool {
        self.copying.is_some()
    }

    /// Lets the snapshot walk on by about `budget` entries, or by fewer that are large; `None` if it has nothing to do
    /// with this database (any more).
    pub(crate) fn copy_slice(&mut self, budget: usize) -> Option<Slice> {
        let copying = self.copying.as_mut()?;
        let epoch = self.epoch;
        let copied = &mut copying.copied;
        copying.cursor = self.table.scan_mut(copying.cursor, budget, |entry| {
            if entry.epoch() == epoch {
                return 1;
            }
            entry.set_epoch(epoch);
            1 + copied.push(entry) / ENTRY_BYTES
        });
        let slice = Slice {
            number: copying.number,
            epoch,
            entries: std::mem::take(copied),
            detached: std::mem::take(&mut copying.detached),
        };
        if copying.cursor == 0 {
            self.copying = None;
        }
        Some(slice)
    }
}

/// Snapshot forms of entries, in pieces of whole entries and bounded size: only an entry that is larger by itself makes
/// a larger piece.
#[derive(Debug, Default)]
pub(crate) struct Pieces(Vec<Vec<u8>>);

impl Pieces {
    /// Adds an entry; how many bytes it takes.
    fn push(&mut self, entry: &Entry) -> usize {
        if self.0.last().is_none_or(|piece| piece.len() >= PIECE_BYTES) {
            self.0.push(Vec::new());
        }
        let Some(piece) = self.0.last_mut() else { return 0 };
        let before = piece.len();
        crate::snapshot::encode_entry(entry, piece);
        piece.len() - before
    }

    /// The pieces, none of which is empty.
    pub(crate) fn into_inner(self) -> Vec<Vec<u8>> {
        self.0
    }
}

/// What one step of a snapshot's walk has brought.
pub(crate) struct Slice {
    /// The database's number at the cut.
    pub(crate) number: u8,
    /// Snapshot forms of entries that changed before the walk reached them, and of those that it has reached.
    pub(crate) entries: Pieces,
    /// Tables that were flushed whole.
    detached: Vec<Table<Entry>>,
    epoch: u16,
}

impl Slice {
    /// Adds the unseen entries of flushed tables; takes time, and needs no lock.
    pub(crate) fn absorb_detached(&mut self) {
        for table in std::mem::take(&mut self.detached) {
            table.for_each(|entry| {
                if entry.epoch() != self.epoch {
                    self.entries.push(entry);
                }
            });
        }
    }
}

fn move_deadline(deadlines: &mut BTreeSet<(u64, u64)>, hash: u64, entry: &mut Entry, new: Option<u64>) {
    let old = entry.deadline();
    if old == new {
        return;
    }
    if let Some(at) = old {
        deadlines.remove(&(at, hash));
    }
    entry.set_deadline(new);
    if let Some(at) = new {
        deadlines.insert((at, hash));
    }
}

/// Writes out an entry that the running snapshot has not seen, before it changes.
#[inline]
fn before_change(copying: &mut Option<Box<Copying>>, epoch: u16, entry: &mut Entry) {
    if let Some(copying) = copying
        && entry.epoch() != epoch
    {
        copying.copied.push(entry);
        entry.set_epoch(epoch);
    }
}
