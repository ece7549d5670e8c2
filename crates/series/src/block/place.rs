//! Where a block's words are kept outside of memory.

use super::Block;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A file of blocks, as far as this crate needs one: it does no input and output itself.
pub trait BlockSource: Send + Sync + fmt::Debug {
    /// Returns the words of the block at a position, of which the caller has the header in a block without
    /// points. The caller checks that they are those.
    ///
    /// # Errors
    /// What is wrong, with the file and the offset, as a message for people.
    fn read(&self, position: u64, header: &Block, beside: &mut Beside) -> Result<Vec<u64>, String>;

    /// Says where the block at a position is, with the file and the offset, for people.
    fn describe(&self, position: u64) -> String;

    /// Returns the number of the file.
    fn number(&self) -> u64;
}

/// What sources have read beside the blocks that they were asked for, to be kept as long as one reading goes
/// on: blocks that are read next may be there. A later reading reads the file again.
#[derive(Debug, Default)]
pub struct Beside(Option<Box<dyn Any + Send>>);

impl Beside {
    /// Returns what is kept, of the type that the sources of a program keep.
    pub fn kept<T: Any + Send + Default>(&mut self) -> &mut T {
        if !self.0.as_ref().is_some_and(|kept| kept.is::<T>()) {
            self.0 = Some(Box::new(T::default()));
        }
        self.0.as_mut().and_then(|kept| kept.downcast_mut()).expect("it was just made")
    }
}

/// Where a block's words are: in which file, and where in it.
#[derive(Debug, Clone)]
pub struct Place {
    /// The file.
    pub source: Arc<dyn BlockSource>,
    /// Position in the file, as the source understands it.
    pub position: u64,
    /// Bytes of the file that the block takes.
    pub bytes: u32,
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
