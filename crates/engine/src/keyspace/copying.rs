//! A database's part in a running snapshot: it provides its entries as they were at the cut.
//!
//! A walk in hash order writes the entries in slices. A command that is about to change an entry
//! before the walk has reached it writes the entry first. A large value is not written at once but
//! *captured* (see `value::capture`): it waits in a queue, which the walk works off before it
//! continues. A captured value that moves to another key is queued again there. A removed value
//! that the snapshot has not seen completely is handed over to the snapshot, which writes it
//! without a lock.

use super::form::{self, Head};
use super::{Entry, Table};
use crate::persist::blocks::Blocks;
use crate::value::{InParts, Object, Pieces};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// An entry of this many bytes costs the walk as much as two small ones.
const ENTRY_BYTES: usize = 256;

/// Assigns each value in parts a unique number within a snapshot.
#[derive(Debug, Clone, Default)]
pub(crate) struct Numbers(Arc<AtomicU64>);

impl Numbers {
    /// Number of assigned numbers.
    pub(crate) fn given(&self) -> u64 {
        self.0.load(Relaxed)
    }

    fn next(&self) -> u64 {
        self.0.fetch_add(1, Relaxed)
    }
}

/// What all databases of a running snapshot share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cut {
    /// Numbers of the values in parts.
    pub(crate) numbers: Numbers,
    /// How blocks of series are written.
    pub(crate) blocks: Blocks,
}

/// A running snapshot's state within a database.
pub(super) struct Copying {
    /// The database's number at the cut; `SWAPDB` may have changed it since.
    number: u8,
    /// Number of the snapshot, stored in the entries that it has seen or captured.
    epoch: u16,
    cut: Cut,
    /// Pieces written since the last slice.
    copied: Pieces,
    /// Position of the walk in hash order; `None` at the end.
    position: Option<u64>,
    /// Keys of captured values.
    captured: VecDeque<Box<[u8]>>,
    detached: Vec<Detached>,
}

impl Copying {
    pub(super) fn new(number: u8, epoch: u16, cut: Cut) -> Self {
        Self {
            number,
            epoch,
            copied: Pieces::with_blocks(&cut.blocks),
            cut,
            position: Some(0),
            captured: VecDeque::new(),
            detached: Vec::new(),
        }
    }

    /// As [`Copying::new`], for a database that the snapshot has seen completely, so that it can
    /// adopt captured values.
    pub(super) fn reopened(epoch: u16) -> Self {
        Self { position: None, ..Self::new(0, epoch, Cut::default()) }
    }

    /// Writes an entry if the snapshot has not seen it. Must be called before the entry changes.
    /// Returns the number of bytes written.
    pub(super) fn see(&mut self, entry: &mut Entry) -> usize {
        if entry.epoch() == self.epoch {
            return 0;
        }
        entry.set_epoch(self.epoch);
        if begin_capture(entry, &self.cut.numbers, &mut self.copied) {
            self.captured.push_back(entry.key().into());
            return 0;
        }
        self.copied.push(|piece| form::encode_with(entry, &self.cut.blocks, piece))
    }

    /// Hands a captured value over to the snapshot. Must be called before the value leaves its key
    /// for good.
    pub(super) fn hand_over(&mut self, entry: &mut Entry) {
        if is_captured(entry)
            && let Some(object) = entry.take_object()
        {
            self.detached.push(self.detach(Rest::Value(object)));
        }
    }

    /// Continues with a captured value that has moved to this key.
    pub(super) fn adopt(&mut self, key: &[u8]) {
        self.captured.push_back(key.into());
    }

    /// Takes over a table whose entries are all being removed; nothing is left to walk here.
    pub(super) fn hand_over_all(&mut self, table: Table<Entry>) {
        self.detached.push(self.detach(Rest::Table(table)));
        self.captured.clear();
        self.position = None;
    }

    fn detach(&self, rest: Rest) -> Detached {
        Detached {
            number: self.number,
            epoch: self.epoch,
            cut: self.cut.clone(),
            rests: vec![rest],
            position: 0,
        }
    }

