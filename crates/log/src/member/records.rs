//! The records of an entry, as members send them to each other.

use std::fmt;
use std::sync::Arc;

use crate::format::raw;
use crate::{Lsn, Record};

/// The records of one entry, in the form in which members send them to each other. Cloning costs
/// one count of references.
///
/// The checksums in its frames mean nothing: each member computes its own.
#[derive(Clone)]
pub struct EntryRecords {
    frames: Arc<[u8]>,
    first: Lsn,
    last: Lsn,
}

/// Why some bytes are not the records of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes are not the records of an entry: {what} at byte {offset}")]
pub struct InvalidEntry {
    /// Number of bytes.
    pub bytes: usize,
    /// Where they are wrong.
    pub offset: usize,
    /// What is wrong there.
    pub what: &'static str,
}

impl EntryRecords {
    /// Takes the bytes that [`bytes`](Self::bytes) has returned elsewhere. Checks that they are
    /// whole records with dense LSNs; that they are those that were sent, the caller has checked.
    /// O(records), no allocation.
    ///
    /// # Errors
    /// They are not, or there is no record.
    pub fn parse(frames: Arc<[u8]>) -> Result<Self, InvalidEntry> {
        let invalid =
            |rest: &[u8], what| InvalidEntry { bytes: frames.len(), offset: frames.len() - rest.len(), what };
        let (mut first, mut last) = (Lsn::ZERO, Lsn::ZERO);
        let mut rest: &[u8] = &frames;
        while !rest.is_empty() {
            let Some((record, behind)) = raw::split(rest) else {
                return Err(invalid(rest, "a record is cut"));
            };
            if record.kind == raw::MARKER {
                return Err(invalid(rest, "a record has the kind that is the log's own"));
            }
            if record.lsn == Lsn::ZERO || (first != Lsn::ZERO && record.lsn != last.next()) {
                return Err(invalid(rest, "a record does not follow the one before it"));
            }
            first = if first == Lsn::ZERO { record.lsn } else { first };
            last = record.lsn;
            rest = behind;
        }
        if first == Lsn::ZERO {
            return Err(invalid(rest, "there is no record"));
        }
        Ok(Self { frames, first, last })
    }

    /// Makes an entry of one record, for what the group itself logs.
    ///
    /// # Panics
    /// If `kind` is 0, which is the log's own, or `lsn` is 0.
    pub fn of_record(lsn: Lsn, time_us: u64, kind: u8, payload: &[u8]) -> Self {
        assert!(kind != raw::MARKER && lsn != Lsn::ZERO, "record {lsn} of kind {kind} is made");
        let mut frames = Vec::with_capacity(raw::OVERHEAD_BYTES + payload.len());
        raw::begin(&mut frames, lsn, time_us, kind);
        frames.extend_from_slice(payload);
        raw::finish(&mut frames, 0);
        Self { frames: frames.into(), first: lsn, last: lsn }
    }

    /// Takes frames that the log itself has sealed or verified.
    pub(crate) fn of_frames(frames: &[u8], first: Lsn, last: Lsn) -> Self {
        Self { frames: frames.into(), first, last }
    }

    /// LSN of the first record.
    pub fn first_lsn(&self) -> Lsn {
        self.first
    }

    /// LSN of the last record.
    pub fn last_lsn(&self) -> Lsn {
        self.last
    }

    /// The records as bytes, for [`parse`](Self::parse).
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.frames
    }

    /// Returns the records in LSN order.
    pub fn iter(&self) -> impl Iterator<Item = Record<'_>> {
        let mut rest: &[u8] = &self.frames;
        std::iter::from_fn(move || {
            let (record, behind) = raw::split(rest)?;
            rest = behind;
            Some(record)
        })
    }
}

impl PartialEq for EntryRecords {
    fn eq(&self, other: &Self) -> bool {
        self.frames.len() == other.frames.len() && self.iter().eq(other.iter())
    }
}

impl Eq for EntryRecords {}

impl fmt::Debug for EntryRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntryRecords({} to {}, {} bytes)", self.first, self.last, self.frames.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames(lsns: &[u64]) -> Arc<[u8]> {
        let entries = lsns.iter().map(|lsn| EntryRecords::of_record(Lsn(*lsn), 5, 1, b"payload"));
        entries.flat_map(|entry| entry.bytes().to_vec()).collect::<Vec<u8>>().into()
    }

    #[test]
    fn records_that_were_sent_are_read_back() {
        let entry = EntryRecords::parse(frames(&[41, 42, 43])).expect("is whole");
        assert_eq!((entry.first_lsn(), entry.last_lsn()), (Lsn(41), Lsn(43)));
        let records: Vec<_> = entry.iter().map(|record| (record.lsn.0, record.payload.to_vec())).collect();
        assert_eq!(records, [41, 42, 43].map(|lsn| (lsn, b"payload".to_vec())));
    }

    #[test]
    fn bytes_that_are_no_entry_are_refused_with_their_place() {
        let refused = |frames: Arc<[u8]>| EntryRecords::parse(frames).expect_err("is refused").to_string();
        assert!(refused(Arc::new([])).contains("there is no record at byte 0"));
        assert!(refused(frames(&[7, 9])).contains("does not follow the one before it at byte 32"));
        assert!(refused(frames(&[7, 8])[..60].into()).contains("a record is cut at byte 32"));
        let mut marker = frames(&[7]).to_vec();
        marker[24] = raw::MARKER;
        assert!(refused(marker.into()).contains("the kind that is the log's own at byte 0"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0_usize..96, value: u8) {
            let _ = EntryRecords::parse(bytes.into());
            let mut damaged = frames(&[1, 2, 3]).to_vec();
            damaged[at] = value;
            if let Ok(entry) = EntryRecords::parse(damaged.into()) {
                prop_assert_eq!(entry.iter().count() as u64, entry.last_lsn().0 - entry.first_lsn().0 + 1);
            }
        }
    }
}
