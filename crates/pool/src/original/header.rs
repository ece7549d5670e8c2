//! The 256-byte header of a file of the original's log.
//!
//! ```text
//! 0      4        8       12        20          28                  256
//! ├ magic ┼ version ┼ status ┼ sequence ┼ data bytes ┼ zeros ............ ┤   little endian
//! ```
//!
//! Status and data bytes are written when the file is closed or rotated. Until then, and after a
//! crash, they are "open" and 0, so neither decides what is read. But an open file that other files
//! follow reveals a crash: a rotation closes the old file first.

/// Offset of the first record.
pub(super) const HEADER_BYTES: usize = 256;
/// "lwnt" on disk.
const MAGIC: u32 = 0x746E_776C;
/// Version of these formats.
pub(super) const VERSION: u32 = 1;
const STATUS_CLOSED: u32 = 1;

/// Contents of a file's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// 1, unless it is damaged.
    pub version: u32,
    /// Whether the file was closed properly.
    pub closed: bool,
    /// Number of the file, according to the header.
    pub sequence: u64,
    /// Length of the records when the file was last closed, in bytes; 0 if it never was. The
    /// original reads no further.
    pub data_bytes: u64,
}

impl Header {
    /// Parses a header. An error is the value in place of the magic.
    pub(super) fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Self, u32> {
        let magic = u32_at(bytes, 0);
        if magic != MAGIC {
            return Err(magic);
        }
        Ok(Self {
            version: u32_at(bytes, 4),
            closed: u32_at(bytes, 8) == STATUS_CLOSED,
            sequence: u64_at(bytes, 12),
            data_bytes: u64_at(bytes, 20),
        })
    }
}

/// Returns whether these bytes may be the beginning of a header.
pub(super) fn begins_header(bytes: &[u8]) -> bool {
    bytes.iter().zip(MAGIC.to_le_bytes()).all(|(&byte, magic)| byte == magic)
}

fn u32_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    (0..4).rev().fold(0, |value, place| (value << 8) | u32::from(bytes[at + place]))
}

fn u64_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | (u64::from(u32_at(bytes, at + 4)) << 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_little_endian_and_packed() {
        let mut bytes = [0; HEADER_BYTES];
        // Written by Go's `binary.Write` for version 1, closed, sequence 3, 44 bytes.
        bytes[..28].copy_from_slice(&[
            0x6c, 0x77, 0x6e, 0x74, 1, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 44, 0, 0, 0, 0, 0, 0, 0,
        ]);
        let header = Header { version: 1, closed: true, sequence: 3, data_bytes: 44 };
        assert_eq!(Header::parse(&bytes), Ok(header));
        bytes[0] = b'L';
        assert_eq!(Header::parse(&bytes), Err(0x746e_774c));
    }

    #[test]
    fn a_beginning_of_a_header_is_known() {
        assert!(begins_header(b"") && begins_header(b"lw") && begins_header(b"lwnt\x01\0"));
        assert!(!begins_header(b"1,1,") && !begins_header(b"lwx"));
    }
}
