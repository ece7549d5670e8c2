//! A reconstructed header, in place of the damaged one of a segment.

use std::collections::BTreeMap;

use super::ToolError;
use crate::error::Failure;
use crate::segment::{Segment, segment_name};
use crate::segment_header::SegmentHeader;
use crate::storage::Storage;
use crate::{Format, Lsn};

/// The reconstructed headers, by the first LSN of their segments.
pub(super) type Headers = BTreeMap<Lsn, Salvaged>;

/// A reconstructed header, and the format of its segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Salvaged {
    pub(super) header: SegmentHeader,
    pub(super) format: Format,
}

impl Salvaged {
    /// Opens the segment with this header.
    pub(super) fn segment(self, storage: &dyn Storage) -> Result<Segment, ToolError> {
        let name = segment_name(self.header.first_lsn);
        let failed = |error| Failure::new(format!("opening {}", storage.path(&name)), error);
        let file = storage.open(&name).map_err(failed)?;
        let data_offset = self.bytes().len() as u64;
        Ok(Segment { name, header: self.header, format: self.format, data_offset, file })
    }

    pub(super) fn bytes(self) -> Vec<u8> {
        self.format.codec().encode_header(&self.header)
    }
}
