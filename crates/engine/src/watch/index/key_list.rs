//! Maintained lists of keys: without them `KEYS` and `SCAN` would search the whole keyspace after
//! every change.

use crate::command::parse;
use crate::keyspace::Entry;
use crate::watch::index::key_set::KeySet;

/// The keys that a watched `KEYS` or `SCAN` answers.
#[derive(Debug)]
pub(in crate::watch) struct Listing {
    pattern: Option<Box<[u8]>>,
    kind: Option<Box<[u8]>>,
    /// Whether the answer begins with a cursor, as that of `SCAN` does.
    pub(in crate::watch) has_cursor: bool,
    pub(in crate::watch) keys: KeySet,
}

impl Listing {
    pub(in crate::watch) fn new(
        pattern: Option<Box<[u8]>>,
        kind: Option<Box<[u8]>>,
        has_cursor: bool,
    ) -> Self {
        Self { pattern, kind, has_cursor, keys: KeySet::default() }
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
