//! Consecutive records that share one buffer.

use crate::format::raw;
use crate::{Lsn, Record};

/// Verified consecutive records in one reusable buffer.
///
/// The buffer holds binary frames whatever the format on disk, so iterating costs a few nanoseconds
/// per record and allocates nothing.
#[derive(Debug, Default)]
pub struct RecordBatch {
    pub(crate) bytes: Vec<u8>,
    /// Verified frames are in `start..end` of `bytes`.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) first: Lsn,
    pub(crate) last: Lsn,
}

impl RecordBatch {
    /// LSN of the first record; `ZERO` when the batch is empty.
    pub fn first_lsn(&self) -> Lsn {
        self.first
    }

    /// LSN of the last record; `ZERO` when the batch is empty.
    pub fn last_lsn(&self) -> Lsn {
        self.last
    }

    /// Number of records.
    pub fn len(&self) -> u64 {
        if self.first == Lsn::ZERO { 0 } else { self.last.0 - self.first.0 + 1 }
    }

    /// Returns whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.first == Lsn::ZERO
    }

    /// Returns the records in LSN order.
    pub fn iter(&self) -> Records<'_> {
        Records { rest: &self.bytes[self.start..self.end], skip_before: self.first }
    }

    pub(crate) fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
        self.first = Lsn::ZERO;
        self.last = Lsn::ZERO;
    }

    /// Makes `iter` skip the records before `lsn`.
    pub(crate) fn skip_to(&mut self, lsn: Lsn) {
        if self.is_empty() || lsn <= self.first {
            return;
        }
        if lsn > self.last {
            self.clear();
        } else {
            self.first = lsn;
        }
    }

    pub(crate) fn note(&mut self, lsn: Lsn) {
        assert!(
            self.is_empty() || lsn == self.last.next(),
            "record {lsn} follows record {} in a batch",
            self.last
        );
        if self.is_empty() {
            self.first = lsn;
        }
        self.last = lsn;
    }
}

impl<'a> IntoIterator for &'a RecordBatch {
    type Item = Record<'a>;
    type IntoIter = Records<'a>;

    fn into_iter(self) -> Records<'a> {
        self.iter()
    }
}

/// Iterator over the records of a [`RecordBatch`].
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
    skip_before: Lsn,
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        loop {
            let (record, rest) = raw::split(self.rest)?;
            self.rest = rest;
            if record.kind != raw::MARKER && record.lsn >= self.skip_before {
                return Some(record);
            }
        }
    }
}
