//! Where a block is, or will be: what a snapshot refers to it by.

use tidemark_series::BUNDLE_BLOCKS;

/// The bit of a position that says that the block is in a bundle.
const BUNDLED: u64 = 1 << 63;

/// Which block of a file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Where {
    /// One that is stored as it is, at this offset.
    Alone(u64),
    /// One of a bundle.
    Bundled {
        /// Number of the bundle in its file, from 0.
        bundle: u32,
        /// Index of the block in it.
        index: u8,
    },
}

/// Where a block is: in which file, and where in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    /// Number of the block file.
    pub(crate) file: u64,
    pub(crate) at: Where,
}

impl Where {
    /// Returns it as one integer.
    pub(super) fn position(self) -> u64 {
        match self {
            Self::Alone(offset) => offset,
            Self::Bundled { .. } => BUNDLED | self.in_bundles(),
        }
    }

    /// Undoes [`Where::position`].
    pub(super) fn of_position(position: u64) -> Self {
        if position & BUNDLED == 0 {
            return Self::Alone(position);
        }
        Self::of_bundles(position & !BUNDLED).expect("a position in a bundle was one before")
    }

    /// Returns a block's place in bundles as one small integer; an offset is what it is.
    pub(crate) fn in_bundles(self) -> u64 {
        match self {
            Self::Alone(offset) => offset,
            Self::Bundled { bundle, index } => u64::from(bundle) * BUNDLE_BLOCKS as u64 + u64::from(index),
        }
    }

    /// Undoes [`Where::in_bundles`]; `None` if no file has so many.
    pub(crate) fn of_bundles(place: u64) -> Option<Self> {
        let bundle = u32::try_from(place / BUNDLE_BLOCKS as u64).ok()?;
        Some(Self::Bundled { bundle, index: (place % BUNDLE_BLOCKS as u64) as u8 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_what_it_was_made_of() {
        let places = [
            Where::Alone(32),
            Where::Alone(1 << 50),
            Where::Bundled { bundle: 0, index: 0 },
            Where::Bundled { bundle: 7, index: 5 },
            Where::Bundled { bundle: u32::MAX, index: 7 },
        ];
        for at in places {
            assert_eq!(Where::of_position(at.position()), at);
        }
        assert_eq!(Where::of_bundles(61), Some(Where::Bundled { bundle: 7, index: 5 }));
        assert_eq!(Where::of_bundles(u64::MAX), None);
    }
}
