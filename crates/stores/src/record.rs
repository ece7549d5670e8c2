//! Encoding of claims and batches, for the stores that are sequences of records.
//!
//! ```text
//! claim    1 │ writer │ epoch u64
//! batch    2 │ writer │ epoch u64 │ sequence u64 │ count u32 │ count × (key │ amount i64)
//! ```
//! Numbers are little-endian; a writer and a key are their length as u32 followed by their bytes.

use tidemark_counter::store::{Batch, Delta};

const CLAIM: u8 = 1;
const BATCH: u8 = 2;
/// The shortest change: an empty key and its amount. Bytes.
const DELTA_BYTES_MIN: usize = 12;

/// A record of such a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    /// `writer` is at this epoch from this record on.
    Claim { writer: String, epoch: u64 },
    /// Changes to apply.
    Batch(Batch),
}

/// Appends the record of a claim to `buffer`.
pub(crate) fn encode_claim(buffer: &mut Vec<u8>, writer: &str, epoch: u64) {
    buffer.push(CLAIM);
    put_bytes(buffer, writer.as_bytes());
    buffer.extend_from_slice(&epoch.to_le_bytes());
}

/// Appends the record of a batch to `buffer`.
pub(crate) fn encode_batch(buffer: &mut Vec<u8>, batch: &Batch) {
    buffer.reserve(batch_bytes(batch));
    buffer.push(BATCH);
    put_bytes(buffer, batch.writer.as_bytes());
    buffer.extend_from_slice(&batch.epoch.to_le_bytes());
    buffer.extend_from_slice(&batch.sequence.to_le_bytes());
    let count = u32::try_from(batch.deltas.len()).expect("stores take fewer changes in a batch than 2^32");
    buffer.extend_from_slice(&count.to_le_bytes());
    for delta in &batch.deltas {
        put_bytes(buffer, &delta.key);
        buffer.extend_from_slice(&delta.amount.to_le_bytes());
    }
}

/// Returns the length of a batch's record. Bytes.
pub(crate) fn batch_bytes(batch: &Batch) -> usize {
    let keys: usize = batch.deltas.iter().map(|delta| delta.key.len()).sum();
    25 + batch.writer.len() + keys + DELTA_BYTES_MIN * batch.deltas.len()
}

/// Decodes a record; `None` if the bytes are not one.
pub(crate) fn decode(bytes: &[u8]) -> Option<Record> {
    let mut rest = Rest(bytes);
    let record = match rest.byte()? {
        CLAIM => Record::Claim { writer: rest.text()?, epoch: rest.number()? },
        BATCH => {
            let (writer, epoch, sequence) = (rest.text()?, rest.number()?, rest.number()?);
            let count = rest.length()?;
            // Checked before anything is allocated.
            if count > rest.0.len() / DELTA_BYTES_MIN {
                return None;
            }
            let deltas =
                (0..count).map(|_| Some(Delta { key: rest.bytes()?.into(), amount: rest.number()? as i64 }));
            Record::Batch(Batch { writer, epoch, sequence, deltas: deltas.collect::<Option<_>>()? })
        }
        _ => return None,
    };
    rest.0.is_empty().then_some(record)
}

/// Appends a length and the bytes. Never 4 GiB or more: batches are limited before.
pub(crate) fn put_bytes(buffer: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("keys and names are shorter than 4 GiB");
    buffer.extend_from_slice(&length.to_le_bytes());
    buffer.extend_from_slice(bytes);
}

/// The bytes still to be read.
pub(crate) struct Rest<'a>(pub(crate) &'a [u8]);

impl<'a> Rest<'a> {
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    pub(crate) fn length(&mut self) -> Option<usize> {
        let (length, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*length) as usize)
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record() -> impl Strategy<Value = Record> {
        let claim = (".{0,20}", any::<u64>()).prop_map(|(writer, epoch)| Record::Claim { writer, epoch });
        let delta = (proptest::collection::vec(any::<u8>(), 0..20), any::<i64>())
            .prop_map(|(key, amount)| Delta { key: key.into(), amount });
        let batch = (".{0,20}", any::<u64>(), any::<u64>(), proptest::collection::vec(delta, 0..20))
            .prop_map(|(writer, epoch, sequence, deltas)| {
                Record::Batch(Batch { writer, epoch, sequence, deltas })
            });
        prop_oneof![claim, batch]
    }

    fn encoded(record: &Record) -> Vec<u8> {
        let mut bytes = Vec::new();
        match record {
            Record::Claim { writer, epoch } => encode_claim(&mut bytes, writer, *epoch),
            Record::Batch(batch) => {
                encode_batch(&mut bytes, batch);
                assert_eq!(bytes.len(), batch_bytes(batch));
            }
        }
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_record_is_read_as_it_was_written(record in record()) {
            prop_assert_eq!(decode(&encoded(&record)), Some(record));
        }

        #[test]
        fn a_record_that_is_cut_or_longer_is_none(record in record(), cut in any::<prop::sample::Index>()) {
            let mut bytes = encoded(&record);
            prop_assert_eq!(decode(&bytes[..cut.index(bytes.len())]), None);
            bytes.push(0);
            prop_assert_eq!(decode(&bytes), None);
        }

        /// An encoding is unique: what decodes encodes to the same bytes.
        #[test]
        fn any_bytes_are_a_record_or_none(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            record in record(), at in any::<prop::sample::Index>(), byte: u8,
        ) {
            let mut changed = encoded(&record);
            let at = at.index(changed.len());
            changed[at] = byte;
            for bytes in [bytes, changed] {
                if let Some(record) = decode(&bytes) {
                    prop_assert_eq!(encoded(&record), bytes);
                }
            }
        }
    }
}
