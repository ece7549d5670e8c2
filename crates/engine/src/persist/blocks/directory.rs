//! Where the bundles of a block file are. They fill it from its beginning; the directory follows, and
//! then the end, whose size is known and which says where the directory is.
//!
//! ```text
//! directory  "TIDEBDIR" │ (number u32 │ length u32)*, of each bundle in the order of the file
//! end        "TIDEBEND" │ offset of the directory u64 │ its length u64
//! ```

use tidemark_log::BlockFile;
use tidemark_log::snapshot::{BLOCK_FILE_HEADER_BYTES, BLOCK_OVERHEAD_BYTES};

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

/// The bundles of a file.
#[derive(Debug, Default)]
pub(super) struct Directory {
    /// By their numbers.
    extents: Vec<Extent>,
    /// Numbers in the order of the file.
    order: Vec<u32>,
}

impl Directory {
    /// Lists bundles in the order of the file, by numbers and lengths; `None` if a number below theirs is
    /// missing.
    pub(super) fn of(bundles: impl ExactSizeIterator<Item = (u32, u32)>) -> Option<Self> {
        let missing = Extent { offset: 0, length: 0 };
        let mut directory = Self { extents: vec![missing; bundles.len()], order: Vec::new() };
        let mut offset = BLOCK_FILE_HEADER_BYTES as u64;
        for (number, length) in bundles {
            let extent = directory.extents.get_mut(number as usize).filter(|extent| **extent == missing)?;
            *extent = Extent { offset, length };
            offset += BLOCK_OVERHEAD_BYTES as u64 + u64::from(length);
            directory.order.push(number);
        }
        Some(directory)
    }

    /// Returns where a bundle is.
    pub(super) fn find(&self, bundle: u32) -> Option<Extent> {
        self.extents.get(bundle as usize).copied()
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = DIRECTORY.to_vec();
        for number in &self.order {
            bytes.extend(number.to_le_bytes());
            bytes.extend(self.extents[*number as usize].length.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (bundles, rest) = bytes.strip_prefix(&DIRECTORY)?.as_chunks::<8>();
        let bundle = |[a, b, c, d, e, f, g, h]: &[u8; 8]| {
            (u32::from_le_bytes([*a, *b, *c, *d]), u32::from_le_bytes([*e, *f, *g, *h]))
        };
        if rest.is_empty() { Self::of(bundles.iter().map(bundle)) } else { None }
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
        let (numbers, _) = end.strip_prefix(&END).ok_or_else(damaged)?.as_chunks::<8>();
        let [offset, length] = numbers else { return Err(damaged()) };
        let (offset, length) = (u64::from_le_bytes(*offset), u64::from_le_bytes(*length));
        let length = usize::try_from(length).ok().filter(|length| *length as u64 <= file.bytes());
        let bytes =
            file.read_block(offset, length.ok_or_else(damaged)?).map_err(|error| error.to_string())?;
        Self::decode(&bytes).ok_or_else(damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_read_as_it_was_written() {
        let directory =
            Directory::of([(1, 100), (0, 7), (2, 50)].into_iter()).expect("all numbers are there");
        let read = Directory::decode(&directory.encode()).expect("it is well formed");
        let extents = [Extent { offset: 140, length: 7 }, Extent { offset: 32, length: 100 }];
        assert_eq!([read.find(0), read.find(1)], extents.map(Some));
        assert_eq!(read.find(2), Some(Extent { offset: 155, length: 50 }));
        assert_eq!(read.find(3), None);
        let bytes = directory.encode();
        assert!(Directory::decode(&bytes[..bytes.len() - 1]).is_none());
        let without_first = [&bytes[..8], &bytes[16..]].concat();
        assert!(Directory::decode(&without_first).is_none(), "number 1 is missing, and there is a number 2");
        assert!(Directory::decode(&bytes[1..]).is_none());
        assert!(Directory::of([(0, 1), (0, 1)].into_iter()).is_none());
    }
}
