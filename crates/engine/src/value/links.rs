//! Links between the values of a database: keys that a command reaches through a key that it names.
//!
//! ```text
//! source ──rule──► destination      a change of the source is one of the destination
//!        ◄──────── destination      the open bucket is read from the source; both know the other
//! lens ───────────► source           a read of the lens reads the source, by its name alone
//!      ◄─ sights ── source           a change of the source is one of what the lens shows
//! ```
//!
//! Three places depend on links, and learn all of them here: locks are closed over them (`locking`),
//! values that go are cut off from the others (`context/keys/links`), and a replay of some keys takes
//! the linked ones along (`watch/replay`).

use super::Object;

/// How a value uses a key that it links to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkUse {
    /// A change of the value may change the key's.
    Writes,
    /// A read of the value may read the key, whose value knows of it.
    Reads,
    /// A read of the value reads whatever is at the key, which knows nothing of it.
    Sees,
    /// The key has a lens that sees the value, so a change of the value is one of the key.
    Shows,
}

/// A value that may link to other keys of its database.
pub(crate) trait Linking {
    /// Whether it links to a key. O(1).
    fn has_links(&self) -> bool;

    /// Visits the keys that it links to; a key that it uses in both ways twice.
    fn for_each_link(&self, visit: &mut dyn FnMut(&[u8], LinkUse));

    /// Ends its links to a key, whose value goes.
    fn cut_link(&mut self, key: &[u8]);

    /// Moves its links from a key to the key's new name.
    fn rename_link(&mut self, from: &[u8], to: &[u8]);

    /// Ends all of its links, because it goes to another database or is a copy.
    fn cut_all_links(&mut self);
}

impl Object {
    /// Returns the value if its type may link to keys.
    #[inline]
    pub(crate) fn linking(&self) -> Option<&dyn Linking> {
        match self {
            Self::Series(series) => Some(series),
            Self::Lens(lens) => Some(lens),
            _ => None,
        }
    }

    /// Like [`Object::linking`], mutable.
    pub(crate) fn linking_mut(&mut self) -> Option<&mut dyn Linking> {
        match self {
            Self::Series(series) => Some(series),
            Self::Lens(lens) => Some(lens),
            _ => None,
        }
    }

    /// Whether the value links to a key.
    #[inline]
    pub(crate) fn has_links(&self) -> bool {
        self.linking().is_some_and(Linking::has_links)
    }
}