    /// Advances the walk by about `budget` entries, fewer if they are large.
    pub(super) fn step(&mut self, table: &mut Table<Entry>, budget: usize) -> Slice {
        if let Some(key) = self.captured.front() {
            // A value that left its key was handed over or adopted elsewhere; a new value here is
            // not captured.
            let value = value_of(table, key);
            if !value.is_some_and(|value| value.capture_step(&mut self.copied)) {
                self.captured.pop_front();
            }
        } else if let Some(position) = self.position {
            let next = table.scan_mut(position, budget, |entry| 1 + self.see(entry) / ENTRY_BYTES);
            self.position = Some(next).filter(|&next| next != 0);
        }
        Slice {
            number: self.number,
            entries: std::mem::replace(&mut self.copied, Pieces::with_blocks(&self.cut.blocks)),
            detached: std::mem::take(&mut self.detached),
        }
    }

    /// Whether the snapshot has seen everything, after a slice.
    pub(super) fn is_done(&self) -> bool {
        self.position.is_none() && self.captured.is_empty()
    }

    /// Ends the captures of values in the table; the snapshot will not be completed.
    pub(super) fn stop(self, table: &mut Table<Entry>) {
        for key in self.captured {
            if let Some(value) = value_of(table, &key) {
                value.end_capture();
            }
        }
    }
}

fn value_of<'a>(table: &'a mut Table<Entry>, key: &[u8]) -> Option<&'a mut dyn InParts> {
    table.get_mut(super::hash(key), key).and_then(Entry::object_mut).and_then(Object::in_parts_mut)
}

/// Starts to capture a value if it is large. Returns whether it is.
fn begin_capture(entry: &mut Entry, numbers: &Numbers, pieces: &mut Pieces) -> bool {
    let Some(object) = entry.object() else { return false };
    let Some(value) = object.in_parts().filter(|value| value.needs_parts()) else { return false };
    let number = numbers.next();
    let head = Head {
        number,
        kind: object.kind(),
        deadline: entry.deadline(),
        key: entry.key(),
        count: value.count(),
    };
    pieces.push(|piece| form::encode_head(&head, piece));
    let value = entry.object_mut().and_then(Object::in_parts_mut);
    value.expect("a value that needs parts comes in parts").begin_capture(number);
    true
}

/// Whether a snapshot has seen the entry but not all of its value.
pub(super) fn is_captured(entry: &Entry) -> bool {
    entry.object().and_then(Object::in_parts).is_some_and(InParts::is_captured)
}

/// Result of one step of a walk.
pub(crate) struct Slice {
    /// The database's number at the cut.
    pub(crate) number: u8,
    /// Encoded entries and parts.
    pub(crate) entries: Pieces,
    /// Values and tables that left their keys.
    pub(crate) detached: Vec<Detached>,
}

/// Entries and values that a snapshot took over because they left their keys before it had seen
/// them.
pub(crate) struct Detached {
    /// Their database's number at the cut.
    pub(crate) number: u8,
    epoch: u16,
    cut: Cut,
    /// Processed from the end.
    rests: Vec<Rest>,
    /// Position of the walk in a table.
    position: u64,
}

enum Rest {
    Table(Table<Entry>),
    Value(Box<Object>),
}

impl Detached {
    /// Advances by about `budget` entries; `None` if nothing is left.
    pub(crate) fn step(&mut self, budget: usize) -> Option<Pieces> {
        let mut pieces = Pieces::with_blocks(&self.cut.blocks);
        let mut captured = Vec::new();
        let more = match self.rests.last_mut()? {
            Rest::Value(object) => {
                let value = object.in_parts_mut().expect("a value that was captured comes in parts");
                value.capture_step(&mut pieces)
            }
            Rest::Table(table) => {
                self.position = table.scan_mut(self.position, budget, |entry| {
                    let unseen = entry.epoch() != self.epoch;
                    if (unseen && begin_capture(entry, &self.cut.numbers, &mut pieces)) || is_captured(entry)
                    {
                        captured.extend(entry.take_object().map(Rest::Value));
                    } else if unseen {
                        let blocks = &self.cut.blocks;
                        let bytes = pieces.push(|piece| form::encode_with(entry, blocks, piece));
                        return 1 + bytes / ENTRY_BYTES;
                    }
                    1
                });
                self.position != 0
            }
        };
        if !more {
            self.rests.pop();
        }
        self.rests.append(&mut captured);
        Some(pieces)
    }
}
