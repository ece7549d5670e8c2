//! Frames: the unit of a connection between members.
//!
//! ```text
//! crc u32 (of the rest) │ length u32 │ sequence u32 │ group u32 │ kind u8 │ lane u8 │ zeros u16 │ payload
//! ```
//!
//! Integers are little-endian. The sequence counts the frames of one kind on a connection, from 0: an
//! answer has the number of its request.

use bytes::{Bytes, BytesMut};

use crate::ids::GroupId;

/// Bytes of a frame besides its payload.
pub const HEADER_BYTES: usize = 20;

/// Bytes that a read asks for at least.
const READ_BYTES: usize = 64 << 10;

/// Bytes that room is made for at most, before a frame announces its length.
const LIKELY_BYTES_MAX: usize = 1 << 20;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// First frame of a connection: the member that connects, and the one that it looks for.
    Hello,
    /// Answer to a hello.
    Welcome,
    /// Accepts the welcome. Requests follow.
    Confirm,
    /// Ends a handshake, with the reason in words.
    Refusal,
    /// A request.
    Request,
    /// An answer to a request.
    Answer,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Self::Hello => 1,
            Self::Welcome => 2,
            Self::Confirm => 3,
            Self::Refusal => 4,
            Self::Request => 5,
            Self::Answer => 6,
        }
    }

    fn of_code(code: u8) -> Option<Self> {
        let all = [Self::Hello, Self::Welcome, Self::Confirm, Self::Refusal, Self::Request, Self::Answer];
        all.into_iter().find(|kind| kind.code() == code)
    }
}

/// What all frames of a connection have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The group that the frames belong to.
    pub group: GroupId,
    /// Code of the lane.
    pub lane: u8,
}

/// Returns the header of a frame.
///
/// # Panics
/// If the payload has 4 GiB or more: limits are far below.
pub fn header(channel: Channel, kind: Kind, sequence: u32, payload: &[u8]) -> [u8; HEADER_BYTES] {
    let length = u32::try_from(payload.len()).expect("a frame is below its limit");
    let mut header = [0; HEADER_BYTES];
    header[4..8].copy_from_slice(&length.to_le_bytes());
    header[8..12].copy_from_slice(&sequence.to_le_bytes());
    header[12..16].copy_from_slice(&channel.group.0.to_le_bytes());
    header[16] = kind.code();
    header[17] = channel.lane;
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&header[4..]), payload);
    header[..4].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// A frame that has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: Kind,
    /// Number among the frames of its kind.
    pub sequence: u32,
    /// Group and lane.
    pub channel: Channel,
    /// The content. Shares the memory of what was read together.
    pub payload: Bytes,
}

/// Why bytes are not a frame. The connection cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length is above the limit of the connection.
    #[error("a frame of {length} bytes is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The announced length of the payload.
        length: usize,
        /// The largest one.
        limit: usize,
    },
    /// The content is not what was sent.
    #[error("the checksum of a frame of {length} bytes does not match")]
    Checksum {
        /// Length of the payload.
        length: usize,
    },
    /// A field of the header has a value that no version has.
    #[error("the header of a frame has the unknown kind {kind} or the reserved bits {reserved:#x}")]
    Header {
        /// Code of the kind.
        kind: u8,
        /// What is zero in this version.
        reserved: u16,
    },
    /// The frame belongs to another connection.
    #[error("a frame of lane {} of group {} arrived on lane {} of group {}",
        found.lane, found.group, expected.lane, expected.group)]
    Channel {
        /// What the frame has.
        found: Channel,
        /// What the connection has.
        expected: Channel,
    },
    /// A frame is missing or there twice.
    #[error("frame {found} of kind {kind:?} arrived where {expected} is next")]
    Sequence {
        /// The kind.
        kind: Kind,
        /// What the frame has.
        found: u32,
        /// What comes next.
        expected: u32,
    },
}

/// Cuts what arrives into frames.
#[derive(Debug)]
pub struct FrameReader {
    /// Largest payload.
    limit: usize,
    buffer: BytesMut,
    /// Bytes to make room for while nothing is known of the next frame: as many as the last one had, so
    /// that large frames in a row are read without a copy.
    likely_bytes: usize,
}

