//! What the build of a member speaks and knows. Both ends of a connection state it.

use std::fmt;

use crate::level::Level;

/// Longest version of a build. Bytes.
pub(super) const VERSION_BYTES_MAX: usize = 32;

/// Versions of the protocol between members. A connection uses the highest that both ends speak.
///
/// A change of frames, requests or answers is a new version. Each build speaks its own and the one
/// before, so that members are upgraded one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocols {
    /// The oldest.
    pub oldest: u16,
    /// The newest.
    pub newest: u16,
}

impl Protocols {
    /// Those that this build speaks. Version 1 could not be negotiated.
    pub const OWN: Self = Self { oldest: 2, newest: 2 };

    /// Returns the highest version that both speak.
    pub(super) fn common(self, other: Self) -> Option<u16> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }
}

impl fmt::Display for Protocols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { oldest, newest } if oldest == newest => write!(f, "version {newest}"),
            Self { oldest, newest } => write!(f, "versions {oldest} to {newest}"),
        }
    }
}

/// A build, as its member states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// The versions of the protocol that it speaks.
    pub protocols: Protocols,
    /// The highest level of records that it applies.
    pub level: Level,
    /// Its version, for people. What is behind 32 bytes is left out.
    pub version: String,
}

impl Default for Build {
    fn default() -> Self {
        Self { protocols: Protocols::OWN, level: Level::FIRST, version: String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_common_version_is_used() {
        let range = |oldest, newest| Protocols { oldest, newest };
        for (one, other, common) in [
            (range(2, 2), range(2, 2), Some(2)),
            (range(2, 3), range(3, 4), Some(3)),
            (range(2, 9), range(3, 4), Some(4)),
            (range(2, 3), range(4, 5), None),
        ] {
            assert_eq!((one.common(other), other.common(one)), (common, common), "{one} and {other}");
        }
    }
}
