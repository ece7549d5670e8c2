//! A segment file that holds no record yet.

use crate::storage::StorageFile;

/// The next file that the log can go on in.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) name: String,
    pub(crate) file: Box<dyn StorageFile>,
    pub(crate) bytes: u64,
    pub(crate) recycled: bool,
}