impl FrameReader {
    /// Begins with payloads of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, buffer: BytesMut::new(), likely_bytes: 0 }
    }

    /// Changes the limit for the frames after those that were returned.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Returns where the next bytes are to be appended, with room for the frame that is incomplete.
    pub fn buffer(&mut self) -> &mut BytesMut {
        let announced = self.announced().filter(|length| *length <= self.limit);
        let wanted = announced.map_or(0, |length| HEADER_BYTES + length).saturating_sub(self.buffer.len());
        if self.buffer.capacity() - self.buffer.len() < wanted.max(1) {
            self.buffer.reserve(wanted.max(READ_BYTES).max(self.likely_bytes));
        }
        &mut self.buffer
    }

    /// Returns what has arrived and is not a whole frame yet.
    pub fn rest(&self) -> &[u8] {
        &self.buffer
    }

    /// Returns the next frame, or `None` until more bytes are there.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some(length) = self.announced() else { return Ok(None) };
        if length > self.limit {
            return Err(FrameError::TooLarge { length, limit: self.limit });
        }
        if self.buffer.len() < HEADER_BYTES + length {
            return Ok(None);
        }
        self.likely_bytes = (HEADER_BYTES + length).min(LIKELY_BYTES_MAX);
        let mut frame = self.buffer.split_to(HEADER_BYTES + length).freeze();
        let word = |at: usize| u32::from_le_bytes(*frame[at..].first_chunk().expect("4 bytes of the header"));
        if crc32c::crc32c(&frame[4..]) != word(0) {
            return Err(FrameError::Checksum { length });
        }
        let sequence = word(8);
        let channel = Channel { group: GroupId(word(12)), lane: frame[17] };
        let reserved = u16::from_le_bytes([frame[18], frame[19]]);
        let kind = Kind::of_code(frame[16]).filter(|_| reserved == 0);
        let kind = kind.ok_or(FrameError::Header { kind: frame[16], reserved })?;
        let payload = frame.split_off(HEADER_BYTES);
        Ok(Some(Frame { kind, sequence, channel, payload }))
    }

    fn announced(&self) -> Option<usize> {
        let header = self.buffer.get(..HEADER_BYTES)?;
        Some(u32::from_le_bytes(*header[4..].first_chunk()?) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CHANNEL: Channel = Channel { group: GroupId(7), lane: 2 };

    fn written(kind: Kind, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = header(CHANNEL, kind, sequence, payload).to_vec();
        bytes.extend_from_slice(payload);
        bytes
    }

    fn read_all(reader: &mut FrameReader) -> Result<Vec<Frame>, FrameError> {
        let mut frames = Vec::new();
        while let Some(frame) = reader.next_frame()? {
            frames.push(frame);
        }
        Ok(frames)
    }

    #[test]
    fn kinds_have_codes_of_their_own() {
        let kinds: Vec<Kind> = (0..=u8::MAX).filter_map(Kind::of_code).collect();
        assert_eq!(kinds.len(), 6);
        assert!(kinds.iter().all(|kind| Kind::of_code(kind.code()) == Some(*kind)));
    }

    #[test]
    fn a_frame_above_the_limit_is_refused_by_its_header_alone() {
        let bytes = written(Kind::Request, 0, &[1; 101]);
        let mut reader = FrameReader::new(100);
        reader.buffer().extend_from_slice(&bytes[..HEADER_BYTES]);
        assert_eq!(reader.next_frame(), Err(FrameError::TooLarge { length: 101, limit: 100 }));
        assert!(reader.buffer.capacity() < 2 * READ_BYTES, "an announced length is not memory");
    }

    #[test]
    fn every_flipped_bit_is_found_or_asks_for_more_bytes() {
        let bytes = written(Kind::Answer, 3, b"what was sent");
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let mut reader = FrameReader::new(1 << 20);
            reader.buffer().extend_from_slice(&flipped);
            // A longer length waits for bytes that never come: the connection's timeouts end it.
            let is_longer = (32..64).contains(&bit) && reader.announced() > Some(13);
            match reader.next_frame() {
                Ok(None) => assert!(is_longer, "bit {bit}"),
                Ok(Some(frame)) => panic!("bit {bit} passed as {frame:?}"),
                Err(_) => {}
            }
        }
    }

    proptest! {
        #[test]
        fn frames_come_out_whole_however_the_stream_is_cut(
            payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..20),
            cuts in proptest::collection::vec(1_usize..200, 1..20),
        ) {
            let frames = payloads.iter().zip(0..);
            let stream: Vec<u8> =
                frames.flat_map(|(payload, sequence)| written(Kind::Request, sequence, payload)).collect();
            let mut reader = FrameReader::new(300);
            let mut found = Vec::new();
            let (mut rest, mut cuts) = (&stream[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let (piece, later) = rest.split_at(rest.len().min(*cuts.next().expect("a cycle")));
                reader.buffer().extend_from_slice(piece);
                found.extend(read_all(&mut reader).expect("frames"));
                rest = later;
            }
            prop_assert_eq!(found.len(), payloads.len());
            for ((frame, payload), sequence) in found.iter().zip(&payloads).zip(0..) {
                prop_assert_eq!(&frame.payload[..], &payload[..]);
                prop_assert_eq!((frame.kind, frame.sequence, frame.channel), (Kind::Request, sequence, CHANNEL));
            }
            prop_assert!(reader.rest().is_empty());
        }

        #[test]
        fn any_bytes_are_an_error_or_wait_for_more(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = FrameReader::new(64);
            reader.buffer().extend_from_slice(&bytes);
            let found = read_all(&mut reader);
            prop_assert!(found.is_err() || reader.rest().len() < HEADER_BYTES + 64);
        }
    }
}
