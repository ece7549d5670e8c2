//! Lists of keys, kept up to date: `KEYS` and `SCAN` would look through the whole keyspace after every change.

use super::read::{MAX_ANSWER_BYTES, Read};
use crate::command::parse;
use crate::context::Keys;
use crate::keyspace::Entry;
use crate::reply::{Protocol, Reply};
use std::collections::BTreeSet;

/// The keys that a watched `KEYS` or `SCAN` answers, and those that have changed since.
#[derive(Debug)]
pub(super) struct Listing {
    pattern: Option<Box<[u8]>>,
    kind: Option<Box<[u8]>>,
    /// `SCAN`, whose answer has a cursor in front.
    has_cursor: bool,
    keys: BTreeSet<Box<[u8]>>,
    /// What the keys take.
    bytes: usize,
    changed: Changed,
}

/// What a key takes beside its bytes, about: its pointer and its part of a half-full node.
const KEY_BYTES: usize = 32;

/// What has changed since the listing was brought up to date.
#[derive(Debug)]
enum Changed {
    Keys(Vec<Box<[u8]>>),
    Everything,
}

impl Listing {
    /// The listing that answers a read, empty yet; `None` if the read is of another kind.
    pub(super) fn new(read: &Read) -> Option<Box<Self>> {
        let owned = |option: Option<&[u8]>| option.map(Box::from);
        let (pattern, kind, has_cursor) = match read.name() {
            "keys" => (owned(read.args().nth(1)), None, false),
            "scan" => (owned(read.option("MATCH")), owned(read.option("TYPE")), true),
            _ => return None,
        };
        let (keys, changed) = (BTreeSet::new(), Changed::Everything);
        Some(Box::new(Self { pattern, kind, has_cursor, keys, bytes: 0, changed }))
    }

    /// What the listing takes beside itself.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Notes that a key has changed. O(1).
    pub(super) fn note(&mut self, key: &[u8]) {
        if let Changed::Keys(changed) = &mut self.changed {
            changed.push(key.into());
        }
    }

    /// Notes that anything may have changed.
    pub(super) fn note_everything(&mut self) {
        self.changed = Changed::Everything;
    }

    /// Brings the listing up to date with the keys of the selected database, all of which are locked; whether it has changed.
    /// O(log n) for each key that has.
    pub(super) fn update(&mut self, keys: &mut Keys<'_>) -> bool {
        match std::mem::replace(&mut self.changed, Changed::Keys(Vec::new())) {
            Changed::Keys(changed) => {
                let mut is_changed = false;
                for key in changed {
                    let is_listed =
                        keys.as_logged(|keys| keys.peek(&key).is_some_and(|entry| self.lists(entry)));
                    let bytes = key.len() + KEY_BYTES;
                    if is_listed && self.keys.insert(key.clone()) {
                        self.bytes += bytes;
                        is_changed = true;
                    } else if !is_listed && self.keys.remove(&key) {
                        self.bytes -= bytes;
                        is_changed = true;
                    }
                }
                is_changed
            }
            Changed::Everything => {
                let (db, mut found) = (keys.db() as usize, BTreeSet::new());
                for shard in keys.shards() {
                    shard.database(db).table().for_each(|entry| {
                        if self.lists(entry) {
                            found.insert(entry.key().into());
                        }
                    });
                }
                let is_changed = found != self.keys;
                self.bytes = found.iter().map(|key| key.len() + KEY_BYTES).sum();
                self.keys = found;
                is_changed
            }
        }
    }

    /// The read's answer. O(n).
    pub(super) fn answer(&self, protocol: Protocol, buffer: &mut Vec<u8>) {
        let mut reply = Reply::with_buffer(std::mem::take(buffer), protocol);
        reply.set_limit(MAX_ANSWER_BYTES);
        if self.has_cursor {
            reply.array(2);
            reply.bulk(b"0");
        }
        reply.array(self.keys.len());
        self.keys.iter().for_each(|key| reply.bulk(key));
        super::read::replace_overlong(&mut reply);
        *buffer = reply.take();
    }

    fn lists(&self, entry: &Entry) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| parse::glob(pattern, entry.key()))
            && self
                .kind
                .as_ref()
                .is_none_or(|kind| kind.eq_ignore_ascii_case(entry.type_of().name().as_bytes()))
    }
}
