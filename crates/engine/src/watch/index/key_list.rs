//! Maintained lists of keys: without them `KEYS` and `SCAN` would search the whole keyspace after
//! every change.

use crate::command::parse;
use crate::keyspace::Entry;
use std::collections::BTreeSet;

/// The keys that a watched `KEYS` or `SCAN` answers, and those changed since.
#[derive(Debug)]
pub(in crate::watch) struct Listing {
    pattern: Option<Box<[u8]>>,
    kind: Option<Box<[u8]>>,
    /// Whether the answer begins with a cursor, as that of `SCAN` does.
    pub(in crate::watch) has_cursor: bool,
    pub(in crate::watch) keys: BTreeSet<Box<[u8]>>,
    /// Approximate bytes of `keys`.
    bytes: usize,
    changed: Changed,
}

/// Approximate overhead of a key: its pointer and its part of a half-full node.
const KEY_BYTES: usize = 32;

/// Changes since the last update of the listing.
#[derive(Debug)]
pub(in crate::watch) enum Changed {
    Keys(Vec<Box<[u8]>>),
    Everything,
}

impl Listing {
    pub(in crate::watch) fn new(
        pattern: Option<Box<[u8]>>,
        kind: Option<Box<[u8]>>,
        has_cursor: bool,
    ) -> Self {
        Self { pattern, kind, has_cursor, keys: BTreeSet::new(), bytes: 0, changed: Changed::Everything }
    }

    pub(in crate::watch) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Records that a key has changed. O(1).
    pub(in crate::watch) fn note(&mut self, key: &[u8]) {
        if let Changed::Keys(changed) = &mut self.changed {
            changed.push(key.into());
        }
    }

    /// Records that any key may have changed.
    pub(in crate::watch) fn note_everything(&mut self) {
        self.changed = Changed::Everything;
    }

    /// Takes the recorded changes, for an update.
    pub(in crate::watch) fn take_changed(&mut self) -> Changed {
        std::mem::replace(&mut self.changed, Changed::Keys(Vec::new()))
    }

    /// Adds or removes a key. Returns whether the listing has changed.
    pub(in crate::watch) fn set(&mut self, key: Box<[u8]>, is_listed: bool) -> bool {
        let bytes = key.len() + KEY_BYTES;
        if is_listed {
            let is_new = self.keys.insert(key);
            self.bytes += if is_new { bytes } else { 0 };
            is_new
        } else {
            let was_listed = self.keys.remove(&key);
            let (all, freed) = (self.bytes, if was_listed { bytes } else { 0 });
            self.bytes =
                all.checked_sub(freed).unwrap_or_else(|| panic!("{freed} of {all} bytes of keys are freed"));
            was_listed
        }
    }

    /// Replaces the listed keys. Returns whether the listing has changed.
    pub(in crate::watch) fn replace(&mut self, keys: BTreeSet<Box<[u8]>>) -> bool {
        let is_changed = keys != self.keys;
        self.bytes = keys.iter().map(|key| key.len() + KEY_BYTES).sum();
        self.keys = keys;
        is_changed
    }

    /// Returns whether the read lists the key of an entry.
    pub(in crate::watch) fn lists(&self, entry: &Entry) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| parse::glob(pattern, entry.key()))
            && self
                .kind
                .as_ref()
                .is_none_or(|kind| kind.eq_ignore_ascii_case(entry.type_of().name().as_bytes()))
    }
}
