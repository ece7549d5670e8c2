//! The level of a group: which kinds of records its log may have.

use std::fmt;

/// A level of records. A build knows all kinds up to its own level; a group's log has none above the
/// group's, which rises when all members know more, and never falls.
///
/// A number of the builds: what it means is for the records' crate to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(pub u8);

impl Level {
    /// The level of a group that has never stated one.
    pub const FIRST: Self = Self(1);
}

impl Default for Level {
    fn default() -> Self {
        Self::FIRST
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
