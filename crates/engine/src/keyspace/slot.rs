//! Location of a key: its hash slot, as in Redis Cluster, and its hash within a table.

use foldhash::quality::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;

/// Number of hash slots, as in Redis Cluster.
pub const SLOTS: usize = 16_384;

/// Seeded once per process, so that clients cannot choose keys that share a bucket.
static STATE: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// Hash of a key, by which tables order their entries. It differs between processes and is never
/// stored.
#[inline]
pub fn hash(key: &[u8]) -> u64 {
    let mut hasher = STATE.build_hasher();
    hasher.write(key);
    hasher.finish()
}

/// Hash slot of a key: CRC16 modulo [`SLOTS`] of the key, or of the part between its first `{` and
/// the next `}` if that is not empty.
#[inline]
pub fn slot(key: &[u8]) -> usize {
    let (checksum, has_brace) = scan(key);
    // Most keys have no braces.
    let checksum = if has_brace { scan(hash_tag(key)).0 } else { checksum };
    usize::from(checksum) % SLOTS
}

#[cold]
fn hash_tag(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|&byte| byte == b'{') else { return key };
    let inside = &key[open + 1..];
    match inside.iter().position(|&byte| byte == b'}') {
        Some(close) if close > 0 => &inside[..close],
        _ => key,
    }
}

/// CRC-16/XMODEM tables for eight bytes at a time: `TABLES[n][b]` is the CRC of byte `b` followed
/// by `n` zero bytes.
static TABLES: [[u16; 256]; 8] = tables();

const fn tables() -> [[u16; 256]; 8] {
    let mut tables = [[0_u16; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[zeros - 1][byte];
            tables[zeros][byte] = (before << 8) ^ tables[0][(before >> 8) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

/// Returns the CRC16 of `bytes` and whether they contain a `{`, eight bytes at a time. Every
/// command runs this on its key.
#[inline]
fn scan(bytes: &[u8]) -> (u16, bool) {
    // Leading zeros do not change the checksum, so the partial word goes first.
    let (rest, words) = bytes.as_rchunks::<8>();
    let first = behind_zeros(rest);
    let (mut checksum, mut has_brace) = (go_on(0, first), has_brace(first));
    for word in words {
        let word = u64::from_le_bytes(*word);
        checksum = go_on(checksum, word);
        has_brace |= self::has_brace(word);
    }
    (checksum, has_brace)
}

/// Returns fewer than eight bytes as the last bytes of a word that is otherwise zero.
#[inline]
fn behind_zeros(bytes: &[u8]) -> u64 {
    let count = bytes.len();
    let word = match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        // Where the two overlap, their bytes are equal.
        (Some(front), Some(back)) => {
            let (front, back) = (u32::from_le_bytes(*front), u32::from_le_bytes(*back));
            u64::from(front) | u64::from(back) << (8 * (count - 4))
        }
        _ => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    // In two steps, because a shift by the full 64 bits (no bytes) is not allowed.
    word << (4 * (8 - count)) << (4 * (8 - count))
}

/// Extends the checksum by eight bytes, the first one in the lowest bits.
#[inline]
fn go_on(checksum: u16, word: u64) -> u16 {
    let word = word ^ u64::from(checksum.swap_bytes());
    (0..8).fold(0, |sum, index| sum ^ TABLES[7 - index][(word >> (8 * index)) as usize & 0xff])
}

/// Whether one of the eight bytes is `{`.
#[inline]
fn has_brace(word: u64) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    // A zero byte marks a match. A borrow sets the high bit only of a zero byte or of one above a
    // zero byte.
    let differing = word ^ (ONES * u64::from(b'{'));
    differing.wrapping_sub(ONES) & !differing & (ONES << 7) != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn slots_are_those_of_redis_cluster() {
        assert_eq!(scan(b"123456789"), (0x31c3, false));
        assert_eq!(slot(b"foo"), 12_182);
        assert_eq!(slot(b"{user1000}.following"), slot(b"{user1000}.followers"));
        assert_eq!(slot(b"foo{}bar"), usize::from(scan(b"foo{}bar").0) % SLOTS);
        assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn eight_bytes_at_a_time_equal_one_at_a_time(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), b'x'..b'~'], 0..100)
        ) {
            let slow = bytes
                .iter()
                .fold(0_u16, |crc, &byte| (crc << 8) ^ TABLES[0][((crc >> 8) as u8 ^ byte) as usize]);
            prop_assert_eq!(scan(&bytes), (slow, bytes.contains(&b'{')));
        }
    }
}
