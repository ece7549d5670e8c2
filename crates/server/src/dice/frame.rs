//! Framing: four bytes of length, then the payload.

/// Longest payload of a frame in both directions, in bytes.
pub(super) const FRAME_LIMIT: u32 = 32 * 1024 * 1024;
/// Longest payload from an unauthenticated client, in bytes.
pub(super) const STRANGER_FRAME_LIMIT: u32 = 32 * 1024;
/// Size of the length field, in bytes.
pub(super) const HEADER_BYTES: usize = 4;

/// Error for bytes that start no frame. The next frame cannot be found, so the connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum FrameError {
    #[error("ERR Protocol error: a frame of no bytes")]
    Empty,
    #[error("ERR Protocol error: a frame of {length} bytes, and the limit is {limit}")]
    TooLong { length: u32, limit: u32 },
}

/// The frame at the start of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framed<'a> {
    Whole(&'a [u8]),
    /// At least this many bytes of input are needed.
    Needs(usize),
}

/// Finds a frame of at most `limit` bytes at the start of `input`.
pub(super) fn read(input: &[u8], limit: u32) -> Result<Framed<'_>, FrameError> {
    let Some((header, rest)) = input.split_first_chunk::<HEADER_BYTES>() else {
        return Ok(Framed::Needs(HEADER_BYTES));
    };
    let length = u32::from_be_bytes(*header);
    if length == 0 {
        return Err(FrameError::Empty);
    }
    if length > limit {
        return Err(FrameError::TooLong { length, limit });
    }
    Ok(rest.get(..length as usize).map_or(Framed::Needs(HEADER_BYTES + length as usize), Framed::Whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frame_is_whole_when_its_last_byte_has_come() {
        let bytes = [0, 0, 0, 3, 7, 8, 9, 0];
        for end in 0..4 {
            assert_eq!(read(&bytes[..end], FRAME_LIMIT), Ok(Framed::Needs(4)));
        }
        for end in 4..7 {
            assert_eq!(read(&bytes[..end], FRAME_LIMIT), Ok(Framed::Needs(7)));
        }
        assert_eq!(read(&bytes, FRAME_LIMIT), Ok(Framed::Whole(&[7, 8, 9])));
    }

    #[test]
    fn the_limit_is_itself_allowed() {
        assert_eq!(read(&[2, 0, 0, 0], FRAME_LIMIT), Ok(Framed::Needs(4 + (32 << 20))));
        let limit = FRAME_LIMIT;
        assert_eq!(read(&[2, 0, 0, 1], limit), Err(FrameError::TooLong { length: limit + 1, limit }));
        assert_eq!(read(&[0; 9], FRAME_LIMIT), Err(FrameError::Empty));
    }

    proptest! {
        #[test]
        fn a_frame_lies_within_what_is_there(input in prop::collection::vec(0_u8..8, 0..64)) {
            match read(&input, FRAME_LIMIT) {
                Ok(Framed::Whole(payload)) => prop_assert_eq!(payload, &input[4..4 + payload.len()]),
                Ok(Framed::Needs(bytes)) => prop_assert!(bytes > input.len()),
                Err(_) => prop_assert!(input.len() >= 4),
            }
        }
    }
}
