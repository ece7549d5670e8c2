//! Frames: batches of events, chained by hashes.

mod words;

use crate::record::bytes::{Reader, put_number};
use sha2::{Digest, Sha256};
use std::fmt;

pub(crate) const CHAIN_BYTES: usize = 32;

/// SHA-256 chain over a pool's log so far. A saved value proves later whether earlier frames
/// changed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Chain([u8; CHAIN_BYTES]);

impl Chain {
    /// Returns the first link, of a log whose origin is these bytes, for example a catalogue.
    pub fn begin(origin: &[u8]) -> Self {
        Self(Sha256::digest(origin).into())
    }

    /// Returns the next link: SHA-256 of this one and the content. About 20 ns plus half a
    /// nanosecond a byte, with the processor's SHA instructions.
    #[must_use]
    pub fn link(&self, content: &[u8]) -> Self {
        Self(Sha256::new().chain_update(self.0).chain_update(content).finalize().into())
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8; CHAIN_BYTES] {
        &self.0
    }
}

impl From<[u8; CHAIN_BYTES]> for Chain {
    fn from(bytes: [u8; CHAIN_BYTES]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chain({self})")
    }
}

/// Events that were written together.
///
/// ```text
/// frame   chain 32 │ time, 1 to 10 │ number of the first draw, 1 to 10 │ event*
/// ```
///
/// The chain value is the one after the frame: the hash of the previous value and the rest of the
/// frame. The log that stores a frame must know its length and detect torn writes.
///
/// ```
/// use tidemark_pool::{Chain, Frame, Recorder};
///
/// let before = Chain::begin(b"a catalogue");
/// let mut events = Recorder::default();
/// events.drew(Some(0));
/// let mut bytes = Vec::new();
/// let behind = Frame { time_us: 1, first_draw: 7, events: events.bytes() }.write(before, &mut bytes);
///
/// let (frame, chain) = Frame::read(&bytes, before).unwrap();
/// assert_eq!((frame.first_draw, frame.events, chain), (7, events.bytes(), behind));
/// assert!(Frame::read(&bytes, Chain::begin(b"another catalogue")).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Time of the events. Microseconds since 1970-01-01 UTC.
    pub time_us: u64,
    /// Number of the next draw before the events.
    pub first_draw: u64,
    /// Encoded events, to be read with [`Events`](crate::Events).
    pub events: &'a [u8],
}

/// The bytes are not the next frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// They are too short, or do not begin with valid numbers.
    #[error("{bytes} bytes are no frame of a pool's log")]
    Malformed {
        /// Number of bytes.
        bytes: usize,
    },
    /// They do not continue the log, or the frame or the log was changed.
    #[error(
        "the frame that begins with draw {first_draw} does not continue the log before it: its chain should be {expected} and is {found}"
    )]
    Broken {
        /// Number of the frame's first draw.
        first_draw: u64,
        /// Chain value computed from the log before.
        expected: Chain,
        /// Chain value in the frame.
        found: Chain,
    },
}

impl<'a> Frame<'a> {
    /// Appends the frame after the chain value `before`, and returns the next value.
    pub fn write(&self, before: Chain, into: &mut Vec<u8>) -> Chain {
        let begin = into.len();
        into.extend_from_slice(&[0; CHAIN_BYTES]);
        put_number(into, self.time_us);
        put_number(into, self.first_draw);
        into.extend_from_slice(self.events);
        let (chain, content) = into[begin..].split_at_mut(CHAIN_BYTES);
        let behind = before.link(content);
        chain.copy_from_slice(behind.bytes());
        behind
    }

    /// Appends an encoded frame as text, for logs that people read:
    /// `draws from 17 at 1767225600000000 chain 9f86…08: 3 3 - confirm 12`. Items and draws are
    /// numbers. The text contains the same secrets as the bytes.
    ///
    /// # Errors
    /// [`FrameError::Malformed`]; then nothing is appended.
    pub fn write_words(bytes: &[u8], into: &mut String) -> Result<(), FrameError> {
        words::write(bytes, into)
    }

