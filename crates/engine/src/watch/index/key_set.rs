//! Keys that a query reads without naming them, and which have changed since it was brought up to date.

use std::collections::BTreeSet;

/// See the module's documentation.
#[derive(Debug)]
pub(in crate::watch) struct KeySet {
    keys: BTreeSet<Box<[u8]>>,
    /// Approximate bytes of `keys`.
    bytes: usize,
    changed: Changed,
}

/// Approximate overhead of a key: its pointer and its part of a half-full node.
const KEY_BYTES: usize = 32;

/// Changes since the last update of the keys.
#[derive(Debug)]
pub(in crate::watch) enum Changed {
    Keys(Vec<Box<[u8]>>),
    Everything,
}

impl Default for KeySet {
    fn default() -> Self {
        Self { keys: BTreeSet::new(), bytes: 0, changed: Changed::Everything }
    }
}

impl KeySet {
    pub(in crate::watch) fn keys(&self) -> &BTreeSet<Box<[u8]>> {
        &self.keys
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

    /// Adds or removes a key. Returns whether the keys have changed.
    pub(in crate::watch) fn set(&mut self, key: &[u8], is_read: bool) -> bool {
        let bytes = key.len() + KEY_BYTES;
        if is_read {
            let is_new = !self.keys.contains(key) && self.keys.insert(key.into());
            self.bytes += if is_new { bytes } else { 0 };
            is_new
        } else {
            let was_read = self.keys.remove(key);
            let (all, freed) = (self.bytes, if was_read { bytes } else { 0 });
            self.bytes =
                all.checked_sub(freed).unwrap_or_else(|| panic!("{freed} of {all} bytes of keys are freed"));
            was_read
        }
    }

    /// Replaces the keys. Returns those before.
    pub(in crate::watch) fn replace(&mut self, keys: BTreeSet<Box<[u8]>>) -> BTreeSet<Box<[u8]>> {
        self.bytes = keys.iter().map(|key| key.len() + KEY_BYTES).sum();
        std::mem::replace(&mut self.keys, keys)
    }
}
