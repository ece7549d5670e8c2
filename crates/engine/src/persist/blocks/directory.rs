//! Where the bundles of a block file are. It is the last but one payload of the file, and the last one,
//! whose size is known, says where it is.
//!
//! ```text
//! directory  "TIDEBDIR" │ number of bundles varint │ (offset varint, length varint)*
//! end        "TIDEBEND" │ offset of the directory u64 │ its length u64
//! ```

use crate::persist::record::{Cursor, put_varint};
use tidemark_log::BlockFile;
use tidemark_log::snapshot::BLOCK_OVERHEAD_BYTES;

const DIRECTORY: [u8; 8] = *b"TIDEBDIR";
const END: [u8; 8] = *b"TIDEBEND";

/// Bytes of the end.
const END_BYTES: usize = 24;

/// Payload of a bundle in a block file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}

/// The bundles of a file, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Directory(Vec<Extent>);

impl Directory {
    /// Lists bundles in the order of their numbers.
    pub(super) fn of(extents: Vec<Extent>) -> Self {
        Self(extents)
    }

    /// Returns where a bundle is.
    pub(super) fn find(&self, bundle: u32) -> Option<Extent> {
        self.0.get(bundle as usize).copied()
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = DIRECTORY.to_vec();
        put_varint(&mut bytes, self.0.len() as u64);
        for extent in &self.0 {
            put_varint(&mut bytes, extent.offset);
            put_varint(&mut bytes, u64::from(extent.length));
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Cursor::new(bytes.strip_prefix(&DIRECTORY)?);
        let count = usize::try_from(bytes.varint()?).ok().filter(|count| *count <= bytes.remaining())?;
        let mut extents = Vec::with_capacity(count);
        for _ in 0..count {
            let offset = bytes.varint()?;
            extents.push(Extent { offset, length: u32::try_from(bytes.varint()?).ok()? });
        }
        bytes.is_empty().then_some(Self(extents))
    }

    /// Returns the payload that says where the directory is.
    pub(super) fn end(offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = END.to_vec();
        bytes.extend(offset.to_le_bytes());
        bytes.extend((length as u64).to_le_bytes());
        bytes
    }

    /// Reads the directory of a file.
    ///
    /// # Errors
    /// It cannot be read, or the file has none.
    pub(super) fn read(file: &BlockFile) -> Result<Self, String> {
        let damaged = || format!("{}: the directory of its bundles is not well formed", file.path());
        let end_offset = file.bytes().checked_sub((BLOCK_OVERHEAD_BYTES + END_BYTES) as u64);
        let end = file.read_block(end_offset.ok_or_else(damaged)?, END_BYTES);
        let end = end.map_err(|error| error.to_string())?;
        let mut numbers = Cursor::new(end.strip_prefix(&END).ok_or_else(damaged)?);
        let (offset, length) = (numbers.u64().ok_or_else(damaged)?, numbers.u64().ok_or_else(damaged)?);
        let length = usize::try_from(length).ok().filter(|length| *length as u64 <= file.bytes());
        let bytes =
            file.read_block(offset, length.ok_or_else(damaged)?).map_err(|error| error.to_string())?;
        Self::decode(&bytes).ok_or_else(damaged)
    }
}
