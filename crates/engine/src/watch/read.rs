//! What is watched: a read-only command with its arguments, its database and the protocol of its answer.
//!
//! Here is what it says by itself. What the command table says of it, and its answers, are in `reading`.

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
    /// Id of the command's row.
    pub(super) command: u16,
    /// Where the key stands among the arguments, if it is the only one and nothing else is read; 0 otherwise.
    pub(super) sole_key: u8,
    /// Where the pattern stands among the arguments that the names of keys have to match, if it looks through all keys for those;
    /// 0 otherwise.
    pub(super) pattern: u8,
    pub(super) words: SharedBytes,
}

/// The words of a read, in one piece: how many arguments there are behind the command's name, these, and the operators that its
/// answers go through. Each one is its length and its bytes, and every number a varint.
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

/// Words of a read, in place as long as they are few.
pub(super) type Borrowed<'a> = SmallVec<[&'a [u8]; 8]>;

impl Read {
    /// The database.
    pub fn db(&self) -> u8 {
        self.db
    }

    /// The protocol of the answers.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// What its answers go through: operators as they are written.
    pub fn operators(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let (count, words) = self.words();
        words.skip(count).collect::<Borrowed<'_>>().into_iter()
    }

    pub(super) fn filter(&self) -> Filter {
        Filter::of_words(self.operators())
    }

    /// The key that it reads, if it reads one and nothing else. O(arguments before it), of which most reads have none.
    pub(super) fn sole_key(&self) -> Option<&[u8]> {
        let before = usize::from(self.sole_key.checked_sub(1)?);
        self.words().1.nth(before)
    }

    /// Whether a change of this key, which it does not name, may change its answer, as far as can be told without a look
    /// at the state.
    pub(super) fn may_concern(&self, key: &[u8]) -> bool {
        let pattern = usize::from(self.pattern).checked_sub(1).and_then(|before| self.words().1.nth(before));
        pattern.is_none_or(|pattern| parse::glob(pattern, key))
    }

    /// The arguments at their positions, of which the first is that of the command's name, where nothing stands.
    pub(super) fn placed(&self) -> Borrowed<'_> {
        let (count, words) = self.words();
        std::iter::once(&[][..]).chain(words.take(count)).collect()
    }

    /// What it takes of memory beside its own size.
    pub(super) fn bytes(&self) -> usize {
        self.words.heap_bytes()
    }

    /// How many arguments there are behind the command's name, and these followed by the operators.
    pub(super) fn words(&self) -> (usize, Words<'_>) {
        let mut packed = Cursor::new(&self.words);
        let count =
            packed.varint().expect("the words of a read begin with how many arguments there are") as usize;
        (count, Words(packed))
    }
}
