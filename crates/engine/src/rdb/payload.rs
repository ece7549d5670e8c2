//! The frame of a dump: content, the version of its format, and a checksum of both.
//!
//! ```text
//! content │ version u16 │ CRC-64 u64
//! ```

use super::crc64::crc64;
use super::error::RdbError;
use super::kind;

/// Version of the format that we write: Redis 7.0's. Hashes with fields that expire need Redis 7.4's.
pub const VERSION_WRITTEN: u16 = 10;
/// Newest version without hashes whose fields expire: Redis 7.2's.
const VERSION_BEFORE_TIMES: u16 = 11;
/// Newest version that we read: Redis 7.4's.
pub const VERSION_MAX: u16 = 12;

/// Length of what follows the content. Bytes.
const FOOTER: usize = 10;

/// Completes content to a payload, as `DUMP` and `FUNCTION DUMP` answer. O(bytes).
///
/// The version is the oldest whose readers know the type of the value.
pub fn seal(content: &mut Vec<u8>) {
    let version = if has_field_times(content) { VERSION_MAX } else { VERSION_WRITTEN };
    content.extend_from_slice(&version.to_le_bytes());
    let checksum = crc64(content);
    content.extend_from_slice(&checksum.to_le_bytes());
}

/// Whether a payload, or its content, is a hash with fields that expire.
fn has_field_times(payload: &[u8]) -> bool {
    matches!(payload.first(), Some(&(kind::HASH_METADATA | kind::HASH_LISTPACK_EX)))
}

/// Whether builds that write no hashes with times refuse a payload: then streams were not read either, and no
/// version beyond Redis 7.2's.
pub(crate) fn is_of_newer_form(payload: &[u8]) -> bool {
    let is_stream = matches!(
        payload.first(),
        Some(&(kind::STREAM_LISTPACKS | kind::STREAM_LISTPACKS_2 | kind::STREAM_LISTPACKS_3))
    );
    let version =
        payload.split_last_chunk::<FOOTER>().map(|(_, [v0, v1, ..])| u16::from_le_bytes([*v0, *v1]));
    is_stream || has_field_times(payload) || version.is_some_and(|version| version > VERSION_BEFORE_TIMES)
}

/// Returns the content of a payload. O(bytes).
///
/// # Errors
/// The version is newer than [`VERSION_MAX`], or the checksum is another.
pub fn open(payload: &[u8]) -> Result<&[u8], RdbError> {
    let (content, footer) = payload.split_last_chunk::<FOOTER>().ok_or(RdbError::NoPayload)?;
    let [v0, v1, checksum @ ..] = *footer;
    let is_known = u16::from_le_bytes([v0, v1]) <= VERSION_MAX;
    if !is_known || crc64(&payload[..payload.len() - checksum.len()]) != u64::from_le_bytes(checksum) {
        return Err(RdbError::NoPayload);
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_version_beyond_7_2_is_newer_whatever_it_is_of() {
        for (version, is_newer) in [(10, false), (11, false), (12, true)] {
            let mut payload = vec![kind::STRING, 1, b'a'];
            payload.extend_from_slice(&u16::to_le_bytes(version));
            payload.extend_from_slice(&crc64(&payload).to_le_bytes());
            assert!(open(&payload).is_ok());
            assert_eq!(is_of_newer_form(&payload), is_newer, "{version}");
        }
        assert!(!is_of_newer_form(b""));
    }

    #[test]
    fn a_payload_has_redis_s_footer() {
        // `SET k 17`, and `DUMP k` of Redis 7.0.15.
        let mut payload = b"\x00\xc0\x11".to_vec();
        seal(&mut payload);
        assert_eq!(payload, b"\x00\xc0\x11\x0a\x00\xe4\x03)E<\xf4+\x1c");
    }

    #[test]
    fn only_what_needs_it_has_a_newer_version() {
        for (kind, version) in [(kind::HASH, 10), (kind::HASH_METADATA, 12), (kind::HASH_LISTPACK_EX, 12)] {
            let mut payload = vec![kind, 0];
            seal(&mut payload);
            assert_eq!(payload[2..4], [version, 0]);
        }
    }

    #[test]
    fn a_newer_version_is_refused() {
        let sealed = |version: u16| {
            let mut payload = b"\x00\xc0\x11".to_vec();
            payload.extend_from_slice(&version.to_le_bytes());
            let checksum = crc64(&payload);
            payload.extend_from_slice(&checksum.to_le_bytes());
            payload
        };
        assert_eq!(open(&sealed(VERSION_MAX)), Ok(&b"\x00\xc0\x11"[..]));
        assert_eq!(open(&sealed(0)), Ok(&b"\x00\xc0\x11"[..]));
        assert_eq!(open(&sealed(VERSION_MAX + 1)), Err(RdbError::NoPayload));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_payload_opens_and_a_damaged_one_does_not(
            content in proptest::collection::vec(any::<u8>(), 0..100),
            at: proptest::sample::Index,
            flip in 1_u8..,
        ) {
            let mut payload = content.clone();
            seal(&mut payload);
            prop_assert_eq!(open(&payload), Ok(&content[..]));
            let at = at.index(payload.len());
            payload[at] ^= flip;
            prop_assert_eq!(open(&payload), Err(RdbError::NoPayload));
            prop_assert_eq!(open(&payload[..at.min(9)]), Err(RdbError::NoPayload));
        }
    }
}