    /// Appends the bytes of a frame given as text.
    ///
    /// ```
    /// use tidemark_pool::{Chain, Frame};
    ///
    /// let (mut bytes, mut words, mut again) = (Vec::new(), String::new(), Vec::new());
    /// Frame { time_us: 1, first_draw: 7, events: &[19, 0] }.write(Chain::begin(b""), &mut bytes);
    /// Frame::write_words(&bytes, &mut words).unwrap();
    /// assert!(words.ends_with(": 3 -"));
    /// Frame::read_words(&words, &mut again).unwrap();
    /// assert_eq!(again, bytes);
    /// ```
    ///
    /// # Errors
    /// [`FrameError::Malformed`]; discard what was appended then.
    pub fn read_words(words: &str, into: &mut Vec<u8>) -> Result<(), FrameError> {
        words::read(words, into)
    }

    /// Reads a frame without checking that it continues a log.
    ///
    /// # Errors
    /// [`FrameError::Malformed`].
    pub fn read_alone(bytes: &'a [u8]) -> Result<Self, FrameError> {
        Self::read_stated(bytes).map(|(frame, _)| frame)
    }

    /// As [`read_alone`](Self::read_alone), with the frame's chain value, unchecked.
    ///
    /// # Errors
    /// [`FrameError::Malformed`].
    pub fn read_stated(bytes: &'a [u8]) -> Result<(Self, Chain), FrameError> {
        let malformed = FrameError::Malformed { bytes: bytes.len() };
        let (chain, content) = bytes.split_first_chunk().ok_or(malformed)?;
        let mut reader = Reader::new(content);
        let time_us = reader.number().ok_or(malformed)?;
        let first_draw = reader.number().ok_or(malformed)?;
        Ok((Self { time_us, first_draw, events: &content[reader.offset()..] }, Chain::from(*chain)))
    }

    /// Reads a frame that continues the chain value `before`; returns it with the next value.
    ///
    /// # Errors
    /// [`FrameError`].
    pub fn read(bytes: &'a [u8], before: Chain) -> Result<(Self, Chain), FrameError> {
        let (frame, found) = Self::read_stated(bytes)?;
        let expected = before.link(&bytes[CHAIN_BYTES..]);
        if expected != found {
            return Err(FrameError::Broken { first_draw: frame.first_draw, expected, found });
        }
        Ok((frame, found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bit_that_has_changed_anywhere_is_found(
            time_us: u64, first_draw: u64, events in prop::collection::vec(any::<u8>(), 0..40), bit: prop::sample::Index,
        ) {
            let before = Chain::begin(b"");
            let mut bytes = Vec::new();
            let frame = Frame { time_us, first_draw, events: &events };
            let behind = frame.write(before, &mut bytes);
            prop_assert_eq!(Frame::read(&bytes, before), Ok((frame, behind)));
            let bit = bit.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Frame::read(&bytes, before).is_err());
        }

        #[test]
        fn no_bytes_are_taken_for_a_frame_by_chance(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            prop_assert!(Frame::read(&bytes, Chain::begin(b"")).is_err());
        }
    }

    #[test]
    fn frames_that_were_left_out_or_swapped_are_found() {
        let mut chain = Chain::begin(b"");
        let frames = [1_u64, 2, 3].map(|first_draw| {
            let (mut bytes, before) = (Vec::new(), chain);
            chain = Frame { time_us: 9, first_draw, events: &[16] }.write(before, &mut bytes);
            (bytes, before)
        });
        let [(first, begin), (second, middle), (third, end)] = &frames;
        assert!(Frame::read(first, *begin).is_ok() && Frame::read(second, *middle).is_ok());
        assert!(Frame::read(third, *end).is_ok());
        assert!(Frame::read(third, *middle).is_err() && Frame::read(second, *begin).is_err());
    }
}
