//! The watched read: a read-only command with its arguments, database and protocol.
//!
//! This file has what follows from the arguments alone. What needs the command table, and the
//! answers, are in `reading`.

use crate::command::parse;
use crate::persist::record::{self, Cursor};
use crate::watch::filter::Filter;
use crate::wire::reply::Protocol;
use crate::wire::shared_bytes::SharedBytes;
use smallvec::SmallVec;

/// A read. Equal reads share one query.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Read {
    pub(super) db: u8,
    pub(super) protocol: Protocol,
    /// Id of the command's table row.
    pub(super) command: u16,
    /// Position of the key among the arguments if the read has exactly one key; 0 otherwise.
    pub(super) sole_key: u8,
    /// Position of the pattern that key names must match, for a read over all keys; 0 otherwise.
    pub(super) pattern: u8,
    pub(super) words: SharedBytes,
}

/// The words of a read, packed: the number of arguments after the command's name, the arguments,
/// and the filter's operators. Each word is its length and bytes; numbers are varints.
#[derive(Debug, Clone)]
pub(super) struct Words<'a>(Cursor<'a>);

impl Words<'_> {
    pub(super) fn pack<'w>(
        args: impl ExactSizeIterator<Item = &'w [u8]>,
        operators: impl Iterator<Item = &'w [u8]>,
    ) -> SharedBytes {
        let mut packed = Vec::new();
        record::put_varint(&mut packed, args.len() as u64);
        args.chain(operators).for_each(|word| record::put_bytes(&mut packed, word));
        SharedBytes::from(&packed[..])
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.0.bytes()
    }
}

/// Words of a read, without an allocation if they are few.
pub(super) type Borrowed<'a> = SmallVec<[&'a [u8]; 8]>;

impl Read {
    /// Returns the database.
    pub fn db(&self) -> u8 {
        self.db
    }

    /// Returns the protocol of the answers.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns the words of the filter's operators.
    pub fn operators(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let (count, words) = self.words();
        words.skip(count).collect::<Borrowed<'_>>().into_iter()
    }

    pub(super) fn filter(&self) -> Filter {
        Filter::of_words(self.operators())
    }

    /// Returns the key, if the read has exactly one. O(arguments before it), for most reads none.
    pub(super) fn sole_key(&self) -> Option<&[u8]> {
        let before = usize::from(self.sole_key.checked_sub(1)?);
        self.words().1.nth(before)
    }

    /// Returns whether a change of `key`, which the read does not name, may change its answer.
    /// Decided by name alone, without the state.
    pub(super) fn may_concern(&self, key: &[u8]) -> bool {
        let pattern = usize::from(self.pattern).checked_sub(1).and_then(|before| self.words().1.nth(before));
        pattern.is_none_or(|pattern| parse::glob(pattern, key))
    }

    /// Returns the arguments at their positions. Position 0, the command's name, is empty.
    pub(super) fn placed(&self) -> Borrowed<'_> {
        let (count, words) = self.words();
        std::iter::once(&[][..]).chain(words.take(count)).collect()
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.heap_bytes()
    }

    /// Returns the number of arguments after the command's name, and the arguments followed by the
    /// operators.
    pub(super) fn words(&self) -> (usize, Words<'_>) {
        let mut packed = Cursor::new(&self.words);
        let count =
            packed.varint().expect("the words of a read begin with how many arguments there are") as usize;
        (count, Words(packed))
    }
}
