//! The binary frame, also the in-memory form for every format.
//!
//! ```text
//!  0        4        8                16               24     25
//!  +--------+--------+----------------+----------------+------+---------------
//!  | crc u32| len u32| lsn u64        | time_us u64    | kind | payload
//!  +--------+--------+----------------+----------------+------+---------------
//!           |<------- the checksum covers this, seeded with the segment's salt ------->|
//!                    |<------------------------ len bytes ---------------------------->|
//! ```

use crate::entry::{EntryId, EntryMark};
use crate::{Lsn, Record, checksum};

/// Bytes before the part that `len` counts.
pub(crate) const PREFIX_BYTES: usize = 8;
/// Bytes of LSN, time and kind.
pub(crate) const FIXED_BYTES: usize = 17;
/// Bytes that a frame adds to its payload.
pub(crate) const OVERHEAD_BYTES: usize = PREFIX_BYTES + FIXED_BYTES;
/// Kind of the log's own frames, which consume no LSN.
pub(crate) const MARKER: u8 = 0;
/// Size of a marker's payload: the LSN up to which everything was durable when it was written.
pub(crate) const MARKER_PAYLOAD_BYTES: usize = 8;
pub(crate) const MARKER_BYTES: usize = OVERHEAD_BYTES + MARKER_PAYLOAD_BYTES;
/// Size of the payload of a marker that opens an entry: also the entry's index, term and last
/// record, and what the group had committed.
pub(crate) const ENTRY_MARKER_PAYLOAD_BYTES: usize = MARKER_PAYLOAD_BYTES + 32;
pub(crate) const ENTRY_MARKER_BYTES: usize = OVERHEAD_BYTES + ENTRY_MARKER_PAYLOAD_BYTES;

const _: () = assert!(OVERHEAD_BYTES == 25);

/// Appends a frame head with length and checksum still zero; the payload follows it.
#[inline]
pub(crate) fn begin(bytes: &mut Vec<u8>, lsn: Lsn, time_us: u64, kind: u8) {
    let mut head = [0; OVERHEAD_BYTES];
    head[8..16].copy_from_slice(&lsn.0.to_le_bytes());
    head[16..24].copy_from_slice(&time_us.to_le_bytes());
    head[24] = kind;
    bytes.extend_from_slice(&head);
}

/// Fills in the length of the frame from `start` to the end of `bytes`.
#[inline]
pub(crate) fn finish(bytes: &mut [u8], start: usize) {
    let frame = &mut bytes[start..];
    let bytes = frame.len();
    assert!(bytes >= OVERHEAD_BYTES, "a frame of {bytes} bytes has no head");
    let length = u32::try_from(bytes - PREFIX_BYTES).expect("a record has a limit far below 4 GiB");
    frame[4..8].copy_from_slice(&length.to_le_bytes());
}

/// Computes and stores the checksum of the one frame in `frame`.
#[inline]
pub(crate) fn seal(frame: &mut [u8], salt: u32) {
    let (checksum, covered) = frame.split_at_mut(4);
    checksum.copy_from_slice(&checksum::append(salt, covered).to_le_bytes());
}

/// Returns (checksum, covered bytes) of the frame at the front of `bytes`, if the frame is whole.
#[inline]
pub(crate) fn checked_part(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (checksum, rest) = bytes.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*rest.first_chunk::<4>()?) as usize;
    Some((u32::from_le_bytes(*checksum), rest.get(..length.checked_add(4)?)?))
}

#[inline]
pub(crate) fn head_lsn(head: &[u8; OVERHEAD_BYTES]) -> Lsn {
    Lsn(u64::from_le_bytes(head[8..16].try_into().expect("the field has eight bytes")))
}

/// Returns the number of bytes after the frame's prefix, from its head.
#[inline]
pub(crate) fn head_length(head: &[u8; OVERHEAD_BYTES]) -> usize {
    u32::from_le_bytes(head[4..8].try_into().expect("the field has four bytes")) as usize
}

/// Splits the frame at the front from what follows; `None` if there is no whole frame. Does not
/// verify the checksum.
#[inline]
pub(crate) fn split(bytes: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let (prefix, rest) = bytes.split_first_chunk::<PREFIX_BYTES>()?;
    let length = u32::from_le_bytes([prefix[4], prefix[5], prefix[6], prefix[7]]) as usize;
    let (body, rest) = rest.split_at_checked(length)?;
    let (fixed, payload) = body.split_first_chunk::<FIXED_BYTES>()?;
    let (lsn, tail) = fixed.split_first_chunk::<8>()?;
    let (time_us, kind) = tail.split_first_chunk::<8>()?;
    let lsn = Lsn(u64::from_le_bytes(*lsn));
    Some((Record { lsn, time_us: u64::from_le_bytes(*time_us), kind: kind[0], payload }, rest))
}

/// Content of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    /// Everything up to this record was durable when the marker was written.
    pub(crate) durable: Lsn,
    /// The entry that it opens, in the log of a group's member.
    pub(crate) entry: Option<EntryMark>,
}

impl Marker {
    /// Parses a marker's payload.
    pub(crate) fn parse(payload: &[u8]) -> Option<Self> {
        let (words, rest) = payload.as_chunks::<8>();
        let word = |index: usize| words.get(index).copied().map(u64::from_le_bytes);
        let durable = Lsn(word(0)?);
        let entry = match payload.len() {
            MARKER_PAYLOAD_BYTES => None,
            ENTRY_MARKER_PAYLOAD_BYTES => Some(EntryMark {
                id: EntryId { index: word(1)?, term: word(2)? },
                last: Lsn(word(3)?),
                committed: Lsn(word(4)?),
            }),
            _ => return None,
        };
        rest.is_empty().then_some(Self { durable, entry })
    }

    /// Writes the payload over `payload`, which must have its size.
    pub(crate) fn write(&self, payload: &mut [u8]) {
        let entry = self.entry.map(|entry| [entry.id.index, entry.id.term, entry.last.0, entry.committed.0]);
        let words = std::iter::once(self.durable.0).chain(entry.into_iter().flatten());
        let bytes = words.clone().count() * 8;
        assert!(payload.len() == bytes, "a marker of {bytes} bytes is written over {}", payload.len());
        for (field, word) in payload.chunks_exact_mut(8).zip(words) {
            field.copy_from_slice(&word.to_le_bytes());
        }
    }
}
