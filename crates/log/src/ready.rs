//! A prepared segment file without records.

use crate::storage::StorageFile;

/// A file that the log can continue in.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) name: String,
    pub(crate) file: Box<dyn StorageFile>,
    pub(crate) bytes: u64,
    pub(crate) recycled: bool,
}
