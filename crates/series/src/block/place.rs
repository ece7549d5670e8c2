//! Where a block's words are kept outside of memory.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A file of blocks, as far as this crate needs one: it does no input and output itself.
pub trait BlockSource: Send + Sync + fmt::Debug {
    /// Returns the words of the block at an offset. They are checked by the caller as well.
    ///
    /// # Errors
    /// What is wrong, with the file and the offset, as a message for people.
    fn read(&self, offset: u64, words: usize) -> Result<Vec<u64>, String>;

    /// Returns the number of the file.
    fn number(&self) -> u64;
}

/// Where a block's words are: in which file, and at which offset.
#[derive(Debug, Clone)]
pub struct Place {
    /// The file.
    pub source: Arc<dyn BlockSource>,
    /// Offset in the file. Bytes.
    pub offset: u64,
}

/// The place of a block, once it has one. Shared by all that share the block.
#[derive(Debug, Default)]
pub(super) struct Placed(Mutex<Option<Place>>);

impl Placed {
    pub(super) fn at(place: Place) -> Self {
        Self(Mutex::new(Some(place)))
    }

    pub(super) fn get(&self) -> Option<Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, place: Place) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
    }

    /// Looks at the place without cloning it.
    pub(super) fn with<T>(&self, look: impl FnOnce(&Place) -> T) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(look)
    }
}
